"""How each op is cut: blocks, dpas, gathers, reductions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import DpasMxOp, Mode, TensorDesc
from xegpu_py.dialects.xegpu.matrix_ops import MAX_REPEAT_COUNT, SCALE_BLOCK
from xegpu_py.dialects.xegpu.op_interfaces import MatrixProduct
from xegpu_py.dialects.xegpu.types import XeGPU
from xegpu_py.ir.builtin import CombiningKind
from xegpu_py.ir.diagnostics import remark
from xegpu_py.passes.analysis import message_tiling
from xegpu_py.passes.analysis.ir_queries import defining_op, element_of, integers, shape_of
from xegpu_py.passes.analysis.message_tiling import (
    BlockTiling,
    Message,
    Segments,
    Transform,
    axes_of,
    dpas_blocks,
    full_box,
    message_desc,
    transpose_unit,
    types_of,
)
from xegpu_py.passes.analysis.target_messages import (
    expand_load_transform,
    hints_of,
    load_like,
    merge_transposed_units,
    transposes_in_message,
)
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.xegpu_unroll.unroll_driver import Legalization, rule
from xegpu_py.passes.xegpu_unroll.unroll_plan import REDUCED_GRFS, bytes_of
from xegpu_py.target import Target

# Loads with transforms that no message does, before values are split.


def transform_in_registers(op: ir.Operation, target: Target) -> bool:
    """Split a load whose transform no message does into a plain load and a transform in registers.

    Messages transpose blocks of two dimensions, in units of at least 32 bits that begin at a multiple of their size.
    Returns whether the load was changed.
    """
    original, op = op, merge_transposed_units(op)
    view: Any = op.opview
    desc, limits = TensorDesc.of(view.tdesc), target.block2d
    if desc.attr.message:
        return op is not original
    plain = view.transpose is None or tuple(view.transpose) == tuple(range(len(desc.shape)))
    if view.mode != Mode.VC or len(desc.shape) < 2 or plain or limits is None:
        return op is not original
    if len(desc.shape) == 2:
        if transposes_in_message(view, desc, limits):
            return op is not original
        remark(op, "transposes its block in registers: it is not known to begin at a multiple of a message's unit")
    expand_load_transform(view)
    return True


# Splits ops on blocks: descriptors, loads, stores and prefetches become those of single messages.


@rule("xegpu.create_nd_tdesc")
def create_nd_tdesc(low: Legalization, op: ir.Operation) -> None:
    """A descriptor for each piece, of the same tensor."""
    view: Any = op.opview

    def make(layout: BlockTiling) -> Iterator[ir.Value]:
        for offsets, desc in layout:
            moved_offsets = [build.add(o, step) for o, step in zip(view.offsets, offsets)]
            yield xegpu.create_nd_tdesc(
                view.source, moved_offsets, view.shape, view.strides, tdesc=desc, mode=view.mode
            )

    low.in_pieces(op, make)


@rule("ub.poison")
def undefined(low: Legalization, op: ir.Operation) -> None:
    """An undefined descriptor becomes undefined pieces. Branches may carry it, but no access uses it."""
    low.in_pieces(op, lambda layout: map(build.poison, types_of(layout)))


@rule("xegpu.update_nd_offset")
def update_nd_offset(low: Legalization, op: ir.Operation) -> None:
    """Move each piece by the same offsets."""
    view: Any = op.opview

    def make(layout: BlockTiling) -> Iterable[ir.Value]:
        pieces = low.pieces[view.tdesc, layout]
        return (xegpu.update_nd_offset(piece, view.offsets, mode=view.mode) for piece in pieces)

    low.in_pieces(op, make)


@rule("xegpu.prefetch_nd")
def prefetch_nd(low: Legalization, op: ir.Operation) -> None:
    """A prefetch of each piece."""
    view: Any = op.opview
    for piece in low.pieces[view.tdesc, low.layout]:
        xegpu.prefetch_nd(piece, mode=view.mode, memory_scope=view.memory_scope, **hints_of(view))
    low.erase(op)


@rule("xegpu.store_nd")
def store_nd(low: Legalization, op: ir.Operation) -> None:
    """A store of each piece."""
    view: Any = op.opview
    layout = low.layout
    low.erase(op)
    desc = TensorDesc.of(view.tdesc)
    columns = desc.shape[-1]
    for (offsets, part), piece in zip(layout, low.pieces[view.tdesc, layout]):
        box = tuple(zip(offsets, part.shape))
        if len(shape_of(view.value)) > len(desc.shape):
            block, column = divmod(offsets[-1], columns)
            box = ((block, 1), *box[:-1], (column, part.shape[-1]))
        xegpu.store_nd(build.shape_cast(low.part(view.value, box), part.shape), piece, mode=view.mode, **hints_of(view))


@rule("xegpu.load_nd")
def load_nd(low: Legalization, op: ir.Operation) -> None:
    """A load for each message; the vector is divided into the pieces that they give."""
    view: Any = op.opview
    layout = low.layout
    desc = TensorDesc.of(view.tdesc)
    if message_tiling.is_1d(desc):
        bounds = (tuple(part.shape[0] for _, part in layout),)
        parts = [load_like(view, p) for p in low.pieces[view.tdesc, layout]]
        low.divide(op, bounds, parts)
    else:
        transform = low.access(op).transform
        assert transform
        _load_blocks(low, op, desc, transform, layout)


def _load_blocks(
    low: Legalization, op: ir.Operation, desc: TensorDesc, transform: Transform, layout: BlockTiling
) -> None:
    axes = axes_of(desc, shape_of(op.results[0]), transform)
    messages = low.plan.messages[op.results[0]]
    assert messages
    rank = len(desc.shape)
    parts: dict[tuple[int, ...], ir.Value] = {}
    pieces = iter(low.pieces[op.opview.tdesc, layout])
    for lead in itertools.product(*(range(n) for n in desc.shape[:-2])):
        for message in messages:
            for column, value in _load(low, op, next(pieces), message, desc, transform):
                origin = (*lead, message.row, column)
                parts[origin] = value
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
    grid = list(message_tiling.tiles(tuple(bounds)))
    values = [build.shape_cast(parts[p], message_tiling.box_shape(box)) for p, box in zip(order, grid)]
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
    message_type = message_desc(desc, message, transform, limits)
    height, width = message_type.shape[-2:]
    count = len(message.blocks)
    lead = message_type.shape[:-2]
    bits, unit = transpose_unit(desc, transform, limits)
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
    kind = build.vector_type(shape, element_of(op.results[0]))
    loaded = load_like(op.opview, piece, value=kind, **extra)
    blocks = []
    for i, (column, wanted) in enumerate(message.blocks):
        value = loaded
        if count > 1:
            value = build.shape_cast(low.part(loaded, ((i, 1), *message_tiling.full_box(shape[1:]))), shape[1:])
        if transform.transposed and transform.unit < unit:
            value = _separated(value, unit // transform.unit, transform.unit, height)
        value = _trimmed(low, value, message.height, wanted, height, width, transform)
        blocks.append((column, value))
    return blocks


def _block_shape(height: int, width: int, desc: TensorDesc, transform: Transform) -> message_tiling.Shape:
    factor = 32 // desc.bits
    if transform.vnni == 0:
        return height // factor, width, factor
    if transform.vnni == 1:
        return height, width // factor, factor
    return height, width


def _separated(value: ir.Value, units: int, unit: int, height: int) -> ir.Value:
    """Make a row of each column that the load transposed as part of a unit."""
    rows = shape_of(value)[0]
    transposed = build.transpose(build.shape_cast(value, (rows, height, units, unit)), (0, 2, 1, 3))
    return build.shape_cast(transposed, (rows * units, height * unit))


def _trimmed(
    low: Legalization, value: ir.Value, rows: int, columns: int, height: int, width: int, transform: Transform
) -> ir.Value:
    """Drop the rows and columns that were loaded only to make a legal message."""
    if (rows, columns) == (height, width):
        return value
    shape = shape_of(value)
    box = list(message_tiling.full_box(shape))
    if transform.transposed:
        box[0], box[1] = (0, columns // transform.unit), (0, rows * transform.unit)
    else:
        first = len(shape) - 2 - (transform.vnni is not None)
        box[first] = (0, box[first][1] * rows // height)
        box[first + 1] = (0, box[first + 1][1] * columns // width)
    return low.part(value, tuple(box))


# Splits `dpas` and `dpas_mx` into one instruction per tile of the result and step of K.


@rule(*XeGPU.implementing(MatrixProduct))
def dpas(low: Legalization, op: ir.Operation) -> None:
    """Split a product. K is the outermost loop of a slab, so that dependent instructions are not adjacent."""
    view: Any = op.opview
    blocks = dpas_blocks(view, low.plan.target, low.plan.ahead) if view.mode == Mode.VC else None
    if blocks is None or (blocks.rows, blocks.columns, blocks.depth) == (
        max(min(blocks.rows, MAX_REPEAT_COUNT), blocks.least_rows), blocks.step_columns, blocks.step,
    ):  # fmt: skip
        low.keep(op)
        return
    tiles = list(message_tiling.tiles(blocks.bounds))
    wide = [((row, max(rows, blocks.least_rows)), (column, blocks.step_columns)) for (row, rows), (column, _) in tiles]
    sums = [None if view.acc is None else low.padded(view.acc, box) for box in wide]
    reused: dict[Any, ir.Value] = {}

    def factor(value: ir.Value, outer: tuple[int, int], inner: tuple[int, int], depth: int) -> ir.Value:
        """A part of a factor. Dimension `depth` is K, and the innermost dimension may hold packed elements of K."""
        packed = shape_of(value)[2:]
        box = [outer, inner, *((0, n) for n in packed)]
        box[depth] = (box[depth][0] // math.prod(packed), box[depth][1] // math.prod(packed))
        key = (value, outer, inner)
        if key not in reused:
            reused[key] = low.padded(value, tuple(box))
        return reused[key]

    def scales(row: tuple[int, int], column: tuple[int, int], k: int) -> dict[str, ir.Value]:
        """The scales of the blocks of K that a step is in."""
        if not isinstance(view, DpasMxOp):
            return {}
        along = (k // SCALE_BLOCK, -(-blocks.step // SCALE_BLOCK))
        operands = {"scale_a": (view.scale_a, (row, along)), "scale_b": (view.scale_b, (along, column))}
        return {name: low.padded(value, box) for name, (value, box) in operands.items() if value is not None}

    slabs = itertools.product(range(0, blocks.depth, blocks.slab_depth), range(0, blocks.columns, blocks.slab_columns))
    for first, left in slabs:
        operands: dict[ir.Value, None] = {}
        start: ir.Operation | None = None
        for k in range(first, min(first + blocks.slab_depth, blocks.depth), blocks.step):
            for i, (row, column) in enumerate(wide):
                if not left <= column[0] < left + blocks.slab_columns:
                    continue
                a = factor(view.lhs, row, (k, blocks.step), 1)
                b = factor(view.rhs, (k, blocks.step), column, 0)
                operands.update({a: None, b: None})
                # The first instruction reads the accumulator in its own type; partial results have the result's type.
                kind = build.with_shape(view.result.type, (row[1], blocks.step_columns))
                scale_operands = scales(row, column, k)
                sums[i] = type(view)(a, b, acc=sums[i], result=kind, mode=view.mode, **scale_operands).result
                start = start or defining_op(sums[i])
        if (first or left) and start is not None:
            low.slabs.append((start, list(operands)))
    parts = [low.part(s, ((0, row[1]), (0, column[1]))) for s, (row, column) in zip(sums, tiles) if s is not None]
    low.divide(op, blocks.bounds, parts)


# Splits gathers and scatters into those of at most the lanes of one message.


@rule("xegpu.create_tdesc")
def create_tdesc(low: Legalization, op: ir.Operation) -> None:
    """A descriptor for each group of lanes."""
    view: Any = op.opview

    def make(layout: BlockTiling) -> Iterator[ir.Value]:
        for (lane,), desc in layout:
            offsets, chunk = low.part(view.offsets, ((lane, desc.lanes),)), view.chunk_size_per_lane
            yield xegpu.create_tdesc(view.source, offsets, tdesc=desc, mode=view.mode, chunk_size_per_lane=chunk)

    low.in_pieces(op, make)


@rule("xegpu.update_offset")
def update_offset(low: Legalization, op: ir.Operation) -> None:
    """Move the lanes of each piece."""
    view: Any = op.opview

    def make(layout: BlockTiling) -> Iterator[ir.Value]:
        for ((lane,), desc), piece in zip(layout, low.pieces[view.tdesc, layout]):
            yield xegpu.update_offset(piece, low.part(view.offsets, ((lane, desc.lanes),)), mode=view.mode)

    low.in_pieces(op, make)


def _pieces(low: Legalization, op: ir.Operation) -> Iterator[tuple[ir.Value, Callable[[ir.Value], ir.Value]]]:
    """For each message of an access, its descriptor and a function that takes its lanes' part of a vector."""
    layout = low.layout
    for ((lane,), desc), piece in zip(layout, low.pieces[op.opview.tdesc, layout]):

        def part(value: ir.Value, lanes: tuple[int, int] = (lane, desc.lanes)) -> ir.Value:
            return low.part(value, (*full_box(shape_of(value)[:-1]), lanes))

        yield piece, part


