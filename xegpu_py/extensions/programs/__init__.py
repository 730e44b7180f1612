"""Whole programs: MLIR modules whose host code allocates memory, launches kernels and prints.

    program = xegpu_py.load_program("gemm.mlir")
    program.main()

`load` has the public API. Each call of a host function starts a child process, whose code is `__main__`. In the child,
`host_lowering` replaces the host code's gpu ops by calls and lowers the rest to LLVM, `device` executes those calls,
and `host_libraries` defines the library functions that such programs call.
"""

from xegpu_py.extensions.programs.load import Program, load_program

__all__ = ["Program", "load_program"]
