"""Changes of layout."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.values import element_of, shape_of
from xegpu_py.passes.vector_distribute.distributor import Distributor, pattern
from xegpu_py.passes.vector_distribute.lanes import moved
from xegpu_py.passes.vector_distribute.memory import through_memory
from xegpu_py.passes.vector_distribute.moves import moves

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.layout import LayoutError, NestedLayout, reshape


def converted(d: Distributor, part: ir.Value, source: NestedLayout, target: NestedLayout) -> ir.Value:
    """A part in another layout: as it is, its registers in another order, by shuffles, or through shared memory."""
    how = moves(source, target, d.subgroup_size)
    if how is None:
        return through_memory(d, part, source, target)[0]
    return moved(d, part, how, d.part_type(target, element_of(part)))


@pattern("iree_vector_ext.to_layout")
def to_layout(d: Distributor, op: ir.Operation) -> None:
    """Nothing where lanes have what they need already."""
    value, result = op.operands[0], op.results[0]
    target = d.layout(op, result)
    d.replace_parts(op, converted(d, d.part(value), d.layouts.get(value, target), target))


@pattern("vector.shape_cast")
def shape_cast(d: Distributor, op: ir.Operation) -> None:
    """Elements go where the result's layout has those of their row-major number, which is nowhere if that follows."""
    given, made = op.operands[0], op.results[0]
    for known, other in ((given, made), (made, given)):
        if known in d.layouts and other not in d.layouts:
            try:
                reshape(d.layouts[known], shape_of(other))
            except LayoutError as e:
                message = f"cannot be distributed, as its {other.type} is given no layout and none follows"
                emit_error(op, message, str(e), "give it one with iree_vector_ext.to_layout")
    d.replace_parts(op, converted(d, d.part(given), d.layout(op, given), d.layout(op, made)))