def _replace(low: Legalization, op: ir.Operation, parts: list[ir.Value]) -> None:
    """Replace the result of an access by the results of its messages."""
    outer, lanes = shape_of(op.results[0])[:-1], tuple(shape_of(part)[-1] for part in parts)
    low.divide(op, (*((n,) for n in outer), lanes), parts)


@rule("xegpu.load_gather")
def load_gather(low: Legalization, op: ir.Operation) -> None:
    """A gather of each piece."""
    view: Any = op.opview
    attributes = {"mode": view.mode, "transpose": view.transpose, **hints_of(view)}
    _replace(low, op, [xegpu.load_gather(piece, part(view.mask), **attributes) for piece, part in _pieces(low, op)])


@rule("xegpu.store_scatter")
def store_scatter(low: Legalization, op: ir.Operation) -> None:
    """A scatter of each piece."""
    view: Any = op.opview
    attributes = {"mode": view.mode, "memory_scope": view.memory_scope, **hints_of(view)}
    for piece, part in _pieces(low, op):
        xegpu.store_scatter(part(view.value), piece, part(view.mask), **attributes)
    low.erase(op)


@rule("xegpu.atomic_rmw")
def atomic_rmw(low: Legalization, op: ir.Operation) -> None:
    """Atomic operations on the lanes of each piece."""
    view: Any = op.opview
    parts = []
    for piece, part in _pieces(low, op):
        value, mask = part(view.value), part(view.mask)
        expected = None if view.expected is None else part(view.expected)
        parts.append(xegpu.atomic_rmw(view.kind, value, piece, mask, expected, mode=view.mode))
    _replace(low, op, parts)


