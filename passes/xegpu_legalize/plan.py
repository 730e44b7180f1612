"""Where the vectors and blocks of a kernel are cut: found once, before anything is rewritten."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlir import ir
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.passes.xegpu_legalize import shapes as blocks
from xegpu_py.passes.xegpu_legalize.boxes import Bounds, Shape, reshape_cuts, segments
from xegpu_py.passes.xegpu_legalize.shapes import Layout, Message, Transform
from xegpu_py.passes.xegpu_to_visa.messages import precision_of
from xegpu_py.passes.xegpu_to_visa.values import register_type
from xegpu_py.passes.xegpu_verify_target.rules import MAX_REPEAT_COUNT, block_problem, dpas_step, lanes_problem

from xegpu_py.ir.builtin import bit_width, vector_of
from xegpu_py.ir.verifier import walk
from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import Target
from xegpu_py.visa.operands import Raw
from xegpu_py.visa.spec import BlockShape

CHAIN_GRFS = 2
"""Registers of a piece of a vector that no message or dpas gives a shape."""

DESC = "!xegpu.tensor_desc<"
_MADE = ("arith.constant", "vector.broadcast", "vector.splat", "vector.step", "vector.create_mask")
"""Ops whose results are made piece by piece as they are needed."""
_REDUCTIONS = ("vector.reduction", "vector.multi_reduction")
VIEWS = (
    "vector.shape_cast", "vector.extract_strided_slice", "vector.transpose", "vector.extract", "vector.broadcast",
    "vector.splat", "vector.step", "vector.create_mask", "arith.constant",
)  # fmt: skip
"""Ops of whose results a part is the same op on a part of the operand."""


def shape_of(value: ir.Value) -> Shape | None:
    """The shape of a vector; None of all else."""
    text = str(value.type)
    if not text.startswith("vector<") or "[" in text:
        return None
    return vector_of(text)[0] or None


def element_of(value: ir.Value) -> str:
    """The element type of a vector."""
    return vector_of(str(value.type))[1]


def is_desc(value: ir.Value) -> bool:
    """Whether a value is a tensor descriptor."""
    return str(value.type).startswith(DESC)


def integers(attribute: Any) -> list[int]:
    """The numbers of an array attribute."""
    if isinstance(attribute, ir.ArrayAttr):
        return [ir.IntegerAttr(a).value for a in attribute]
    return [int(v) for v in ir.DenseI64ArrayAttr(attribute)]


def owner_of(value: ir.Value) -> ir.Operation | None:
    """The op that defines a value; None of a block's argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def is_elementwise(op: ir.Operation) -> bool:
    """Whether an op works on vectors element by element."""
    if not (op.name.startswith(("arith.", "math.")) or op.name == "vector.fma"):
        return False
    if op.name == "arith.constant" or not op.results:
        return False
    shape = shape_of(op.results[0])
    return shape is not None and all(shape_of(v) in (None, shape) for v in (*op.operands, *op.results))


def carried(op: ir.Operation) -> list[list[ir.Value]]:
    """The values that are one another in a structured op: what goes in, arguments, what is yielded, results."""
    name = op.name
    if name == "scf.for":
        body = op.regions[0].blocks[0]
        yields = list(list(body.operations)[-1].operation.operands)
        return [list(v) for v in zip(list(op.operands)[3:], list(body.arguments)[1:], yields, op.results)]
    if name in ("scf.if", "scf.index_switch"):
        ends = [list(list(r.blocks[0].operations)[-1].operation.operands) for r in op.regions if len(r.blocks)]
        return [[result, *(e[i] for e in ends)] for i, result in enumerate(op.results)]
    if name == "scf.while":
        before, after = (r.blocks[0] for r in op.regions)
        condition = list(list(before.operations)[-1].operation.operands)[1:]
        yields = list(list(after.operations)[-1].operation.operands)
        first = [list(v) for v in zip(op.operands, before.arguments, yields)]
        return first + [list(v) for v in zip(condition, after.arguments, op.results)]
    return []


