"""The layouts of descriptors, and the messages of loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.interfaces import BlockAccess, Prefetch
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.operation import implements
from xegpu_py.passes.common.messages import atomic_message_of, block_problem, lanes_problem
from xegpu_py.passes.common.values import shape_of
from xegpu_py.passes.xegpu_legalize import shapes as blocks
from xegpu_py.passes.xegpu_legalize.boxes import Shape, segments, starts
from xegpu_py.passes.xegpu_legalize.plan import Access, Plan
from xegpu_py.passes.xegpu_legalize.shapes import Layout, Message, Pieces, Transform
from xegpu_py.target import Block2DLimits, Target
from xegpu_py.visa.operands import Raw, Variable
from xegpu_py.visa.spec import BlockShape


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
    """The axes of a loaded or stored vector."""
    rank = len(desc.shape)
    factor = 32 // desc.bits if transform.vnni is not None else 1
    own = len(shape) - (transform.vnni is not None)
    array = 0 if own > rank else None
    rows, columns = own - 2, own - 1
    if transform.transposed:
        return Axes(columns, rows, 1, transform.unit, array, transform.unit)
    return Axes(rows, columns, factor if transform.vnni == 0 else 1, factor if transform.vnni == 1 else 1, array)


def unit_of(desc: TensorDesc, transform: Transform, limits: Block2DLimits) -> tuple[int, int]:
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
        problem = lanes_problem(blocks.lanes_part(desc, lanes), target, name, **values)
        if problem is None or ("registers" not in problem[0] and "lanes" not in problem[0]):
            return lanes
        lanes //= 2
    return lanes


def access_of(op: ir.Operation, target: Target) -> Access:
    """The access of memory by an op; its layout is not set."""
    view: Any = op.opview
    value = None if implements(op, Prefetch) else view.value
    access = Access(op, view.tdesc, TensorDesc.of(view.tdesc), value, op.name == "xegpu.load_nd")
    if access.loads and view.mode == Mode.VC:
        access.transform, access.legal = blocks.load_form(view, target)
    return access


def layout_of(plan: Plan, access: Access) -> Layout | None:
    """The pieces of the block that an op moves; None if the op needs no split."""
    if plan.descs.find(access.tdesc) in plan.given:
        return None
    return _block_layout(plan, access) if implements(access.op, BlockAccess) else _lane_layout(plan, access)


def _lane_layout(plan: Plan, access: Access) -> Pieces | None:
    desc = access.desc
    most = lanes_of_message(access.op, plan.target)
    if most == desc.lanes:
        return None
    pieces = (most,) * (desc.lanes // most)
    return tuple(((lane,), blocks.lanes_part(desc, n)) for lane, n in zip(starts(pieces), pieces))


def _block_layout(plan: Plan, access: Access) -> Layout | None:
    desc = access.desc
    if bit_width(desc.element) not in (8, 16, 32, 64):
        return None
    if plan.surfaces.problem(access.tdesc):
        return plan.surfaces.place(access.tdesc)
    if access.value is None:
        return _prefetch_layout(plan, desc)
    if blocks.is_line(desc):
        return _line_layout(desc)
    if plan.target.block2d is None:
        return None
    layout = _load_layout if access.loads else _store_layout
    return layout(plan, access, access.value)


def _line_layout(desc: TensorDesc) -> Pieces | None:
    """The pieces of a line, one per message; None if one message moves it."""
    splits = blocks.line_splits(desc)
    pieces = segments(desc.shape[0], splits)
    return tuple(((at,), blocks.part_of(desc, n)) for at, n in zip(starts(pieces), pieces)) if splits else None


def _load_layout(plan: Plan, access: Access, value: ir.Value) -> Layout | None:
    if value not in plan.messages:
        plan.messages[value] = load_messages(plan, access, value)
    found, desc = plan.messages[value], access.desc
    if found is None:
        return None
    transform, limits = access.transform, plan.target.block2d
    assert transform and limits
    return _with_lead(desc, [((m.row, m.blocks[0][0]), message_desc(desc, m, transform, limits)) for m in found])


def is_one_message(plan: Plan, access: Access) -> bool:
    """Whether one message does a load of a 2D block, and the vector is split only between parts of its registers."""
    desc = access.desc
    if blocks.is_line(desc) or desc.in_slm or plan.target.block2d is None or len(desc.shape) != 2:
        return False
    return access.legal and access.value is not None and load_messages(plan, access, access.value) is None


def load_messages(plan: Plan, access: Access, value: ir.Value) -> list[Message] | None:
    """The messages of a load of a 2D block; None if the load needs no split."""
    desc, transform, shape = access.desc, access.transform, shape_of(value)
    limits = plan.target.block2d
    assert limits
    if transform is None:
        return None
    axes = axes_of(desc, shape, transform)
    bounds = plan.bounds(value)
    inner = axes.rows if transform.transposed else axes.columns
    rows, columns = desc.shape[-2:]
    root = plan.vectors.find(value)
    most_rows = plan.most_rows.get(root, rows)
    if access.legal and (bounds is None or len(bounds[inner]) == 1) and rows <= most_rows:
        return None
    splits = plan.splits.get(root) or [set() for _ in shape]
    bits, unit = unit_of(desc, transform, limits)
    wide = blocks.column_limit(limits, bits, transform) * unit
    # Pieces along the outer dimension are consecutive in registers, so that only splits of the inner one matter.
    across = set[int]() if transform.transposed else {c * axes.column_step for c in splits[axes.columns]}
    pieces: list[int] = []
    for block in range(desc.attr.array_length):
        first = 0 if axes.array is not None else block * columns
        pieces += blocks.spans(columns, {c - first for c in across if first < c < first + columns}, wide)
    high = blocks.row_limit(limits, bits, transform)
    if not transform.transposed:
        high = min(high, most_rows)
    down = axes.rows_at(splits[axes.rows]) if transform.transposed else set[int]()
    lines = blocks.spans(rows, down, high)
    widest = plan.most_columns.get(root, columns * desc.attr.array_length)
    return blocks.messages(desc, lines, tuple(pieces), transform, plan.target, widest)


def message_desc(desc: TensorDesc, message: Message, transform: Transform, limits: Block2DLimits) -> TensorDesc:
    """The descriptor of a message. It is enlarged to the least legal size; the excess rows and columns are dropped."""
    bits, unit = unit_of(desc, transform, limits)
    width = message.blocks[0][1]
    least = max(unit, 32 // desc.bits)
    height = message.height
    if transform.transposed and bits == 64:
        height = -(-height // 8) * 8
        width = 1 << (-(-width // unit) - 1).bit_length() if width > unit else 1
        width *= unit
    return blocks.part_of(desc, height, -(-width // least) * least, count=len(message.blocks))


def _with_lead(desc: TensorDesc, pieces: Sequence[tuple[tuple[int, ...], TensorDesc]]) -> Pieces:
    """Repeat the pieces for each matrix of a block of more than two dimensions."""
    lead = [segments(n, range(n)) for n in desc.shape[:-2]]
    places = blocks.places(tuple(lead))
    return tuple(((*place, *offsets), piece) for place in places for offsets, piece in pieces)


def _store_layout(plan: Plan, access: Access, value: ir.Value) -> Layout | None:
    desc, bounds, shape = access.desc, plan.bounds(value), shape_of(value)
    rows, columns = desc.shape[-2:]
    axes = axes_of(desc, shape, Transform())
    whole = BlockShape(desc.bits, desc.attr.array_length, columns, rows)
    legal = block_problem(whole, plan.target, True) is None and all(n == 1 for n in desc.shape[:-2])
    if legal and (bounds is None or any(n * desc.bits % 32 for n in bounds[axes.columns])):
        return None
    bounds = bounds or tuple((n,) for n in shape)
    high, wide = bounds[axes.rows], bounds[axes.columns]
    found = []
    count = desc.attr.array_length if axes.array is not None else 1
    for block in range(count):
        for row, height in zip(starts(high), high):
            for column, width in zip(starts(wide), wide):
                found.append(((row, block * columns + column), blocks.part_of(desc, height, width)))
    for _, part in found:
        if block_problem(BlockShape(desc.bits, 1, part.shape[-1], part.shape[-2]), plan.target, True):
            return plan.surfaces.place(access.tdesc)
    return _with_lead(desc, found)


def _prefetch_layout(plan: Plan, desc: TensorDesc) -> Layout | None:
    if blocks.is_line(desc):
        return _line_layout(desc)
    limits = plan.target.block2d
    if limits is None:
        return None
    rows, columns = desc.shape[-2:]
    flat = all(n == 1 for n in desc.shape[:-2])
    if flat and block_problem(BlockShape(desc.bits, desc.attr.array_length, columns, rows), plan.target) is None:
        return None
    wide = blocks.spans(columns * desc.attr.array_length, set(), limits.row_bytes * 8 // desc.bits)
    high = blocks.spans(rows, set(), limits.load_height)
    least = max(32 // desc.bits, 1)
    return _with_lead(
        desc,
        [
            ((row, column), blocks.part_of(desc, height, -(-width // least) * least))
            for row, height in zip(starts(high), high)
            for column, width in zip(starts(wide), wide)
        ],
    )
