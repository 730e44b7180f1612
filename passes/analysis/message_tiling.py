"""Tiling of blocks and matrix products: the pieces that one message or one dpas instruction takes."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import DpasMxOp, Mode, TdescAttr, TensorDesc
from xegpu_py.dialects.xegpu.matrix_ops import MAX_REPEAT_COUNT
from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad, Prefetch
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.element_movement import groups
from xegpu_py.ir.operation import implements
from xegpu_py.numerics.block_scaled import ROWS
from xegpu_py.passes.analysis.ir_queries import shape_and_element, shape_of
from xegpu_py.passes.analysis.target_messages import (
    atomic_message_of,
    block_load,
    block_problem,
    dpas_step,
    lanes_problem,
    line_messages,
    precision_of,
    scaled_problem,
)
from xegpu_py.target import Target
from xegpu_py.target.message_rules import Block2DLimits
from xegpu_py.visa.operands import Raw, Variable
from xegpu_py.visa.spec import BlockShape

# Boxes of elements in a shape: how to split them, and their position in another shape of the same elements.

Shape = tuple[int, ...]

Box = tuple[tuple[int, int], ...]
"""(first, count) along each dimension."""

Segments = tuple[tuple[int, ...], ...]
"""The sizes of the segments of each dimension."""


def full_box(shape: Shape) -> Box:
    """The box of all elements."""
    return tuple((0, n) for n in shape)


def box_shape(box: Box) -> Shape:
    """A box's shape."""
    return tuple(n for _, n in box)


def segments(extent: int, splits: Iterable[int]) -> tuple[int, ...]:
    """Sizes of the pieces of `extent` elements that are split before these positions."""
    positions = [0, *sorted(c for c in set(splits) if 0 < c < extent), extent]
    return tuple(b - a for a, b in itertools.pairwise(positions))


def merge_segments(pieces: Sequence[int], most: int) -> tuple[int, ...]:
    """Join neighbouring segments while their total size is at most this limit."""
    merged = [pieces[0]]
    for piece in pieces[1:]:
        if merged[-1] + piece <= most:
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)


@lru_cache(maxsize=1024)
def starts(pieces: tuple[int, ...]) -> tuple[int, ...]:
    """The first positions of consecutive pieces of these sizes."""
    return (0, *itertools.accumulate(pieces[:-1]))


def tiles(bounds: Segments) -> Iterator[Box]:
    """The tiles that segments of each dimension form, in row-major order."""
    lines = [list(zip(starts(pieces), pieces)) for pieces in bounds]
    return itertools.product(*lines)


def overlap(a: Box, b: Box) -> Box:
    """The box of the elements that two boxes share; if there are none, a size is not positive."""
    return tuple((max(x, y), min(x + n, y + k) - max(x, y)) for (x, n), (y, k) in zip(a, b))


def offsets_in(box: Box, outer: Box) -> list[int]:
    """The first positions of a box in another one that contains it."""
    return [first - start for (first, _), (start, _) in zip(box, outer)]


def overlapping_segments(bounds: Segments, box: Box) -> list[range]:
    """Along each dimension, the segments that a box overlaps."""
    ranges = []
    for pieces, (first, count) in zip(bounds, box):
        positions = starts(pieces)
        ranges.append(range(bisect_right(positions, first) - 1, bisect_left(positions, first + count)))
    return ranges


def linear_range(shape: Shape, box: Box) -> tuple[int, int] | None:
    """(first, count) of a box in row-major order; None if its elements are not consecutive."""
    first, count, open_ = 0, 1, False
    for extent, (start, size) in zip(shape, box):
        if open_ and size != extent:
            return None
        first, count = first * extent + start, count * size
        open_ = open_ or size > 1
    return first, count


def box_of_range(shape: Shape, first: int, count: int) -> Box | None:
    """The box of the `count` elements that start at `first` in row-major order; None if they form no box."""
    box: list[tuple[int, int]] = []
    for d, extent in enumerate(shape):
        inner = math.prod(shape[d + 1 :])
        if count >= inner and count % inner == 0 and first % inner == 0:
            start, size = first // inner, count // inner
            if start + size > extent:
                return None
            return (*box, (start, size), *full_box(shape[d + 1 :]))
        start = first // inner
        if (first + count - 1) // inner != start:
            return None
        box.append((start, 1))
        first -= start * inner
    return tuple(box)


