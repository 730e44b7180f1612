"""XeTile and XeGPU for Intel Xe GPUs, in Python on MLIR.

import xegpu_py

module = xegpu_py.parse("kernel.mlir")
module.run("builtin.module(canonicalize,xegpu-dce)")
print(module)
"""

from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.module import Module, parse

__all__ = ["Context", "Diagnostic", "DiagnosticError", "Module", "parse"]