class Classes:
    """Sets of values that are joined as they are found to be alike."""

    def __init__(self) -> None:
        self._parent: dict[ir.Value, ir.Value] = {}

    def find(self, value: ir.Value) -> ir.Value:
        """The value that stands for a set."""
        root = value
        while (above := self._parent.get(root, root)) != root:
            root = above
        while value != root:
            self._parent[value], value = root, self._parent.get(value, value)
        return root

    def join(self, values: Iterable[ir.Value]) -> None:
        """Make the sets of these values one."""
        first, *rest = values
        root = self.find(first)
        for value in rest:
            self._parent[self.find(value)] = root


@dataclass
class Plan:
    """Where everything is cut.

    Attributes:
        target: the GPU.
        vectors: vectors of one shape that are cut alike.
        cuts: by class, the positions in front of which each dimension is cut.
        descs: descriptors that are moved and carried together.
        layouts: by class of descriptors, the layouts that their uses need.
        kept: classes of descriptors that are needed as they are, too.
    """

    target: Target
    vectors: Classes = field(default_factory=Classes)
    cuts: dict[ir.Value, list[set[int]]] = field(default_factory=dict)
    descs: Classes = field(default_factory=Classes)
    layouts: dict[ir.Value, dict[Layout, None]] = field(default_factory=dict)
    kept: set[ir.Value] = field(default_factory=set)
    _held: set[ir.Value] = field(default_factory=set)

    def bounds(self, value: ir.Value) -> Bounds | None:
        """How a vector is cut; None if it is not."""
        shape = shape_of(value)
        cuts = self.cuts.get(self.vectors.find(value)) if shape else None
        if cuts is None or not any(cuts):
            return None
        assert shape
        return tuple(segments(n, sorted(c)) for n, c in zip(shape, cuts))

    def layouts_of(self, value: ir.Value) -> list[Layout]:
        """The layouts in which a descriptor is needed."""
        return list(self.layouts.get(self.descs.find(value), {}))

    def is_kept(self, value: ir.Value) -> bool:
        """Whether a descriptor is needed as it is."""
        root = self.descs.find(value)
        return root in self.kept or root not in self.layouts

    def cut(self, value: ir.Value, dimension: int, positions: Iterable[int]) -> None:
        """Have a vector cut in front of these positions."""
        shape = shape_of(value)
        assert shape
        cuts = self.cuts.setdefault(self.vectors.find(value), [set() for _ in shape])
        cuts[dimension] |= {p for p in positions if 0 < p < shape[dimension]}

    def require(self, desc: ir.Value, layout: Layout | None) -> None:
        """Have a descriptor in a layout, or as it is."""
        root = self.descs.find(desc)
        if layout is None:
            self.kept.add(root)
        else:
            self.layouts.setdefault(root, {})[layout] = None


def make_plan(func: ir.Operation, target: Target) -> Plan:
    """Find where the vectors and blocks of a function are cut."""
    plan = Plan(target)
    ops = walk(func)
    for op in ops:
        _join(plan, op)
    for op in ops:
        _limit(plan, op)
    for op in reversed(ops):
        _through_view(plan, op)
    _cut_chains(plan, ops)
    for op in ops:
        _lay_out(plan, op)
    return plan


def _join(plan: Plan, op: ir.Operation) -> None:
    for group in carried(op):
        if shape_of(group[0]):
            plan.vectors.join(group)
        elif is_desc(group[0]):
            plan.descs.join(group)
    if is_elementwise(op):
        plan.vectors.join([op.results[0], *(v for v in op.operands if shape_of(v)), *list(op.results)[1:]])
    elif op.name in ("xegpu.update_nd_offset", "xegpu.update_offset"):
        plan.descs.join([op.results[0], op.operands[0]])
    elif op.name == "xegpu.dpas" and op.opview.mode == Mode.VC and op.opview.acc is not None:
        plan.vectors.join([op.results[0], op.opview.acc])
    elif op.name == "xegpu.atomic_rmw":
        plan.vectors.join([op.results[0], op.opview.value])


