"""How work items' values and branches become a subgroup's."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from xegpu_py.dialects.xegpu import LaneShuffleMode
from xegpu_py.dialects.xegpu.fragments import Order, Placement, Placements, natural
from xegpu_py.ir.builtin import CombiningKind, enumerator, number_attribute
from xegpu_py.ir.control_flow import STRUCTURED
from xegpu_py.ir.diagnostics import Diagnostic, position_of
from xegpu_py.ir.element_movement import VIEWS, view_of
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.integer_analysis import Integers, Limits, integer_bits, type_range
from xegpu_py.passes.analysis.ir_queries import (
    attributes_of,
    bits_of,
    element_of,
    integer_op,
    integers,
    shape_of,
    splat_of,
)
from xegpu_py.passes.analysis.target_messages import without_sg_map
from xegpu_py.passes.analysis.uniformity import LANE_ARITHMETIC, LaneConstants, Uniformity, lane_positions
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.rewriter import Conversion, Rule, Rules

# The conversion of a work item's program to that of a subgroup, and the helpers that rules share.


@dataclass(frozen=True, eq=False)
class Held:
    """The representation of a work item's value in the subgroup's program.

    Attributes:
        value: the value itself if it is uniform; else a vector of the elements of all work items.
        placement: the positions of each lane's elements in the vector; None if the value is uniform. By default the
            lanes are a new innermost dimension.
    """

    value: ir.Value
    placement: Placement | None = None


rule: Rules[Rule[Widener]] = Rules()
"""The rules by op name; ops without a rule are elementwise."""


class Widener(Conversion):
    """The conversion of one kernel. Uniform values do not change.

    Attributes:
        lanes: work items of a subgroup.
        because: the op that identifies the kernel as one of work items.
        held: the representations of the values that change.
        mask: vector of i1, the active lanes; None if all are.
        diverged: the op that may make lanes inactive.
        block_size: work items of a workgroup, if the kernel has them as an attribute.
        known: the numbers of lanes that are known at compile time.
        wrapping: the divergent loops whose counters may wrap around in the last step.
    """

    rules = rule

    def __init__(
        self,
        func: ir.Operation,
        lanes: int,
        placements: Placements,
        because: ir.Operation,
        block_size: tuple[int, ...] | None,
        limits: Limits,
    ) -> None:
        super().__init__()
        self.lanes, self.placements, self.because, self.block_size = lanes, placements, because, block_size
        self.uniformity = Uniformity(func, lanes)
        loops = [op for op in walk(func) if op.name == "scf.for" and self.uniformity.diverges(op)]
        integers = Integers(limits)
        self.wrapping = {loop for loop in loops if _may_wrap(integers, loop)}
        self.held: dict[ir.Value, Held] = {}
        self.mask: ir.Value | None = None
        self.diverged: ir.Operation | None = None
        self.known = LaneConstants(lanes)
        self._forms: dict[ir.Value, Placement | None] = {}

    # Values that control flow passes on.

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> Sequence[ir.Type] | None:
        form = None
        if self.uniformity.varies(value):
            placement = self.placements.of(value)
            if len(placement) == 1 and shape_of(value):
                form = placement[0]
            else:
                form = self.held[init].placement if init in self.held else None
                form = form or natural(shape_of(value), self.lanes)
        self._forms[value] = form
        if form is not None:
            return [build.vector_type(form.shape, element_of(value))]
        kind = without_sg_map(value.type)
        return None if kind == value.type else [kind]

    def forward(self, value: ir.Value, to: ir.Value) -> list[ir.Value]:
        form = self._forms[to]
        return [self.uniform(value) if form is None else self.at(value, form)]

    def define(self, value: ir.Value, replacement: Sequence[ir.Value]) -> None:
        self.held[value] = Held(replacement[0], self._forms[value])

    def one(self, value: ir.Value) -> ir.Value:
        return self.uniform(value)

    def is_legal(self, op: ir.Operation) -> bool:
        """Ops on uniform vectors, and control flow that all lanes follow, do not change."""
        if op.name in STRUCTURED:
            return not self.uniformity.diverges(op)
        vectors = op.name.startswith("vector.") or op.name == "xegpu.truncf"
        return vectors and not any(self.varies(v) or self.uniformity.varies(v) for v in op.operands)

    def convert_without_rule(self, op: ir.Operation) -> None:
        if any(self.uniformity.varies(v) for v in (*op.operands, *op.results)):
            elementwise(self, op)
        else:
            self.keep(op)

    def kept(self, op: ir.Operation) -> bool:
        """Leave an op if all its operands are uniform; returns whether they are."""
        if any(self.varies(v) for v in op.operands):
            return False
        self.keep(op)
        return True

    # Values of all lanes.

    def varies(self, value: ir.Value) -> bool:
        """Whether the representation of a value varies among work items."""
        return value in self.held and self.held[value].placement is not None

    def uniform(self, value: ir.Value) -> ir.Value:
        """A value that must be uniform."""
        if self.varies(value):
            self.fail(
                f"requires a uniform value of type {value.type} across the subgroup",
                "this value depends on the lane, or on a block distributed by an sg_map",
            )
        return self.held[value].value if value in self.held else value

    def require_numbers(self, values: Iterable[ir.Value]) -> None:
        """Refuse varying values of types that must be uniform: descriptors and memrefs."""
        for kind in (str(v.type) for v in values):
            if kind.startswith(("!", "memref<")):
                note = "descriptors and memrefs must be uniform"
                self.fail(f"has a divergent value of type {kind}", note)

    def wide(self, value: ir.Value) -> ir.Value:
        """The vector of all lanes' values, with the lanes as the innermost dimension."""
        return self.at(value, natural(shape_of(value), self.lanes))

    def at(self, value: ir.Value, placement: Placement) -> ir.Value:
        """The vector of all lanes' values with this placement."""
        return self.placed(self.held.get(value) or Held(value), placement, value.type)

    def placed(self, held: Held, placement: Placement, kind: ir.Type) -> ir.Value:
        """Convert a representation to this placement; `kind` is the work item's type."""
        if held.placement is None:
            return self._spread(held.value, kind, placement)
        value = held.value
        if not held.placement.same(placement):
            count = placement.order.size
            source_order = np.empty(count, np.int64)
            source_order[placement.order.ravel()] = held.placement.order.ravel()
            if not np.array_equal(source_order, np.arange(count)):
                value = build.permute(build.shape_cast(value, (count,)), source_order)
        return build.shape_cast(value, placement.shape)

    def _spread(self, value: ir.Value, kind: ir.Type, placement: Placement) -> ir.Value:
        """Broadcast a uniform value to all lanes."""
        shape, element = shape_of(kind), element_of(kind)
        vector_kind = build.vector_type(placement.shape, element)
        splat = splat_of(value) if shape else None
        if splat is not None:
            return build.constant(vector_kind, splat)
        if not shape:
            return build.broadcast(value, vector_kind)
        # A broadcast adds the lanes as the outermost dimension.
        outer = build.broadcast(value, build.vector_type((self.lanes, *shape), element))
        return self.placed(Held(outer, self.lanes_first(shape)), placement, kind)

    def lanes_first(self, shape: Sequence[int]) -> Placement:
        """The placement with the lanes as the outermost dimension."""
        count = math.prod(shape)
        return Placement((self.lanes, *shape), np.arange(count * self.lanes).reshape(self.lanes, count).T)

    def value_of_lane(self, value: ir.Value, lane: int) -> ir.Value:
        """One lane's value."""
        return build.extract(self.at(value, self.lanes_first(shape_of(value))), [lane])

    def set(self, result: ir.Value, value: ir.Value, placement: Placement | None = None) -> None:
        """Set the representation of a varying value: by default a vector with the lanes as the innermost dimension."""
        self.held[result] = Held(value, placement or natural(shape_of(result), self.lanes))

    def widen(self, op: ir.Operation, *values: ir.Value, placement: Placement | None = None) -> None:
        """Replace an op whose results vary; see `set`."""
        for result, value in zip(op.results, values, strict=True):
            self.set(result, value, placement)
        self.erase(op)

    def vector(self, element: ir.Type) -> ir.Type:
        """The type of vectors with an element for each lane."""
        return build.vector_type((self.lanes,), element)

    def with_lanes(self, value: ir.Value) -> ir.Type:
        """The type of a value of all lanes, with the lanes as the innermost dimension."""
        return build.vector_type((*shape_of(value), self.lanes), element_of(value))

    def stacked(self, parts: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
        """A vector of all lanes of a type, from the vectors of all lanes of its elements."""
        stack = build.constant(build.vector_type((len(parts), self.lanes), element_of(kind)), 0)
        for i, part in enumerate(parts):
            stack = build.insert(part, stack, [i])
        return build.shape_cast(stack, (*shape_of(kind), self.lanes))

    def truth(self, value: bool) -> ir.Value:
        """vector of i1 with the same element for each lane."""
        return build.constant(self.vector(build.integer_type(1)), value)

    # Lanes that are here.

    def active(self) -> ir.Value:
        """vector of i1: the active lanes."""
        return self.truth(True) if self.mask is None else self.mask

    def any(self, mask: ir.Value) -> ir.Value:
        """Whether any lane's bit is set."""
        return CombiningKind.OR.reduce(mask)

    def choose(self, mask: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """Of two vectors with the lanes innermost, `a` in the lanes whose bit is set."""
        return build.select(build.broadcast(mask, build.vector_type(shape_of(a), build.integer_type(1))), a, b)

    def require_convergence(self, subject: str) -> None:
        """Refuse an op of the whole subgroup where lanes may be inactive."""
        if self.diverged is not None:
            diverge = Diagnostic("note", "they diverge here", position_of(self.diverged.location))
            self.fail(f"{subject} where work items of a subgroup may have diverged", diverge)


_PER_ELEMENT = ("arith.", "math.", "index.", "xegpu.truncf")

_ALSO_PER_ELEMENT = ("vector.fma", "vector.bitcast", "builtin.unrealized_conversion_cast")

_INDEX_CASTS = {"index.casts": "arith.index_cast", "index.castu": "arith.index_castui"}


def elementwise(w: Widener, op: ir.Operation) -> None:
    """Apply an elementwise op to vectors of all lanes, with the operands' placement if they agree."""
    if not (op.name.startswith(_PER_ELEMENT) or op.name in _ALSO_PER_ELEMENT):
        w.fail("is not supported in SIMT kernels", f"there is no lowering of '{op.name}' in SIMT mode")
    name, attributes = op.name, attributes_of(op)
    if name == "index.cmp":
        predicate = build.PREDICATES.index(enumerator(attributes.pop("pred")))
        name, attributes["predicate"] = "arith.cmpi", number_attribute(build.integer_type(64), predicate)
    elif name.startswith("index."):
        # In arith, they also work on vectors.
        name = _INDEX_CASTS.get(name, f"arith.{integer_op(op)}i")
        if name not in LANE_ARITHMETIC and op.name not in _INDEX_CASTS:
            w.fail("is not supported in SIMT kernels", "write it with arith")
    result = op.results[0]
    w.require_numbers(op.results)
    shape = shape_of(result)
    placement = _common(w, [v for v in op.operands if w.varies(v)], shape)
    operands = []
    for i, value in enumerate(op.operands):
        scalar = not w.varies(value) and not shape_of(value)
        if name == "arith.select" and i == 0 and scalar and element_of(result) != build.integer_type(1):
            operands.append(value)
        elif shape and not shape_of(value) and w.varies(value):
            # Each lane's condition selects all of its elements.
            operands.append(build.broadcast(w.wide(value), build.vector_type((*shape, w.lanes), build.integer_type(1))))
        else:
            operands.append(w.at(value, placement))
    new_op = build.create(
        name, [build.vector_type(placement.shape, element_of(r)) for r in op.results], operands, attributes
    )
    w.widen(op, *new_op.results, placement=placement)


def _common(w: Widener, values: Sequence[ir.Value], shape: tuple[int, ...]) -> Placement:
    """The common placement of these values; the natural one if they differ."""
    found: Placement | None = None
    for value in values:
        placement = w.held[value].placement
        assert placement is not None
        if shape_of(value) != shape or (found is not None and not found.same(placement)):
            return natural(shape, w.lanes)
        found = found or placement
    return found or natural(shape, w.lanes)


# `scf` where lanes diverge: regions run under a mask of their lanes, and loops while any lane is active.

_PURE = ("arith.", "math.", "index.", "vector.extract", "vector.insert", "vector.broadcast", "vector.shape_cast")
"""Ops that inactive lanes may execute."""


def _block(region: ir.Region, types: Sequence[ir.Type] = ()) -> ir.InsertionPoint:
    """An insertion point at the end of a new block of a region."""
    return ir.InsertionPoint(ir.Block.create_at_start(region, list(types)))


def _inverse(condition: ir.Value) -> ir.Value:
    return build.binary("xori", condition, True)


def both(condition: ir.Value, lanes: ir.Value | None) -> ir.Value:
    """The lanes of a condition that are also in a mask; None is all lanes."""
    return condition if lanes is None else build.binary("andi", condition, lanes)


def _bind(w: Widener, old_values: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
    """Let values stand for others."""
    for value, new_value in zip(old_values, new, strict=True):
        w.set(value, new_value)


def _loop(
    w: Widener,
    op: ir.Operation,
    state: Sequence[ir.Value],
    before: Callable[[Sequence[ir.Value]], tuple[ir.Value, Sequence[ir.Value]]],
    after: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """Build an scf.while: `before` gives the condition and the passed values, `after` the next state."""
    outer = w.diverged, w.mask
    w.diverged = op
    # The result types are known after the first region is built, so it is built in a temporary op.
    while_op = build.create("scf.while", [], state, regions=2)
    with _block(while_op.regions[0], [v.type for v in state]) as point:
        condition, passed = before(list(point.block.arguments))
        build.create("scf.condition", [], [condition, *passed])
    types = [v.type for v in passed]
    final_op = build.create("scf.while", types, state, regions=2)
    while_op.regions[0].blocks[0].append_to(final_op.regions[0])
    while_op.erase()
    with _block(final_op.regions[1], types) as point:
        build.create("scf.yield", [], after(list(point.block.arguments)))
    w.diverged, w.mask = outer
    return list(final_op.results)


def _may_wrap(integers: Integers, op: ir.Operation) -> bool:
    """Whether the last addition of a step to the counter of an `scf.for` may wrap around."""
    bounds = [integers.bounds(v) for v in list(op.operands)[:3]]
    (_, most), step = bounds[1:]
    if "unsignedCmp" in op.attributes and min(low for low, _ in bounds) < 0:
        return step != (1, 1)
    return most - 1 + step[1] > type_range(integer_bits(str(op.operands[0].type)))[1]


@rule("scf.for")
def for_(w: Widener, op: ir.Operation) -> None:
    """A loop with varying bounds runs while any lane has iterations left."""
    lower, upper, step, *inits = op.operands
    body = op.regions[0].blocks[0]
    counter, *arguments = body.arguments
    w.require_numbers(arguments)
    w.erase(op)
    first, last, by = (w.wide(v) for v in (lower, upper, step))
    outer = w.mask

    order = "ult" if "unsignedCmp" in op.attributes else "slt"
    wraps = op in w.wrapping

    def after(state: Sequence[ir.Value]) -> Sequence[ir.Value]:
        at, lanes, *values = state
        _bind(w, (counter, *arguments), (at, *values))
        w.mask = lanes
        yields = [w.wide(v) for v in w.inline(body)]
        following = build.binary("addi", at, by)
        if wraps:
            # Test whether an iteration is left before the addition.
            more = build.compare("ugt", build.binary("subi", last, at), by)
        else:
            more = build.compare(order, following, last)
        return [following, both(more, lanes), *(w.choose(lanes, n, o) for n, o in zip(yields, values))]

    state = [first, both(build.compare(order, first, last), outer), *(w.wide(v) for v in inits)]
    _bind(w, op.results, _loop(w, op, state, lambda state: (w.any(state[1]), state), after)[2:])


@rule("scf.while")
def while_(w: Widener, op: ir.Operation) -> None:
    """Lanes that have left the loop keep their values."""
    first, second = (r.blocks[0] for r in op.regions)
    w.require_numbers((*first.arguments, *op.results))
    w.erase(op)
    count = len(op.operands)

    def before(state: Sequence[ir.Value]) -> tuple[ir.Value, Sequence[ir.Value]]:
        values, lanes, results = state[:count], state[count], state[count + 1 :]
        _bind(w, first.arguments, values)
        w.mask = lanes
        condition, *passed = (w.wide(v) for v in w.inline(first))
        results = [w.choose(lanes, p, r) for p, r in zip(passed, results)]
        going = build.binary("andi", lanes, condition)
        return w.any(going), [going, *results]

    def after(state: Sequence[ir.Value]) -> Sequence[ir.Value]:
        lanes, *results = state
        _bind(w, second.arguments, results)
        w.mask = lanes
        return [*(w.wide(v) for v in w.inline(second)), lanes, *results]

    nothing = [build.constant(w.with_lanes(r), 0) for r in op.results]
    state = [*(w.wide(v) for v in op.operands), w.active(), *nothing]
    _bind(w, op.results, _loop(w, op, state, before, after)[1:])


@rule("scf.if")
def if_(w: Widener, op: ir.Operation) -> None:
    """Each region runs for the lanes that take it."""
    w.erase(op)
    condition = w.wide(op.operands[0])
    blocks = [r.blocks[0] for r in op.regions if len(r.blocks)]
    ways = [_way(w, op, b, c) for b, c in zip(blocks, (condition, _inverse(condition)))]
    _bind(w, op.results, [w.choose(condition, *values) for values in zip(*ways)] if len(op.results) else [])


def _way(w: Widener, op: ir.Operation, block: ir.Block, condition: ir.Value) -> list[ir.Value]:
    """Run a region for the lanes whose condition holds, if any; returns what it yields, with the lanes innermost."""
    w.require_numbers(op.results)
    outer = w.mask, w.diverged
    w.mask, w.diverged = condition if w.mask is None else build.binary("andi", w.mask, condition), op
    if all(o.operation.name.startswith(_PURE) for o in list(block.operations)[:-1]):
        yielded_values = [w.wide(v) for v in w.inline(block)]
    else:
        zeros = [build.constant(w.with_lanes(r), 0) for r in op.results]
        otherwise = (lambda: zeros) if zeros else None
        yielded_values = build.if_(
            w.any(w.mask), [z.type for z in zeros], lambda: [w.wide(v) for v in w.inline(block)], otherwise
        )
    w.mask, w.diverged = outer
    return yielded_values


@rule("scf.index_switch")
def index_switch(w: Widener, op: ir.Operation) -> None:
    """Each case runs for the lanes that take it."""
    w.erase(op)
    blocks = [r.blocks[0] for r in op.regions]
    selector = w.wide(op.operands[0])
    cases = ir.DenseI64ArrayAttr(op.attributes["cases"])
    conditions = [build.compare("eq", selector, build.constant(w.vector(build.index_type()), c)) for c in cases]
    rest = w.truth(True)
    for condition in conditions:
        rest = build.binary("andi", rest, _inverse(condition))
    results = _way(w, op, blocks[0], rest)
    for condition, block in zip(conditions, blocks[1:]):
        results = [w.choose(condition, n, o) for n, o in zip(_way(w, op, block, condition), results)]
    _bind(w, op.results, results)


@rule("func.call")
def call(w: Widener, op: ir.Operation) -> None:
    """Refuse calls: functions of work items must be inlined."""
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    w.fail(f"calls '{name}'", "run xegpu-inline first, which inlines functions that have a body")


# `vector`: vectors of work items get the lanes as an additional innermost dimension.


@rule("vector.shape_cast")
def _shape_cast(w: Widener, op: ir.Operation) -> None:
    """Cast the shape; the placement does not change."""
    held = w.held[op.operands[0]]
    w.widen(op, held.value, placement=held.placement)


@rule(*VIEWS)
def viewed(w: Widener, op: ir.Operation) -> None:
    """The lanes stay innermost."""
    view = view_of(op)
    assert view is not None
    w.widen(op, build.extract_view(w.wide(op.operands[0]), view.around(w.lanes)))


@rule("vector.extract", "vector.insert")
def element(w: Widener, op: ir.Operation) -> None:
    """Extract or insert a part of each lane's vector; its position may vary among lanes."""
    if len(op.operands) == _VALUES[op.name]:
        (viewed if op.name == "vector.extract" else leading)(w, op)
    elif op.name == "vector.extract":
        _extract_by_lane(w, op)
    else:
        _insert_by_lane(w, op)


_VALUES = {"vector.extract": 1, "vector.insert": 2}
"""The number of operands before the positions."""


def _places(w: Widener, op: ir.Operation, shape: tuple[int, ...]) -> Order | list[ir.Value]:
    """The row-major position of a part in the outer dimensions.

    Args:
        shape: of the vector that contains the part.

    Returns:
        The position of each lane if it is known; otherwise for each position the lanes that have it, vector of i1.
    """
    dynamic = iter(list(op.operands)[_VALUES[op.name] :])
    static = integers(op.attributes["static_position"])
    lane_offsets = lane_positions(op, w.known)
    outer = shape[: len(static)]
    if lane_offsets is not None:
        # Out-of-range positions give poison; inactive lanes may have them.
        at = tuple(np.broadcast_to(x, w.lanes) for x in lane_offsets)
        return np.ravel_multi_index(at, outer, mode="clip")
    kind = w.vector(build.index_type())
    total: ir.Value | None = None
    for n, static_index in zip(outer, static):
        lane_index = (
            w.wide(next(dynamic))
            if static_index == ir.ShapedType.get_dynamic_size()
            else build.constant(kind, static_index)
        )
        total = lane_index if total is None else build.add(build.multiply(total, n), lane_index)
    assert total is not None
    return [build.compare("eq", total, build.constant(kind, i)) for i in range(math.prod(outer))]


def _extract_by_lane(w: Widener, op: ir.Operation) -> None:
    source, result = op.operands[0], op.results[0]
    shape, inner = shape_of(source), shape_of(result)
    outer, size = math.prod(shape) // math.prod(inner), math.prod(inner)
    positions = _places(w, op, shape)
    if isinstance(positions, list):
        places_at = positions
    elif not w.varies(source) or 2 * len(np.unique(positions)) > w.lanes:
        # A permutation gathers each lane's element; a select takes two instructions for each position.
        order = positions[None, :] * size + np.arange(size)[:, None]
        held = source
        if w.varies(source):
            held, order = w.wide(source), order * w.lanes + np.arange(w.lanes)
        permuted = build.permute(build.shape_cast(held, (math.prod(shape_of(held)),)), order.ravel())
        w.widen(op, build.shape_cast(permuted, (*inner, w.lanes)))
        return
    else:
        places_at = [_where(positions, i) if (positions == i).any() else None for i in range(outer)]
    rows = build.shape_cast(w.wide(source), (outer, *inner, w.lanes))
    selected: ir.Value | None = None
    for i, here in enumerate(places_at):
        if here is not None:
            row = build.extract(rows, [i])
            selected = row if selected is None else w.choose(here, row, selected)
    assert selected is not None
    w.widen(op, selected)


def _where(positions: Order, position: int) -> ir.Value:
    """vector of i1: the lanes that have this position."""
    return build.dense_integers(positions == position, build.integer_type(1))


def _insert_by_lane(w: Widener, op: ir.Operation) -> None:
    value, whole = op.operands[0], op.operands[1]
    shape, inner = shape_of(whole), shape_of(value)
    outer = math.prod(shape) // math.prod(inner)
    positions = _places(w, op, shape)
    if not isinstance(positions, list):
        positions = [_where(positions, i) for i in range(outer)]
    rows = build.shape_cast(w.wide(whole), (outer, *inner, w.lanes))
    part = w.wide(value)
    for i, here in enumerate(positions):
        rows = build.insert(w.choose(here, part, build.extract(rows, [i])), rows, [i])
    w.widen(op, build.shape_cast(rows, (*shape, w.lanes)))


@rule("vector.shuffle", "vector.multi_reduction")
def leading(w: Widener, op: ir.Operation) -> None:
    """Ops on outer dimensions do not affect the lanes."""
    new_op = build.create_like(op, [w.with_lanes(op.results[0])], [w.wide(v) for v in op.operands])
    w.widen(op, new_op.results[0])


@rule("vector.insert_strided_slice")
def _insert_slice(w: Widener, op: ir.Operation) -> None:
    """Insert a slice of all lanes."""
    value, into = map(w.wide, op.operands)
    w.widen(op, build.insert_slice(value, into, [*integers(op.attributes["offsets"]), 0]))


@rule("vector.reduction")
def reduction(w: Widener, op: ir.Operation) -> None:
    """Reduce each lane's elements."""
    value, *acc = op.operands
    data = w.wide(value)
    rows = shape_of(value)[0]
    kind = CombiningKind.of(op)
    if kind.is_sequential(op):
        lines = [build.shape_cast(build.extract_slice(data, [i, 0], [1, w.lanes]), (w.lanes,)) for i in range(rows)]
        w.widen(op, functools.reduce(kind.combine, [*map(w.wide, acc), *lines]))
        return
    # By halves, the order of a vector's reduction.
    while rows > 1:
        half = rows // 2
        low, high = (build.extract_slice(data, [at, 0], [half, w.lanes]) for at in (0, rows - half))
        joined = kind.combine(low, high)
        if rows % 2:
            joined = build.shuffle(joined, build.extract_slice(data, [half, 0], [1, w.lanes]), range(half + 1))
        data, rows = joined, half + rows % 2
    reduced = build.shape_cast(data, (w.lanes,))
    w.widen(op, kind.combine(w.wide(acc[0]), reduced) if acc else reduced)


@rule("vector.from_elements")
def from_elements(w: Widener, op: ir.Operation) -> None:
    """Stack scalars along a new outer dimension."""
    w.widen(op, w.stacked([w.wide(value) for value in op.operands], op.results[0].type))


@rule("vector.to_elements")
def to_elements(w: Widener, op: ir.Operation) -> None:
    """The rows."""
    data = build.shape_cast(w.wide(op.operands[0]), (len(op.results), w.lanes))
    w.widen(op, *(build.extract(data, [i]) for i in range(len(op.results))))


@rule("xegpu.truncf")
def truncf(w: Widener, op: ir.Operation) -> None:
    """Convert elementwise. Elements of less than a byte share bytes, so each lane's elements are made adjacent."""
    if bits_of(element_of(op.results[0])) < 8:
        innermost(w, op)
    else:
        elementwise(w, op)


@rule("xegpu.lane_shuffle")
def lane_shuffle(w: Widener, op: ir.Operation) -> None:
    """Redistribute the elements among lanes.

    With the lanes innermost, element j of lane i is at j * lanes + i; `pack` moves it to i * count + j.
    """
    w.require_convergence("exchanges elements of the whole subgroup")
    count, lanes = shape_of(op.results[0])[0], w.lanes
    packed = np.arange(count * lanes).reshape(lanes, count).T
    plain = np.arange(count * lanes).reshape(count, lanes)
    before, after = (plain, packed) if op.opview.shuffle == LaneShuffleMode.PACK else (packed, plain)
    w.widen(op, w.at(op.operands[0], Placement((count * lanes,), before)), placement=Placement((count * lanes,), after))


@rule("vector.bitcast", "vector.interleave", "vector.deinterleave")
def innermost(w: Widener, op: ir.Operation) -> None:
    """Ops on the innermost dimension: make each lane's elements adjacent, apply the op, and restore the order."""
    if op.name == "vector.bitcast" and shape_of(op.operands[0]) == shape_of(op.results[0]):
        elementwise(w, op)
        return
    operands = [w.at(v, w.lanes_first(shape_of(v))) for v in op.operands]
    new_op = build.create_like(
        op, [build.vector_type((w.lanes, *shape_of(r)), element_of(r)) for r in op.results], operands
    )
    w.widen(op, *new_op.results, placement=w.lanes_first(shape_of(op.results[0])))


@rule("vector.create_mask")
def create_mask(w: Widener, op: ir.Operation) -> None:
    """True for the elements of each lane that are below its bounds."""
    shape = shape_of(op.results[0])
    mask: ir.Value | None = None
    for i, bound in enumerate(op.operands):
        indices = np.broadcast_to(np.arange(shape[i]).reshape(-1, *[1] * (len(shape) - i)), (*shape, w.lanes))
        index_vector = build.dense_integers(indices, build.index_type())
        below = build.compare("slt", index_vector, build.broadcast(w.wide(bound), index_vector.type))
        mask = below if mask is None else build.binary("andi", mask, below)
    assert mask is not None
    w.widen(op, mask)
