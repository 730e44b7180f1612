"""Blocks: descriptors, loads, stores and prefetches of what one message moves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.passes.xegpu_legalize import boxes, fallback
from xegpu_py.passes.xegpu_legalize import shapes as blocks
from xegpu_py.passes.xegpu_legalize.layouts import (
    axes_of,
    layout_of,
    load_messages,
    message_desc,
    transform_of,
    unit_of,
)
from xegpu_py.passes.xegpu_legalize.plan import is_desc, shape_of
from xegpu_py.passes.xegpu_legalize.rewrite import Rewriter, rewrites
from xegpu_py.passes.xegpu_legalize.shapes import Message, Pieces, Place, Transform, types_of

from xegpu_py.ir.builtin import vector_text

_HINTS = ("l1_hint", "l2_hint", "l3_hint")


def hints_of(view: Any) -> dict[str, Any]:
    """An op's cache hints."""
    return {name: getattr(view, name) for name in _HINTS}


@rewrites("xegpu.create_nd_tdesc")
def create_nd_tdesc(low: Rewriter, op: ir.Operation) -> bool:
    """A descriptor for each piece, of the same tensor."""
    view: Any = op.opview
    for layout in low.plan.layouts_of(op.results[0]):
        if isinstance(layout, Place):
            low.pieces[op.results[0], layout] = fallback.create(low, view, layout)
            continue
        made = []
        for offsets, desc in layout:
            moved = [low.add(o, step) for o, step in zip(view.offsets, offsets)]
            kind = low.build(
                xegpu.create_nd_tdesc, view.source, moved, view.shape, view.strides, tdesc=desc, mode=view.mode
            )
            made.append(kind)
        low.pieces[op.results[0], layout] = tuple(made)
    return not low.plan.is_kept(op.results[0])


@rewrites("ub.poison")
def poison(low: Rewriter, op: ir.Operation) -> bool:
    """Descriptors that are never used, as branches pass them on: each piece is as undefined."""
    value = op.results[0]
    if not is_desc(value):
        return False
    for layout in low.plan.layouts_of(value):
        low.pieces[value, layout] = tuple(
            low.emit("ub.poison", [kind], [], {"value": ir.Attribute.parse("#ub.poison")}).results[0]
            for kind in types_of(layout)
        )
    return not low.plan.is_kept(value)


@rewrites("xegpu.update_nd_offset")
def update_nd_offset(low: Rewriter, op: ir.Operation) -> bool:
    """Each piece moved alike."""
    view: Any = op.opview
    for layout in low.plan.layouts_of(op.results[0]):
        if isinstance(layout, Place):
            held = low.pieces[view.tdesc, layout]
            low.pieces[op.results[0], layout] = fallback.update(low, held, list(view.offsets))
            continue
        low.pieces[op.results[0], layout] = tuple(
            low.build(xegpu.update_nd_offset, piece, view.offsets, mode=view.mode)
            for piece in low.pieces[view.tdesc, layout]
        )
    return not low.plan.is_kept(op.results[0])


@rewrites("xegpu.prefetch_nd")
def prefetch_nd(low: Rewriter, op: ir.Operation) -> bool:
    """A prefetch of each piece."""
    view: Any = op.opview
    layout = layout_of(low.plan, op)
    if layout is None:
        return False
    if isinstance(layout, Place):
        fallback.prefetch(low, op, layout)
        return True
    for piece in low.pieces[view.tdesc, layout]:
        low.build(xegpu.prefetch_nd, piece, mode=view.mode, memory_scope=view.memory_scope, **hints_of(view))
    return True


@rewrites("xegpu.store_nd")
def store_nd(low: Rewriter, op: ir.Operation) -> bool:
    """A store of each piece."""
    view: Any = op.opview
    layout = layout_of(low.plan, op)
    if layout is None:
        return False
    if isinstance(layout, Place):
        fallback.store(low, op, layout)
        return True
    desc = TensorDesc.of(view.tdesc)
    shape = shape_of(view.value)
    assert shape
    columns = desc.shape[-1]
    for (offsets, part), piece in zip(layout, low.pieces[view.tdesc, layout]):
        box = tuple(zip(offsets, part.shape))
        if len(shape) > len(desc.shape):
            block, column = divmod(offsets[-1], columns)
            box = ((block, 1), *box[:-1], (column, part.shape[-1]))
        value = as_shape(low, low.part(view.value, box), part.shape)
        low.build(xegpu.store_nd, value, piece, mode=view.mode, **hints_of(view))
    return True


