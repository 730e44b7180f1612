"""Values in pieces: how they are kept, and when they are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import Mode
from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad, MemoryAccess, Prefetch
from xegpu_py.ir.element_movement import VIEWS, View, is_elementwise, view_of
from xegpu_py.ir.operation import implements
from xegpu_py.passes.analysis import message_tiling
from xegpu_py.passes.analysis.ir_queries import bits_of, defining_op, element_of, is_desc, shape_of
from xegpu_py.passes.analysis.memory_effects import only_reads
from xegpu_py.passes.analysis.message_tiling import BlockTiling, Box, MessageAccess, Segments, access_of, types_of
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import make
from xegpu_py.passes.rewriting.rewriter import Conversion, Rule, Rules
from xegpu_py.passes.xegpu_unroll.unroll_plan import BY_PARTS, UnrollShapes, layout_of

# Converts a function by its plan: vectors into pieces, and descriptors into those of single messages.

rule: Rules[Rule[Legalization]] = Rules()
"""The rules that divide ops, by op name. Ops without a rule work on whole values."""

PartOf = Callable[["Legalization", ir.Operation, Box], "ir.Value | None"]

view: Rules[PartOf] = Rules()
"""By name of a view op, a function that makes a box of its result from a part of its operand.

It returns None if the result must be made as a whole."""


class Tiles(Struct, frozen=True):
    """A vector in pieces, in row-major order."""

    bounds: Segments
    parts: tuple[ir.Value, ...]

    def at(self, index: Sequence[int]) -> ir.Value:
        """The piece at a position of the grid."""
        flat = 0
        for i, pieces in zip(index, self.bounds):
            flat = flat * len(pieces) + i
        return self.parts[flat]


def _in_bytes(kind: ir.Type) -> ir.Type:
    """The vector type of the bytes that hold elements of 2 or 4 bits."""
    *outer, last = shape_of(kind)
    return build.with_element(
        build.with_shape(kind, (*outer, last * bits_of(element_of(kind)) // 8)), build.integer_type(8)
    )


class Legalization(Conversion):
    """The conversion of one function.

    Elementwise ops are deferred until one of their results is needed, and then made piece by piece, so that few pieces
    are live at a time. Views are made where a part of them is needed.

    Attributes:
        plan: the splits of all values.
        tiles: the pieces of vectors.
        pieces: the descriptors in each layout that their uses need.
        slabs: the products that are computed together, and their factors.
    """

    rules = rule

    def __init__(self, plan: UnrollShapes) -> None:
        super().__init__()
        self.plan = plan
        self.tiles: dict[ir.Value, Tiles] = {}
        self.pieces: dict[tuple[ir.Value, BlockTiling], tuple[ir.Value, ...]] = {}
        self.slabs: list[Slab] = []
        self._views: dict[ir.Value, ir.Operation] = {}
        self._made: dict[Any, ir.Value] = {}
        self._pending: list[ir.Operation] = []
        self._waiting: set[ir.Value] = set()

    # Values that control flow passes on.

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> list[ir.Type] | None:
        if is_desc(value):
            # Replaced even by one descriptor of the same type, because the plan must have an entry for it.
            whole_types = [value.type] if self.plan.is_kept(value) else []
            return [*whole_types, *(kind for layout in self.plan.layouts_of(value) for kind in types_of(layout))]
        bounds = self.plan.bounds(value)
        return (
            None
            if bounds is None
            else [build.with_shape(value.type, message_tiling.box_shape(box)) for box in message_tiling.tiles(bounds)]
        )

    def define(self, value: ir.Value, replacement: Sequence[ir.Value]) -> None:
        bounds = self.plan.bounds(value)
        if bounds is not None:
            self.set(value, bounds, replacement)
            return
        rest = iter(replacement)
        if self.plan.is_kept(value):
            self.values[value] = [next(rest)]
        for layout in self.plan.layouts_of(value):
            self.pieces[value, layout] = tuple(next(rest) for _ in types_of(layout))

    def forward(self, value: ir.Value, to: ir.Value) -> Sequence[ir.Value]:
        if is_desc(to):
            pieces = [piece for layout in self.plan.layouts_of(to) for piece in self.pieces[value, layout]]
            return [*(self.get(value) if self.plan.is_kept(to) else ()), *pieces]
        bounds = self.plan.bounds(to)
        return self.get(value) if bounds is None else [self.part(value, box) for box in message_tiling.tiles(bounds)]

    def get(self, value: ir.Value) -> Sequence[ir.Value]:
        pieces = self.values.get(value)
        return (self.whole(value),) if pieces is None else pieces

    def is_legal(self, op: ir.Operation) -> bool:
        if op.name == "ub.poison":
            return not is_desc(op.results[0])
        return implements(op, MemoryAccess) and self.access(op).layout is None

    def access(self, op: ir.Operation) -> MessageAccess:
        """The access of memory by an op."""
        found = self.plan.accesses.get(op)
        if found is None:
            # Its operands were replaced, on which the hash of an ir.Operation depends, or it is in SIMT mode and stays.
            found = access_of(op, self.plan.target)
            if op.opview.mode == Mode.VC:
                found.layout = layout_of(self.plan, found)
            self.plan.accesses[op] = found
        return found

    @property
    def layout(self) -> BlockTiling:
        """The layout that the current access needs of its descriptor, which must be one that is split."""
        assert self._op is not None
        layout = self.access(self._op).layout
        assert layout is not None
        return layout

    def convert_without_rule(self, op: ir.Operation) -> None:
        if op.name in BY_PARTS and self._is_lazy(op):
            self._views[op.results[0]] = op
            self.erase(op)
        else:
            self.keep(op)

    def _is_lazy(self, op: ir.Operation) -> bool:
        if not shape_of(op.results[0]):
            return False
        bounds = self.plan.bounds(op.results[0])
        return bounds is not None or any(v in self.tiles or v in self._views for v in op.operands)

    # Values in pieces.

    def once(self, key: Any, build_value: Callable[[], ir.Value]) -> ir.Value:
        """The value made earlier in this block for a key; if there is none, make it now."""
        whole_key = (ir.InsertionPoint.current.block, key)
        if whole_key not in self._made:
            self._made[whole_key] = build_value()
        return self._made[whole_key]

    def whole(self, value: ir.Value) -> ir.Value:
        """A value in one piece."""
        if value not in self.tiles and value not in self._views:
            return value
        return self.once(("whole", value), lambda: self.part(value, message_tiling.full_box(shape_of(value))))

    def part(self, value: ir.Value, box: Box) -> ir.Value:
        """A box of a vector's elements, as a vector of the box's shape."""
        if value in self.tiles:
            return self.once(("part", value, box), lambda: self._from_tiles(value, self.tiles[value], box))
        whole = box == message_tiling.full_box(shape_of(value))
        op = defining_op(value)
        see_through = op and (value in self._views or not whole) and view.get(op.name)
        if see_through:
            source_part = self.once(("through", value, box), lambda: see_through(self, op, box) or value)
            if source_part != value:
                return source_part
            self._views.pop(value, None)
        return value if whole else self.once(("part", value, box), lambda: self.slice(value, box))

    @staticmethod
    def slice(value: ir.Value, box: Box) -> ir.Value:
        """A box of a vector that is in one piece."""
        return build.extract_slice(value, [first for first, _ in box], message_tiling.box_shape(box))

    def padded(self, value: ir.Value, box: Box) -> ir.Value:
        """A box of a vector; elements outside the vector are zero."""
        inside = tuple((first, min(count, extent - first)) for (first, count), extent in zip(box, shape_of(value)))
        part = self.part(value, inside)
        if inside == box:
            return part
        whole = build.with_shape(part.type, message_tiling.box_shape(box))
        if bits_of(element_of(part)) >= 8:
            return build.pad_with_zeros(part, shape_of(whole))
        # Elements of less than a byte are moved as bytes.
        small, large = (_in_bytes(kind) for kind in (part.type, whole))
        return build.make(
            "vector.bitcast", whole, build.pad_with_zeros(build.make("vector.bitcast", small, part), shape_of(large))
        )

    def _from_tiles(self, value: ir.Value, tiles: Tiles, box: Box) -> ir.Value:
        lines = message_tiling.overlapping_segments(tiles.bounds, box)
        firsts = [message_tiling.starts(pieces) for pieces in tiles.bounds]
        if all(len(line) == 1 for line in lines):
            index = [line[0] for line in lines]
            inner = tuple((first - s[i], count) for (first, count), s, i in zip(box, firsts, index))
            part = tiles.at(index)
            return part if inner == message_tiling.full_box(shape_of(part)) else self.part(part, inner)
        return self._assembled(value, tiles, box, lines, firsts)

    def _assembled(
        self, value: ir.Value, tiles: Tiles, box: Box, lines: list[range], firsts: Sequence[Sequence[int]]
    ) -> ir.Value:
        """Insert pieces into one vector."""
        left, right = firsts[-1][lines[-1][0]], firsts[-1][lines[-1][-1]] + tiles.bounds[-1][lines[-1][-1]]
        (first, count), element = box[-1], element_of(value)
        bits = 0 if isinstance(element, ir.IndexType) else bits_of(element)
        is_short = bits >= 8 and (right - left) * bits // 8 <= self.plan.target.grf_bytes // 2
        if is_short and count < right - left and any(len(line) > 1 for line in lines[:-1]):
            # Moves gather columns of several such rows, if the rows are side by side. MLIR's canonicalize would take
            # each element of a slice from its own row again, but not those of a shuffle.
            rows = self.part(value, (*box[:-1], (left, right - left)))
            order = np.arange(math.prod(shape_of(rows))).reshape(-1, right - left)[:, first - left :][:, :count]
            return build.shape_cast(build.permute(build.flatten(rows), order.ravel()), message_tiling.box_shape(box))
        result = build.poison(build.with_shape(value.type, message_tiling.box_shape(box)))
        for tile_index in message_tiling.tiles(tuple((1,) * len(line) for line in lines)):
            index = [line[p[0]] for line, p in zip(lines, tile_index)]
            piece = tuple((s[i], b[i]) for s, i, b in zip(firsts, index, tiles.bounds))
            common = message_tiling.overlap(piece, box)
            inner = zip(message_tiling.offsets_in(common, piece), message_tiling.box_shape(common))
            part = self.part(tiles.at(index), tuple(inner))
            result = build.insert_slice(part, result, message_tiling.offsets_in(common, box))
        return result

    def set(self, value: ir.Value, bounds: Segments, parts: Sequence[ir.Value]) -> None:
        """Set the pieces of a vector."""
        assert len(parts) == math.prod(map(len, bounds))
        self.tiles[value] = Tiles(bounds, tuple(parts))

    def divide(self, op: ir.Operation, bounds: Segments, parts: Sequence[ir.Value]) -> None:
        """Replace an op by the pieces of its result."""
        self.set(op.results[0], bounds, parts)
        self.erase(op)

    def in_pieces(self, op: ir.Operation, make: Callable[[BlockTiling], Iterable[ir.Value]]) -> None:
        """Make a descriptor in each layout that its uses need; the op is kept if the whole descriptor is needed too."""
        (desc,) = op.results
        for layout in self.plan.layouts_of(desc):
            self.pieces[desc, layout] = tuple(make(layout))
        (self.keep if self.plan.is_kept(desc) else self.erase)(op)

    # Elementwise ops.

    def op(self, op: ir.Operation) -> None:
        if is_elementwise(op):
            bounds = self.plan.bounds(op.results[0])
            if bounds is not None:
                if self._pending and self.plan.bounds(self._pending[0].results[0]) != bounds:
                    self._flush(op)
                self._pending.append(op)
                self._waiting.update(op.results)
                self.erase(op)
                return
        if self._pending and self._ends_chain(op):
            self._flush(op)
        super().op(op)

    def before_terminator(self, op: ir.Operation) -> None:
        self._flush(op)

    def _ends_chain(self, op: ir.Operation) -> bool:
        """Whether the deferred ops must be made before this op."""
        if op.name.startswith("xegpu.") or len(op.regions):
            return True
        return any(v in self._waiting for v in op.operands)

    def _flush(self, anchor: ir.Operation) -> None:
        """Make all deferred ops, piece by piece, before an op."""
        if not self._pending:
            return
        ops, self._pending, self._waiting = self._pending, [], set()
        bounds = self.plan.bounds(ops[0].results[0])
        assert bounds is not None
        new_results: dict[ir.Value, list[ir.Value]] = {v: [] for op in ops for v in op.results}
        with ir.InsertionPoint(anchor):
            for box in message_tiling.tiles(bounds):
                now: dict[ir.Value, ir.Value] = {}
                for op in ops:
                    with anchor.location:
                        operands = [now.get(v) or self._piece(v, box) for v in op.operands]
                    with op.location:
                        new = build.create_like(
                            op, [build.with_shape(v.type, message_tiling.box_shape(box)) for v in op.results], operands
                        )
                    for old_result, value in zip(op.results, new.results):
                        now[old_result] = value
                        new_results[old_result].append(value)
        for value, parts in new_results.items():
            self.set(value, bounds, parts)

    def _piece(self, value: ir.Value, box: Box) -> ir.Value:
        """A box of a vector; a scalar unchanged."""
        return self.part(value, box) if shape_of(value) else value

    def finish(self) -> None:
        super().finish()
        sink(self.slabs)


# Views: ops for which a box of the result is the same op on a part of the operand.


def _type(op: ir.Operation, box: Box) -> ir.Type:
    """The type of a box of an op's result."""
    return build.with_shape(op.results[0].type, message_tiling.box_shape(box))


