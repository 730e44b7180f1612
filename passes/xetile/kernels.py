"""The kernels that passes on XeTile lower, and the target of each."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.verifier import functions, walk


def kernels(root: ir.Operation) -> list[ir.Operation]:
    """The kernels in an op, or the op itself, that contain XeTile ops.

    Raises:
        DiagnosticError: at a kernel with branches between blocks.
    """
    found = []
    for func in functions(root):
        if any(op.name.startswith("xetile.") for op in walk(func)):
            if len(func.regions[0].blocks) != 1:
                emit_error(
                    func,
                    "has unstructured control flow, which is not supported with tiles",
                    "run xegpu-lift-cf first, which converts branches to scf ops",
                )
            found.append(func)
    return found
