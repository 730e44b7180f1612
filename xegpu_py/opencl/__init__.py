"""OpenCL C: programs that Intel's compiler ocloc compiles to vISA, run by the engines."""

from xegpu_py.opencl.program import CompileError, Kernel, Program, compile, local

__all__ = ["CompileError", "Kernel", "Program", "compile", "local"]
