"""Rewrites one kernel of work items as one of subgroups."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.elements import check_elements
from xegpu_py.passes.common.fragments import Placements
from xegpu_py.passes.common.kernels import SUBGROUP_SIZE, WORK_ITEMS
from xegpu_py.passes.xegpu_simt_to_vc.lanes import tail
from xegpu_py.passes.xegpu_simt_to_vc.widen import Widener

from xegpu_py.ir.diagnostics import emit_error


def widen_kernel(func: ir.Operation, count: int, placements: Placements, because: ir.Operation) -> None:
    """Rewrite a `gpu.func` for subgroups of `count` work items.

    Args:
        because: the op that identifies it as a kernel of work items.

    Raises:
        DiagnosticError: at the op that cannot be rewritten.
    """
    if len(func.regions[0].blocks) != 1:
        message = "kernels of work items must have structured control flow"
        emit_error(func, message, "xegpu-lift-cf makes scf ops of branches")
    check_elements(func)
    size = func.attributes.get("known_block_size")
    w = Widener(func, count, placements, because, tuple(size) if isinstance(size, ir.DenseI32ArrayAttr) else None)
    block = func.regions[0].blocks[0]
    with func.location, ir.InsertionPoint.at_block_begin(block):
        func.attributes[WORK_ITEMS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
        if SUBGROUP_SIZE in func.attributes:
            del func.attributes[SUBGROUP_SIZE]
        ops = list(block.operations)
        w.mask = tail(w)
        for op in ops:
            w.op(op.operation)
        w.finish()