def as_shape(low: Rewriter, value: ir.Value, shape: boxes.Shape) -> ir.Value:
    """The same elements in another shape."""
    if shape_of(value) == shape:
        return value
    return low.emit("vector.shape_cast", [low.vector(shape, value)], [value]).results[0]


@rewrites("xegpu.load_nd")
def load_nd(low: Rewriter, op: ir.Operation) -> bool:
    """A load of each message's blocks, and the vector in their pieces."""
    view: Any = op.opview
    if view.mode != Mode.VC:
        return False
    desc = TensorDesc.of(view.tdesc)
    layout = layout_of(low.plan, op)
    if layout is None:
        return False
    if isinstance(layout, Place):
        fallback.load(low, op, layout)
        return True
    if blocks.is_line(desc):
        bounds = (tuple(part.shape[0] for _, part in layout),)
        parts = [low.build(xegpu.load_nd, p, mode=view.mode, **hints_of(view)) for p in low.pieces[view.tdesc, layout]]
        low.set(op.results[0], bounds, parts)
        return True
    transform = transform_of(view, desc)
    assert transform
    _load_blocks(low, op, desc, transform, layout)
    return True


def _load_blocks(low: Rewriter, op: ir.Operation, desc: TensorDesc, transform: Transform, layout: Pieces) -> None:
    shape = shape_of(op.results[0])
    assert shape
    axes = axes_of(desc, shape, transform)
    messages = load_messages(low.plan, op)
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
    if transform.turned:
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
    values = [as_shape(low, parts[p], boxes.sizes(box)) for p, box in zip(order, grid)]
    low.set(op.results[0], tuple(bounds), values)


def _extents(messages: Sequence[Message]) -> tuple[dict[int, int], dict[int, int]]:
    """Rows by first row, and columns by first column."""
    return {m.row: m.height for m in messages}, {c: w for m in messages for c, w in m.blocks}


def _load(
    low: Rewriter, op: ir.Operation, piece: ir.Value, message: Message, desc: TensorDesc, transform: Transform
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
    if transform.turned:
        rank = len(desc.shape)
        extra = {"transpose": (*range(rank - 2), rank - 1, rank - 2)}
        if unit > 1:
            extra["transpose_bit_width"] = bits
        shape = (width // unit, height * unit)
    elif lead:
        shape = (*lead, *shape)
    if count > 1:
        shape = (count, *shape)
    text = vector_text(shape, desc.element)
    loaded = low.build(xegpu.load_nd, piece, value=text, mode=view.mode, **extra, **hints_of(view))
    found = []
    for i, (column, wanted) in enumerate(message.blocks):
        value = loaded
        if count > 1:
            value = low.part(loaded, ((i, 1), *boxes.whole(shape[1:])))
            value = as_shape(low, value, shape[1:])
        if transform.turned and transform.unit < unit:
            value = _parted(low, value, unit // transform.unit, transform.unit, height)
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


def _parted(low: Rewriter, value: ir.Value, units: int, unit: int, height: int) -> ir.Value:
    """Columns that a load transposed as one unit, each as a row of its own."""
    shape = shape_of(value)
    assert shape
    split = as_shape(low, value, (shape[0], height, units, unit))
    turned = (shape[0], units, height, unit)
    order = ir.DenseI64ArrayAttr.get([0, 2, 1, 3])
    moved = low.emit("vector.transpose", [low.vector(turned, value)], [split], {"permutation": order}).results[0]
    return as_shape(low, moved, (shape[0] * units, height * unit))


def _trimmed(
    low: Rewriter, value: ir.Value, rows: int, columns: int, height: int, width: int, transform: Transform
) -> ir.Value:
    """Without the rows and columns that were loaded only to make a legal message."""
    if (rows, columns) == (height, width):
        return value
    shape = shape_of(value)
    assert shape
    box = list(boxes.whole(shape))
    if transform.turned:
        box[0], box[1] = (0, columns // transform.unit), (0, rows * transform.unit)
    else:
        first = len(shape) - 2 - (transform.vnni is not None)
        box[first] = (0, box[first][1] * rows // height)
        box[first + 1] = (0, box[first + 1][1] * columns // width)
    return low.part(value, tuple(box))
