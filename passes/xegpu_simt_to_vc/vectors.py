"""`vector`: vectors of work items get the lanes as an additional innermost dimension."""

from __future__ import annotations

import math

import numpy as np
from mlir import ir

from xegpu_py.dialects.xegpu import LaneShuffleMode
from xegpu_py.ir.combining import CombiningKind
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.fragments import Order, Placement
from xegpu_py.passes.common.values import bits_of, element_of, integers, shape_of
from xegpu_py.passes.xegpu_simt_to_vc.known import positions
from xegpu_py.passes.xegpu_simt_to_vc.widen import Widener, elementwise, pattern


@pattern("vector.shape_cast")
def _shape_cast(w: Widener, op: ir.Operation) -> None:
    """Cast the shape; the placement does not change."""
    held = w.held[op.operands[0]]
    w.widen(op, held.value, held.placement)


@pattern("vector.extract", "vector.insert")
def element(w: Widener, op: ir.Operation) -> None:
    """Extract or insert a part of each lane's vector; its position may vary among lanes."""
    if len(op.operands) == _VALUES[op.name]:
        leading(w, op)
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
    found = positions(op, w.known)
    outer = shape[: len(static)]
    if found is not None:
        # Out-of-range positions give poison; inactive lanes may have them.
        at = tuple(np.broadcast_to(x, w.lanes) for x in found)
        return np.ravel_multi_index(at, outer, mode="clip")
    kind = w.vector(build.index_type())
    total: ir.Value | None = None
    for n, place in zip(outer, static):
        own = w.wide(next(dynamic)) if place == ir.ShapedType.get_dynamic_size() else build.constant(kind, place)
        total = own if total is None else build.add(build.multiply(total, n), own)
    assert total is not None
    return [build.compare("eq", total, build.constant(kind, i)) for i in range(math.prod(outer))]


def _extract_by_lane(w: Widener, op: ir.Operation) -> None:
    source, result = op.operands[0], op.results[0]
    shape, inner = shape_of(source), shape_of(result)
    outer, size = math.prod(shape) // math.prod(inner), math.prod(inner)
    places = _places(w, op, shape)
    if isinstance(places, list):
        places_at = places
    elif not w.varies(source) or 2 * len(np.unique(places)) > w.lanes:
        # A permutation gathers each lane's element; a select takes two instructions for each position.
        order = places[None, :] * size + np.arange(size)[:, None]
        held = source
        if w.varies(source):
            held, order = w.wide(source), order * w.lanes + np.arange(w.lanes)
        made = build.permute(build.shape_cast(held, (math.prod(shape_of(held)),)), order.ravel())
        w.widen(op, build.shape_cast(made, (*inner, w.lanes)))
        return
    else:
        places_at = [_where(places, i) if (places == i).any() else None for i in range(outer)]
    rows = build.shape_cast(w.wide(source), (outer, *inner, w.lanes))
    found: ir.Value | None = None
    for i, here in enumerate(places_at):
        if here is not None:
            row = build.extract(rows, [i])
            found = row if found is None else w.choose(here, row, found)
    assert found is not None
    w.widen(op, found)


def _where(places: Order, place: int) -> ir.Value:
    """vector of i1: the lanes that have this position."""
    return build.dense_integers(places == place, build.integer_type(1))


def _insert_by_lane(w: Widener, op: ir.Operation) -> None:
    value, whole = op.operands[0], op.operands[1]
    shape, inner = shape_of(whole), shape_of(value)
    outer = math.prod(shape) // math.prod(inner)
    places = _places(w, op, shape)
    if not isinstance(places, list):
        places = [_where(places, i) for i in range(outer)]
    rows = build.shape_cast(w.wide(whole), (outer, *inner, w.lanes))
    part = w.wide(value)
    for i, here in enumerate(places):
        rows = build.insert(w.choose(here, part, build.extract(rows, [i])), rows, [i])
    w.widen(op, build.shape_cast(rows, (*shape, w.lanes)))


@pattern("vector.shuffle", "vector.multi_reduction", "vector.splat")
def leading(w: Widener, op: ir.Operation) -> None:
    """Ops on outer dimensions do not affect the lanes."""
    made = build.like(op, [w.with_lanes(op.results[0])], [w.wide(v) for v in op.operands])
    w.widen(op, made.results[0])


@pattern("vector.broadcast")
def _broadcast(w: Widener, op: ir.Operation) -> None:
    """Broadcast along outer dimensions."""
    w.widen(op, build.broadcast(w.wide(op.operands[0]), w.with_lanes(op.results[0])))


@pattern("vector.transpose")
def _transpose(w: Widener, op: ir.Operation) -> None:
    """The lanes stay innermost."""
    order = integers(op.attributes["permutation"])
    w.widen(op, build.transpose(w.wide(op.operands[0]), [*order, len(order)]))