@rule("xegpu.prefetch")
def prefetch(low: Legalization, op: ir.Operation) -> None:
    """A prefetch of each piece."""
    for piece, _ in _pieces(low, op):
        xegpu.prefetch(piece, mode=op.opview.mode, **hints_of(op.opview))
    low.erase(op)


# Reductions of vectors in pieces, in the same order of operations as for the whole vector.


def _combined(op: ir.Operation, parts: Sequence[ir.Value]) -> ir.Value:
    """Combine pieces of one shape elementwise: the first half with the second half, repeatedly."""
    kind = CombiningKind.of(op)
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [kind.combine(a, b) for a, b in zip(parts[:half], parts[half:])]
    return parts[0]


def _reduced_parts(op: ir.Operation, parts: Sequence[ir.Value], acc: Sequence[ir.Value], result: ir.Type) -> ir.Value:
    """Reduce pieces of one shape: combined elementwise, or one after the other if the order is sequential."""
    if not CombiningKind.of(op).is_sequential(op):
        parts = [_combined(op, parts)]
    for part in parts:
        acc = [build.create_like(op, [result], [part, *acc]).results[0]]
    return acc[0]


def _is_joined(bounds: Segments | None, value: ir.Value, dimension: int) -> bool:
    """Whether consecutive pieces along a dimension are combined elementwise before they are reduced."""
    if bounds is None or element_of(value) == build.integer_type(1):
        return False
    # Combining a power of two of equal pieces by halves keeps the order of the elements' reduction.
    return len(set(bounds[dimension])) == 1 and len(bounds[dimension]).bit_count() == 1


