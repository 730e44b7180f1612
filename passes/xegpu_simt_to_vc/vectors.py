"""`vector`: a work item's vectors have the lanes as a further, innermost dimension."""

from __future__ import annotations

import math

import numpy as np
from mlir import ir
from xegpu_py.passes.xegpu_simt_to_vc.fragments import Order, Placement
from xegpu_py.passes.xegpu_simt_to_vc.known import positions
from xegpu_py.passes.xegpu_simt_to_vc.widen import (
    Widener,
    attributes_of,
    element_of,
    ordered,
    shape_of,
    vector_text,
    widens,
)


def _uniform(w: Widener, op: ir.Operation) -> bool:
    if any(w.uniformity.varies(v) or w.varies(v) for v in op.operands):
        return False
    w.keep(op)
    return True


def _integers(op: ir.Operation, name: str) -> list[int]:
    attribute = op.attributes[name]
    if isinstance(attribute, ir.ArrayAttr):
        return [int(ir.IntegerAttr(a).value) for a in attribute]
    return list(ir.DenseI64ArrayAttr(attribute))


def _with_lanes(w: Widener, kind: ir.Type) -> ir.Type:
    return ir.Type.parse(vector_text((*shape_of(kind), w.lanes), element_of(kind)))


@widens("vector.shape_cast")
def shape_cast(w: Widener, op: ir.Operation) -> None:
    """The same elements; where they are does not change."""
    if _uniform(w, op):
        return
    held = w.held[op.operands[0]]
    w.set(op.results[0], held.value, held.placement)


@widens("vector.extract", "vector.insert")
def element(w: Widener, op: ir.Operation) -> None:
    """A part of each lane's vector, or the vector with a part replaced; lanes may differ in where it is."""
    if _uniform(w, op):
        return
    if len(op.operands) == _VALUES[op.name]:
        leading(w, op)
    elif op.name == "vector.extract":
        _extract_by_lane(w, op)
    else:
        _insert_by_lane(w, op)


_VALUES = {"vector.extract": 1, "vector.insert": 2}
"""The operands in front of the positions."""


def _places(w: Widener, op: ir.Operation, shape: tuple[int, ...]) -> Order | list[ir.Value]:
    """The row-major place of a part in the outer dimensions: of each lane, or whether it is 0, 1, ... as vectors of i1.

    Args:
        shape: of the vector that has the part.
    """
    dynamic = iter(list(op.operands)[_VALUES[op.name] :])
    static = _integers(op, "static_position")
    found = positions(op, w.known)
    outer = shape[: len(static)]
    if found is not None:
        # What is outside is poison, of which lanes that have not come here may have any.
        at = tuple(np.broadcast_to(x, w.lanes) for x in found)
        return np.ravel_multi_index(at, outer, mode="clip")
    total: ir.Value | None = None
    kind = f"vector<{w.lanes}xindex>"
    for n, place in zip(outer, static):
        own = w.wide(next(dynamic)) if place == ir.ShapedType.get_dynamic_size() else w.splat(place, "index")
        if total is not None:
            own = w.make("arith.addi", kind, w.make("arith.muli", kind, total, w.splat(n, "index")), own)
        total = own
    assert total is not None
    flags = f"vector<{w.lanes}xi1>"
    return [
        w.make("arith.cmpi", flags, total, w.splat(i, "index"), predicate="0 : i64") for i in range(math.prod(outer))
    ]


def _extract_by_lane(w: Widener, op: ir.Operation) -> None:
    source, result = op.operands[0], op.results[0]
    shape, kind = shape_of(source.type), element_of(source.type)
    inner = shape_of(result.type)
    outer, size = math.prod(shape) // math.prod(inner), math.prod(inner)
    places = _places(w, op, shape)
    if isinstance(places, list):
        places_at = places
    elif not w.varies(source) or 2 * len(np.unique(places)) > w.lanes:
        # From where all lanes' elements are, each takes its own. A choice takes an instruction, and one for its mask.
        order = places[None, :] * size + np.arange(size)[:, None]
        held = w.held[source].value
        if w.varies(source):
            held, order = w.wide(source), order * w.lanes + np.arange(w.lanes)
        flat = w.reshape(held, (math.prod(shape_of(held.type)),), kind)
        made = w.make("vector.shuffle", vector_text((order.size,), kind), flat, flat, mask=ordered(order.ravel()))
        w.set(result, w.reshape(made, (*inner, w.lanes), kind))
        return
    else:
        places_at = [w.integers(places == i, "i1") if (places == i).any() else None for i in range(outer)]
    rows = w.reshape(w.wide(source), (outer, *inner, w.lanes), kind)
    found: ir.Value | None = None
    for i, here in enumerate(places_at):
        if here is not None:
            row = w.make(
                "vector.extract", vector_text((*inner, w.lanes), kind), rows, static_position=ordered(np.array([i]))
            )
            found = row if found is None else w.choose(here, row, found)
    assert found is not None
    w.set(result, found)


