"""Changes of layout."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.vector_distribute.distributor import Distributor, distributes, element_of
from xegpu_py.passes.vector_distribute.lanes import moved
from xegpu_py.passes.vector_distribute.memory import through_memory
from xegpu_py.passes.vector_distribute.moves import moves

from xegpu_py.layout import NestedLayout


def converted(d: Distributor, part: ir.Value, source: NestedLayout, target: NestedLayout) -> ir.Value:
    """A part in another layout: as it is, its registers in another order, by shuffles, or through shared memory."""
    how = moves(source, target, d.subgroup_size)
    if how is None:
        return through_memory(d, part, source, target)[0]
    return moved(d, part, how, d.part_type(target, element_of(part)))


@distributes("iree_vector_ext.to_layout")
def to_layout(d: Distributor, op: ir.Operation) -> None:
    """Nothing where lanes have what they need already."""
    value, result = op.operands[0], op.results[0]
    target = d.layout(op, result)
    d.replace(op, converted(d, d.part(value), d.layouts.get(value, target), target))
