"""`vector-distribute`: distributes vectors with layouts to lanes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from mlir import ir
from mlir.dialects import gpu

from xegpu_py.ir.builtin import CombiningKind, dense_elements
from xegpu_py.ir.control_flow import masked_op, yielded
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.element_movement import WHOLE, view_of
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.layout import LayoutError, NestedLayout, reshape
from xegpu_py.passes.analysis.ir_queries import SUBGROUP_SIZES, attributes_of, element_of, integers, shape_of
from xegpu_py.passes.analysis.vector_layouts import functions, map_of, masked_over
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.lane_layout_conversion import (
    Distributor,
    apply_moves,
    constant_part,
    distribute,
    distribution_rule,
    plan_layout_moves,
    shuffle_scalar,
)
from xegpu_py.passes.rewriting.memory_access import Transfer


@register_pass("vector-distribute")
class VectorDistribute(Pass):
    """Distribute functions on vectors among lanes.

    Functions on whole vectors become functions on each lane's parts of them. Layouts are computed as by
    `vector-layout-analysis`. A vector with a layout becomes a vector of its batches, outers and elements (`batch x
    outer x element`, three times the rank). Reductions and changes of layout that involve several lanes use shuffles;
    those that involve several subgroups use shared local memory. Vectors that are arguments or results of a `func.func`
    pass through `to_simt` and `to_simd`. A distributed `gpu.func` is a kernel of work items, for `xegpu-simt-to-vc`.

        %0 = vector.transfer_read %m[%c0], %zero {in_bounds = [true]} : memref<32xf32>, vector<32xf32>
        %1 = iree_vector_ext.to_layout %0 to layout(#two_batches_of_16_lanes) : vector<32xf32>
        %2 = arith.addf %1, %1 : vector<32xf32>

    becomes

        %lane = gpu.lane_id
        %0 = vector.transfer_read %m[%lane], %zero {in_bounds = [true]} : memref<32xf32>, vector<1xf32>
        %1 = vector.insert %0, %zeros [0, 0] : vector<1xf32> into vector<2x1x1xf32>
        %at = arith.addi %lane, %c16 : index
        %2 = vector.transfer_read %m[%at], %zero {in_bounds = [true]} : memref<32xf32>, vector<1xf32>
        %3 = vector.insert %2, %1 [1, 0] : vector<1xf32> into vector<2x1x1xf32>
        %4 = arith.addf %3, %3 : vector<2x1x1xf32>
    """

    subgroup_size: int = 16

    def run(self, op: ir.Operation) -> None:
        if self.subgroup_size not in SUBGROUP_SIZES:
            self.fail(op, f"subgroup-size = {self.subgroup_size} is not one of {', '.join(map(str, SUBGROUP_SIZES))}")
        for func in functions(op):
            distribute(func, self.subgroup_size)


# Memory accesses: one for each batch and outer, of contiguous elements.


def _positions(layout: NestedLayout) -> Iterator[tuple[list[int], list[int]]]:
    """The batches and outers of a part: the position of each, and its distance from the lane's first element."""
    ranges = [range(n) for n in layout.batch_tile + layout.outer_tile]
    rank = layout.rank
    for position in itertools.product(*ranges):
        offsets = []
        for i in range(rank):
            grid = layout.thread_tile[i] * layout.element_tile[i]
            offsets.append((position[i] * layout.outer_tile[i] + position[rank + i]) * grid)
        yield list(position), offsets


class Pieces:
    """The memory accesses of a lane's part, one for each batch and outer.

    Attributes:
        memory: the memref.
        indices: the first indices of the whole vector in memory.
        places: for each dimension of the vector its dimension of memory; None if it is broadcast.
    """

    def __init__(
        self, d: Distributor, memory: ir.Value, indices: Sequence[build.Index], places: Sequence[int | None]
    ) -> None:
        self.d, self.memory, self.indices, self.places = d, memory, list(indices), list(places)

    def at(self, layout: NestedLayout, offsets: Sequence[int]) -> list[ir.Value]:
        """The indices of a piece."""
        indices = list(self.indices)
        for i, dimension in enumerate(self.places):
            if dimension is not None:
                indices[dimension] = build.add(indices[dimension], self.d.base(layout, i), offsets[i])
        return [build.index(n) for n in indices]

    def read(
        self, layout: NestedLayout, padding: ir.Value, attributes: dict[str, ir.Attribute], mask: _Mask
    ) -> ir.Value:
        """Read a lane's part."""
        d, element = self.d, padding.type
        whole = build.zero(d.part_type(layout, element))
        for position, offsets in _positions(layout):
            piece_mask = mask.piece(position)
            operands = [self.memory, *self.at(layout, offsets), padding, *piece_mask]
            sizes = [1, len(self.indices), 1, len(piece_mask)]
            kind = build.vector_type(layout.element_tile, element)
            piece = build.make("vector.transfer_read", kind, *operands, **_sized(attributes, sizes))
            whole = build.insert(piece, whole, position)
        return whole

    def write(self, layout: NestedLayout, part: ir.Value, attributes: dict[str, ir.Attribute], mask: _Mask) -> None:
        """Write a lane's part."""
        for position, offsets in _positions(layout):
            piece = build.extract(part, position)
            piece_mask = mask.piece(position)
            operands = [piece, self.memory, *self.at(layout, offsets), *piece_mask]
            sizes = [1, 1, len(self.indices), len(piece_mask)]
            build.create("vector.transfer_write", [], operands, _sized(attributes, sizes))


class _Mask:
    """A lane's part of a mask, and the dimensions of the vector that the mask has."""

    def __init__(self, part: ir.Value | None, dims: Sequence[int], rank: int) -> None:
        self.part, self.dims, self.rank = part, dims, rank

    def piece(self, position: Sequence[int]) -> list[ir.Value]:
        """The mask of a piece of the vector; None without a mask."""
        if self.part is None:
            return []
        return [build.extract(self.part, [position[level * self.rank + i] for level in range(2) for i in self.dims])]


def _sized(attributes: dict[str, ir.Attribute], sizes: list[int]) -> dict[str, ir.Attribute]:
    return {**attributes, "operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes)}


def transfer(d: Distributor, op: ir.Operation, mask: ir.Value | None = None) -> list[ir.Value]:
    """Distribute a transfer with a mask in addition to its own; returns the part that it reads, None for a write."""
    access = Transfer(op)
    layout, memory = d.layout(op, access.vector), access.memref
    if not isinstance(memory.type, ir.MemRefType):
        emit_error(op, f"cannot be distributed because it accesses {memory.type} instead of a memref")
    if isinstance(ir.MemRefType(memory.type).element_type, ir.VectorType):
        emit_error(op, "cannot be distributed because its elements are vectors")
    combined_mask = access.mask or mask
    part = None
    if combined_mask is not None:
        d.layout(op, combined_mask)
        part = d.part(combined_mask)
    attributes = {name: op.attributes[name] for name in ("in_bounds", "permutation_map")}
    pieces = Pieces(d, memory, access.indices, access.dimensions)
    masked = _Mask(part, access.mask_dims, layout.rank)
    if access.padding is not None:
        return [pieces.read(layout, access.padding, attributes, masked)]
    pieces.write(layout, d.part(access.vector), attributes, masked)
    return []


@distribution_rule("vector.transfer_read", "vector.transfer_write")
def _transfer(d: Distributor, op: ir.Operation) -> None:
    d.replace_parts(op, *transfer(d, op))


def scratch(d: Distributor, shape: Sequence[int], element: ir.Type) -> ir.Value:
    """Shared local memory of the workgroup."""
    with ir.InsertionPoint(d.first):
        return build.shared_buffer(shape, element)


def through_memory(
    d: Distributor,
    part: ir.Value,
    source: NestedLayout,
    target: NestedLayout,
    lead: tuple[int, build.Index] = (1, 0),
) -> list[ir.Value]:
    """Change a layout through shared local memory: all lanes write their parts, then read those of the new layout.

    Args:
        d: the function.
        part: this lane's part.
        source: its layout.
        target: the layout to read. Elements correspond by their row-major number.
        lead: the number of vectors, and the number of the one that this subgroup has.

    Returns:
        The parts of all vectors.
    """
    count, number = lead
    element = element_of(part)
    memory = scratch(d, (count, *source.shape), element)
    none = _Mask(None, (), source.rank)
    # In a loop, other subgroups may still read the previous iteration's contents.
    gpu.barrier()
    _one_of(d, memory, number).write(source, part, _whole(source.rank), none)
    gpu.barrier()
    if target.shape != source.shape:
        memory = _in_shape(memory, (count, *target.shape))
    padding, attributes = build.zero(element), _whole(target.rank)
    return [_one_of(d, memory, k).read(target, padding, attributes, none) for k in range(count)]


def _one_of(d: Distributor, memory: ir.Value, number: build.Index) -> Pieces:
    rank = ir.MemRefType(memory.type).rank
    return Pieces(d, memory, [number, *[0] * (rank - 1)], range(1, rank))


def _whole(rank: int) -> dict[str, ir.Attribute]:
    """Attributes of transfers between a part and one of several vectors in memory."""
    return {
        "in_bounds": ir.ArrayAttr.get([ir.BoolAttr.get(True)] * rank),
        "permutation_map": ir.AffineMapAttr.get(ir.AffineMap.get_minor_identity(rank + 1, rank)),
    }


def _in_shape(memory: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The same memory with another shape."""
    memory_type = ir.MemRefType(memory.type)
    kind = ir.MemRefType.get(list(shape), memory_type.element_type, memory_space=memory_type.memory_space)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return build.reinterpret_cast(memory, 0, shape, strides, kind)


def scalars_through_memory(d: Distributor, value: ir.Value, count: int, number: build.Index) -> list[ir.Value]:
    """The scalars of all `count` subgroups; `number` is that of this one."""
    memory = scratch(d, [count], value.type)
    gpu.barrier()
    build.create("memref.store", [], [value, memory, build.index(number)])
    gpu.barrier()
    return [build.make("memref.load", value.type, memory, build.index(k)) for k in range(count)]


# Ops under a `vector.mask`.


@distribution_rule("vector.mask")
def masked(d: Distributor, op: ir.Operation) -> None:
    """Distribute the masked op. Masked-off elements are the identity, not accessed, or taken from the passthrough."""
    inner = masked_op(op)
    if inner is None:
        parts = [d.part(v) for v in yielded(op.regions[0].blocks[0])]
    elif inner.name in ("vector.transfer_read", "vector.transfer_write"):
        parts = transfer(d, inner, op.operands[0])
    elif inner.name in ("vector.multi_reduction", "vector.reduction"):
        d.layout(op, op.operands[0])
        part = d.part(inner.operands[0])
        other = build.constant(part.type, CombiningKind.of(inner).identity(element_of(part)))
        selected = build.select(d.part(op.operands[0]), part, other)
        parts = [(multi_reduced if inner.name == "vector.multi_reduction" else reduced)(d, inner, selected)]
    elif inner.name == "vector.contract":
        d.layout(op, op.operands[0])
        parts = [contracted(d, inner, d.part(op.operands[0]))]
    elif inner.name == "vector.gather":
        d.layout(op, op.operands[0])
        parts = [_gathered(d, inner, d.part(op.operands[0]))]
    else:
        note = "masks of transfers, gathers, reductions and contractions are"
        emit_error(op, f"on {inner.name} cannot be distributed", note)
    if len(op.operands) > 1:
        parts = [_passed(d, op, inner, parts[0])]
    d.replace_parts(op, *parts)


def _gathered(d: Distributor, gather: ir.Operation, mask: ir.Value) -> ir.Value:
    """A gather of the elements that both masks select."""
    operands = [d.part(v) for v in gather.operands]
    # The last two operands are the gather's own mask and its passthrough.
    fixed_operands = len(operands) - 2
    operands[fixed_operands] = build.make("arith.andi", mask.type, operands[fixed_operands], mask)
    return build.create_like(gather, [operands[-1].type], operands).results[0]


def _passed(d: Distributor, op: ir.Operation, inner: ir.Operation | None, result: ir.Value) -> ir.Value:
    """Select the result where the mask is set, and the passthrough elsewhere."""
    if inner is None or inner.name != "vector.transfer_read":
        emit_error(op, "with a pass-through value cannot be distributed", "a masked vector.transfer_read can have one")
    layout, over = d.layout(op, op.results[0]), masked_over(inner)
    assert over is not None
    flags = spread(d.part(op.operands[0]), over, layout)
    return build.select(flags, result, d.part(op.operands[1]))


# Reductions and contractions: first within a lane, then across lanes by shuffles, then across subgroups in memory.


class Reduction:
    """A reduction over some dimensions of a layout.

    Attributes:
        kind: the combining operation.
        layout: the layout of the operand.
        dims: the reduced dimensions.
        kept: the layout of the result.
    """

    def __init__(
        self,
        d: Distributor,
        op: ir.Operation,
        layout: NestedLayout,
        dims: Sequence[int],
        element: ir.Type,
        kept: NestedLayout | None = None,
    ) -> None:
        self.d, self.op, self.layout, self.dims = d, op, layout, list(dims)
        self.kind = CombiningKind.of(op)
        self.kept = kept or layout.project([i for i in range(layout.rank) if i not in self.dims])
        self._name = self.kind.scalar_op(element)
        self._fastmath = {"fastmath": op.attributes["fastmath"]} if "fastmath" in op.attributes else {}
        self.element = element

    @property
    def is_local(self) -> bool:
        """Whether each lane has all elements that it reduces."""
        return all(self.layout.thread_tile[i] == self.layout.subgroup_tile[i] == 1 for i in self.dims)

    def combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Combine two partial results."""
        return build.make(self._name, a.type, a, b, **(self._fastmath if self._name.endswith("f") else {}))

    def identity(self, kind: ir.Type) -> ir.Value:
        """The identity of a vector or scalar type."""
        return build.constant(kind, self.kind.identity(self.element))

    def finish(self, partial: ir.Value) -> ir.Value:
        """The result in all lanes, from each lane's partial result."""
        for i in self.dims:
            partial = self._over_lanes(partial, i)
        return self._over_subgroups(partial)

    def _over_lanes(self, partial: ir.Value, dim: int) -> ir.Value:
        n, stride = self.layout.thread_tile[dim], self.layout.thread_strides[dim]
        if n == 1:
            return partial
        # Both divide the subgroup, and are powers of two.
        for k in range(n.bit_length() - 1):
            partial = self.combine(partial, self._shuffled(partial, stride << k))
        return partial

    def _shuffled(self, value: ir.Value, offset: int) -> ir.Value:
        """The value of the lane whose number differs in these bits."""
        bits = build.constant(ir.IntegerType.get_signless(32), offset)
        if not isinstance(value.type, ir.VectorType):
            return shuffle_scalar(self.d, value, "xor", bits)
        positions = itertools.product(*map(range, shape_of(value)))
        shuffled = [shuffle_scalar(self.d, build.extract(value, position), "xor", bits) for position in positions]
        return build.from_elements(shuffled, shape_of(value))

    def _over_subgroups(self, partial: ir.Value) -> ir.Value:
        d, layout = self.d, self.layout
        number: build.Index = 0
        count = 1
        for i in self.dims:
            n = layout.subgroup_tile[i]
            subgroup_ids, _ = d.virtual_ids(layout, i)
            number = build.add(build.multiply(number, n), subgroup_ids)
            count *= n
        if count == 1:
            return partial
        if isinstance(partial.type, ir.VectorType):
            total, *others = through_memory(d, partial, self.kept, self.kept, (count, number))
        else:
            total, *others = scalars_through_memory(d, partial, count, number)
        for other in others:
            total = self.combine(total, other)
        return total


def multi_reduced(d: Distributor, op: ir.Operation, source: ir.Value | None = None) -> ir.Value:
    """A lane's part of a `vector.multi_reduction`; `part` replaces the operand's part if given."""
    layout = d.layout(op, op.operands[0])
    dims, n = integers(op.attributes["reduction_dims"]), layout.rank
    if op.operands[1] not in d.layouts and isinstance(op.operands[1].type, ir.VectorType):
        d.layout(op, op.operands[1])
    acc = d.part(op.operands[1])
    reduction = Reduction(d, op, layout, dims, element_of(op.operands[0]))
    start = acc if reduction.is_local else reduction.identity(acc.type)
    attributes = {
        "kind": op.attributes["kind"],
        "reduction_dims": ir.DenseI64ArrayAttr.get([level * n + i for level in range(3) for i in dims]),
    }
    part = d.part(op.operands[0]) if source is None else source
    partial = build.make("vector.multi_reduction", acc.type, part, start, **attributes)
    return partial if reduction.is_local else reduction.combine(reduction.finish(partial), acc)


@distribution_rule("vector.multi_reduction")
def multi_reduction(d: Distributor, op: ir.Operation) -> None:
    """Reduce within the lane, then across lanes and subgroups, then add the accumulator."""
    d.replace_parts(op, multi_reduced(d, op))


def reduced(d: Distributor, op: ir.Operation, source: ir.Value | None = None) -> ir.Value:
    """The result of a `vector.reduction`; `part` replaces the operand's part if given."""
    vector = op.operands[0]
    layout = d.layout(op, vector)
    part = d.part(vector) if source is None else source
    reduction = Reduction(d, op, layout, [0], element_of(vector))
    flat = build.shape_cast(part, [math.prod(layout.distributed_shape)])
    partial = build.create_like(op, [reduction.element], [flat]).results[0]
    total = reduction.finish(partial)
    return reduction.combine(total, op.operands[1]) if len(op.operands) > 1 else total


@distribution_rule("vector.reduction")
def reduction(d: Distributor, op: ir.Operation) -> None:
    """A reduction to a scalar, which is the same in all lanes."""
    d.replace_parts(op, reduced(d, op))


def contracted(d: Distributor, op: ir.Operation, mask: ir.Value | None = None) -> ir.Value:
    """Contract the parts; batches, outers and elements are separate iteration dimensions.

    Args:
        mask: a lane's part of a mask over the iteration dimensions.
    """
    maps = [map_of(a) for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    iterators = list(ir.ArrayAttr(op.attributes["iterator_types"]))
    n = len(iterators)
    reduced = [i for i, kind in enumerate(iterators) if "reduction" in str(kind)]
    lhs = d.layout(op, op.operands[0])
    d.layout(op, op.operands[1])
    if isinstance(op.operands[2].type, ir.VectorType):
        d.layout(op, op.operands[2])
    for i in reduced:
        if i not in maps[0] or i not in maps[1]:
            emit_error(op, "cannot be distributed", f"only one of its operands has the reduced dimension {i}")
    acc = d.part(op.operands[2])
    dims = [maps[0].index(i) for i in reduced]
    reduction = Reduction(d, op, lhs, dims, element_of(op.results[0]), d.layouts.get(op.results[0]))

    def tripled(dims: Sequence[int]) -> ir.Attribute:
        results = [ir.AffineDimExpr.get(level * n + i) for level in range(3) for i in dims]
        return ir.AffineMapAttr.get(ir.AffineMap.get(3 * n, 0, results))

    attributes = {
        **attributes_of(op),
        "indexing_maps": ir.ArrayAttr.get([tripled(dims) for dims in maps]),
        "iterator_types": ir.ArrayAttr.get(iterators * 3),
    }
    start = acc if reduction.is_local else reduction.identity(acc.type)
    operands = [d.part(op.operands[0]), d.part(op.operands[1]), start]
    partial = build.make("vector.contract", acc.type, *operands, **attributes)
    if mask is not None:
        partial = _under(mask, partial)
    return partial if reduction.is_local else reduction.combine(reduction.finish(partial), acc)


def _under(mask: ir.Value, result: ir.Value) -> ir.Value:
    """Put the op that defines a value into a `vector.mask`."""
    outer = build.create("vector.mask", [result.type], [mask], regions=1)
    block = outer.regions[0].blocks.append()
    result.owner.move_before(outer)
    block.append(result.owner)
    with ir.InsertionPoint(block):
        build.create("vector.yield", [], [result])
    return outer.results[0]


@distribution_rule("vector.contract")
def contract(d: Distributor, op: ir.Operation) -> None:
    """Contract within the lane, then reduce across lanes and subgroups, then add the accumulator."""
    d.replace_parts(op, contracted(d, op))


# Changes of layout, and ops within a lane: constants, broadcasts, transposes, casts, steps, masks.


@distribution_rule("arith.constant", "ub.poison")
def constant_vector(d: Distributor, op: ir.Operation) -> None:
    """A constant of the part's shape; if its elements differ, the lane's own ones."""
    result = op.results[0]
    kind = d.part_type(d.layout(op, result), element_of(result))
    if op.name == "ub.poison":
        d.replace_parts(op, build.create_like(op, [kind], []).results[0])
        return
    value = ir.DenseElementsAttr(op.attributes["value"])
    if value.is_splat:
        d.replace_parts(op, build.constant(kind, value.get_splat_value()))
    else:
        d.replace_parts(op, constant_part(d, d.layout(op, result), dense_elements(value)))


def spread(part: ir.Value, dims: Sequence[int], layout: NestedLayout) -> ir.Value:
    """The part of a layout that a part of its dimensions `dims` (-1: of size 1) is broadcast to.

    Batches, outers and elements are reordered and broadcast alike.
    """
    rank, count = layout.rank, len(dims)
    kept_dims = [d for d in dims if d >= 0]
    order = list(range(count)) if kept_dims == sorted(kept_dims) else sorted(range(count), key=dims.__getitem__)
    part = build.transpose(part, [level * count + k for level in range(3) for k in order])
    unit, source = [1] * (3 * rank), shape_of(part)
    for level, (k, i) in itertools.product(range(3), enumerate(order)):
        if dims[i] >= 0:
            unit[level * rank + dims[i]] = source[level * count + k]
    return build.broadcast(build.shape_cast(part, unit), build.with_shape(part.type, layout.distributed_shape))


@distribution_rule(*WHOLE)
def rearranged(d: Distributor, op: ir.Operation) -> None:
    """Reorder and broadcast batches, outers and elements alike."""
    result, source = op.results[0], op.operands[0]
    layout = d.layout(op, result)
    if source not in d.layouts:
        if isinstance(source.type, ir.VectorType):
            d.layout(op, source)
        d.replace_parts(op, build.broadcast(source, d.part_type(layout, element_of(result))))
        return
    view = view_of(op)
    assert view is not None
    d.replace_parts(op, spread(d.part(source), view.dims, layout))


def index_vector(d: Distributor, layout: NestedLayout, dim: int) -> ir.Value:
    """The indices in a dimension of a lane's elements, a vector of batch x outer x element."""
    tiles = [layout.batch_tile[dim], layout.outer_tile[dim], layout.element_tile[dim]]
    element, thread = layout.element_tile[dim], layout.thread_tile[dim]
    steps = (layout.outer_tile[dim] * thread * element, thread * element, 1)
    positions = sum(n * step for n, step in zip(np.indices(tiles), steps))
    table, base = build.dense_integers(positions, build.index_type()), d.base(layout, dim)
    return table if base == 0 else build.binary("addi", table, build.broadcast(build.index(base), table.type))


@distribution_rule("vector.step")
def step(d: Distributor, op: ir.Operation) -> None:
    """The indices of a lane's elements."""
    d.replace_parts(op, index_vector(d, d.layout(op, op.results[0]), 0))


@distribution_rule("vector.create_mask", "vector.constant_mask")
def create_mask(d: Distributor, op: ir.Operation) -> None:
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
    how = plan_layout_moves(source, target, d.subgroup_size)
    if how is None:
        return through_memory(d, part, source, target)[0]
    return apply_moves(d, part, how, d.part_type(target, element_of(part)))


@distribution_rule("iree_vector_ext.to_layout")
def to_layout(d: Distributor, op: ir.Operation) -> None:
    """Convert the layout; emits nothing if the lanes already have their elements."""
    value, result = op.operands[0], op.results[0]
    target = d.layout(op, result)
    d.replace_parts(op, converted(d, d.part(value), d.layouts.get(value, target), target))


@distribution_rule("vector.shape_cast")
def cast_shape(d: Distributor, op: ir.Operation) -> None:
    """Convert to the result's layout. Elements keep their row-major number."""
    source, result = op.operands[0], op.results[0]
    for side, other in ((source, result), (result, source)):
        if side in d.layouts and other not in d.layouts:
            try:
                reshape(d.layouts[side], shape_of(other))
            except LayoutError as e:
                message = f"cannot be distributed because the layout of its {other.type} is not known"
                emit_error(op, message, str(e), "set the layout with iree_vector_ext.to_layout")
    d.replace_parts(op, converted(d, d.part(source), d.layout(op, source), d.layout(op, result)))
