"""XeTile and XeGPU for Intel Xe GPUs, in Python on MLIR.

import xegpu_py

module = xegpu_py.parse("kernel.mlir")
xegpu_py.run_pipeline(module, "builtin.module(canonicalize,xegpu-dce)")
print(module)
"""

from xegpu_py import passes
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.module import Module, parse
from xegpu_py.ir.passes import Pass, register_pass, run_pipeline

passes.load()

__all__ = [
    "Context",
    "Diagnostic",
    "DiagnosticError",
    "Module",
    "Pass",
    "parse",
    "register_pass",
    "run_pipeline",
]