def _insert_by_lane(w: Widener, op: ir.Operation) -> None:
    value, whole = op.operands[0], op.operands[1]
    shape, kind = shape_of(whole.type), element_of(whole.type)
    inner = shape_of(value.type)
    outer = math.prod(shape) // math.prod(inner)
    places = _places(w, op, shape)
    if not isinstance(places, list):
        places = [w.integers(places == i, "i1") for i in range(outer)]
    rows = w.reshape(w.wide(whole), (outer, *inner, w.lanes), kind)
    part = w.wide(value)
    for i, here in enumerate(places):
        at = ordered(np.array([i]))
        row = w.make("vector.extract", part.type, rows, static_position=at)
        rows = w.make("vector.insert", rows.type, w.choose(here, part, row), rows, static_position=at)
    w.set(op.results[0], w.reshape(rows, (*shape, w.lanes), kind))


@widens("vector.shuffle", "vector.multi_reduction", "vector.splat")
def leading(w: Widener, op: ir.Operation) -> None:
    """Ops on outer dimensions leave the lanes alone."""
    if _uniform(w, op):
        return
    operands = [w.wide(v) for v in op.operands]
    made = w.create(op.name, [_with_lanes(w, op.results[0].type)], operands, attributes_of(op))
    w.set(op.results[0], made.results[0])


@widens("vector.broadcast")
def broadcast(w: Widener, op: ir.Operation) -> None:
    """Elements repeated along outer dimensions."""
    if _uniform(w, op):
        return
    made = w.make("vector.broadcast", _with_lanes(w, op.results[0].type), w.wide(op.operands[0]))
    w.set(op.results[0], made)


@widens("vector.transpose")
def transpose(w: Widener, op: ir.Operation) -> None:
    """The lanes stay innermost."""
    if _uniform(w, op):
        return
    order = _integers(op, "permutation")
    made = w.make(
        "vector.transpose",
        _with_lanes(w, op.results[0].type),
        w.wide(op.operands[0]),
        permutation=ordered(np.array([*order, len(order)])),
    )
    w.set(op.results[0], made)


@widens("vector.extract_strided_slice", "vector.insert_strided_slice")
def strided_slice(w: Widener, op: ir.Operation) -> None:
    """A slice of all lanes."""
    if _uniform(w, op):
        return
    attributes = attributes_of(op)
    rank = len(shape_of(op.operands[-1].type if op.name == "vector.insert_strided_slice" else op.operands[0].type))
    source_rank = len(shape_of(op.operands[0].type))
    offsets, strides = _integers(op, "offsets"), _integers(op, "strides")
    if op.name == "vector.extract_strided_slice":
        # What is left out is whole.
        shape, sizes = shape_of(op.operands[0].type), _integers(op, "sizes")
        sizes = [*sizes, *shape[len(sizes) :], w.lanes]
        offsets = [*offsets, *[0] * (rank + 1 - len(offsets))]
        strides = [1] * (rank + 1)
        attributes["sizes"] = ir.Attribute.parse(str(sizes))
    else:
        offsets, strides = [*offsets, 0], [1] * (source_rank + 1)
    attributes["offsets"], attributes["strides"] = ir.Attribute.parse(str(offsets)), ir.Attribute.parse(str(strides))
    operands = [w.wide(v) for v in op.operands]
    made = w.create(op.name, [_with_lanes(w, op.results[0].type)], operands, attributes)
    w.set(op.results[0], made.results[0])


@widens("vector.reduction")
def reduction(w: Widener, op: ir.Operation) -> None:
    """Each lane's elements to one."""
    if _uniform(w, op):
        return
    value, *acc = op.operands
    data = w.wide(value)
    kind = _with_lanes(w, op.results[0].type)
    rows = shape_of(value.type)[0]
    combining = str(op.attributes["kind"]).rstrip(">").split("<")[-1]
    # By halves, as the elements of a vector are reduced.
    while rows > 1:
        half = rows // 2
        low, high = (_rows(w, data, at, half) for at in (0, rows - half))
        joined = w.make(_name(combining, op), low.type, low, high)
        if rows % 2:
            middle = _rows(w, data, half, 1)
            data = _stack(w, joined, middle)
        else:
            data = joined
        rows = half + rows % 2
    found = w.reshape(data, (w.lanes,), element_of(op.results[0].type))
    if acc:
        found = w.make(_name(combining, op), kind, w.wide(acc[0]), found)
    w.set(op.results[0], found)


