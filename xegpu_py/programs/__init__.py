"""Whole programs: MLIR modules whose host code allocates memory, launches kernels and prints.

    program = xegpu_py.load_program("gemm.mlir")
    program.main()

`program` is what a user loads and calls. Each call starts a child process (`process`, which also is what runs in it).
There `lowering` replaces the host code's gpu ops by calls and lowers the rest to LLVM, `device` serves those calls, and
`runner_utils` and `imex_utils` are the library functions that such programs call.
"""

from xegpu_py.programs.program import HostFunction, Program, load_program

__all__ = ["HostFunction", "Program", "load_program"]
