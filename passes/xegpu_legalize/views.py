"""Views: ops for which a box of the result is the same op on a part of the operand."""

from __future__ import annotations

from mlir import ir

from xegpu_py.passes.common.builders import broadcast, constant, like, make, shape_cast, with_shape
from xegpu_py.passes.common.values import integers, shape_of
from xegpu_py.passes.xegpu_legalize import boxes
from xegpu_py.passes.xegpu_legalize.boxes import Box
from xegpu_py.passes.xegpu_legalize.conversion import Legalization, view


def _type(op: ir.Operation, box: Box) -> ir.Type:
    """The type of a box of an op's result."""
    return with_shape(op.results[0].type, boxes.sizes(box))


@view("arith.constant")
def splat(low: Legalization, op: ir.Operation, box: Box) -> ir.Value | None:
    """A smaller splat; None for other constants."""
    value, kind = op.attributes["value"], _type(op, box)
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return None
    return low.once(("constant", value, kind), lambda: constant(kind, value.get_splat_value()))


@view("vector.broadcast", "vector.splat")
def repeated(low: Legalization, op: ir.Operation, box: Box) -> ir.Value | None:
    """Broadcast the scalar, or the part of the vector that the box repeats."""
    source, kind = op.operands[0], _type(op, box)
    shape = shape_of(source)
    if not shape:
        return low.once(("broadcast", source, kind), lambda: broadcast(source, kind))
    inner = tuple((0, 1) if n == 1 else b for n, b in zip(shape, box[len(box) - len(shape) :]))
    return broadcast(low.part(source, inner), kind)


@view("vector.shape_cast")
def reshaped(low: Legalization, op: ir.Operation, box: Box) -> ir.Value | None:
    """Cast the same elements of the operand, if they form a box."""
    source = op.operands[0]
    shape, to = shape_of(source), shape_of(op.results[0])
    if not shape or not to:
        return None
    inside = boxes.reshape(box, to, shape)
    if inside is None:
        return low.slice(shape_cast(low.whole(source), to), box)
    return shape_cast(low.part(source, inside), boxes.sizes(box))


@view("vector.extract_strided_slice")
def sliced(low: Legalization, op: ir.Operation, box: Box) -> ir.Value | None:
    """A slice of the slice."""
    source = op.operands[0]
    if any(s != 1 for s in integers(op.attributes["strides"])):
        return _again(low, op, box) if low.is_divided(source) else None
    offsets = integers(op.attributes["offsets"])
    offsets += [0] * (len(shape_of(source)) - len(offsets))
    return low.part(source, tuple((o + first, count) for o, (first, count) in zip(offsets, box)))


def _again(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """Apply the op to whole operands, and take the box of its result."""
    value = op.results[0]
    made = low.once(("again", value), lambda: like(op, [value.type], [low.whole(v) for v in op.operands]).results[0])
    return low.slice(made, box)


@view("vector.transpose")
def transposed(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """The transposed box of the operand."""
    order = integers(op.attributes["permutation"])
    inner = dict(zip(order, box))
    part = low.part(op.operands[0], tuple(inner[d] for d in range(len(order))))
    return like(op, [_type(op, box)], [part]).results[0]


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


@view("vector.extract")
def extracted(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """The box at a constant position of the outer dimensions."""
    if len(op.operands) > 1:
        return _again(low, op, box)
    at = integers(op.attributes["static_position"])
    part = low.part(op.operands[0], (*((i, 1) for i in at), *box))
    return shape_cast(part, boxes.sizes(box))


@view("vector.create_mask")
def create_mask(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """A mask whose bounds are reduced by the box's first position."""
    left = [low.value(low.add(v, -first)) for v, (first, _) in zip(op.operands, box)]
    return make("vector.create_mask", _type(op, box), *left)


@view("vector.step")
def step(low: Legalization, op: ir.Operation, box: Box) -> ir.Value:
    """A step vector plus the box's first position."""
    ((first, _),) = box
    kind = _type(op, box)
    steps = low.once(("step", kind), lambda: make("vector.step", kind))
    if first == 0:
        return steps
    start = low.index(first)
    return make("arith.addi", kind, steps, low.once(("broadcast", start, kind), lambda: broadcast(start, kind)))