def _name(kind: str, op: ir.Operation) -> str:
    element = element_of(op.results[0].type)
    is_float = element.startswith(("f", "bf"))
    return {
        "add": "arith.addf" if is_float else "arith.addi",
        "mul": "arith.mulf" if is_float else "arith.muli",
        "and": "arith.andi",
        "or": "arith.ori",
        "xor": "arith.xori",
    }.get(kind, f"arith.{kind}")


def _rows(w: Widener, data: ir.Value, first: int, count: int) -> ir.Value:
    return w.make(
        "vector.extract_strided_slice",
        vector_text((count, w.lanes), element_of(data.type)),
        data,
        offsets=f"[{first}, 0]",
        sizes=f"[{count}, {w.lanes}]",
        strides="[1, 1]",
    )


def _stack(w: Widener, above: ir.Value, below: ir.Value) -> ir.Value:
    rows = shape_of(above.type)[0] + shape_of(below.type)[0]
    order = ordered(np.arange(rows))
    return w.make("vector.shuffle", vector_text((rows, w.lanes), element_of(above.type)), above, below, mask=order)


@widens("vector.from_elements")
def from_elements(w: Widener, op: ir.Operation) -> None:
    """Scalars one above the other."""
    if _uniform(w, op):
        return
    result = op.results[0]
    shape, element = shape_of(result.type), element_of(result.type)
    count = math.prod(shape)
    kind = vector_text((count, w.lanes), element)
    zero = "false" if element == "i1" else "0.0" if element.startswith(("f", "bf", "tf")) else "0"
    found = w.make("arith.constant", kind, value=f"dense<{zero}> : {kind}")
    for i, value in enumerate(op.operands):
        found = w.make("vector.insert", kind, w.wide(value), found, static_position=ordered(np.array([i])))
    w.set(result, w.reshape(found, (*shape, w.lanes), element))


@widens("vector.to_elements")
def to_elements(w: Widener, op: ir.Operation) -> None:
    """The rows."""
    if _uniform(w, op):
        return
    element = element_of(op.operands[0].type)
    count = len(op.results)
    data = w.reshape(w.wide(op.operands[0]), (count, w.lanes), element)
    for i, result in enumerate(op.results):
        kind = vector_text((w.lanes,), element)
        w.set(result, w.make("vector.extract", kind, data, static_position=ordered(np.array([i]))))


@widens("vector.bitcast", "vector.interleave", "vector.deinterleave")
def innermost(w: Widener, op: ir.Operation) -> None:
    """Ops on the innermost dimension: each lane's elements side by side, and back."""
    if _uniform(w, op):
        return
    lanes = w.lanes

    def outside(kind: ir.Type) -> Placement:
        shape = shape_of(kind)
        count = math.prod(shape)
        return Placement((lanes, *shape), np.arange(count * lanes).reshape(lanes, count).T)

    operands = [w.at(v, outside(v.type)) for v in op.operands]
    kinds = [ir.Type.parse(vector_text((lanes, *shape_of(r.type)), element_of(r.type))) for r in op.results]
    made = w.create(op.name, kinds, operands, attributes_of(op))
    for old, new in zip(op.results, made.results):
        w.set(old, new, outside(old.type))


@widens("vector.create_mask")
def create_mask(w: Widener, op: ir.Operation) -> None:
    """Which of a lane's elements are below its bounds."""
    if _uniform(w, op):
        return
    shape = shape_of(op.results[0].type)
    kind = vector_text((*shape, w.lanes), "i1")
    found: ir.Value | None = None
    for i, bound in enumerate(op.operands):
        places = np.broadcast_to(np.arange(shape[i]).reshape(-1, *[1] * (len(shape) - i)), (*shape, w.lanes))
        index = vector_text((*shape, w.lanes), "index")
        place = w.make("arith.constant", index, value=f"dense<{places.tolist()}> : {index}")
        limit = w.make("vector.broadcast", index, w.wide(bound))
        below = w.make("arith.cmpi", kind, place, limit, predicate="2 : i64")
        found = below if found is None else w.make("arith.andi", kind, found, below)
    assert found is not None
    w.set(op.results[0], found)
