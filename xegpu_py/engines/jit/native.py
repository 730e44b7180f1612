"""Native code of a program: compiled once for each program, layout and rounding model of a process."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from mlir import ir
from mlir.execution_engine import ExecutionEngine

from xegpu_py.engines.jit.frame import Context


@lru_cache
def host_features() -> frozenset[str]:
    """What the host's CPU has, as Linux names it; empty where that cannot be read."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    line = next((x for x in text.splitlines() if x.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())


class Native:
    """Compiled code.

    Attributes:
        launch: runs the workgroups that a context names; without the interpreter lock.
        resume: goes on with the workgroup of a context.
    """

    def __init__(self, text: str) -> None:
        """Compile a module that has the functions `launch` and `resume`."""
        with ir.Context(), ir.Location.unknown():
            self._engine = ExecutionEngine(ir.Module.parse(text), opt_level=2)
        self.launch = self._function("launch")
        self.resume = self._function("resume")

    def _function(self, name: str) -> Callable[[Context], None]:
        entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._engine.raw_lookup(name))

        def call(context: Context) -> None:
            # The engine's own convention: an array of pointers to the arguments.
            argument = ctypes.c_void_p(ctypes.addressof(context))
            arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
            entry(ctypes.addressof(arguments))

        return call
