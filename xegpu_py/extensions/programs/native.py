"""The native code that host code may contain, and the functions that it may call.

Host code is compiled for the processor that runs it, and its linker knows every function of the process. Untrusted
programs would reach the C library, and with it the system, so the lowered code is checked before it is compiled.
"""

from __future__ import annotations

from collections.abc import Container

from mlir import ir

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.ir_queries import symbol_of

_F64 = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fma fmax
fmin fmod log log10 log1p log2 pow remainder rint round roundeven sin sincos sinh sqrt tan tanh tgamma lgamma trunc"""
"""The C mathematics to which MLIR lowers the dialects math and arith."""

C_FUNCTIONS = frozenset(
    (*_F64.split(), *(f"{name}f" for name in _F64.split()), "malloc", "aligned_alloc", "free", "memcpy", "memmove",
     "memset", "abort", "memrefCopy")
)  # fmt: skip
"""The functions of the C library that host code may call, and MLIR's function that copies memrefs."""

_NOTE = (
    "host code that is trusted may do this with --allow-native, or allow_native=True in Python: it can then do "
    "everything that its user can"
)


def check_native(root: ir.Operation, functions: Container[str]) -> None:
    """Refuse native code that could do more than compute, print and launch kernels.

    Args:
        root: host code in the LLVM dialect.
        functions: the runtime's functions. Of others, those in `C_FUNCTIONS` may be called.

    Raises:
        DiagnosticError: at the first such op.
    """
    for op in walk(root):
        name = op.name
        if name in ("llvm.inline_asm", "llvm.call_intrinsic"):
            emit_error(op, "in host code is refused: it can contain any instruction", _NOTE)
        elif "llvm.module_asm" in op.attributes:
            emit_error(op, "has inline assembly, which is refused in host code", _NOTE)
        elif name in ("llvm.call", "llvm.invoke") and "callee" not in op.attributes:
            emit_error(op, "calls a pointer, which is refused in host code", _NOTE)
        elif name == "llvm.func" and "passthrough" in op.attributes:
            # Attributes such as probe-stack name functions to call.
            emit_error(op, "has the attribute 'passthrough', which is refused in host code", _NOTE)
        elif name == "llvm.func" and not len(op.regions[0].blocks):
            if symbol_of(op) not in functions and symbol_of(op) not in C_FUNCTIONS:
                message = f"declares function '{symbol_of(op)}', which is neither of the runtime library nor of C's"
                emit_error(op, f"{message} mathematics", _NOTE)
        elif name == "llvm.mlir.global" and _is_declared(op):
            emit_error(op, f"declares '{symbol_of(op)}' of another library, which is refused in host code", _NOTE)


def _is_declared(variable: ir.Operation) -> bool:
    """Whether a global is defined elsewhere."""
    is_defined = "value" in variable.attributes or len(variable.regions[0].blocks) > 0
    return not is_defined and str(variable.attributes["linkage"]) in (
        "#llvm.linkage<external>",
        "#llvm.linkage<extern_weak>",
    )