@view("arith.constant")
def splat(low: Legalization, op: ir.Operation, box: Box) -> ir.Value | None:
    """A smaller splat; None for other constants."""
    value, kind = op.attributes["value"], _type(op, box)
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return None
    return low.once(("constant", value, kind), lambda: build.constant(kind, value.get_splat_value()))


@view(*VIEWS)
def viewed(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """The part of the operand that the box has, reordered or repeated."""
    source, taken = op.operands[0], view_of(op)
    if taken is None:
        return _again(low, op, box)
    if not shape_of(source):
        kind = _type(op, box)
        return low.once(("broadcast", source, kind), lambda: build.broadcast(source, kind))
    part = low.part(source, taken.box(box))
    return build.extract_view(part, View(message_tiling.box_shape(box), taken.dims, (0,) * len(taken.dims)))


@view("vector.shape_cast")
def reshaped(low: Legalization, op: ir.Operation, box: Box) -> ir.Value | None:
    """Cast the same elements of the operand, if they form a box."""
    source = op.operands[0]
    shape, to = shape_of(source), shape_of(op.results[0])
    if not shape or not to:
        return None
    inside = message_tiling.reshape_box(box, to, shape)
    if inside is None:
        return low.slice(build.shape_cast(low.whole(source), to), box)
    return build.shape_cast(low.part(source, inside), message_tiling.box_shape(box))


def _again(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """Apply the op to whole operands, and take the box of its result."""
    value = op.results[0]
    repeated = low.once(
        ("again", value), lambda: build.create_like(op, [value.type], [low.whole(v) for v in op.operands]).results[0]
    )
    return low.slice(repeated, box)


@view("vector.bitcast")
def bitcast(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """Cast the operand's elements that hold the box's bits, if the box begins and ends at element boundaries."""
    source = op.operands[0]
    last, to = shape_of(source)[-1], shape_of(op.results[0])[-1]
    *outer, (first, count) = box
    if first * last % to or count * last % to:
        return _again(low, op, box)
    part = low.part(source, (*outer, (first * last // to, count * last // to)))
    return make("vector.bitcast", _type(op, box), part)


@view("vector.interleave")
def interleave(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """Interleave the elements of both operands that the box has, if it has as many of each."""
    *outer, (first, count) = box
    if first % 2 or count % 2:
        return _again(low, op, box)
    parts = [low.part(v, (*outer, (first // 2, count // 2))) for v in op.operands]
    return make("vector.interleave", _type(op, box), *parts)


@view("vector.create_mask")
def create_mask(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """A mask whose bounds are reduced by the box's first position."""
    remaining = [build.index(build.add(v, -first)) for v, (first, _) in zip(op.operands, box)]
    return make("vector.create_mask", _type(op, box), *remaining)


@view("vector.step")
def step(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """A step vector plus the box's first position."""
    ((first, _),) = box
    kind = _type(op, box)
    steps = low.once(("step", kind), lambda: make("vector.step", kind))
    if first == 0:
        return steps
    start = low.once(("splat", first, kind), lambda: build.index_splat(first, shape_of(kind)[0]))
    return make("arith.addi", kind, steps, start)


# Sinks loads to the products that need them, which reduces register pressure.

Slab = tuple[ir.Operation, list[ir.Value]]
"""The first of the products of a slab, and the factors of all."""


def sink(slabs: Sequence[Slab]) -> None:
    """Move loads that only their slab and later ones use to the start of their slab."""
    blocks: dict[ir.Block, list[Slab]] = {}
    for start, factors in slabs:
        blocks.setdefault(start.block, []).append((start, factors))
    for block, block_ops in blocks.items():
        ops = [op.operation for op in block.operations]
        order: dict[ir.Operation, int] = {op: i for i, op in enumerate(ops)}
        barred = [0, *accumulate(not (only_reads(op) or implements(op, Prefetch)) for op in ops)]
        for start, factors in block_ops:
            for load in dict.fromkeys(_load(v) for v in factors):
                if load is None or load not in order or order[load] >= order[start]:
                    continue
                users = _users(load, order)
                if users is None or barred[order[load]] != barred[order[start]]:
                    continue
                views = [op for op in users if op.name in BY_PARTS]
                if any(order[op] < order[start] and op not in views for op in users):
                    continue
                for op in (load, *sorted(views, key=order.__getitem__)):
                    if order[op] < order[start]:
                        op.move_before(start)
                        order[op] = order[start]


def _load(value: ir.Value) -> ir.Operation | None:
    """The block load that a value is a part of."""
    op = defining_op(value)
    while op is not None and op.name in BY_PARTS and op.operands:
        op = defining_op(op.operands[0])
    return op if op is not None and implements(op, BlockLoad) else None


def _users(op: ir.Operation, order: dict[ir.Operation, int]) -> list[ir.Operation] | None:
    """The ops of a block that use an op's results or views of them; None if ops of other blocks do."""
    users: dict[ir.Operation, None] = {}
    for use in (use for result in op.results for use in result.uses):
        user = use.owner.operation
        if user not in order:
            return None
        users[user] = None
        if user.name in BY_PARTS:
            inner = _users(user, order)
            if inner is None:
                return None
            users.update(dict.fromkeys(inner))
    return list(users)
