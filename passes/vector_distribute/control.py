"""The function's end."""

from __future__ import annotations

from mlir import ir
from xegpu_py.dialects import iree_vector_ext
from xegpu_py.passes.vector_distribute.distributor import Distributor, pattern


@pattern("func.return", "gpu.return")
def leave(d: Distributor, op: ir.Operation) -> None:
    """What goes out of the function is whole."""
    for i, value in enumerate(list(op.operands)):
        if value in d.layouts:
            op.operands[i] = iree_vector_ext.ToSimdOp(d.part(value), output=value.type).operation.results[0]