def _bounds(low: Legalization, value: ir.Value, kept_dimensions: Sequence[int] = ()) -> Segments | None:
    """The sizes of a vector's pieces; small ones are joined along the `kept` dimensions."""
    if value not in low.tiles:
        return low.plan.bounds(value)
    bounds = list(low.tiles[value].bounds)
    each = bytes_of(value) * math.prod(pieces[0] for pieces in bounds)
    most = REDUCED_GRFS * low.plan.target.grf_bytes
    for d in reversed(kept_dimensions):
        grown = message_tiling.merge_segments(bounds[d], max(most // each, 1) * bounds[d][0])
        each, bounds[d] = each // bounds[d][0] * grown[0], grown
    return tuple(bounds)


@rule("vector.reduction")
def reduction(low: Legalization, op: ir.Operation) -> None:
    """Reduce all pieces to one number."""
    source, *acc = op.operands
    bounds = _bounds(low, source)
    if bounds is None or not _is_joined(bounds, source, 0):
        low.keep(op)
        return
    parts = [low.part(source, box) for box in message_tiling.tiles(bounds)]
    low.replace(op, _reduced_parts(op, parts, acc, op.results[0].type))


@rule("vector.multi_reduction")
def multi_reduction(low: Legalization, op: ir.Operation) -> None:
    """For each piece of the result, reduce the pieces along the outermost reduced dimension."""
    source, acc = op.operands
    first, *others = reduced = integers(op.attributes["reduction_dims"])
    kept_dimensions = [d for d in range(len(shape_of(source))) if d not in reduced]
    bounds = _bounds(low, source, kept_dimensions)
    if bounds is None or not _is_joined(bounds, source, first) or any(len(bounds[d]) > 1 for d in others):
        low.keep(op)
        return
    parts = []
    for box in message_tiling.tiles(tuple(bounds[d] for d in kept_dimensions)):
        group = []
        for line in zip(message_tiling.starts(bounds[first]), bounds[first]):
            part = {**dict(zip(kept_dimensions, box)), **{d: (0, bounds[d][0]) for d in others}, first: line}
            group.append(low.part(source, tuple(part[d] for d in range(len(bounds)))))
        start = low.part(acc, box) if shape_of(acc) else acc
        parts.append(_reduced_parts(op, group, [start], start.type))
    if shape_of(op.results[0]):
        low.divide(op, tuple(bounds[d] for d in kept_dimensions), parts)
    else:
        low.replace(op, parts[0])


@rule("vector.insert_strided_slice")
def assembled(low: Legalization, op: ir.Operation) -> None:
    """A vector that is made of its pieces stays in them."""
    if op.results[0] in low.plan.assembled:
        bounds, inserts = low.plan.assembled[op.results[0]]
        low.divide(op, bounds, [low.whole(insert.operands[0]) for insert in inserts])
    elif op.results[0] in low.plan.unfinished:
        low.erase(op)
    else:
        low.keep(op)


@rule("vector.extract")
def extract_element(low: Legalization, op: ir.Operation) -> None:
    """Extract one element of a vector in pieces. Larger parts are views, made on demand."""
    source = op.operands[0]
    if shape_of(op.results[0]) or len(op.operands) > 1 or _bounds(low, source) is None:
        low.convert_without_rule(op)
        return
    at = integers(op.attributes["static_position"])
    low.replace(op, build.extract(low.part(source, tuple((i, 1) for i in at)), [0] * len(at)))
