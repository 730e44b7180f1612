"""Reductions of vectors in pieces, in the same order of operations as for the whole vector."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from xegpu_py.ir.combining import CombiningKind
from xegpu_py.passes.common.builders import extract, integer_type, like
from xegpu_py.passes.common.values import element_of, integers, shape_of
from xegpu_py.passes.xegpu_legalize import boxes
from xegpu_py.passes.xegpu_legalize.boxes import Bounds
from xegpu_py.passes.xegpu_legalize.conversion import Legalization, pattern
from xegpu_py.passes.xegpu_legalize.plan import REDUCED_GRFS, bytes_of


def halves(count: int) -> bool:
    """Whether combining this many pieces by halves keeps the order of the elements' reduction."""
    return count & (count - 1) == 0


def _combined(op: ir.Operation, parts: Sequence[ir.Value]) -> ir.Value:
    """Combine pieces of one shape elementwise: the first half with the second half, repeatedly."""
    kind = CombiningKind.of(op)
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [kind.combine(a, b) for a, b in zip(parts[:half], parts[half:])]
    return parts[0]


def _is_joined(bounds: Bounds | None, value: ir.Value, dimension: int) -> bool:
    """Whether consecutive pieces along a dimension are combined elementwise before they are reduced."""
    if bounds is None or element_of(value) == integer_type(1):
        return False
    return len(set(bounds[dimension])) == 1 and halves(len(bounds[dimension]))


def _bounds(low: Legalization, value: ir.Value, kept: Sequence[int] = ()) -> Bounds | None:
    """The sizes of a vector's pieces; small ones are joined along the `kept` dimensions."""
    if value not in low.tiles:
        return low.plan.bounds(value)
    found = list(low.tiles[value].bounds)
    each = bytes_of(value) * math.prod(pieces[0] for pieces in found)
    most = REDUCED_GRFS * low.plan.target.grf_bytes
    for d in reversed(kept):
        grown = boxes.joined(found[d], max(most // each, 1) * found[d][0])
        each, found[d] = each // found[d][0] * grown[0], grown
    return tuple(found)


@pattern("vector.reduction")
def reduction(low: Legalization, op: ir.Operation) -> None:
    """Combine all pieces into one, and reduce its elements."""
    source, *acc = op.operands
    bounds = _bounds(low, source)
    if bounds is None or not _is_joined(bounds, source, 0):
        low.keep(op)
        return
    parts = [low.part(source, box) for box in boxes.grid(bounds)]
    low.replace(op, like(op, [op.results[0].type], [_combined(op, parts), *acc]).results[0])


@pattern("vector.multi_reduction")
def multi_reduction(low: Legalization, op: ir.Operation) -> None:
    """For each piece of the result, combine the pieces along the outermost reduced dimension, then reduce."""
    source, acc = op.operands
    first, *others = reduced = integers(op.attributes["reduction_dims"])
    kept = [d for d in range(len(shape_of(source))) if d not in reduced]
    bounds = _bounds(low, source, kept)
    if bounds is None or not _is_joined(bounds, source, first) or any(len(bounds[d]) > 1 for d in others):
        low.keep(op)
        return
    parts = []
    for box in boxes.grid(tuple(bounds[d] for d in kept)):
        group = []
        for line in zip(boxes.starts(bounds[first]), bounds[first]):
            place = {**dict(zip(kept, box)), **{d: (0, bounds[d][0]) for d in others}, first: line}
            group.append(low.part(source, tuple(place[d] for d in range(len(bounds)))))
        start = low.part(acc, box) if shape_of(acc) else acc
        parts.append(like(op, [start.type], [_combined(op, group), start]).results[0])
    if shape_of(op.results[0]):
        low.divide(op, tuple(bounds[d] for d in kept), parts)
    else:
        low.replace(op, parts[0])


@pattern("vector.extract")
def extract_element(low: Legalization, op: ir.Operation) -> None:
    """Extract one element of a vector in pieces. Larger parts are views, made on demand."""
    source = op.operands[0]
    if shape_of(op.results[0]) or len(op.operands) > 1 or _bounds(low, source) is None:
        low.no_pattern(op)
        return
    at = integers(op.attributes["static_position"])
    low.replace(op, extract(low.part(source, tuple((i, 1) for i in at)), [0] * len(at)))
