"""OpenCL C: programs that Intel's compiler ocloc compiles to vISA, run by the engines.

Imports the extension `profile`. Imports the extension `fidelity`.
"""

from xegpu_py.extensions.opencl.comparison import Call, Comparison, compare, stated_calls
from xegpu_py.extensions.opencl.compiler import DEFAULT, CompileError, is_path
from xegpu_py.extensions.opencl.program import Kernel, Program, compile, load, local

__all__ = [
    "DEFAULT",
    "Call",
    "Comparison",
    "CompileError",
    "Kernel",
    "Program",
    "compare",
    "compile",
    "is_path",
    "load",
    "local",
    "stated_calls",
]