def _limit(plan: Plan, op: ir.Operation) -> None:
    """The cuts that an op cannot do without."""
    name = op.name
    known = is_elementwise(op) or name in _MADE or name in _REDUCTIONS
    if not known:
        for value in (*op.operands, *op.results):
            if shape_of(value):
                plan._held.add(value)
        for group in carried(op):
            plan._held.update(v for v in group if shape_of(v))
    if name == "xegpu.dpas" and op.opview.mode == Mode.VC:
        _limit_dpas(plan, op.opview)
    elif name in ("xegpu.store_nd", "xegpu.load_nd") and op.opview.mode == Mode.VC:
        _limit_block(plan, op)
    elif name in ("xegpu.load_gather", "xegpu.store_scatter", "xegpu.atomic_rmw"):
        most = lanes_of_message(op, plan.target)
        value = op.results[0] if name == "xegpu.load_gather" else op.opview.value
        shape = shape_of(value)
        assert shape
        plan.cut(value, len(shape) - 1, range(0, shape[-1], most))


def lanes_of_message(op: ir.Operation, target: Target) -> int:
    """Lanes of a scattered descriptor that one message serves."""
    desc = TensorDesc.of(op.opview.tdesc)
    name = {"xegpu.store_scatter": "lsc_store", "xegpu.atomic_rmw": "lsc_atomic_iadd"}.get(op.name, "lsc_load")
    values = {"src0": Raw(None), "src1": Raw(None)} if op.name == "xegpu.atomic_rmw" else {}
    lanes = desc.lanes
    while lanes > 1:
        problem = lanes_problem(blocks.lanes_part(desc, lanes), target, name, **values)
        if problem is None or ("registers" not in problem[0] and "lanes" not in problem[0]):
            return lanes
        lanes //= 2
    return lanes


def dpas_cuts(view: Any, target: Target) -> tuple[range, range, range] | None:
    """Where M, N and K of a dpas are cut; None if no instruction takes a part of it."""
    (m, n), _ = vector_of(str(view.result.type))
    a_shape, a = vector_of(str(view.lhs.type))
    _, b = vector_of(str(view.rhs.type))
    w_precision, a_precision = precision_of(b), precision_of(a)
    if {w_precision, a_precision} - set(target.dpas_precisions):
        return None
    step, k = dpas_step(w_precision, a_precision, target), math.prod(a_shape) // m
    if k % step or n % target.dpas_exec_size:
        return None
    return range(0, m, MAX_REPEAT_COUNT), range(0, n, target.dpas_exec_size), range(0, k, step)


