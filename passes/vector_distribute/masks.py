"""Ops under a `vector.mask`."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.combining import identity
from xegpu_py.passes.vector_distribute.distributor import Distributor, attributes_of, distributes, element_of
from xegpu_py.passes.vector_distribute.memory import transfer
from xegpu_py.passes.vector_distribute.reductions import contracted, kind_of, multi_reduced, reduced
from xegpu_py.passes.vector_distribute.shapes import spread, transposed
from xegpu_py.passes.vector_layout_analysis.relations import masked_op, masked_over


@distributes("vector.mask")
def mask(d: Distributor, op: ir.Operation) -> None:
    """The masked op: elements that are masked out are neutral, or are not accessed, or are those passed through."""
    inner = masked_op(op)
    if inner is None:
        made = [d.part(v) for v in list(op.regions[0].blocks[0].operations)[-1].operands]
    elif inner.name in ("vector.transfer_read", "vector.transfer_write"):
        made = transfer(d, inner, op.operands[0])
    elif inner.name in ("vector.multi_reduction", "vector.reduction"):
        d.layout(op, op.operands[0])
        part = d.part(inner.operands[0])
        other = d.splat(part.type, identity(kind_of(inner), element_of(inner.operands[0])))
        chosen = d.create("arith.select", [part.type], [d.part(op.operands[0]), part, other])
        made = [(multi_reduced if inner.name == "vector.multi_reduction" else reduced)(d, inner, chosen)]
    elif inner.name == "vector.contract":
        d.layout(op, op.operands[0])
        made = [contracted(d, inner, d.part(op.operands[0]))]
    elif inner.name == "vector.gather":
        d.layout(op, op.operands[0])
        made = [_gathered(d, inner, d.part(op.operands[0]))]
    else:
        note = "masks of transfers, gathers, reductions and contractions are"
        d.fail(op, f"on {inner.name} cannot be distributed", note)
    if len(op.operands) > 1:
        made = [_passed(d, op, inner, made[0])]
    d.replace(op, *made)


def _gathered(d: Distributor, gather: ir.Operation, mask: ir.Value) -> ir.Value:
    """A gather of what neither mask leaves out."""
    operands = [d.part(v) for v in gather.operands]
    # The last ones are the gather's own mask, and what stands where that is off.
    own = len(operands) - 2
    operands[own] = d.create("arith.andi", [mask.type], [operands[own], mask])
    return d.create("vector.gather", [operands[-1].type], operands, attributes_of(gather))


def _passed(d: Distributor, op: ir.Operation, inner: ir.Operation | None, made: ir.Value) -> ir.Value:
    """What is made; where the mask is off, what is to pass through."""
    if inner is None or inner.name != "vector.transfer_read":
        d.fail(op, "cannot be distributed, as it passes something through", "masked reads may")
    layout, over = d.layout(op, op.results[0]), masked_over(inner)
    assert over is not None
    d.layout(op, op.operands[0])
    order = sorted(range(len(over)), key=lambda k: over[k])
    flags = transposed(d, d.part(op.operands[0]), order)
    flags = spread(d, flags, sorted(over), layout)
    return d.create("arith.select", [made.type], [flags, made, d.part(op.operands[1])])
