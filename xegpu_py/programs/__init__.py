"""Whole programs: MLIR modules whose host code allocates memory, launches kernels and prints.

    program = xegpu_py.load_program("gemm.mlir")
    program.main()

`program` has the public API. Each call of a host function starts a child process (`process`; `child` is its code). In
the child, `lowering` replaces the host code's gpu ops by calls and lowers the rest to LLVM, `device` executes those
calls, and `runner_utils` and `imex_utils` define the library functions that such programs call.
"""

from xegpu_py.programs.load import HostFunction, Program, load_program

__all__ = ["HostFunction", "Program", "load_program"]
