"""LLVM's C API where MLIR's bindings have nothing: what the host is, and object code made ready to run.

The library is that which MLIR's bindings use, from the same series of wheels.
"""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_POINTER = ctypes.c_void_p

_TARGETS = {"x86_64": "X86", "amd64": "X86", "arm64": "AArch64", "aarch64": "AArch64"}
"""LLVM's name of the target of each machine that wheels are made for."""

_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "LLVMGetVersion": (None, [_POINTER] * 3),
    "LLVMGetHostCPUName": (_POINTER, []),
    "LLVMGetHostCPUFeatures": (_POINTER, []),
    "LLVMGetDefaultTargetTriple": (_POINTER, []),
    "LLVMDisposeMessage": (None, [_POINTER]),
    "LLVMGetErrorMessage": (_POINTER, [_POINTER]),
    "LLVMDisposeErrorMessage": (None, [_POINTER]),
    "LLVMCreateMemoryBufferWithMemoryRangeCopy": (_POINTER, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]),
    "LLVMOrcCreateLLJIT": (_POINTER, [_POINTER, _POINTER]),
    "LLVMOrcDisposeLLJIT": (_POINTER, [_POINTER]),
    "LLVMOrcLLJITGetMainJITDylib": (_POINTER, [_POINTER]),
    "LLVMOrcLLJITAddObjectFile": (_POINTER, [_POINTER] * 3),
    "LLVMOrcLLJITLookup": (_POINTER, [_POINTER, _POINTER, ctypes.c_char_p]),
}


class LoadError(Exception):
    """Object code that LLVM does not take."""


@dataclass(frozen=True)
class Host:
    """What LLVM compiles for.

    Attributes:
        cpu: LLVM's name of the CPU.
        features: what the CPU has, by LLVM's names.
        system: the target triple.
        version: of LLVM.
    """

    cpu: str
    features: frozenset[str]
    system: str
    version: str


@lru_cache
def _library() -> ctypes.CDLL | None:
    """LLVM's library; None where it is not, or is none that is known here."""
    spec = importlib.util.find_spec("llvm")
    target = _TARGETS.get(platform.machine().lower())
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("lib/libLLVM.*")):
            try:
                found = ctypes.CDLL(str(path))
                for name, (result, arguments) in _SIGNATURES.items():
                    function = getattr(found, name)
                    function.restype, function.argtypes = result, arguments
                for part in ("TargetInfo", "Target", "TargetMC"):
                    getattr(found, f"LLVMInitialize{target}{part}")()
            except (OSError, AttributeError):
                continue
            return found
    return None


def _text(library: ctypes.CDLL, name: str) -> str:
    """The string that a function makes."""
    pointer = getattr(library, name)()
    found = ctypes.string_at(pointer).decode()
    library.LLVMDisposeMessage(pointer)
    return found


@lru_cache
def host() -> Host | None:
    """The machine that this is; None where LLVM's library is not found."""
    library = _library()
    if library is None:
        return None
    numbers = [ctypes.c_uint() for _ in range(3)]
    library.LLVMGetVersion(*map(ctypes.byref, numbers))
    features = _text(library, "LLVMGetHostCPUFeatures").split(",")
    return Host(
        _text(library, "LLVMGetHostCPUName"),
        frozenset(f[1:] for f in features if f.startswith("+")),
        _text(library, "LLVMGetDefaultTargetTriple"),
        ".".join(str(n.value) for n in numbers),
    )


class Loaded:
    """Object code in memory.

    Attributes:
        addresses: of the functions that were asked for.
    """

    def __init__(self, code: bytes, names: Sequence[str]) -> None:
        """Load an object file, which must have functions of these names.

        Raises:
            LoadError: if it is none of this machine, or lacks one.
        """
        library = _library()
        if library is None:
            raise LoadError("LLVM's library is not found")
        jit = _POINTER()
        _check(library, library.LLVMOrcCreateLLJIT(ctypes.byref(jit), None))
        self._end = weakref.finalize(self, _dispose, library, jit)
        buffer = library.LLVMCreateMemoryBufferWithMemoryRangeCopy(code, len(code), b"kernel")
        dylib = library.LLVMOrcLLJITGetMainJITDylib(jit)
        _check(library, library.LLVMOrcLLJITAddObjectFile(jit, dylib, buffer))
        self.addresses: list[int] = []
        for name in names:
            address = ctypes.c_uint64()
            _check(library, library.LLVMOrcLLJITLookup(jit, ctypes.byref(address), name.encode()))
            self.addresses.append(address.value)


def _check(library: ctypes.CDLL, error: int | None) -> None:
    if error:
        message = library.LLVMGetErrorMessage(error)
        text = ctypes.string_at(message).decode(errors="replace")
        library.LLVMDisposeErrorMessage(message)
        raise LoadError(text)


def _dispose(library: ctypes.CDLL, jit: ctypes.c_void_p) -> None:
    """Give a JIT's memory back; what goes wrong at that is of no use to anyone."""
    error = library.LLVMOrcDisposeLLJIT(jit)
    if error:
        library.LLVMDisposeErrorMessage(library.LLVMGetErrorMessage(error))
