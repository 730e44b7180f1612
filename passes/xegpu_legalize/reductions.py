"""Reductions of vectors in pieces, in the order in which the whole would be reduced."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir
from xegpu_py.passes.common.combining import combining_op
from xegpu_py.passes.common.values import integers
from xegpu_py.passes.xegpu_legalize import boxes
from xegpu_py.passes.xegpu_legalize.boxes import Bounds
from xegpu_py.passes.xegpu_legalize.plan import REDUCED_GRFS, bytes_of, element_of, shape_of
from xegpu_py.passes.xegpu_legalize.rewrite import Rewriter, rewrites


def halves(count: int) -> bool:
    """Whether so many pieces are combined by halves as their elements would be."""
    return count & (count - 1) == 0


def _combined(low: Rewriter, op: ir.Operation, parts: Sequence[ir.Value]) -> ir.Value:
    """Pieces of one shape, combined element by element: the first half with the second, and so on."""
    kind = str(op.attributes["kind"]).rstrip(">").rpartition("<")[2]
    name = combining_op(kind, ir.VectorType(parts[0].type).element_type)
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [low.emit(name, [a.type], [a, b]).results[0] for a, b in zip(parts[:half], parts[half:])]
    return parts[0]


def _bounds(low: Rewriter, value: ir.Value, kept: Sequence[int] = ()) -> Bounds | None:
    """How a vector is cut; what messages have brought in small pieces has larger ones along the `kept` dimensions."""
    bounds = low.plan.bounds(value)
    if bounds is not None or value not in low.tiles:
        return bounds
    found = list(low.tiles[value].bounds)
    each = bytes_of(value) * math.prod(pieces[0] for pieces in found)
    most = REDUCED_GRFS * low.plan.target.grf_bytes
    for d in reversed(kept):
        grown = boxes.joined(found[d], max(most // each, 1) * found[d][0])
        each, found[d] = each // found[d][0] * grown[0], grown
    return tuple(found)


@rewrites("vector.reduction")
def reduction(low: Rewriter, op: ir.Operation) -> bool:
    """All pieces into one, and that one's elements."""
    bounds = _bounds(low, op.operands[0])
    if element_of(op.operands[0]) == "i1":
        return False
    if bounds is None or len(set(bounds[0])) > 1 or not halves(len(bounds[0])):
        return False
    parts = [low.part(op.operands[0], box) for box in boxes.grid(bounds)]
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = [_combined(low, op, parts), *list(op.operands)[1:]]
    new = low.emit(op.name, [op.results[0].type], operands, attributes)
    op.results[0].replace_all_uses_with(new.results[0])
    return True


@rewrites("vector.multi_reduction")
def multi_reduction(low: Rewriter, op: ir.Operation) -> bool:
    """For each piece of what is left, the pieces along the outermost reduced dimension combined, and then reduced."""
    source, acc = list(op.operands)
    reduced = integers(op.attributes["reduction_dims"])
    shape = shape_of(source)
    assert shape
    kept = [d for d in range(len(shape)) if d not in reduced]
    bounds = _bounds(low, source, kept)
    if bounds is None or element_of(source) == "i1":
        return False
    first, *others = reduced
    if any(len(bounds[d]) > 1 for d in others):
        return False
    if len(set(bounds[first])) > 1 or not halves(len(bounds[first])):
        return False
    attributes = {name: op.attributes[name] for name in op.attributes}
    parts = []
    for box in boxes.grid(tuple(bounds[d] for d in kept)):
        group = []
        for line in zip(boxes.starts(bounds[first]), bounds[first]):
            place = {**dict(zip(kept, box)), **{d: (0, bounds[d][0]) for d in others}, first: line}
            group.append(low.part(source, tuple(place[d] for d in range(len(bounds)))))
        start = low.part(acc, box) if shape_of(acc) else acc
        parts.append(low.emit(op.name, [start.type], [_combined(low, op, group), start], attributes).results[0])
    if shape_of(op.results[0]) is None:
        op.results[0].replace_all_uses_with(parts[0])
    else:
        low.set(op.results[0], tuple(bounds[d] for d in kept), parts)
    return True


@rewrites("vector.extract")
def extract(low: Rewriter, op: ir.Operation) -> bool:
    """One element of a vector in pieces; parts of one are made as they are needed."""
    source = op.operands[0]
    if shape_of(op.results[0]) is not None or len(op.operands) > 1 or _bounds(low, source) is None:
        return False
    at = integers(op.attributes["static_position"])
    part = low.part(source, tuple((i, 1) for i in at))
    zeros = {"static_position": ir.DenseI64ArrayAttr.get([0] * len(at))}
    new = low.emit("vector.extract", [op.results[0].type], [part], zeros)
    op.results[0].replace_all_uses_with(new.results[0])
    return True
