"""OpenCL C: programs that Intel's compiler ocloc compiles to vISA, run by the engines."""

from xegpu_py.opencl.compiler import CompileError
from xegpu_py.opencl.program import Kernel, Program, compile, load, local

__all__ = ["CompileError", "Kernel", "Program", "compile", "load", "local"]
