"""Changes of layout, and ops within a lane: constants, broadcasts, transposes, casts, steps, masks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from mlir import ir

from xegpu_py.ir.dense import dense_elements
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.layout import LayoutError, NestedLayout, reshape
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.layouts.relations import relation
from xegpu_py.passes.common.values import element_of, integers, shape_of
from xegpu_py.passes.vector_distribute.accesses import through_memory
from xegpu_py.passes.vector_distribute.distributor import Distributor, pattern
from xegpu_py.passes.vector_distribute.lanes import constant_part, moved
from xegpu_py.passes.vector_distribute.moves import moves


@pattern("arith.constant", "ub.poison")
def constant(d: Distributor, op: ir.Operation) -> None:
    """A constant of the part's shape; if its elements differ, the lane's own ones."""
    result = op.results[0]
    kind = d.part_type(d.layout(op, result), element_of(result))
    if op.name == "ub.poison":
        d.replace_parts(op, build.like(op, [kind], []).results[0])
        return
    value = ir.DenseElementsAttr(op.attributes["value"])
    if value.is_splat:
        d.replace_parts(op, build.constant(kind, value.get_splat_value()))
    else:
        d.replace_parts(op, constant_part(d, d.layout(op, result), dense_elements(value)))


def spread(part: ir.Value, dims: Sequence[int], layout: NestedLayout) -> ir.Value:
    """Broadcast a part with the dimensions `dims` of a layout (-1: a dimension of size 1) to the layout's part."""
    rank, source = layout.rank, shape_of(part)
    unit = [1] * (3 * rank)
    for level, (k, i) in itertools.product(range(3), enumerate(dims)):
        if i >= 0:
            unit[level * rank + i] = source[level * len(dims) + k]
    return build.broadcast(build.shape_cast(part, unit), build.with_shape(part.type, layout.distributed_shape))


@pattern("vector.broadcast")
def _broadcast(d: Distributor, op: ir.Operation) -> None:
    """Broadcast batches, outers and elements separately."""
    result, source = op.results[0], op.operands[0]
    layout = d.layout(op, result)
    if source not in d.layouts:
        if isinstance(source.type, ir.VectorType):
            d.layout(op, source)
        d.replace_parts(op, build.broadcast(source, d.part_type(layout, element_of(result))))
        return
    slots = relation(op)
    assert slots is not None
    d.replace_parts(op, spread(d.part(source), slots[-1].dims, layout))


def transposed(part: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """Permute a part's batches, outers and elements alike."""
    n = len(permutation)
    return build.transpose(part, [level * n + i for level in range(3) for i in permutation])


@pattern("vector.transpose")
def _transpose(d: Distributor, op: ir.Operation) -> None:
    """Transpose batches, outers and elements separately."""
    d.replace_parts(op, transposed(d.part(op.operands[0]), integers(op.attributes["permutation"])))


def index_vector(d: Distributor, layout: NestedLayout, dim: int) -> ir.Value:
    """The indices in a dimension of a lane's elements, a vector of batch x outer x element."""
    tiles = [layout.batch_tile[dim], layout.outer_tile[dim], layout.element_tile[dim]]
    element, thread = layout.element_tile[dim], layout.thread_tile[dim]
    steps = (layout.outer_tile[dim] * thread * element, thread * element, 1)
    places = sum(n * step for n, step in zip(np.indices(tiles), steps))
    table, base = build.dense_integers(places, build.index_type()), d.base(layout, dim)
    return table if base == 0 else build.binary("addi", table, build.broadcast(build.index(base), table.type))


@pattern("vector.step")
def step(d: Distributor, op: ir.Operation) -> None:
    """The indices of a lane's elements."""
    d.replace_parts(op, index_vector(d, d.layout(op, op.results[0]), 0))


@pattern("vector.create_mask", "vector.constant_mask")
def mask(d: Distributor, op: ir.Operation) -> None:
    """True where the index is below the bound in each dimension."""
    layout = d.layout(op, op.results[0])
    if op.name == "vector.create_mask":
        bounds = list(op.operands)
    else:
        bounds = [build.index(n) for n in ir.DenseI64ArrayAttr(op.attributes["mask_dim_sizes"])]
    total = None if bounds else build.constant(d.part_type(layout, build.integer_type(1)), True)
    for i, bound in enumerate(bounds):
        indices = index_vector(d, layout, i)
        inside = spread(build.compare("slt", indices, build.broadcast(bound, indices.type)), [i], layout)
        total = inside if total is None else build.make("arith.andi", inside.type, total, inside)
    d.replace_parts(op, total)


def converted(d: Distributor, part: ir.Value, source: NestedLayout, target: NestedLayout) -> ir.Value:
    """Convert a part to another layout: unchanged, by reordering registers, by shuffles, or through shared memory."""
    how = moves(source, target, d.subgroup_size)
    if how is None:
        return through_memory(d, part, source, target)[0]
    return moved(d, part, how, d.part_type(target, element_of(part)))


@pattern("iree_vector_ext.to_layout")
def to_layout(d: Distributor, op: ir.Operation) -> None:
    """Convert the layout; emits nothing if the lanes already have their elements."""
    value, result = op.operands[0], op.results[0]
    target = d.layout(op, result)
    d.replace_parts(op, converted(d, d.part(value), d.layouts.get(value, target), target))


@pattern("vector.shape_cast")
def shape_cast(d: Distributor, op: ir.Operation) -> None:
    """Convert to the result's layout. Elements keep their row-major number."""
    given, made = op.operands[0], op.results[0]
    for known, other in ((given, made), (made, given)):
        if known in d.layouts and other not in d.layouts:
            try:
                reshape(d.layouts[known], shape_of(other))
            except LayoutError as e:
                message = f"cannot be distributed because the layout of its {other.type} is not known"
                emit_error(op, message, str(e), "set the layout with iree_vector_ext.to_layout")
    d.replace_parts(op, converted(d, d.part(given), d.layout(op, given), d.layout(op, made)))
