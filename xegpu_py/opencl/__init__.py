"""OpenCL C: programs that Intel's compiler ocloc compiles to vISA, run by the engines."""

from xegpu_py.opencl.compiler import DEFAULT, CompileError, is_path
from xegpu_py.opencl.program import Kernel, Program, compile, load, local

__all__ = ["DEFAULT", "CompileError", "Kernel", "Program", "compile", "is_path", "load", "local"]
