"""Rewriting of a function by its plan: values in pieces, and the driver that walks the ops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mlir import ir
from xegpu_py.passes.common.values import defining_op, integers
from xegpu_py.passes.xegpu_legalize import boxes
from xegpu_py.passes.xegpu_legalize.boxes import Bounds, Box, Shape
from xegpu_py.passes.xegpu_legalize.plan import VIEWS, Plan, element_of, is_elementwise, shape_of
from xegpu_py.passes.xegpu_legalize.shapes import Layout
from xegpu_py.passes.xegpu_legalize.sinking import Slab, sink

from xegpu_py.ir.builtin import vector_text

Rule = Callable[["Rewriter", ir.Operation], bool]
RULES: dict[str, Rule] = {}
"""What rewrites each op, by its name. A rule says whether it took the op's place."""


def rewrites(*names: str) -> Callable[[Rule], Rule]:
    """Register a function that rewrites these ops."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


@dataclass(frozen=True)
class Tiles:
    """A vector in pieces, which lie in row-major order."""

    bounds: Bounds
    parts: tuple[ir.Value, ...]

    def at(self, index: Sequence[int]) -> ir.Value:
        """The piece at a place of the grid."""
        flat = 0
        for i, pieces in zip(index, self.bounds):
            flat = flat * len(pieces) + i
        return self.parts[flat]


@lru_cache(maxsize=4096)
def _parsed(text: str, context: ir.Context) -> ir.Type:
    return ir.Type.parse(text, context)


@dataclass
class Rewriter:
    """One function as it is rewritten.

    Attributes:
        plan: where everything is cut.
        tiles: vectors that are in pieces.
        pieces: descriptors in the layouts that their uses need.
        dead: ops that others have taken the place of, in order.
        old_arguments: arguments of blocks likewise.
        slabs: the products that are computed together, and their factors.
    """

    plan: Plan
    tiles: dict[ir.Value, Tiles] = field(default_factory=dict)
    pieces: dict[tuple[ir.Value, Layout], tuple[ir.Value, ...]] = field(default_factory=dict)
    dead: list[ir.Operation] = field(default_factory=list)
    old_arguments: list[ir.BlockArgument] = field(default_factory=list)
    slabs: list[Slab] = field(default_factory=list)
    _views: dict[ir.Value, ir.Operation] = field(default_factory=dict)
    _made: dict[Any, ir.Value] = field(default_factory=dict)
    _pending: list[ir.Operation] = field(default_factory=list)
    _waiting: set[ir.Value] = field(default_factory=set)
    _place: ir.Operation | None = None

    # Emission.

    def at(self, op: ir.Operation) -> None:
        """Emit in front of an op, with its location."""
        self._place = op

    def emit(
        self,
        name: str,
        results: Sequence[str | ir.Type],
        operands: Sequence[ir.Value],
        attributes: dict[str, ir.Attribute] | None = None,
        like: ir.Operation | None = None,
    ) -> ir.Operation:
        """A new op in front of the one that is being rewritten.

        Args:
            like: the op whose location it has, by default that one.
        """
        place = self._place
        assert place is not None
        types = [_parsed(t, place.context) if isinstance(t, str) else t for t in results]
        return ir.Operation.create(
            name,
            results=types,
            operands=list(operands),
            attributes=attributes or {},
            loc=(like or place).location,
            ip=ir.InsertionPoint(place),
        )

    def build(self, builder: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a builder of the xegpu dialect makes, in front of the op that is being rewritten."""
        assert self._place is not None
        return builder(*args, **kwargs, loc=self._place.location, ip=ir.InsertionPoint(self._place))

    def index(self, number: int) -> ir.Value:
        """An index constant."""
        return self._once(("index", number), lambda: self._index(number))

    def _index(self, number: int) -> ir.Value:
        value = ir.IntegerAttr.get(ir.IndexType.get(), number)
        return self.emit("arith.constant", ["index"], [], {"value": value}).results[0]

    def add(self, offset: ir.Value | int, step: int) -> ir.Value | int:
        """An offset moved on."""
        if isinstance(offset, int):
            return offset + step
        if step == 0:
            return offset
        by = self.index(step)
        return self._once(("add", offset, step), lambda: self.emit("arith.addi", ["index"], [offset, by]).results[0])

    def _once(self, key: Any, make: Callable[[], ir.Value]) -> ir.Value:
        """What was made before in this block, or is made now."""
        assert self._place is not None
        whole_key = (self._place.block, key)
        if whole_key not in self._made:
            self._made[whole_key] = make()
        return self._made[whole_key]

    # Values in pieces.

    def vector(self, shape: Shape, value: ir.Value) -> str:
        """The type of a vector with a value's elements."""
        return vector_text(shape, element_of(value))

    def whole(self, value: ir.Value) -> ir.Value:
        """A value in one piece."""
        shape = shape_of(value)
        if shape is None or (value not in self.tiles and value not in self._views):
            return value
        return self._once(("whole", value), lambda: self.part(value, boxes.whole(shape)))

    def part(self, value: ir.Value, box: Box) -> ir.Value:
        """A box of a vector's elements, as a vector of the box's shape."""
        shape = shape_of(value)
        assert shape is not None
        if value in self.tiles:
            return self._once(("part", value, box), lambda: self._from_tiles(value, self.tiles[value], box))
        op = defining_op(value)
        if op is not None and op.name in VIEWS and (value in self._views or box != boxes.whole(shape)):
            made = self._once(("through", value, box), lambda: self._through(op, value, box) or value)
            if made != value:
                return made
            if value in self._views:
                del self._views[value]
        if box == boxes.whole(shape):
            return value
        return self._once(("part", value, box), lambda: self._slice(value, box))

    def filled(self, value: ir.Value, box: Box) -> ir.Value:
        """A box of a vector; elements outside of the vector are zero."""
        shape = shape_of(value)
        assert shape is not None
        inside = tuple((first, min(count, extent - first)) for (first, count), extent in zip(box, shape))
        part = self.part(value, inside)
        if inside == box:
            return part
        kind = _parsed(self.vector(boxes.sizes(box), value), value.context)
        element = ir.VectorType(kind).element_type
        zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
        zeros = self.emit("arith.constant", [kind], [], {"value": ir.DenseElementsAttr.get_splat(kind, zero)})
        return self._put(part, zeros.results[0], [0] * len(box))

    def _put(self, part: ir.Value, into: ir.Value, offsets: Sequence[int]) -> ir.Value:
        i64 = ir.IntegerType.get_signless(64)
        found = {
            "offsets": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, o) for o in offsets]),
            "strides": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, 1) for _ in offsets]),
        }
        return self.emit("vector.insert_strided_slice", [into.type], [part, into], found).results[0]

    def _slice(self, value: ir.Value, box: Box) -> ir.Value:
        i64 = ir.IntegerType.get_signless(64)

        def numbers(values: Sequence[int]) -> ir.Attribute:
            return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, v) for v in values])

        found = {
            "offsets": numbers([first for first, _ in box]),
            "sizes": numbers([count for _, count in box]),
            "strides": numbers([1] * len(box)),
        }
        result = self.vector(boxes.sizes(box), value)
        return self.emit("vector.extract_strided_slice", [result], [value], found).results[0]

    def _from_tiles(self, value: ir.Value, tiles: Tiles, box: Box) -> ir.Value:
        lines = boxes.touched(tiles.bounds, box)
        firsts = [boxes.starts(pieces) for pieces in tiles.bounds]
        if all(len(line) == 1 for line in lines):
            index = [line[0] for line in lines]
            inner = tuple((first - s[i], count) for (first, count), s, i in zip(box, firsts, index))
            part = tiles.at(index)
            shape = shape_of(part)
            assert shape
            return part if inner == boxes.whole(shape) else self.part(part, inner)
        return self._assembled(value, tiles, box, lines, firsts)

    def _assembled(
        self, value: ir.Value, tiles: Tiles, box: Box, lines: list[range], firsts: list[list[int]]
    ) -> ir.Value:
        """Pieces put into one vector."""
        text = self.vector(boxes.sizes(box), value)
        result = self.emit("ub.poison", [text], [], {"value": ir.Attribute.parse("#ub.poison")}).results[0]
        for place in boxes.grid(tuple((1,) * len(line) for line in lines)):
            index = [line[p[0]] for line, p in zip(lines, place)]
            piece = tuple((s[i], b[i]) for s, i, b in zip(firsts, index, tiles.bounds))
            meet = [(max(a, c), min(a + n, c + k)) for (a, n), (c, k) in zip(piece, box)]
            common = tuple((lo, hi - lo) for lo, hi in meet)
            inner = tuple((lo - a, n) for (lo, n), (a, _) in zip(common, piece))
            part = self.part(tiles.at(index), inner)
            result = self._put(part, result, [lo - c for (lo, _), (c, _) in zip(common, box)])
        return result

    def _through(self, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
        """A part of what a view op gives, made from a part of its operand; None if that is none."""
        return _VIEW_RULES[op.name](self, op, value, box)

    # The driver.

    def block(self, block: ir.Block) -> None:
        """Rewrite the ops of a block."""
        ops = [op.operation for op in block.operations]
        for op in ops[:-1]:
            self.op(op)
        self.flush(ops[-1])
        self.op(ops[-1])

    def op(self, op: ir.Operation) -> None:
        """Rewrite one op and what is in it."""
        bounds = self.plan.bounds(op.results[0]) if op.results and shape_of(op.results[0]) else None
        if is_elementwise(op) and bounds is not None:
            if self._pending and self.plan.bounds(self._pending[0].results[0]) != bounds:
                self.flush(op)
            self._pending.append(op)
            self._waiting.update(op.results)
            self.dead.append(op)
            return
        if self._pending and self._ends_chain(op):
            self.flush(op)
        self.at(op)
        rule = RULES.get(op.name)
        if rule is not None and rule(self, op):
            self.dead.append(op)
            return
        if op.name in VIEWS and shape_of(op.results[0]) and self._is_lazy(op, bounds):
            self._views[op.results[0]] = op
            self.dead.append(op)
            return
        for i, operand in enumerate(list(op.operands)):
            held = self.whole(operand)
            if held != operand:
                op.operands[i] = held
        for region in op.regions:
            for inner in region.blocks:
                self.block(inner)

    def _is_lazy(self, op: ir.Operation, bounds: Bounds | None) -> bool:
        return bounds is not None or any(v in self.tiles or v in self._views for v in op.operands)

    def _ends_chain(self, op: ir.Operation) -> bool:
        """Whether the pieces of the ops that wait must be made in front of this op."""
        if op.name.startswith("xegpu.") or len(op.regions):
            return True
        return any(v in self._waiting for v in op.operands)

    def flush(self, place: ir.Operation) -> None:
        """Make the pieces of all ops that wait, piece by piece, so that few of them live at a time."""
        if not self._pending:
            return
        ops, self._pending, self._waiting = self._pending, [], set()
        self.at(place)
        bounds = self.plan.bounds(ops[0].results[0])
        assert bounds is not None
        made: dict[ir.Value, list[ir.Value]] = {v: [] for op in ops for v in op.results}
        for box in boxes.grid(bounds):
            now: dict[ir.Value, ir.Value] = {}
            for op in ops:
                operands = [now.get(v) or self.piece(v, box) for v in op.operands]
                types = [self.vector(boxes.sizes(box), v) for v in op.results]
                attributes = {name: op.attributes[name] for name in op.attributes}
                new = self.emit(op.name, types, operands, attributes, op)
                for old, value in zip(op.results, new.results):
                    now[old] = value
                    made[old].append(value)
        for value, parts in made.items():
            self.tiles[value] = Tiles(bounds, tuple(parts))

    def piece(self, value: ir.Value, box: Box) -> ir.Value:
        """A box of a vector; a scalar as it is."""
        return value if shape_of(value) is None else self.part(value, box)

    def set(self, value: ir.Value, bounds: Bounds, parts: Sequence[ir.Value]) -> None:
        """Say what the pieces of a vector are."""
        assert len(parts) == math.prod(map(len, bounds))
        self.tiles[value] = Tiles(bounds, tuple(parts))

    def finish(self) -> None:
        """Remove what nothing needs any more, from the last op on."""
        for op in reversed(self.dead):
            if not any(True for result in op.results for _ in result.uses):
                op.erase()
        for argument in reversed(self.old_arguments):
            argument.owner.erase_argument(argument.arg_number)
        sink(self.slabs)


def _constant(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    text = low.vector(boxes.sizes(box), value)

    def make() -> ir.Value:
        found = ir.DenseElementsAttr.get_splat(_parsed(text, op.context), attribute.get_splat_value())
        return low.emit("arith.constant", [text], [], {"value": found}).results[0]

    return low._once(("constant", op.attributes["value"], text), make)


def _broadcast(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    source = op.operands[0]
    shape, text = shape_of(source), low.vector(boxes.sizes(box), value)
    if shape is None:
        return low._once(("broadcast", source, text), lambda: low.emit("vector.broadcast", [text], [source]).results[0])
    inner = tuple((0, 1) if n == 1 else b for n, b in zip(shape, box[len(box) - len(shape) :]))
    part = low.part(source, inner)
    if shape_of(part) == boxes.sizes(box):
        return part
    return low.emit("vector.broadcast", [text], [part]).results[0]


def _shape_cast(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    source = op.operands[0]
    shape, to = shape_of(source), shape_of(value)
    if shape is None or to is None:
        return None
    inside = boxes.reshape(box, to, shape)
    part = low.whole(source) if inside is None else low.part(source, inside)
    if inside is None:
        cast = low.emit("vector.shape_cast", [low.vector(to, value)], [part]).results[0]
        return low._slice(cast, box) if box != boxes.whole(to) else cast
    text = low.vector(boxes.sizes(box), value)
    return part if str(part.type) == text else low.emit("vector.shape_cast", [text], [part]).results[0]


def _strided_slice(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    source = op.operands[0]
    shape = shape_of(source)
    assert shape
    if any(s != 1 for s in integers(op.attributes["strides"])):
        return None if source not in low.tiles and source not in low._views else _again(low, op, value, box)
    offsets = integers(op.attributes["offsets"])
    offsets += [0] * (len(shape) - len(offsets))
    return low.part(source, tuple((o + first, count) for o, (first, count) in zip(offsets, box)))


def _again(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value:
    """The op on its operand in one piece, and the box of that."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    made = low._once(
        ("again", value),
        lambda: low.emit(op.name, [value.type], [low.whole(v) for v in op.operands], attributes).results[0],
    )
    shape = shape_of(value)
    return made if shape is None or box == boxes.whole(shape) else low._slice(made, box)


def _transpose(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    order = integers(op.attributes["permutation"])
    inner = [(0, 0)] * len(order)
    for d, from_d in enumerate(order):
        inner[from_d] = box[d]
    part = low.part(op.operands[0], tuple(inner))
    text = low.vector(boxes.sizes(box), value)
    attributes = {"permutation": op.attributes["permutation"]}
    return low.emit("vector.transpose", [text], [part], attributes).results[0]


def _bitcast(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    source = op.operands[0]
    shape, to = shape_of(source), shape_of(value)
    assert shape and to
    *outer, (first, count) = box
    scaled = [n * shape[-1] for n in (first, count)]
    if any(n % to[-1] for n in scaled):
        return _again(low, op, value, box)
    part = low.part(source, (*outer, (scaled[0] // to[-1], scaled[1] // to[-1])))
    return low.emit("vector.bitcast", [low.vector(boxes.sizes(box), value)], [part]).results[0]


def _extract(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    source = op.operands[0]
    if len(op.operands) > 1:
        return _again(low, op, value, box)
    at = integers(op.attributes["static_position"])
    part = low.part(source, (*((i, 1) for i in at), *box))
    return low.emit("vector.shape_cast", [low.vector(boxes.sizes(box), value)], [part]).results[0]


def _create_mask(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    bounds = [low.add(v, -first) for v, (first, _) in zip(op.operands, box)]
    operands = [v for v in bounds if not isinstance(v, int)]
    return low.emit("vector.create_mask", [low.vector(boxes.sizes(box), value)], operands).results[0]


def _step(low: Rewriter, op: ir.Operation, value: ir.Value, box: Box) -> ir.Value | None:
    ((first, count),) = box
    text = low.vector((count,), value)
    steps = low._once(("step", text), lambda: low.emit("vector.step", [text], []).results[0])
    if first == 0:
        return steps
    by = low._once(
        ("broadcast", low.index(first), text),
        lambda: low.emit("vector.broadcast", [text], [low.index(first)]).results[0],
    )
    return low.emit("arith.addi", [text], [steps, by]).results[0]


_VIEW_RULES: dict[str, Callable[[Rewriter, ir.Operation, ir.Value, Box], ir.Value | None]] = {
    "arith.constant": _constant,
    "vector.broadcast": _broadcast,
    "vector.splat": _broadcast,
    "vector.shape_cast": _shape_cast,
    "vector.extract_strided_slice": _strided_slice,
    "vector.transpose": _transpose,
    "vector.extract": _extract,
    "vector.bitcast": _bitcast,
    "vector.create_mask": _create_mask,
    "vector.step": _step,
}
