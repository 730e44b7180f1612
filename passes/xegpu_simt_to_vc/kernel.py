"""One kernel of work items to one of subgroups."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.xegpu_simt_to_vc import (
    SUBGROUP_SIZE,
    WORK_ITEMS,
    blocks,
    control,
    lanes,
    memory,
    transfers,
    vectors,
)
from xegpu_py.passes.xegpu_simt_to_vc.fragments import Placements
from xegpu_py.passes.xegpu_simt_to_vc.uniformity import Uniformity
from xegpu_py.passes.xegpu_simt_to_vc.widen import Held, Widener

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, position_of

ROOMS = (blocks, control, lanes, memory, transfers, vectors)
"""The modules that register rules."""

_BLOCK_SIZE = "known_block_size"


def widen_kernel(func: ir.Operation, count: int, placements: Placements, because: ir.Operation) -> None:
    """Rewrite a `gpu.func` for subgroups of `count` work items.

    Args:
        because: the op that makes it a kernel of work items.

    Raises:
        DiagnosticError: at the op that cannot be rewritten.
    """
    if len(func.regions[0].blocks) != 1:
        message, where = "kernels of work items must have structured control flow", position_of(func.location)
        note = Diagnostic("note", "xegpu-lift-cf makes scf ops of branches", where)
        raise DiagnosticError([Diagnostic("error", f"'gpu.func' op {message}", where, (note,))])
    body = func.regions[0].blocks[0]
    size = func.attributes.get(_BLOCK_SIZE)
    known = tuple(size) if isinstance(size, ir.DenseI32ArrayAttr) else None
    attributes = {n: func.attributes[n] for n in func.attributes if n != SUBGROUP_SIZE}
    with func.location, ir.InsertionPoint(func):
        attributes[WORK_ITEMS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
        made = ir.Operation.create("gpu.func", [], [], attributes, regions=1)
        block = ir.Block.create_at_start(made.regions[0], [a.type for a in body.arguments])
        w = Widener(count, Uniformity(func), placements, because, block_size=known)
        for old, new in zip(body.arguments, block.arguments):
            w.held[old] = Held(new)
        with ir.InsertionPoint(block):
            w.mask = lanes.tail(w)
            w.block(body)
            ir.Operation.create("gpu.return", [], [])
    func.erase()