@pattern("vector.extract_strided_slice")
def _extract_slice(w: Widener, op: ir.Operation) -> None:
    """Extract a slice of all lanes; innermost dimensions without offsets are whole."""
    shape, offsets = shape_of(op.operands[0]), integers(op.attributes["offsets"])
    offsets += [0] * (len(shape) + 1 - len(offsets))
    w.widen(op, build.extract_slice(w.wide(op.operands[0]), offsets, [*shape_of(op.results[0]), w.lanes]))


@pattern("vector.insert_strided_slice")
def _insert_slice(w: Widener, op: ir.Operation) -> None:
    """Insert a slice of all lanes."""
    value, into = map(w.wide, op.operands)
    w.widen(op, build.insert_slice(value, into, [*integers(op.attributes["offsets"]), 0]))


@pattern("vector.reduction")
def reduction(w: Widener, op: ir.Operation) -> None:
    """Reduce each lane's elements."""
    value, *acc = op.operands
    data = w.wide(value)
    rows = shape_of(value)[0]
    kind = CombiningKind.of(op)
    # By halves, the order of a vector's reduction.
    while rows > 1:
        half = rows // 2
        low, high = (build.extract_slice(data, [at, 0], [half, w.lanes]) for at in (0, rows - half))
        joined = kind.combine(low, high)
        if rows % 2:
            joined = build.shuffle(joined, build.extract_slice(data, [half, 0], [1, w.lanes]), range(half + 1))
        data, rows = joined, half + rows % 2
    found = build.shape_cast(data, (w.lanes,))
    w.widen(op, kind.combine(w.wide(acc[0]), found) if acc else found)


@pattern("vector.from_elements")
def from_elements(w: Widener, op: ir.Operation) -> None:
    """Stack scalars along a new outer dimension."""
    w.widen(op, w.stacked([w.wide(value) for value in op.operands], op.results[0].type))


@pattern("vector.to_elements")
def to_elements(w: Widener, op: ir.Operation) -> None:
    """The rows."""
    data = build.shape_cast(w.wide(op.operands[0]), (len(op.results), w.lanes))
    for i, result in enumerate(op.results):
        w.set(result, build.extract(data, [i]))
    w.erase(op)


@pattern("xegpu.truncf")
def truncf(w: Widener, op: ir.Operation) -> None:
    """Convert elementwise. Elements of less than a byte share bytes, so each lane's elements are made adjacent."""
    if bits_of(element_of(op.results[0])) < 8:
        innermost(w, op)
    else:
        elementwise(w, op)


@pattern("xegpu.lane_shuffle")
def lane_shuffle(w: Widener, op: ir.Operation) -> None:
    """Redistribute the elements among lanes.

    With the lanes innermost, element j of lane i is at j * lanes + i; `pack` moves it to i * count + j.
    """
    w.require_convergence("exchanges elements of the whole subgroup")
    count, lanes = shape_of(op.results[0])[0], w.lanes
    packed = np.arange(count * lanes).reshape(lanes, count).T
    plain = np.arange(count * lanes).reshape(count, lanes)
    before, after = (plain, packed) if op.opview.shuffle == LaneShuffleMode.PACK else (packed, plain)
    w.widen(op, w.at(op.operands[0], Placement((count * lanes,), before)), Placement((count * lanes,), after))


@pattern("vector.bitcast", "vector.interleave", "vector.deinterleave")
def innermost(w: Widener, op: ir.Operation) -> None:
    """Ops on the innermost dimension: make each lane's elements adjacent, apply the op, and restore the order."""
    if op.name == "vector.bitcast" and shape_of(op.operands[0]) == shape_of(op.results[0]):
        elementwise(w, op)
        return
    lanes = w.lanes

    def outside(value: ir.Value) -> Placement:
        shape = shape_of(value)
        count = math.prod(shape)
        return Placement((lanes, *shape), np.arange(count * lanes).reshape(lanes, count).T)

    operands = [w.at(v, outside(v)) for v in op.operands]
    made = build.like(op, [build.vector_type((lanes, *shape_of(r)), element_of(r)) for r in op.results], operands)
    for old, new in zip(op.results, made.results):
        w.set(old, new, outside(old))
    w.erase(op)


@pattern("vector.create_mask")
def create_mask(w: Widener, op: ir.Operation) -> None:
    """True for the elements of each lane that are below its bounds."""
    shape = shape_of(op.results[0])
    found: ir.Value | None = None
    for i, bound in enumerate(op.operands):
        places = np.broadcast_to(np.arange(shape[i]).reshape(-1, *[1] * (len(shape) - i)), (*shape, w.lanes))
        place = build.dense_integers(places, build.index_type())
        below = build.compare("slt", place, build.broadcast(w.wide(bound), place.type))
        found = below if found is None else build.binary("andi", found, below)
    assert found is not None
    w.widen(op, found)