def reshape_box(box: Box, a: Shape, b: Shape) -> Box | None:
    """A box of shape `a` as a box of shape `b`; None if its elements form no box there."""
    parts = groups(a, b)
    if parts is None:
        return None
    result: list[tuple[int, int]] = []
    for a_dims, b_dims in parts:
        linear_box = linear_range(tuple(a[d] for d in a_dims), tuple(box[d] for d in a_dims))
        segment_box = linear_box and box_of_range(tuple(b[d] for d in b_dims), *linear_box)
        if segment_box is None:
            return None
        result += segment_box
    return tuple(result)


def reshape_splits(splits: Sequence[set[int]], a: Shape, b: Shape) -> list[set[int]]:
    """The splits of shape `a` that are also splits of shape `b`: those between whole slices of a dimension of `b`."""
    result: list[set[int]] = [set() for _ in b]
    for a_dims, b_dims in groups(a, b) or []:
        outer_dim = next((d for d in a_dims if a[d] > 1), None)
        inner_dim = next((d for d in b_dims if b[d] > 1), None)
        if outer_dim is None or inner_dim is None:
            continue
        step = math.prod(a[d] for d in a_dims if d > outer_dim)
        inner = math.prod(b[d] for d in b_dims if d > inner_dim)
        for split in splits[outer_dim]:
            if split * step % inner == 0:
                result[inner_dim].add(split * step // inner)
        # An innermost dimension that both shapes have keeps its splits.
        last_a, last_b = a_dims[-1], b_dims[-1]
        if len(a_dims) > 1 and len(b_dims) > 1 and a[last_a] == b[last_b] and last_b != inner_dim:
            result[last_b] |= set(splits[last_a])
    return result


# Tiles of blocks that one message moves.

BlockTiling = tuple[tuple[tuple[int, ...], TensorDesc], ...]
"""The tiles of a block: the offsets of each in elements, and its descriptor."""


def types_of(layout: BlockTiling) -> list[ir.Type]:
    """The types of the descriptors that replace a descriptor."""
    return [desc.to_ir() for _, desc in layout]


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


@lru_cache(maxsize=1024)
def store_spans(desc: TensorDesc, target: Target) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The rows and the columns of the messages that store a 2D block; None if no messages can.

    The columns are those of one block of an array.
    """
    limits = target.block2d
    if limits is None:
        return None
    high = split_extent(desc.shape[-2], set(), limits.store_height)
    wide = split_extent(desc.shape[-1], set(), limits.row_bytes * 8 // desc.bits)
    problems = (block_problem(BlockShape(desc.bits, 1, n, high[0]), target, True) for n in set(wide))
    return None if any(problems) else (high, wide)


def is_1d(desc: TensorDesc) -> bool:
    """Return whether a descriptor has one dimension."""
    return len(desc.shape) == 1


def sub_block(desc: TensorDesc, *shape: int, count: int = 1) -> TensorDesc:
    """A descriptor of other extents in the same tensor."""
    lead = (1,) * max(len(desc.shape) - len(shape), 0)
    return replace(desc, shape=(*lead, *shape), attr=replace(desc.attr, array_length=count))


def line_splits(desc: TensorDesc) -> set[int]:
    """The positions that split a 1D block into segments of one message each."""
    size = desc.bits // 8
    return {at // size for at, _ in line_messages(desc.shape[0] * size) if at and at % size == 0}


def load_transform(view: Any, target: Target) -> tuple[Transform | None, bool]:
    """The transform of a load, and whether the load is already one message.

    The transform is that of the innermost two dimensions; None if the load permutes others.
    """
    order = view.transpose if view.transpose is None else tuple(view.transpose)
    return _load_transform(TensorDesc.of(view.tdesc), order, view.transpose_bit_width, view.vnni_axis, target)


@lru_cache(maxsize=1024)
def _load_transform(
    desc: TensorDesc, order: tuple[int, ...] | None, unit: int | None, vnni: int | None, target: Target
) -> tuple[Transform | None, bool]:
    rank = len(desc.shape)
    transposed = order is not None and order != tuple(range(rank))
    transform: Transform | None = Transform(vnni=vnni)
    if transposed:
        innermost = order == (*range(rank - 2), rank - 1, rank - 2)
        transform = Transform(True, (unit or desc.bits) // desc.bits) if innermost else None
    if is_1d(desc):
        return transform, not line_splits(desc)
    if any(n != 1 for n in desc.shape[:-2]) or desc.in_slm:
        return transform, False
    return transform, block_problem(block_load(desc, transposed, unit, vnni), target) is None


def load_limits(limits: Block2DLimits, bits: int, transform: Transform) -> tuple[int, int]:
    """Most rows of a load, and most columns in units of `bits`."""
    if transform.transposed:
        columns, rows = limits.transposed[bits]
        rows = min(rows, limits.tile_height)
        return rows, columns
    return limits.load_height, limits.row_bytes * 8 // bits


def split_extent(extent: int, splits: set[int], most: int) -> tuple[int, ...]:
    """The lengths of the segments of an extent between splits, each at most `most`."""
    lengths: list[int] = []
    for piece in segments(extent, splits):
        lengths += [most] * (piece // most)
        if piece % most:
            lengths.append(piece % most)
    return tuple(lengths)


def load_messages(
    desc: TensorDesc, rows: tuple[int, ...], columns: tuple[int, ...], transform: Transform, target: Target, widest: int
) -> list[Message]:
    """The messages that load a block with these splits of rows and columns; adjacent blocks share a message.

    Args:
        columns: those of all blocks of an array_length, from left to right.
        widest: most columns of a message of several blocks.
    """
    result = []
    for row, height in zip(starts(rows), rows):
        run: list[tuple[int, int]] = []
        for column in zip(starts(columns), columns):
            if run and not (
                sum(w for _, w in (*run, column)) <= widest
                and _fits_one_message([*run, column], desc, transform, target)
            ):
                result += _array_messages(row, height, run, desc, transform, target)
                run = []
            run.append(column)
        result += _array_messages(row, height, run, desc, transform, target)
    return result


def _fits_one_message(run: list[tuple[int, int]], desc: TensorDesc, transform: Transform, target: Target) -> bool:
    """Return whether blocks have one width, and rows short enough for a message. `_array_messages` checks the rest.

    Descriptors of more than two dimensions have no array_length.
    """
    assert target.block2d
    if transform.transposed or len(desc.shape) > 2 or len({w for _, w in run}) > 1:
        return False
    most = max(target.block2d.counts[desc.bits])
    return len(run) <= most and sum(w for _, w in run) * desc.bits // 8 <= target.block2d.row_bytes


def _array_messages(
    row: int, height: int, run: list[tuple[int, int]], desc: TensorDesc, transform: Transform, target: Target
) -> list[Message]:
    assert target.block2d
    result = []
    while run:
        counts = [n for n in target.block2d.counts[desc.bits] if n <= len(run)]
        for n in sorted(counts, reverse=True):
            block = BlockShape(desc.bits, n, run[0][1], height, False, transform.vnni == 0)
            if n == 1 or block_problem(block, target) is None:
                result.append(Message(row, height, tuple(run[:n])))
                run = run[n:]
                break
    return result


def with_lanes(desc: TensorDesc, lanes: int) -> TensorDesc:
    """A scattered descriptor of fewer lanes."""
    return replace(desc, shape=(lanes, *desc.shape[1:]))


# The layouts of descriptors, and the messages of loads.


class Axes(Struct, frozen=True):
    """The correspondence of a loaded or stored vector's dimensions to the rows and columns of its block.

    Attributes:
        rows, columns: the dimensions of rows and of columns.
        row_step, column_step: rows and columns per index of their dimension.
        row_scale: indices of the dimension of rows per row.
        array: the dimension of an array of blocks; None if the blocks are side by side.
    """

    rows: int
    columns: int
    row_step: int = 1
    column_step: int = 1
    array: int | None = None
    row_scale: int = 1

    def row_index(self, rows: int) -> int:
        """Convert a number of rows to indices along their dimension."""
        return rows * self.row_scale // self.row_step

    def rows_at(self, splits: set[int]) -> set[int]:
        """Convert splits along the dimension of rows to rows; splits within a row are dropped."""
        return {c * self.row_step // self.row_scale for c in splits if c % self.row_scale == 0}


def axes_of(desc: TensorDesc, shape: Shape, transform: Transform) -> Axes:
    """The rows and columns of a block as dimensions of the vector that a load or store moves."""
    rank = len(desc.shape)
    factor = 32 // desc.bits if transform.vnni is not None else 1
    vector_rank = len(shape) - (transform.vnni is not None)
    array = 0 if vector_rank > rank else None
    rows, columns = vector_rank - 2, vector_rank - 1
    if transform.transposed:
        return Axes(columns, rows, 1, transform.unit, array, transform.unit)
    return Axes(rows, columns, factor if transform.vnni == 0 else 1, factor if transform.vnni == 1 else 1, array)


def transpose_unit(desc: TensorDesc, transform: Transform, limits: Block2DLimits) -> tuple[int, int]:
    """Bits of the unit that a load moves, and the descriptor's elements in a unit."""
    if not transform.transposed:
        return desc.bits, 1
    bits = limits.transposed_unit(desc.bits * transform.unit)
    assert bits
    return bits, bits // desc.bits


def lanes_of_message(op: ir.Operation, target: Target) -> int:
    """Lanes of a scattered descriptor that one message serves."""
    desc = TensorDesc.of(op.opview.tdesc)
    name = "lsc_store" if op.name == "xegpu.store_scatter" else "lsc_load"
    if op.name == "xegpu.atomic_rmw":
        name = f"lsc_atomic_{atomic_message_of(op.opview, desc.element, desc.in_slm, target)}"
    return fitting_lanes(desc, target, name)


def fitting_lanes(desc: TensorDesc, target: Target, name: str) -> int:
    """Lanes of a scattered descriptor that one message of this name serves."""
    data, none = Raw(Variable("data", "ud", 1, "GRF")), Raw(None)
    values = {"src0": data, "src1": data if name.endswith("icas") else none} if name.startswith("lsc_atomic") else {}
    lanes = desc.lanes
    while lanes > 1:
        problem = lanes_problem(with_lanes(desc, lanes), target, name, **values)
        if problem is None or ("registers" not in problem[0] and "lanes" not in problem[0]):
            return lanes
        lanes //= 2
    return lanes


def access_of(op: ir.Operation, target: Target) -> MessageAccess:
    """The access of memory by an op; its layout is not set."""
    view: Any = op.opview
    value = None if implements(op, Prefetch) else view.value
    access = MessageAccess(op, view.tdesc, TensorDesc.of(view.tdesc), value, implements(op, BlockLoad))
    if access.loads and view.mode == Mode.VC:
        access.transform, access.legal = load_transform(view, target)
    return access


def line_tiling(desc: TensorDesc) -> BlockTiling | None:
    """The tiles of a 1D block, one per message; None if one message moves it."""
    splits = line_splits(desc)
    pieces = segments(desc.shape[0], splits)
    return tuple(((at,), sub_block(desc, n)) for at, n in zip(starts(pieces), pieces)) if splits else None


def message_desc(desc: TensorDesc, message: Message, transform: Transform, limits: Block2DLimits) -> TensorDesc:
    """The descriptor of a message. It is enlarged to the least legal size; the excess rows and columns are dropped."""
    bits, unit = transpose_unit(desc, transform, limits)
    width = message.blocks[0][1]
    least = max(unit, 32 // desc.bits)
    height = message.height
    if transform.transposed and bits == 64:
        height = -(-height // 8) * 8
        width = 1 << (-(-width // unit) - 1).bit_length() if width > unit else 1
        width *= unit
    return sub_block(desc, height, -(-width // least) * least, count=len(message.blocks))


def for_each_matrix(desc: TensorDesc, pieces: Sequence[tuple[tuple[int, ...], TensorDesc]]) -> BlockTiling:
    """Repeat the tiles of a matrix for each matrix of a block of more than two dimensions."""
    matrices = itertools.product(*map(range, desc.shape[:-2]))
    return tuple(((*matrix, *offsets), piece) for matrix in matrices for offsets, piece in pieces)


def most_lanes(desc: TensorDesc, target: Target, name: str) -> int:
    """Lanes of one gather or scatter message of the block's elements."""

    scattered = TensorDesc((32,), desc.element, TdescAttr(memory_scope=desc.attr.memory_scope, scattered=True))
    return fitting_lanes(scattered, target, name)


def message_steps(desc: TensorDesc, columns: int, most: int) -> tuple[int, int]:
    """Rows and columns of a message of `most` lanes; it takes several rows if their length is a small power of two."""
    rows = desc.shape[-2]
    if columns & (columns - 1) or columns >= most:
        return 1, min(columns, most)
    return min(rows & -rows, most // columns), columns


class MessageAccess(Struct, gc=False):
    """An access of memory in VC mode.

    Attributes:
        op: the op.
        tdesc, desc: its descriptor, and the descriptor's type.
        value: the vector that it loads, stores, or updates memory with; None for a prefetch.
        loads: whether it loads a block.
        transform: the transform of such a load; None if it permutes other than the innermost two dimensions.
        legal: whether such a load is one message.
        layout: the layout that it needs of its descriptor; None if it needs no split. Set once all splits are known.
    """

    op: ir.Operation
    tdesc: ir.Value
    desc: TensorDesc
    value: ir.Value | None
    loads: bool = False
    transform: Transform | None = None
    legal: bool = False
    layout: BlockTiling | None = None


class DpasBlocks(Struct, frozen=True):
    """The division of a product into instructions, and their order.

    A product is computed slab by slab, and operands are loaded directly before their slab. A slab is as deep as a
    message of A is wide. Alternatively it has all of K, and the columns of one message of B; messages are then larger,
    and this is chosen if it needs no more registers. With loads an iteration ahead, a slab is one instruction deep.

    Attributes:
        rows, columns, depth: M, N and K.
        step_columns, step: N and K of an instruction; instructions at the edges are padded with zeros.
        slab_columns, slab_depth: columns, and elements of K, of a slab.
        least_rows: the fewest rows of an instruction.
    """

    rows: int
    columns: int
    depth: int
    step_columns: int
    step: int
    slab_columns: int
    slab_depth: int
    least_rows: int = 1

    @property
    def bounds(self) -> Segments:
        """The sizes of the pieces of the result."""
        return segments(self.rows, range(0, self.rows, MAX_REPEAT_COUNT)), segments(
            self.columns, range(0, self.columns, self.step_columns)
        )


def dpas_blocks(view: Any, target: Target, ahead: bool = False) -> DpasBlocks | None:
    """The division of a dpas; None if the target does not multiply these elements.

    Args:
        ahead: whether loads are issued one iteration ahead.
    """
    (shape, a), (_, b) = shape_and_element(view.lhs), shape_and_element(view.rhs)
    scaled = isinstance(view, DpasMxOp)
    return _blocks(shape_of(view.result), math.prod(shape[1:]), b, a, scaled, target, ahead)


@lru_cache(maxsize=256)
def _blocks(result: Shape, depth: int, b: str, a: str, scaled: bool, target: Target, ahead: bool) -> DpasBlocks | None:
    w_precision, a_precision = precision_of(b), precision_of(a)
    if scaled_problem(target) if scaled else {w_precision, a_precision} - set(target.dpas_precisions):
        return None
    m, n = result
    step, across = dpas_step(w_precision, a_precision, target), target.dpas_columns(n) or target.dpas_exec_size
    slab_columns, slab_depth = n, depth
    if (limits := target.block2d) is not None:
        bits = bit_width(b)
        counts = limits.counts.get(bits, (1,))
        widest = max((c * across for c in counts if c * across * bits <= limits.row_bytes * 8), default=across)
        slab_depth = max(limits.row_bytes * 8 // bit_width(a), step)
        if ahead:
            slab_columns, slab_depth = widest, step
        elif slab_depth < depth <= limits.load_height and depth * (m + widest) <= slab_depth * (m + n):
            slab_columns, slab_depth = widest, depth
    return DpasBlocks(m, n, depth, across, step, slab_columns, slab_depth, ROWS if scaled else 1)
