"""XeTile and XeGPU for Intel Xe GPUs, in Python on MLIR.

For example:

    import xegpu_py

    module = xegpu_py.parse("kernel.mlir")
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize,xegpu-dce)")
    print(module)
"""

import importlib
from typing import TYPE_CHECKING, Any

from xegpu_py import passes  # noqa: F401  (registers them)
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.module import Context, Module, parse
from xegpu_py.ir.passes import Pass, collector_paused, register_pass, run_pipeline

if TYPE_CHECKING:
    from xegpu_py.bisection import Bisection, bisect
    from xegpu_py.language import Config, Constexpr, autotune, cdiv, function, heuristics, jit, next_power_of_2, testing
    from xegpu_py.lower_kernel import compile
    from xegpu_py.programs.load import Program, load_program
    from xegpu_py.runtime.device_memory import zeros_aligned
    from xegpu_py.runtime.host_arrays import PointerTable
    from xegpu_py.runtime.kernel import CompiledKernel, Kernel
    from xegpu_py.tuning.search import tune
    from xegpu_py.tuning.space import Space
    from xegpu_py.upstream import import_upstream

__all__ = [
    "Bisection",
    "CompiledKernel",
    "Config",
    "Constexpr",
    "Context",
    "Diagnostic",
    "DiagnosticError",
    "Kernel",
    "Module",
    "Pass",
    "PointerTable",
    "Program",
    "Space",
    "autotune",
    "bisect",
    "cdiv",
    "compile",
    "function",
    "heuristics",
    "import_upstream",
    "jit",
    "load_program",
    "next_power_of_2",
    "parse",
    "register_pass",
    "run_pipeline",
    "testing",
    "tune",
    "zeros_aligned",
]

_MODULES = {
    "Kernel": "lower_kernel",
    "Bisection": "bisection",
    "bisect": "bisection",
    "CompiledKernel": "runtime.kernel",
    "compile": "lower_kernel",
    "Config": "language",
    "Constexpr": "language",
    "autotune": "language",
    "heuristics": "language",
    "cdiv": "language",
    "function": "language",
    "import_upstream": "upstream",
    "jit": "language",
    "next_power_of_2": "language",
    "testing": "language",
    "Space": "tuning.space",
    "tune": "tuning.search",
    "Program": "programs",
    "load_program": "programs",
    "PointerTable": "runtime.host_arrays",
    "zeros_aligned": "runtime.device_memory",
}


def __getattr__(name: str) -> Any:
    # Tools that only read and print IR start without the engines.
    module = _MODULES.get(name)
    if module:
        with collector_paused():
            return getattr(importlib.import_module(f"xegpu_py.{module}"), name)
    raise AttributeError(f"module 'xegpu_py' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
