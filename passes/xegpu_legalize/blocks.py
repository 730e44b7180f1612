"""Splits ops on blocks: descriptors, loads, stores and prefetches become those of single messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.common.builders import poison, shape_cast, transpose, vector_type
from xegpu_py.passes.common.messages import hints_of
from xegpu_py.passes.common.values import element_of, shape_of
from xegpu_py.passes.xegpu_legalize import boxes, fallback
from xegpu_py.passes.xegpu_legalize import shapes as blocks
from xegpu_py.passes.xegpu_legalize.conversion import Legalization, pattern
from xegpu_py.passes.xegpu_legalize.layouts import axes_of, message_desc, unit_of
from xegpu_py.passes.xegpu_legalize.shapes import Layout, Message, Pieces, Place, Transform, types_of


@pattern("xegpu.create_nd_tdesc")
def create_nd_tdesc(low: Legalization, op: ir.Operation) -> None:
    """A descriptor for each piece, of the same tensor."""
    view: Any = op.opview

    def make(layout: Layout) -> Iterator[ir.Value]:
        if isinstance(layout, Place):
            yield from fallback.create(low, view, layout)
            return
        for offsets, desc in layout:
            moved = [low.add(o, step) for o, step in zip(view.offsets, offsets)]
            yield xegpu.create_nd_tdesc(view.source, moved, view.shape, view.strides, tdesc=desc, mode=view.mode)

    low.in_pieces(op, make)


@pattern("ub.poison")
def undefined(low: Legalization, op: ir.Operation) -> None:
    """An undefined descriptor becomes undefined pieces. Branches may carry it, but no access uses it."""
    low.in_pieces(op, lambda layout: map(poison, types_of(layout)))


@pattern("xegpu.update_nd_offset")
def update_nd_offset(low: Legalization, op: ir.Operation) -> None:
    """Move each piece by the same offsets."""
    view: Any = op.opview

    def make(layout: Layout) -> Iterable[ir.Value]:
        pieces = low.pieces[view.tdesc, layout]
        if isinstance(layout, Place):
            return fallback.update(low, pieces, list(view.offsets))
        return (xegpu.update_nd_offset(piece, view.offsets, mode=view.mode) for piece in pieces)

    low.in_pieces(op, make)


@pattern("xegpu.prefetch_nd")
def prefetch_nd(low: Legalization, op: ir.Operation) -> None:
    """A prefetch of each piece."""
    view: Any = op.opview
    layout = low.layout
    if isinstance(layout, Place):
        fallback.prefetch(low, op, layout)
    else:
        for piece in low.pieces[view.tdesc, layout]:
            xegpu.prefetch_nd(piece, mode=view.mode, memory_scope=view.memory_scope, **hints_of(view))
    low.erase(op)


@pattern("xegpu.store_nd")
def store_nd(low: Legalization, op: ir.Operation) -> None:
    """A store of each piece."""
    view: Any = op.opview
    layout = low.layout
    low.erase(op)
    if isinstance(layout, Place):
        fallback.store(low, op, layout)
        return
    desc = TensorDesc.of(view.tdesc)
    columns = desc.shape[-1]
    for (offsets, part), piece in zip(layout, low.pieces[view.tdesc, layout]):
        box = tuple(zip(offsets, part.shape))
        if len(shape_of(view.value)) > len(desc.shape):
            block, column = divmod(offsets[-1], columns)
            box = ((block, 1), *box[:-1], (column, part.shape[-1]))
        xegpu.store_nd(shape_cast(low.part(view.value, box), part.shape), piece, mode=view.mode, **hints_of(view))


@pattern("xegpu.load_nd")
def load_nd(low: Legalization, op: ir.Operation) -> None:
    """A load for each message; the vector is divided into the pieces that they give."""
    view: Any = op.opview
    layout = low.layout
    desc = TensorDesc.of(view.tdesc)
    if isinstance(layout, Place):
        fallback.load(low, op, layout)
    elif blocks.is_line(desc):
        bounds = (tuple(part.shape[0] for _, part in layout),)
        parts = [xegpu.load_nd(p, mode=view.mode, **hints_of(view)) for p in low.pieces[view.tdesc, layout]]
        low.divide(op, bounds, parts)
    else:
        transform = low.access(op).transform
        assert transform
        _load_blocks(low, op, desc, transform, layout)


def _load_blocks(low: Legalization, op: ir.Operation, desc: TensorDesc, transform: Transform, layout: Pieces) -> None:
    axes = axes_of(desc, shape_of(op.results[0]), transform)
    messages = low.plan.messages[op.results[0]]
    assert messages
    rank = len(desc.shape)
    parts: dict[tuple[int, ...], ir.Value] = {}
    pieces = iter(low.pieces[op.opview.tdesc, layout])
    for lead in itertools.product(*(range(n) for n in desc.shape[:-2])):
        for message in messages:
            for column, value in _load(low, op, next(pieces), message, desc, transform):
                place = (*lead, message.row, column)
                parts[place] = value
    rows = sorted({p[-2] for p in parts})
    columns = sorted({p[-1] for p in parts})
    ends = _extents(messages)
    bounds: list[tuple[int, ...]] = [(1,) * n for n in desc.shape[: rank - 2]]
    row_sizes = tuple(axes.row_index(ends[0][r]) for r in rows)
    column_sizes = tuple(ends[1][c] // axes.column_step for c in columns)
    if axes.array is not None:
        each = len(columns) // desc.attr.array_length
        column_sizes = column_sizes[:each]
    order = [
        (*lead, r, c) for lead in itertools.product(*map(range, desc.shape[: rank - 2])) for r in rows for c in columns
    ]
    if transform.transposed:
        bounds += [column_sizes, row_sizes]
        order.sort(key=lambda p: (p[:-2], p[-1], p[-2]))
    else:
        bounds += [row_sizes, column_sizes]
    if axes.array is not None:
        bounds.insert(0, (1,) * desc.attr.array_length)
        order.sort(key=lambda p: p[-1] // desc.shape[-1])
    if transform.vnni is not None:
        bounds.append((32 // desc.bits,))
    grid = list(boxes.grid(tuple(bounds)))
    values = [shape_cast(parts[p], boxes.sizes(box)) for p, box in zip(order, grid)]
    low.divide(op, tuple(bounds), values)


def _extents(messages: Sequence[Message]) -> tuple[dict[int, int], dict[int, int]]:
    """Rows by first row, and columns by first column."""
    return {m.row: m.height for m in messages}, {c: w for m in messages for c, w in m.blocks}


def _load(
    low: Legalization, op: ir.Operation, piece: ir.Value, message: Message, desc: TensorDesc, transform: Transform
) -> list[tuple[int, ir.Value]]:
    """(first column, elements) of each block of a message."""
    view: Any = op.opview
    limits = low.plan.target.block2d
    assert limits
    made = message_desc(desc, message, transform, limits)
    height, width = made.shape[-2:]
    count = len(message.blocks)
    lead = made.shape[:-2]
    bits, unit = unit_of(desc, transform, limits)
    extra: dict[str, Any] = {"vnni_axis": view.vnni_axis}
    shape = _block_shape(height, width, desc, transform)
    if transform.transposed:
        rank = len(desc.shape)
        extra = {"transpose": (*range(rank - 2), rank - 1, rank - 2)}
        if unit > 1:
            extra["transpose_bit_width"] = bits
        shape = (width // unit, height * unit)
    elif lead:
        shape = (*lead, *shape)
    if count > 1:
        shape = (count, *shape)
    kind = vector_type(shape, element_of(op.results[0]))
    loaded = xegpu.load_nd(piece, value=kind, mode=view.mode, **extra, **hints_of(view))
    found = []
    for i, (column, wanted) in enumerate(message.blocks):
        value = loaded
        if count > 1:
            value = shape_cast(low.part(loaded, ((i, 1), *boxes.whole(shape[1:]))), shape[1:])
        if transform.transposed and transform.unit < unit:
            value = _separated(value, unit // transform.unit, transform.unit, height)
        value = _trimmed(low, value, message.height, wanted, height, width, transform)
        found.append((column, value))
    return found


def _block_shape(height: int, width: int, desc: TensorDesc, transform: Transform) -> boxes.Shape:
    factor = 32 // desc.bits
    if transform.vnni == 0:
        return height // factor, width, factor
    if transform.vnni == 1:
        return height, width // factor, factor
    return height, width


def _separated(value: ir.Value, units: int, unit: int, height: int) -> ir.Value:
    """Make a row of each column that the load transposed as part of a unit."""
    rows = shape_of(value)[0]
    moved = transpose(shape_cast(value, (rows, height, units, unit)), (0, 2, 1, 3))
    return shape_cast(moved, (rows * units, height * unit))


def _trimmed(
    low: Legalization, value: ir.Value, rows: int, columns: int, height: int, width: int, transform: Transform
) -> ir.Value:
    """Drop the rows and columns that were loaded only to make a legal message."""
    if (rows, columns) == (height, width):
        return value
    shape = shape_of(value)
    box = list(boxes.whole(shape))
    if transform.transposed:
        box[0], box[1] = (0, columns // transform.unit), (0, rows * transform.unit)
    else:
        first = len(shape) - 2 - (transform.vnni is not None)
        box[first] = (0, box[first][1] * rows // height)
        box[first + 1] = (0, box[first + 1][1] * columns // width)
    return low.part(value, tuple(box))
