"""What the MLIR bindings have under another name, or not at all, in one release or another.

Any distribution may provide `import mlir`: what differs between LLVM 21, 22 and main is looked up here and nowhere
else.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import mlir
from mlir import ir

__all__ = ["load_dialects"]

_LOAD_DIALECTS = "_ZN4mlir4irdl12loadDialectsENS_8ModuleOpE"
"""`mlir::irdl::loadDialects(mlir::ModuleOp)` by the Itanium C++ ABI; a `ModuleOp` is a pointer to its operation."""


def _of_cpp() -> Callable[[ir.Module], bool]:
    """IRDL's function that defines dialects, from the library of the bindings: LLVM 21 has no Python name for it.

    Raises:
        ImportError: if the library lacks it.
    """
    for folder in mlir.__path__:
        for path in sorted((Path(folder) / "_mlir_libs").glob("libMLIRPythonCAPI.*")):
            function = getattr(ctypes.CDLL(str(path)), _LOAD_DIALECTS, None)
            if function is not None:
                function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_bool
                pointer = ctypes.pythonapi.PyCapsule_GetPointer
                pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p

                def load(module: ir.Module) -> bool:
                    return bool(function(pointer(module.operation._CAPIPtr, b"mlir.ir.Operation._CAPIPtr")))

                return load
    raise ImportError("these MLIR bindings cannot load IRDL dialects; LLVM 21.1 or later is needed")


@lru_cache
def _loader() -> Callable[[ir.Module], object]:
    try:
        from mlir._mlir_libs._mlirDialectsIRDL import load_dialects
    except ImportError:
        return _of_cpp()
    found: Callable[[ir.Module], object] = load_dialects
    return found


def load_dialects(module: ir.Module) -> None:
    """Define the dialects of a module of `irdl` ops in its context.

    Raises:
        ImportError: if the bindings cannot.
    """
    _loader()(module)
