"""Memory accesses: one for each batch and outer, of contiguous elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from mlir import ir

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.layout import NestedLayout
from xegpu_py.passes.common.builders import (
    Index,
    add,
    create,
    extract,
    index,
    insert,
    make,
    reinterpret_cast,
    vector_type,
    zero,
)
from xegpu_py.passes.common.transfers import Transfer
from xegpu_py.passes.common.values import element_of
from xegpu_py.passes.vector_distribute.distributor import Distributor, pattern


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
        self, d: Distributor, memory: ir.Value, indices: Sequence[Index], places: Sequence[int | None]
    ) -> None:
        self.d, self.memory, self.indices, self.places = d, memory, list(indices), list(places)

    def at(self, layout: NestedLayout, offsets: Sequence[int]) -> list[ir.Value]:
        """The indices of a piece."""
        found = list(self.indices)
        for i, place in enumerate(self.places):
            if place is not None:
                found[place] = add(found[place], self.d.base(layout, i), offsets[i])
        return [index(n) for n in found]

    def read(
        self, layout: NestedLayout, padding: ir.Value, attributes: dict[str, ir.Attribute], mask: _Mask
    ) -> ir.Value:
        """Read a lane's part."""
        d, element = self.d, padding.type
        whole = zero(d.part_type(layout, element))
        for position, offsets in _positions(layout):
            piece_mask = mask.piece(position)
            operands = [self.memory, *self.at(layout, offsets), padding, *piece_mask]
            sizes = [1, len(self.indices), 1, len(piece_mask)]
            kind = vector_type(layout.element_tile, element)
            made = make("vector.transfer_read", kind, *operands, **_sized(attributes, sizes))
            whole = insert(made, whole, position)
        return whole

    def write(self, layout: NestedLayout, part: ir.Value, attributes: dict[str, ir.Attribute], mask: _Mask) -> None:
        """Write a lane's part."""
        for position, offsets in _positions(layout):
            piece = extract(part, position)
            piece_mask = mask.piece(position)
            operands = [piece, self.memory, *self.at(layout, offsets), *piece_mask]
            sizes = [1, 1, len(self.indices), len(piece_mask)]
            create("vector.transfer_write", [], operands, _sized(attributes, sizes))


class _Mask:
    """A lane's part of a mask, and the dimensions of the vector that the mask has."""

    def __init__(self, part: ir.Value | None, dims: Sequence[int], rank: int) -> None:
        self.part, self.dims, self.rank = part, dims, rank

    def piece(self, position: Sequence[int]) -> list[ir.Value]:
        """The mask of a piece of the vector; None without a mask."""
        if self.part is None:
            return []
        return [extract(self.part, [position[level * self.rank + i] for level in range(2) for i in self.dims])]


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
    own = access.mask or mask
    part = None
    if own is not None:
        d.layout(op, own)
        part = d.part(own)
    attributes = {name: op.attributes[name] for name in ("in_bounds", "permutation_map")}
    pieces = Pieces(d, memory, access.indices, access.dimensions)
    masked = _Mask(part, access.mask_dims, layout.rank)
    if access.padding is not None:
        return [pieces.read(layout, access.padding, attributes, masked)]
    pieces.write(layout, d.part(access.vector), attributes, masked)
    return []


@pattern("vector.transfer_read", "vector.transfer_write")
def _transfer(d: Distributor, op: ir.Operation) -> None:
    d.replace_parts(op, *transfer(d, op))


def scratch(d: Distributor, shape: Sequence[int], element: ir.Type) -> ir.Value:
    """Shared local memory of the workgroup."""
    space = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 3)
    kind = ir.MemRefType.get(list(shape), element, memory_space=space)
    sizes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
    with ir.InsertionPoint(d.first):
        return make("memref.alloc", kind, **sizes)


def barrier() -> None:
    """Wait for the other subgroups."""
    create("gpu.barrier", [], [])


def through_memory(
    d: Distributor,
    part: ir.Value,
    source: NestedLayout,
    target: NestedLayout,
    lead: tuple[int, Index] = (1, 0),
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
    barrier()
    _one_of(d, memory, number).write(source, part, _whole(source.rank), none)
    barrier()
    if target.shape != source.shape:
        memory = _in_shape(memory, (count, *target.shape))
    padding, attributes = zero(element), _whole(target.rank)
    return [_one_of(d, memory, k).read(target, padding, attributes, none) for k in range(count)]


def _one_of(d: Distributor, memory: ir.Value, number: Index) -> Pieces:
    """Access one of several vectors in memory."""
    rank = ir.MemRefType(memory.type).rank
    return Pieces(d, memory, [number, *[0] * (rank - 1)], range(1, rank))


def _whole(rank: int) -> dict[str, ir.Attribute]:
    """Attributes of transfers between a part and one of several vectors in memory."""
    exprs = ", ".join(f"d{i + 1}" for i in range(rank))
    names = ", ".join(f"d{i}" for i in range(rank + 1))
    return {
        "in_bounds": ir.Attribute.parse(f"[{', '.join(['true'] * rank)}]"),
        "permutation_map": ir.Attribute.parse(f"affine_map<({names}) -> ({exprs})>"),
    }


def _in_shape(memory: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The same memory with another shape."""
    given = ir.MemRefType(memory.type)
    kind = ir.MemRefType.get(list(shape), given.element_type, memory_space=given.memory_space)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return reinterpret_cast(memory, 0, shape, strides, kind)


def scalars_through_memory(d: Distributor, value: ir.Value, count: int, number: Index) -> list[ir.Value]:
    """The scalars of all `count` subgroups; `number` is that of this one."""
    memory = scratch(d, [count], value.type)
    barrier()
    create("memref.store", [], [value, memory, index(number)])
    barrier()
    return [make("memref.load", value.type, memory, index(k)) for k in range(count)]
