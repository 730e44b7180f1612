"""The pieces into which every value is cut."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from mlir import ir
from msgspec import Struct, field

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, MatrixProduct, MemoryAccess
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.control_flow import UnionFind, carried
from xegpu_py.ir.element_movement import VIEWS, is_elementwise, view_of
from xegpu_py.ir.operation import implements
from xegpu_py.passes.analysis.block_surfaces import block_uses, foreign_descriptors, join_descriptors
from xegpu_py.passes.analysis.ir_queries import bits_of, defining_op, element_of, integers, shape_of
from xegpu_py.passes.analysis.message_tiling import (
    BlockTiling,
    Message,
    MessageAccess,
    Segments,
    Transform,
    access_of,
    axes_of,
    box_shape,
    dpas_blocks,
    for_each_matrix,
    is_1d,
    lanes_of_message,
    line_splits,
    line_tiling,
    load_limits,
    load_messages,
    message_desc,
    message_steps,
    most_lanes,
    reshape_splits,
    segments,
    split_extent,
    starts,
    store_spans,
    sub_block,
    tiles,
    transpose_unit,
    with_lanes,
)
from xegpu_py.passes.analysis.target_messages import block_problem
from xegpu_py.target import Target
from xegpu_py.visa.spec import BlockShape

# The plan of a kernel: the splits of its vectors and blocks, computed before ops are rewritten.

MADE = ("arith.constant", "vector.broadcast", "vector.step", "vector.create_mask")
"""Ops whose results are made piece by piece on demand."""

REDUCTIONS = ("vector.reduction", "vector.multi_reduction")

BY_PARTS = (
    *VIEWS, "vector.shape_cast", "vector.step", "vector.create_mask", "arith.constant", "vector.bitcast",
    "vector.interleave",
)  # fmt: skip
"""Ops for which a part of the result is the same op on a part of each operand."""

CHAIN_GRFS = 2
"""Registers of a piece of a vector whose shape no message or dpas determines."""

REDUCED_GRFS = 8
"""The same for a vector that is reduced along its rows: pieces of more rows have sums of more lanes."""


def bytes_of(value: ir.Value) -> int:
    """Bytes of a vector's element in registers; of an index those of its usual register type."""
    element = element_of(value)
    return 4 if isinstance(element, ir.IndexType) else max(bits_of(element) // 8, 1)


class UnrollShapes(Struct):
    """The splits of all vectors and blocks.

    Attributes:
        target: the GPU.
        descs: classes of descriptors that are moved and carried together.
        ahead: whether loads are issued one iteration ahead.
        accesses: the accesses of memory by op.
        vectors: classes of vectors of one shape that have the same splits.
        splits: by class, the positions before which each dimension is split.
        layouts: by class of descriptors, the layouts that their uses need.
        kept: classes of descriptors that are also needed whole.
        given: classes of descriptors that cannot be made in pieces, because their creation is not visible.
        most_rows, most_columns: by class, the rows of a message that loads B of a product, and the columns of A.
        products: results of products, which are not split further for the scatters that store them.
        scatters: slices that one message stores.
        assembled: by vector that is made of a slice for each place of a grid, the sizes of the slices, and the ops that
            insert them.
        unfinished: the vectors from which these are made, some of whose slices are undefined.
        messages: by loaded value, the messages that load it; set once all splits are known. None if the load needs no
            split.
    """

    target: Target
    ahead: bool = False
    accesses: dict[ir.Operation, MessageAccess] = field(default_factory=dict)
    descs: UnionFind[ir.Value] = field(default_factory=UnionFind)
    vectors: UnionFind[ir.Value] = field(default_factory=UnionFind)
    splits: dict[ir.Value, list[set[int]]] = field(default_factory=dict)
    layouts: dict[ir.Value, dict[BlockTiling, None]] = field(default_factory=dict)
    kept: set[ir.Value] = field(default_factory=set)
    given: set[ir.Value] = field(default_factory=set)
    most_rows: dict[ir.Value, int] = field(default_factory=dict)
    most_columns: dict[ir.Value, int] = field(default_factory=dict)
    products: set[ir.Value] = field(default_factory=set)
    scatters: list[ir.Operation] = field(default_factory=list)
    messages: dict[ir.Value, list[Message] | None] = field(default_factory=dict)
    assembled: dict[ir.Value, tuple[Segments, list[ir.Operation]]] = field(default_factory=dict)
    unfinished: set[ir.Value] = field(default_factory=set)
    _bounds: dict[ir.Value, Segments | None] = field(default_factory=dict)

    def bounds(self, value: ir.Value) -> Segments | None:
        """The sizes of the pieces of a vector; None if it is not split."""
        root = self.vectors.find(value)
        if root not in self._bounds:
            splits = self.splits.get(root, [])
            self._bounds[root] = tuple(map(segments, shape_of(value), splits)) if any(splits) else None
        return self._bounds[root]

    def layouts_of(self, value: ir.Value) -> list[BlockTiling]:
        """The layouts that the uses of a descriptor need."""
        return list(self.layouts.get(self.descs.find(value), {}))

    def is_kept(self, value: ir.Value) -> bool:
        """Whether a descriptor is needed whole."""
        root = self.descs.find(value)
        return root in self.kept or root not in self.layouts

    def split(self, value: ir.Value, dimension: int, positions: Iterable[int]) -> None:
        """Add these positions to the splits of a vector."""
        shape = shape_of(value)
        inner_positions = {p for p in positions if 0 < p < shape[dimension]}
        if inner_positions:
            root = self.vectors.find(value)
            self.splits.setdefault(root, [set() for _ in shape])[dimension] |= inner_positions
            self._bounds.pop(root, None)

    def leave(self, root: ir.Value) -> None:
        """Remove all splits of the vectors of a class."""
        self.splits.pop(root, None)
        self._bounds.pop(root, None)

    def require(self, desc: ir.Value, layout: BlockTiling | None) -> None:
        """Add a layout that a descriptor is needed in; None if it is needed whole."""
        root = self.descs.find(desc)
        if layout is None:
            self.kept.add(root)
        else:
            self.layouts.setdefault(root, {})[layout] = None


# Computes the plan of a function: the splits that each op requires, propagated to the definitions of its operands.


def make_plan(func: ir.Operation, ops: Sequence[ir.Operation], target: Target, ahead: bool = False) -> UnrollShapes:
    """Compute the splits of a function's vectors and blocks, given its ops."""
    plan = UnrollShapes(target, ahead)
    for op in ops:
        _join(plan, op)
    for value in foreign_descriptors(func, ops):
        plan.given.add(plan.descs.find(value))
    for op in ops:
        _limit(plan, op)
    for op in reversed(ops):
        _through_view(plan, op)
    products = {plan.vectors.find(v) for v in plan.products}
    for op in plan.scatters:
        if plan.vectors.find(op.operands[0]) not in products:
            _limit_scatter(plan, op, CHAIN_GRFS * plan.target.grf_bytes)
    _split_chains(plan, ops)
    _leave_loads(plan, func, ops)
    for op in ops:
        _lay_out(plan, op)
    return plan


SLICE = "vector.extract_strided_slice"
"""Ops whose results are made piece by piece if their operand is in pieces."""

INSERT = "vector.insert_strided_slice"


def _assemble(plan: UnrollShapes, op: ir.Operation) -> None:
    """Record a vector if an op makes it whole, and those before it from which it is made."""
    before, inserts = list[ir.Value](), dict[tuple[int, ...], ir.Operation]()
    value = op.results[0]
    if any(use.owner.name == INSERT and use.operand_number == 1 for use in value.uses):
        return
    while (insert_op := defining_op(value)) is not None and insert_op.name == INSERT:
        before.append(value)
        inserts[tuple(integers(insert_op.attributes["offsets"]))] = insert_op
        value = insert_op.operands[1]
    shape = shape_of(value)
    bounds = tuple(segments(extent, starts) for extent, starts in zip(shape, map(set, zip(*inserts))))
    boxes = {tuple(first for first, _ in box): box_shape(box) for box in tiles(bounds)}
    single = all(len(list(v.uses)) == 1 for v in before[1:])
    if insert_op is None or insert_op.name != "ub.poison" or not single or len(inserts) < len(before):
        return
    if boxes == {at: shape_of(insert.operands[0]) for at, insert in inserts.items()}:
        # The slices themselves may be replaced before they are asked for, as results of loops are.
        plan.assembled[before[0]] = bounds, [inserts[at] for at in boxes]
        plan.unfinished.update(before[1:])
        # Indices are not in memory.
        if len(shape) == 1 and not isinstance(element_of(value), ir.IndexType):
            plan.split(before[0], 0, line_splits(TensorDesc(shape, str(element_of(op.results[0])))))


def _join(plan: UnrollShapes, op: ir.Operation) -> None:
    join_descriptors(plan.descs, op)
    for group in carried(op):
        if shape_of(group[0]):
            plan.vectors.join(group)
    if is_elementwise(op):
        plan.vectors.join([op.results[0], *(v for v in op.operands if shape_of(v)), *list(op.results)[1:]])
    elif implements(op, MatrixProduct) and op.opview.mode == Mode.VC and op.opview.acc is not None:
        plan.vectors.join([op.results[0], op.opview.acc])
    elif op.name == "xegpu.atomic_rmw":
        view = op.opview
        plan.vectors.join([view.result, view.value, *([] if view.expected is None else [view.expected])])


def _limit(plan: UnrollShapes, op: ir.Operation) -> None:
    """Add the splits that an op requires."""
    if implements(op, MemoryAccess):
        _limit_access(plan, op)
    elif implements(op, MatrixProduct) and op.opview.mode == Mode.VC:
        _limit_dpas(plan, op.opview)
    elif op.name == "vector.multi_reduction":
        _limit_reduction(plan, op)
    elif op.name == INSERT:
        _assemble(plan, op)


def _limit_access(plan: UnrollShapes, op: ir.Operation) -> None:
    """Record an access of memory, and split the vector that it moves."""
    view: Any = op.opview
    access = access_of(op, plan.target)
    if view.mode == Mode.VC:
        plan.accesses[op] = access
    value = access.value
    if value is None:
        return
    if not implements(op, BlockAccess):
        *outer, lanes = shape_of(value)
        plan.split(value, len(outer), range(0, lanes, lanes_of_message(op, plan.target)))
    elif view.mode == Mode.VC:
        _limit_block(plan, access, value)


def _limit_reduction(plan: UnrollShapes, op: ir.Operation) -> None:
    """Keep reduced rows whole; a piece takes enough of the other dimensions to give its sums many lanes."""
    source = op.operands[0]
    shape, reduced = shape_of(source), integers(op.attributes["reduction_dims"])
    elements = REDUCED_GRFS * plan.target.grf_bytes // bytes_of(source)
    budget = max(elements // math.prod(shape[d] for d in reduced), 1)
    if len(shape) - 1 not in reduced:
        budget = max(budget, plan.target.dpas_exec_size)
    for d in reversed([d for d in range(len(shape)) if d not in reduced]):
        step = budget if d == len(shape) - 1 else min(budget, REDUCED_GRFS)
        plan.split(source, d, range(0, shape[d], step))
        budget = max(budget // min(step, shape[d]), 1)


def _limit_dpas(plan: UnrollShapes, view: Any) -> None:

    blocks = dpas_blocks(view, plan.target, plan.ahead)
    if blocks is None:
        return
    plan.products.add(view.result)
    rows, columns = (starts(pieces) for pieces in blocks.bounds)
    depth = range(0, blocks.depth, blocks.step)
    plan.split(view.result, 0, rows)
    plan.split(view.result, 1, columns)
    a_shape, b_shape = shape_of(view.lhs), shape_of(view.rhs)
    plan.split(view.lhs, 0, rows)
    plan.split(view.lhs, 1, [k // math.prod(a_shape[2:]) for k in depth])
    plan.split(view.rhs, 0, [k // math.prod(b_shape[2:]) for k in depth])
    plan.split(view.rhs, 1, columns)
    plan.most_columns[plan.vectors.find(view.lhs)] = blocks.slab_depth
    plan.most_rows[plan.vectors.find(view.rhs)] = blocks.slab_depth


def _limit_block(plan: UnrollShapes, access: MessageAccess, value: ir.Value) -> None:
    """Split a block that needs several messages at the boundaries of messages."""
    desc, load = access.desc, access.loads
    if bit_width(desc.element) not in (8, 16, 32, 64):
        return
    if is_1d(desc):
        plan.split(value, 0, line_splits(desc))
        return
    limits = plan.target.block2d
    if limits is None:
        return
    transform = access.transform if load else Transform()
    if transform is None or access.legal or desc.attr.message:
        return
    shape = shape_of(value)
    axes = axes_of(desc, shape, transform)
    for d in range(len(desc.shape) - 2):
        plan.split(value, d, range(desc.shape[d]))
    rows, columns = desc.shape[-2:]
    bits, _ = transpose_unit(desc, transform, limits)
    high, wide = load_limits(limits, bits, transform)
    high, wide = high if load else limits.store_height, wide * bits // desc.bits
    plan.split(value, axes.rows, [axes.row_index(r) for r in range(0, rows, high)])
    count = desc.attr.array_length
    if axes.array is not None:
        plan.split(value, axes.array, range(count))
        count = 1
    for block in range(count):
        first = block * columns
        plan.split(value, axes.columns, [(first + c) // axes.column_step for c in range(0, columns, wide)])


def _through_view(plan: UnrollShapes, op: ir.Operation) -> None:
    """Propagate the splits of a view's result to its operand."""
    if op.name not in BY_PARTS or not op.operands:
        return
    source, result = op.operands[0], op.results[0]
    shape, to = shape_of(source), shape_of(result)
    splits = plan.splits.get(plan.vectors.find(result)) if to else None
    if not shape or not to:
        return
    if op.name == "vector.shape_cast" and splits and any(splits):
        for d, positions in enumerate(reshape_splits(splits, to, shape)):
            plan.split(source, d, positions)
    elif op.name == "vector.interleave" and splits:
        for value, (d, positions) in itertools.product(op.operands, enumerate(splits)):
            plan.split(value, d, {p // 2 for p in positions} if d == len(shape) - 1 else positions)
    elif op.name == "vector.bitcast" and splits:
        for d, positions in enumerate(splits):
            last = d == len(shape) - 1
            plan.split(source, d, {p * shape[d] // to[d] for p in positions} if last else positions)
    elif op.name not in MADE and (view := view_of(op)):
        if stored := op.name == SLICE and _is_stored(result):
            plan.scatters.append(op)
        row_elements = CHAIN_GRFS * plan.target.grf_bytes // max(bytes_of(source), 4)
        for d, (along, first) in enumerate(zip(view.dims, view.first)):
            # A column is a region of the registers of whole rows; in pieces between columns all ops have one lane.
            is_column = d == len(shape) - 1 > 0 and to[along] == 1
            edges = {first, first + to[along]} if op.name == SLICE and not stored and not is_column else set[int]()
            if d == len(shape) - 1 and to[along] == math.prod(to):
                # A slice of a row is a part of the registers of a piece.
                edges = {p for p in edges if p % row_elements == 0}
            plan.split(source, d, edges | {first + p for p in (splits[along] if splits and along >= 0 else ())})


def _split_chains(plan: UnrollShapes, ops: Sequence[ir.Operation]) -> None:
    """Split vectors that only elementwise ops define and use into pieces of a few registers."""
    most = CHAIN_GRFS * plan.target.grf_bytes
    sizes: dict[ir.Operation, int] = {}
    for op in ops:
        if is_elementwise(op):
            size = max(bytes_of(v) for v in (*op.operands, op.results[0]) if shape_of(v))
            if math.prod(shape_of(op.results[0])) * size > most:
                sizes[op] = size
    if not sizes:
        return
    chain_vectors = {plan.vectors.find(v) for op in ops for v in _held(op)}
    for op in ops:
        if op.name == SLICE and not _is_in_pieces(plan, op):
            chain_vectors.add(plan.vectors.find(op.results[0]))
        if op not in sizes:
            continue
        result, size = op.results[0], sizes[op]
        root = plan.vectors.find(result)
        shape = shape_of(result)
        if root in chain_vectors or any(plan.splits.get(root, ())):
            continue
        each = max(most // size, 1)
        for d, extent in enumerate(shape):
            inner = math.prod(shape[d + 1 :])
            step = max(each // inner, 1)
            if extent > step:
                plan.split(result, d, range(0, extent, step))


def _held(op: ir.Operation) -> list[ir.Value]:
    """The vectors that an op defines or uses, unless it is an op that works on any pieces of them."""
    name = op.name
    if is_elementwise(op) or name in MADE or name in REDUCTIONS:
        return []
    values = [*op.operands, *(() if name == SLICE else op.results), *(v for group in carried(op) for v in group)]
    return [v for v in values if shape_of(v)]


def _is_in_pieces(plan: UnrollShapes, op: ir.Operation) -> bool:
    """Whether the operand of a slice is split, or assembled from pieces."""
    source = op.operands[0]
    if source in plan.assembled:
        return True
    splits = plan.splits.get(plan.vectors.find(source), ())
    slices = zip(splits, integers(op.attributes["offsets"]), shape_of(op.results[0]))
    return any(not positions.isdisjoint(range(first + 1, first + size)) for positions, first, size in slices)


def _leave_loads(plan: UnrollShapes, func: ir.Operation, ops: Sequence[ir.Operation]) -> None:
    """Leave carried results of single-message loads whole; splitting them would add moves."""
    carriers = {op: groups for op in ops if (groups := carried(op))}
    handed_on = {plan.vectors.find(v) for groups in carriers.values() for group in groups for v in group if shape_of(v)}
    if not handed_on:
        return
    made_otherwise = {plan.vectors.find(v) for v in func.regions[0].blocks[0].arguments if shape_of(v)}
    for op in ops:
        access = plan.accesses.get(op)
        one = access is not None and access.loads and _is_one_message(plan, access)
        if not one and op not in carriers:
            made_otherwise.update(plan.vectors.find(v) for v in op.results if shape_of(v))
    for root in handed_on - made_otherwise:
        plan.leave(root)


def _lay_out(plan: UnrollShapes, op: ir.Operation) -> None:
    """Record the layouts that an op needs of its descriptors."""
    if implements(op, MemoryAccess):
        access = plan.accesses.get(op)
        if access is None:
            plan.require(op.opview.tdesc, None)
            return
        access.layout = layout_of(plan, access)
        plan.require(access.tdesc, access.layout)
    else:
        for value in block_uses(op):
            plan.require(value, None)


# The layouts of descriptors, and the messages of loads, once all splits are known.


def layout_of(plan: UnrollShapes, access: MessageAccess) -> BlockTiling | None:
    """The pieces of the block that an op moves; None if the op needs no split."""
    if plan.descs.find(access.tdesc) in plan.given or access.desc.attr.message:
        return None
    return _block_layout(plan, access) if implements(access.op, BlockAccess) else _lane_layout(plan, access)


def _lane_layout(plan: UnrollShapes, access: MessageAccess) -> BlockTiling | None:
    desc = access.desc
    most = lanes_of_message(access.op, plan.target)
    if most == desc.lanes:
        return None
    pieces = (most,) * (desc.lanes // most)
    return tuple(((lane,), with_lanes(desc, n)) for lane, n in zip(starts(pieces), pieces))


def _block_layout(plan: UnrollShapes, access: MessageAccess) -> BlockTiling | None:
    desc = access.desc
    if bit_width(desc.element) not in (8, 16, 32, 64):
        return None
    if access.value is None:
        return _prefetch_layout(plan, desc)
    if is_1d(desc):
        return line_tiling(desc)
    if plan.target.block2d is None:
        return None
    layout = _load_layout if access.loads else _store_layout
    return layout(plan, access, access.value)


def _load_layout(plan: UnrollShapes, access: MessageAccess, value: ir.Value) -> BlockTiling | None:
    if value not in plan.messages:
        plan.messages[value] = _messages(plan, access, value)
    layout, desc = plan.messages[value], access.desc
    if layout is None:
        return None
    transform, limits = access.transform, plan.target.block2d
    assert transform and limits
    return for_each_matrix(desc, [((m.row, m.blocks[0][0]), message_desc(desc, m, transform, limits)) for m in layout])


def _is_one_message(plan: UnrollShapes, access: MessageAccess) -> bool:
    """Whether one message does a load of a 2D block, and the vector is split only between parts of its registers."""
    desc = access.desc
    if is_1d(desc) or desc.in_slm or plan.target.block2d is None or len(desc.shape) != 2:
        return False
    return access.legal and access.value is not None and _messages(plan, access, access.value) is None


def _messages(plan: UnrollShapes, access: MessageAccess, value: ir.Value) -> list[Message] | None:
    """The messages of a load of a 2D block; None if the load needs no split."""
    desc, transform, shape = access.desc, access.transform, shape_of(value)
    limits = plan.target.block2d
    assert limits
    if transform is None or desc.attr.message:
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
    bits, unit = transpose_unit(desc, transform, limits)
    high, wide = load_limits(limits, bits, transform)
    wide *= unit
    # Pieces along the outer dimension are consecutive in registers, so that only splits of the inner one matter.
    across = set[int]() if transform.transposed else {c * axes.column_step for c in splits[axes.columns]}
    pieces: list[int] = []
    for block in range(desc.attr.array_length):
        first = 0 if axes.array is not None else block * columns
        pieces += split_extent(columns, {c - first for c in across if first < c < first + columns}, wide)
    if not transform.transposed:
        high = min(high, most_rows)
    down = axes.rows_at(splits[axes.rows]) if transform.transposed else set[int]()
    lines = split_extent(rows, down, high)
    widest = plan.most_columns.get(root, columns * desc.attr.array_length)
    return load_messages(desc, lines, tuple(pieces), transform, plan.target, widest)


def _store_layout(plan: UnrollShapes, access: MessageAccess, value: ir.Value) -> BlockTiling | None:
    desc, bounds, shape = access.desc, plan.bounds(value), shape_of(value)
    rows, columns = desc.shape[-2:]
    axes = axes_of(desc, shape, Transform())
    whole = BlockShape(desc.bits, desc.attr.array_length, columns, rows)
    legal = block_problem(whole, plan.target, True) is None and all(n == 1 for n in desc.shape[:-2])
    if legal and (bounds is None or any(n * desc.bits % 32 for n in bounds[axes.columns])):
        return None
    bounds = bounds or tuple((n,) for n in shape)
    high, wide = bounds[axes.rows], bounds[axes.columns]
    if any(block_problem(BlockShape(desc.bits, 1, w, h), plan.target, True) for h in set(high) for w in set(wide)):
        # The vector is in pieces that no message stores: messages store others.
        spans = store_spans(desc, plan.target)
        if spans is None:
            return None
        high, wide = spans[0], spans[1] * (1 if axes.array is not None else desc.attr.array_length)
    found = []
    count = desc.attr.array_length if axes.array is not None else 1
    for block in range(count):
        for row, height in zip(starts(high), high):
            for column, width in zip(starts(wide), wide):
                found.append(((row, block * columns + column), sub_block(desc, height, width)))
    return for_each_matrix(desc, found)


def _prefetch_layout(plan: UnrollShapes, desc: TensorDesc) -> BlockTiling | None:
    if is_1d(desc):
        return line_tiling(desc)
    limits = plan.target.block2d
    if limits is None:
        return None
    rows, columns = desc.shape[-2:]
    flat = all(n == 1 for n in desc.shape[:-2])
    if flat and block_problem(BlockShape(desc.bits, desc.attr.array_length, columns, rows), plan.target) is None:
        return None
    wide = split_extent(columns * desc.attr.array_length, set(), limits.row_bytes * 8 // desc.bits)
    high = split_extent(rows, set(), limits.load_height)
    least = max(32 // desc.bits, 1)
    return for_each_matrix(
        desc,
        [
            ((row, column), sub_block(desc, height, -(-width // least) * least))
            for row, height in zip(starts(high), high)
            for column, width in zip(starts(wide), wide)
        ],
    )


def _is_stored(value: ir.Value) -> bool:
    """Whether a slice is only stored, by messages of lanes or lines."""
    uses = list(value.uses)
    if len(uses) != 1:
        return False
    user, number = uses[0].owner.operation, uses[0].operand_number
    if user.name in ("vector.shape_cast", INSERT):
        return number == 0 and _is_stored(user.results[0])
    stores = user.name == "xegpu.store_scatter" or (user.name == "xegpu.store_nd" and len(shape_of(value)) == 1)
    return stores and number == 0


def _limit_scatter(plan: UnrollShapes, op: ir.Operation, grain: int) -> None:
    """Split a vector whose slices are stored into pieces of about `grain` bytes, at the ends of messages."""
    value = op.operands[0]
    shape, element = shape_of(value), str(element_of(value))
    if len(shape) == 1:
        plan.split(value, 0, line_splits(TensorDesc(shape, element)))
        return
    desc = TensorDesc(shape[-2:], element)
    rows, columns = message_steps(desc, shape[-1], most_lanes(desc, plan.target, "lsc_store"))
    each = max(grain * 8 // (shape[-1] * desc.bits) // rows, 1) * rows
    for d in range(len(shape) - 2):
        plan.split(value, d, range(shape[d]))
    plan.split(value, len(shape) - 2, range(0, shape[-2], each))
    if each == rows:
        plan.split(value, len(shape) - 1, range(0, shape[-1], columns))
