"""Ops of registers alone: elementwise ops, constants, broadcasts, transposes, casts, steps and masks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from mlir import ir
from xegpu_py.passes.vector_distribute.distributor import Distributor, attributes_of, distributes, element_of
from xegpu_py.passes.vector_distribute.lanes import constant_part
from xegpu_py.passes.vector_layout_analysis.relations import permutation_of, relation

from xegpu_py.ir.dense import dense_elements
from xegpu_py.layout import NestedLayout


@distributes("elementwise", "vector.fma", "vector.gather")
def elementwise(d: Distributor, op: ir.Operation) -> None:
    """The same op on parts."""
    if relation(op) is None:
        d.fail(op, "cannot be distributed", "its vectors differ in shape")
    types = [d.part_type(d.layout(op, r), element_of(r)) if r in d.layouts else r.type for r in op.results]
    made = ir.Operation.create(op.name, types, [d.part(v) for v in op.operands], attributes_of(op))
    d.replace(op, *made.results)


@distributes("arith.constant", "ub.poison")
def constant(d: Distributor, op: ir.Operation) -> None:
    """A constant of the part's shape; of elements that differ, the lane's own."""
    result = op.results[0]
    kind = d.part_type(d.layout(op, result), element_of(result))
    if op.name == "ub.poison":
        d.replace(op, d.create("ub.poison", [kind], [], attributes_of(op)))
        return
    value = ir.DenseElementsAttr(op.attributes["value"])
    if value.is_splat:
        d.replace(op, d.splat(kind, value.get_splat_value()))
    else:
        d.replace(op, constant_part(d, d.layout(op, result), dense_elements(value)))


def spread(d: Distributor, part: ir.Value, dims: Sequence[int], layout: NestedLayout) -> ir.Value:
    """Broadcast a part whose dimensions are the dimensions `dims` of a layout (-1: of size 1) to all of it."""
    rank, shape = layout.rank, layout.distributed_shape
    source = ir.VectorType(part.type).shape
    element = element_of(part)
    unit = [1] * (3 * rank)
    for level, (k, i) in itertools.product(range(3), enumerate(dims)):
        if i >= 0:
            unit[level * rank + i] = source[level * len(dims) + k]
    cast = ir.VectorType.get(unit, element)
    if part.type != cast:
        part = d.create("vector.shape_cast", [cast], [part])
    kind = ir.VectorType.get(shape, element)
    return part if part.type == kind else d.create("vector.broadcast", [kind], [part])


@distributes("vector.broadcast")
def broadcast(d: Distributor, op: ir.Operation) -> None:
    """Broadcast each level by itself."""
    result, source = op.results[0], op.operands[0]
    layout = d.layout(op, result)
    if source not in d.layouts:
        if isinstance(source.type, ir.VectorType):
            d.layout(op, source)
        d.replace(op, d.create("vector.broadcast", [d.part_type(layout, element_of(result))], [source]))
        return
    slots = relation(op)
    assert slots is not None
    d.replace(op, spread(d, d.part(source), slots[-1].dims, layout))


def transposed(d: Distributor, part: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """A part with the dimensions of each level in another order."""
    n = len(permutation)
    if list(permutation) == list(range(n)):
        return part
    levels = [level * n + i for level in range(3) for i in permutation]
    shape = ir.VectorType(part.type).shape
    kind = ir.VectorType.get([shape[i] for i in levels], element_of(part))
    return d.create("vector.transpose", [kind], [part], {"permutation": ir.DenseI64ArrayAttr.get(levels)})


@distributes("vector.transpose")
def transpose(d: Distributor, op: ir.Operation) -> None:
    """Transpose each level by itself."""
    d.replace(op, transposed(d, d.part(op.operands[0]), permutation_of(op)))


def index_vector(d: Distributor, layout: NestedLayout, dim: int) -> ir.Value:
    """The indices in a dimension of what a lane has, a vector of batch x outer x element."""
    tiles = [layout.batch_tile[dim], layout.outer_tile[dim], layout.element_tile[dim]]
    element, thread = layout.element_tile[dim], layout.thread_tile[dim]
    steps = (layout.outer_tile[dim] * thread * element, thread * element, 1)
    places = sum(n * step for n, step in zip(np.indices(tiles), steps))
    kind = ir.VectorType.get(tiles, ir.IndexType.get())
    table = d.constant(ir.DenseElementsAttr.get(np.ascontiguousarray(places, np.int64), type=kind))
    base = d.base(layout, dim)
    if base is None:
        return table
    return d.create("arith.addi", [kind], [table, d.create("vector.broadcast", [kind], [base])])


@distributes("vector.step")
def step(d: Distributor, op: ir.Operation) -> None:
    """The numbers of the elements that a lane has."""
    d.replace(op, index_vector(d, d.layout(op, op.results[0]), 0))


@distributes("vector.create_mask", "vector.constant_mask")
def mask(d: Distributor, op: ir.Operation) -> None:
    """In each dimension, whether the index is below the bound."""
    layout = d.layout(op, op.results[0])
    if op.name == "vector.create_mask":
        bounds = list(op.operands)
    else:
        bounds = [d.index(n) for n in ir.DenseI64ArrayAttr(op.attributes["mask_dim_sizes"])]
    i1 = ir.IntegerType.get_signless(1)
    total = d.splat(d.part_type(layout, i1), ir.BoolAttr.get(True)) if not bounds else None
    below = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)
    for i, bound in enumerate(bounds):
        indices = index_vector(d, layout, i)
        limit = d.create("vector.broadcast", [indices.type], [bound])
        kind = ir.VectorType.get(ir.VectorType(indices.type).shape, i1)
        inside = spread(d, d.create("arith.cmpi", [kind], [indices, limit], {"predicate": below}), [i], layout)
        total = inside if total is None else d.create("arith.andi", [inside.type], [total, inside])
    d.replace(op, total)
