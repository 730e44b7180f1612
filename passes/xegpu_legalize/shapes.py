"""Pieces of blocks that one message moves."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.common.messages import block_load, block_problem, line_pieces
from xegpu_py.passes.xegpu_legalize.boxes import segments, starts
from xegpu_py.target import Block2DLimits, Target
from xegpu_py.visa.spec import BlockShape

Pieces = tuple[tuple[tuple[int, ...], TensorDesc], ...]
"""Pieces of a block: the offsets of each in elements, and its descriptor."""


class Place(Struct, frozen=True):
    """The form of a descriptor that is represented by numbers, because no 2D message moves its block.

    Attributes:
        rank: its number of dimensions; each has an offset.
        address: the type of the tensor's address if the numbers include the address, extents and strides. They do if
            descriptors of several tensors are carried together; otherwise empty.
        stepped: whether the numbers include the innermost stride; otherwise it is 1.
    """

    rank: int
    address: str = ""
    stepped: bool = False

    @property
    def strides(self) -> int:
        """The number of strides among the numbers."""
        return self.rank - (not self.stepped)


Layout = Pieces | Place
"""The layout of a descriptor: its pieces, or the form of its numbers."""


def pieces_of(layout: Layout) -> Pieces:
    """The pieces of a descriptor that is not represented by numbers. Scattered descriptors never are."""
    assert not isinstance(layout, Place)
    return layout


def types_of(layout: Layout) -> list[ir.Type]:
    """The types of the values that replace a descriptor."""
    if not isinstance(layout, Place):
        return [desc.to_ir() for _, desc in layout]
    index = [ir.IndexType.get()]
    tensor = [ir.Type.parse(layout.address), *index * (layout.rank + layout.strides)] if layout.address else []
    return tensor + index * layout.rank


class Transform(Struct, frozen=True):
    """The transform that a load applies to its block.

    Attributes:
        transposed: whether it transposes.
        unit: elements that stay together when it transposes.
        vnni: the axis along which elements are packed, or None.
    """

    transposed: bool = False
    unit: int = 1
    vnni: int | None = None


class Message(Struct, frozen=True):
    """One message of a load.

    Attributes:
        row, height: rows of the block.
        blocks: (first column, columns) of the adjacent blocks that it loads; all have the same number of columns.
    """

    row: int
    height: int
    blocks: tuple[tuple[int, int], ...]


def is_line(desc: TensorDesc) -> bool:
    """Whether a descriptor has one dimension."""
    return len(desc.shape) == 1


def part_of(desc: TensorDesc, *shape: int, count: int = 1) -> TensorDesc:
    """A descriptor of other extents in the same tensor."""
    lead = (1,) * max(len(desc.shape) - len(shape), 0)
    return replace(desc, shape=(*lead, *shape), attr=replace(desc.attr, array_length=count))


def line_splits(desc: TensorDesc) -> set[int]:
    """The positions that split a line into pieces of one message each."""
    size = desc.bits // 8
    return {at // size for at, _ in line_pieces(desc.shape[0] * size) if at and at % size == 0}


def load_form(view: Any, target: Target) -> tuple[Transform | None, bool]:
    """The transform of a load, and whether the load is already one message.

    The transform is that of the innermost two dimensions; None if the load permutes others.
    """
    order = view.transpose if view.transpose is None else tuple(view.transpose)
    return _load_form(TensorDesc.of(view.tdesc), order, view.transpose_bit_width, view.vnni_axis, target)


@lru_cache(maxsize=1024)
def _load_form(
    desc: TensorDesc, order: tuple[int, ...] | None, unit: int | None, vnni: int | None, target: Target
) -> tuple[Transform | None, bool]:
    rank = len(desc.shape)
    transposed = order is not None and order != tuple(range(rank))
    transform: Transform | None = Transform(vnni=vnni)
    if transposed:
        innermost = order == (*range(rank - 2), rank - 1, rank - 2)
        transform = Transform(True, (unit or desc.bits) // desc.bits) if innermost else None
    if is_line(desc):
        return transform, not line_splits(desc)
    if any(n != 1 for n in desc.shape[:-2]) or desc.in_slm:
        return transform, False
    return transform, block_problem(block_load(desc, transposed, unit, vnni), target) is None


def row_limit(limits: Block2DLimits, bits: int, transform: Transform) -> int:
    """Most rows of a load."""
    if transform.transposed:
        return limits.transposed[bits][1]
    return limits.load_height


def column_limit(limits: Block2DLimits, bits: int, transform: Transform) -> int:
    """Most columns of a load, in units of `bits`."""
    if transform.transposed:
        return limits.transposed[bits][0]
    return limits.row_bytes * 8 // bits


def spans(extent: int, splits: set[int], most: int) -> tuple[int, ...]:
    """The pieces of an extent between splits, each of at most `most`."""
    found: list[int] = []
    for piece in segments(extent, splits):
        found += [most] * (piece // most)
        if piece % most:
            found.append(piece % most)
    return tuple(found)


def messages(
    desc: TensorDesc, rows: tuple[int, ...], columns: tuple[int, ...], transform: Transform, target: Target, widest: int
) -> list[Message]:
    """The messages that load a block with these splits of rows and columns; adjacent blocks share a message.

    Args:
        columns: those of all blocks of an array_length, from left to right.
        widest: most columns of a message of several blocks.
    """
    found = []
    for row, height in zip(starts(rows), rows):
        run: list[tuple[int, int]] = []
        for column in zip(starts(columns), columns):
            if run and not (
                sum(w for _, w in (*run, column)) <= widest and _fits([*run, column], desc, transform, target)
            ):
                found += _grouped(row, height, run, desc, transform, target)
                run = []
            run.append(column)
        found += _grouped(row, height, run, desc, transform, target)
    return found


def _fits(run: list[tuple[int, int]], desc: TensorDesc, transform: Transform, target: Target) -> bool:
    """Whether one message may load the blocks: one width, and rows of few enough bytes. `_grouped` checks the rest.

    Descriptors of more than two dimensions have no array_length.
    """
    assert target.block2d
    if transform.transposed or len(desc.shape) > 2 or len({w for _, w in run}) > 1:
        return False
    most = max(target.block2d.counts[desc.bits])
    return len(run) <= most and sum(w for _, w in run) * desc.bits // 8 <= target.block2d.row_bytes


def _grouped(
    row: int, height: int, run: list[tuple[int, int]], desc: TensorDesc, transform: Transform, target: Target
) -> list[Message]:
    assert target.block2d
    found = []
    while run:
        counts = [n for n in target.block2d.counts[desc.bits] if n <= len(run)]
        for n in sorted(counts, reverse=True):
            block = BlockShape(desc.bits, n, run[0][1], height, False, transform.vnni == 0)
            if n == 1 or block_problem(block, target) is None:
                found.append(Message(row, height, tuple(run[:n])))
                run = run[n:]
                break
    return found


def lanes_part(desc: TensorDesc, lanes: int) -> TensorDesc:
    """A scattered descriptor of fewer lanes."""
    return replace(desc, shape=(lanes, *desc.shape[1:]))


def places(bounds: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """The first positions of the pieces of a grid, in row-major order."""
    return list(itertools.product(*(starts(pieces) for pieces in bounds)))