def _limit_dpas(plan: Plan, view: Any) -> None:
    found = dpas_cuts(view, plan.target)
    if found is None:
        return
    rows, columns, depth = found
    plan.cut(view.result, 0, rows)
    plan.cut(view.result, 1, columns)
    a_shape, b_shape = shape_of(view.lhs), shape_of(view.rhs)
    assert a_shape and b_shape
    pack_a, pack_b = (s[2] if len(s) == 3 else 1 for s in (a_shape, b_shape))
    plan.cut(view.lhs, 0, rows)
    plan.cut(view.lhs, 1, [k // pack_a for k in depth])
    plan.cut(view.rhs, 0, [k // pack_b for k in depth])
    plan.cut(view.rhs, 1, columns)


@dataclass(frozen=True)
class Axes:
    """How the dimensions of a loaded or stored vector are the rows and columns of its block.

    Attributes:
        rows, columns: their dimensions.
        row_step, column_step: rows and columns to an index of that dimension.
        row_scale: indices of its dimension to a row.
        array: the dimension of an array of blocks; None if they lie side by side.
    """

    rows: int
    columns: int
    row_step: int = 1
    column_step: int = 1
    array: int | None = None
    row_scale: int = 1

    def row_index(self, rows: int) -> int:
        """Indices along the dimension of rows that so many rows take."""
        return rows * self.row_scale // self.row_step

    def rows_at(self, cuts: set[int]) -> set[int]:
        """The rows in front of which these cuts are, as far as they are in front of rows."""
        return {c * self.row_step // self.row_scale for c in cuts if c % self.row_scale == 0}


def transform_of(view: Any, desc: TensorDesc) -> Transform | None:
    """What a load does with the innermost two dimensions; None if it turns others."""
    if view.transpose is None or tuple(view.transpose) == tuple(range(len(desc.shape))):
        return Transform(vnni=view.vnni_axis)
    rank = len(desc.shape)
    if tuple(view.transpose) != (*range(rank - 2), rank - 1, rank - 2):
        return None
    return Transform(True, (view.transpose_bit_width or desc.bits) // desc.bits)


def axes_of(desc: TensorDesc, shape: Shape, transform: Transform) -> Axes:
    """How a loaded or stored vector's dimensions are those of its block."""
    rank = len(desc.shape)
    factor = 32 // desc.bits if transform.vnni is not None else 1
    own = len(shape) - (transform.vnni is not None)
    array = 0 if own > rank else None
    rows, columns = own - 2, own - 1
    if transform.turned:
        return Axes(columns, rows, 1, transform.unit, array, transform.unit)
    return Axes(rows, columns, factor if transform.vnni == 0 else 1, factor if transform.vnni == 1 else 1, array)


def _limit_block(plan: Plan, op: ir.Operation) -> None:
    """A block that no message moves as it is is cut where messages end."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    load = op.name == "xegpu.load_nd"
    value = op.results[0] if load else view.value
    if bit_width(desc.element) not in (8, 16, 32, 64):
        return
    if blocks.is_line(desc):
        plan.cut(value, 0, blocks.line_cuts(desc))
        return
    limits = plan.target.block2d
    if limits is None or blocks.is_slm(desc):
        return
    transform = transform_of(view, desc) if load else Transform()
    shape = shape_of(value)
    assert shape
    if transform is None or (load and blocks.load_is_legal(view, plan.target)):
        return
    axes = axes_of(desc, shape, transform)
    for d in range(len(desc.shape) - 2):
        plan.cut(value, d, range(desc.shape[d]))
    rows, columns = desc.shape[-2:]
    bits, _ = unit_of(desc, transform)
    high = blocks.row_limit(limits, bits, transform) if load else limits.store_height
    wide = blocks.column_limit(limits, bits, transform) * bits // desc.bits
    plan.cut(value, axes.rows, [axes.row_index(r) for r in range(0, rows, high)])
    count = desc.attr.array_length
    if axes.array is not None:
        plan.cut(value, axes.array, range(count))
        count = 1
    for block in range(count):
        first = block * columns
        plan.cut(value, axes.columns, [(first + c) // axes.column_step for c in range(0, columns, wide)])


def unit_of(desc: TensorDesc, transform: Transform) -> tuple[int, int]:
    """Bits of what a load takes for one element, and elements of the descriptor in it."""
    if not transform.turned:
        return desc.bits, 1
    bits = max(desc.bits * transform.unit, blocks.TRANSPOSED_UNIT)
    return bits, bits // desc.bits


def _through_view(plan: Plan, op: ir.Operation) -> None:
    """What is cut behind a change of shape is cut in front of it."""
    if op.name not in VIEWS or not op.operands:
        return
    source, result = op.operands[0], op.results[0]
    shape, to = shape_of(source), shape_of(result)
    cuts = plan.cuts.get(plan.vectors.find(result)) if to else None
    if shape is None or to is None:
        return
    if op.name == "vector.shape_cast" and cuts and any(cuts):
        for d, positions in enumerate(reshape_cuts(cuts, to, shape)):
            plan.cut(source, d, positions)
    elif op.name == "vector.extract_strided_slice":
        offsets = integers(op.attributes["offsets"])
        for d, (offset, size) in enumerate(zip(offsets, to)):
            inner = cuts[d] if cuts else set[int]()
            plan.cut(source, d, {offset, offset + size, *(offset + p for p in inner)})
    elif op.name == "vector.transpose" and cuts:
        for d, from_d in enumerate(integers(op.attributes["permutation"])):
            plan.cut(source, from_d, cuts[d])


def _cut_chains(plan: Plan, ops: Sequence[ir.Operation]) -> None:
    """Vectors of element-by-element ops that nothing else holds are cut to a few registers."""
    held = {plan.vectors.find(v) for v in plan._held}
    most = CHAIN_GRFS * plan.target.grf_bytes
    for op in ops:
        if not is_elementwise(op):
            continue
        result = op.results[0]
        root = plan.vectors.find(result)
        shape = shape_of(result)
        assert shape
        if root in held or any(plan.cuts.get(root, ())):
            continue
        size = max(_bytes(v) for v in (*op.operands, result) if shape_of(v))
        if math.prod(shape) * size <= most:
            continue
        each = max(most // size, 1)
        for d, extent in enumerate(shape):
            inner = math.prod(shape[d + 1 :])
            step = max(each // inner, 1)
            if extent > step:
                plan.cut(result, d, range(0, extent, step))


def _bytes(value: ir.Value) -> int:
    element = element_of(value)
    return 1 if element == "i1" else TYPES[register_type(element)].bytes


def _lay_out(plan: Plan, op: ir.Operation) -> None:
    """The descriptors that an op needs."""
    name = op.name
    if name in _BLOCK_OPS or name in _LANE_OPS:
        plan.require(op.opview.tdesc, layout_of(plan, op))
    elif name not in ("xegpu.create_nd_tdesc", "xegpu.create_tdesc", "xegpu.update_nd_offset", "xegpu.update_offset"):
        inner = {v for group in carried(op) for v in group}
        for value in op.operands:
            structured = name in ("scf.yield", "scf.condition") or value in inner
            if is_desc(value) and not structured:
                plan.require(value, None)


_BLOCK_OPS = ("xegpu.load_nd", "xegpu.store_nd", "xegpu.prefetch_nd")
_LANE_OPS = ("xegpu.load_gather", "xegpu.store_scatter", "xegpu.atomic_rmw", "xegpu.prefetch")


def layout_of(plan: Plan, op: ir.Operation) -> Layout | None:
    """The pieces of the block that an op moves; None if it is left as it is."""
    if op.opview.mode != Mode.VC:
        return None
    return _block_layout(plan, op) if op.name in _BLOCK_OPS else _lane_layout(plan, op)


def _lane_layout(plan: Plan, op: ir.Operation) -> Layout | None:
    desc = TensorDesc.of(op.opview.tdesc)
    most = lanes_of_message(op, plan.target)
    if most == desc.lanes:
        return None
    pieces = (most,) * (desc.lanes // most)
    return tuple(((lane,), blocks.lanes_part(desc, n)) for lane, n in zip(blocks.starts(pieces), pieces))


def _block_layout(plan: Plan, op: ir.Operation) -> Layout | None:
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    if bit_width(desc.element) not in (8, 16, 32, 64):
        return None
    if op.name == "xegpu.prefetch_nd":
        return _prefetch_layout(plan, desc)
    load = op.name == "xegpu.load_nd"
    value = op.results[0] if load else view.value
    bounds = plan.bounds(value)
    if blocks.is_line(desc):
        return _line_layout(desc)
    if plan.target.block2d is None or blocks.is_slm(desc):
        return None
    return _load_layout(plan, op, desc) if load else _store_layout(plan, desc, value, bounds)


def _line_layout(desc: TensorDesc) -> Layout | None:
    """The pieces of a line, each a message; None if it is one."""
    cuts = blocks.line_cuts(desc)
    pieces = segments(desc.shape[0], sorted(cuts))
    return tuple(((at,), blocks.part_of(desc, n)) for at, n in zip(blocks.starts(pieces), pieces)) if cuts else None


def _load_layout(plan: Plan, op: ir.Operation, desc: TensorDesc) -> Layout | None:
    found = load_messages(plan, op)
    if found is None:
        return None
    transform = transform_of(op.opview, desc)
    assert transform
    return _with_lead(desc, [((m.row, m.blocks[0][0]), message_desc(desc, m, transform)) for m in found])


def load_messages(plan: Plan, op: ir.Operation) -> list[Message] | None:
    """The messages of a load of a 2D block; None if it is left as it is."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    transform = transform_of(view, desc)
    shape = shape_of(op.results[0])
    limits = plan.target.block2d
    assert shape and limits
    if transform is None:
        return None
    axes = axes_of(desc, shape, transform)
    bounds = plan.bounds(op.results[0])
    legal = blocks.load_is_legal(view, plan.target)
    if legal and (bounds is None or len(bounds[axes.columns]) == 1 or transform.turned):
        return None
    rows, columns = desc.shape[-2:]
    cuts = plan.cuts.get(plan.vectors.find(op.results[0])) or [set() for _ in shape]
    bits, unit = unit_of(desc, transform)
    wide = blocks.column_limit(limits, bits, transform) * unit
    across = {c * axes.column_step for c in cuts[axes.columns]}
    pieces: list[int] = []
    for block in range(desc.attr.array_length):
        first = 0 if axes.array is not None else block * columns
        pieces += blocks.spans(columns, {c - first for c in across if first < c < first + columns}, wide)
    high = blocks.row_limit(limits, bits, transform)
    # Registers hold whole rows of what is cut along them, so that only the cuts of a transposing load count.
    down = axes.rows_at(cuts[axes.rows]) if transform.turned else set[int]()
    lines = blocks.spans(rows, down, high)
    return blocks.messages(desc, lines, tuple(pieces), transform, plan.target)


def message_desc(desc: TensorDesc, message: Message, transform: Transform) -> TensorDesc:
    """The descriptor of a message: rows and columns that it has too few of are loaded too, and dropped."""
    bits, unit = unit_of(desc, transform)
    width = message.blocks[0][1]
    least = max(unit, 32 // desc.bits)
    height = message.height
    if transform.turned and bits == 64:
        height = -(-height // 8) * 8
        width = 1 << (-(-width // unit) - 1).bit_length() if width > unit else 1
        width *= unit
    return blocks.part_of(desc, height, -(-width // least) * least, count=len(message.blocks))


def _with_lead(desc: TensorDesc, pieces: Sequence[tuple[tuple[int, ...], TensorDesc]]) -> Layout:
    """The pieces in each of the matrices that a block of more than two dimensions holds."""
    lead = [segments(n, range(n)) for n in desc.shape[:-2]]
    places = blocks.places(tuple(lead))
    return tuple(((*place, *offsets), piece) for place in places for offsets, piece in pieces)


def _store_layout(plan: Plan, desc: TensorDesc, value: ir.Value, bounds: Bounds | None) -> Layout | None:
    limits = plan.target.block2d
    assert limits
    shape = shape_of(value)
    assert shape
    rows, columns = desc.shape[-2:]
    axes = axes_of(desc, shape, Transform())
    whole = BlockShape(desc.bits, desc.attr.array_length, columns, rows)
    if bounds is None:
        return None
    legal = block_problem(whole, plan.target, True) is None and all(n == 1 for n in desc.shape[:-2])
    narrow = any(n * desc.bits % 32 for n in bounds[axes.columns])
    if narrow and legal:
        return None
    high, wide = bounds[axes.rows], bounds[axes.columns]
    found = []
    count = desc.attr.array_length if axes.array is not None else 1
    for block in range(count):
        for row, height in zip(blocks.starts(high), high):
            for column, width in zip(blocks.starts(wide), wide):
                found.append(((row, block * columns + column), blocks.part_of(desc, height, width)))
    return _with_lead(desc, found)


def _prefetch_layout(plan: Plan, desc: TensorDesc) -> Layout | None:
    if blocks.is_line(desc):
        return _line_layout(desc)
    limits = plan.target.block2d
    if limits is None or blocks.is_slm(desc):
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
            for row, height in zip(blocks.starts(high), high)
            for column, width in zip(blocks.starts(wide), wide)
        ],
    )
