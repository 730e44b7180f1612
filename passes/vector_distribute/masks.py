"""Ops under a `vector.mask`."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.combining import CombiningKind
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.passes.common.builders import constant, like, make, select
from xegpu_py.passes.common.control_flow import masked_op, yielded
from xegpu_py.passes.common.layouts.relations import masked_over
from xegpu_py.passes.common.values import element_of
from xegpu_py.passes.vector_distribute.accesses import transfer
from xegpu_py.passes.vector_distribute.distributor import Distributor, pattern
from xegpu_py.passes.vector_distribute.reductions import contracted, multi_reduced, reduced
from xegpu_py.passes.vector_distribute.shapes import spread, transposed


@pattern("vector.mask")
def mask(d: Distributor, op: ir.Operation) -> None:
    """Distribute the masked op. Masked-off elements are the identity, not accessed, or taken from the passthrough."""
    inner = masked_op(op)
    if inner is None:
        made = [d.part(v) for v in yielded(op.regions[0].blocks[0])]
    elif inner.name in ("vector.transfer_read", "vector.transfer_write"):
        made = transfer(d, inner, op.operands[0])
    elif inner.name in ("vector.multi_reduction", "vector.reduction"):
        d.layout(op, op.operands[0])
        part = d.part(inner.operands[0])
        other = constant(part.type, CombiningKind.of(inner).identity(element_of(part)))
        chosen = select(d.part(op.operands[0]), part, other)
        made = [(multi_reduced if inner.name == "vector.multi_reduction" else reduced)(d, inner, chosen)]
    elif inner.name == "vector.contract":
        d.layout(op, op.operands[0])
        made = [contracted(d, inner, d.part(op.operands[0]))]
    elif inner.name == "vector.gather":
        d.layout(op, op.operands[0])
        made = [_gathered(d, inner, d.part(op.operands[0]))]
    else:
        note = "masks of transfers, gathers, reductions and contractions are"
        emit_error(op, f"on {inner.name} cannot be distributed", note)
    if len(op.operands) > 1:
        made = [_passed(d, op, inner, made[0])]
    d.replace_parts(op, *made)


def _gathered(d: Distributor, gather: ir.Operation, mask: ir.Value) -> ir.Value:
    """A gather of the elements that both masks select."""
    operands = [d.part(v) for v in gather.operands]
    # The last two operands are the gather's own mask and its passthrough.
    own = len(operands) - 2
    operands[own] = make("arith.andi", mask.type, operands[own], mask)
    return like(gather, [operands[-1].type], operands).results[0]


def _passed(d: Distributor, op: ir.Operation, inner: ir.Operation | None, made: ir.Value) -> ir.Value:
    """Select the result where the mask is set, and the passthrough elsewhere."""
    if inner is None or inner.name != "vector.transfer_read":
        emit_error(op, "with a pass-through value cannot be distributed", "a masked vector.transfer_read can have one")
    layout, over = d.layout(op, op.results[0]), masked_over(inner)
    assert over is not None
    d.layout(op, op.operands[0])
    order = sorted(range(len(over)), key=lambda k: over[k])
    flags = spread(transposed(d.part(op.operands[0]), order), sorted(over), layout)
    return select(flags, made, d.part(op.operands[1]))
