"""XeTile and XeGPU for Intel Xe GPUs, in Python on MLIR.

For example:

    import xegpu_py

    module = xegpu_py.parse("kernel.mlir")
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize,xegpu-dce)")
    print(module)
"""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from xegpu_py import interrupts  # noqa: F401  (interrupts are handled first, since imports take long)
from xegpu_py.collector import collector_paused
from xegpu_py.deferred import lazy_binding
from xegpu_py.plugins import installed, plugin

if TYPE_CHECKING:
    from xegpu_py.bisection import Bisection, bisect
    from xegpu_py.extensions.portability.verdicts import portability
    from xegpu_py.extensions.programs.load import Program, load_program
    from xegpu_py.extensions.tuning.autotune import Config, autotune, testing
    from xegpu_py.extensions.tuning.search import tune
    from xegpu_py.extensions.tuning.space import Space
    from xegpu_py.ir.context import Context
    from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
    from xegpu_py.ir.module import Module, parse
    from xegpu_py.ir.passes import Pass, register_pass, run_pipeline
    from xegpu_py.language import Constexpr, cdiv, function, heuristics, jit, next_power_of_2
    from xegpu_py.lower_kernel import compile
    from xegpu_py.runtime.device_memory import zeros_aligned
    from xegpu_py.runtime.host_arrays import PointerTable
    from xegpu_py.runtime.kernel import CompiledKernel, Kernel
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
    "portability",
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
    "Context": "ir.context",
    "Diagnostic": "ir.diagnostics",
    "DiagnosticError": "ir.diagnostics",
    "Module": "ir.module",
    "Pass": "ir.passes",
    "parse": "ir.module",
    "register_pass": "ir.passes",
    "run_pipeline": "ir.passes",
    "Constexpr": "language",
    "heuristics": "language",
    "cdiv": "language",
    "function": "language",
    "import_upstream": "upstream",
    "jit": "language",
    "next_power_of_2": "language",
    "PointerTable": "runtime.host_arrays",
    "zeros_aligned": "runtime.device_memory",
}


def __getattr__(name: str) -> Any:
    # Tools that only read and print IR start without the engines, and Triton finds its backend without the compiler.
    module = _MODULES.get(name)
    # `from xegpu_py import passes` asks for the attribute before the module is imported. The names of extensions are in
    # the metadata of all installed distributions, which takes long to read.
    if not module and (name.startswith("__") or _is_module(name) or name not in installed()):
        raise AttributeError(f"module 'xegpu_py' has no attribute '{name}'")
    with collector_paused(), lazy_binding():
        return getattr(importlib.import_module(f"xegpu_py.{module}"), name) if module else plugin(name)


def _is_module(name: str) -> bool:
    spec = find_spec(f"{__name__}.{name}")
    # A folder without files in it is a module too, but has no location.
    return spec is not None and spec.has_location


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *installed()})
