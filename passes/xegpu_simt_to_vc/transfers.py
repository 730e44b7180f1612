"""`vector`: transfers, gathers and masked accesses of each lane's own vectors, element by element where need be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.passes.common.builders import (
    broadcast,
    compare,
    constant,
    extract,
    index,
    index_type,
    insert,
    make,
    shape_cast,
    vector_type,
    with_element,
)
from xegpu_py.passes.common.values import element_of, shape_of
from xegpu_py.passes.xegpu_simt_to_vc.memory import lanes_of, offsets, read_rows, write_rows
from xegpu_py.passes.xegpu_simt_to_vc.widen import Widener, pattern


def _both(a: ir.Value, b: ir.Value | None) -> ir.Value:
    return a if b is None else make("arith.andi", a.type, a, b)


def _flat(w: Widener, value: ir.Value) -> ir.Value:
    """A value as [count, lanes]."""
    return shape_cast(w.wide(value), (math.prod(shape_of(value)), w.lanes))


def _join(w: Widener, parts: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
    """Elements of all lanes as the vector that they make up."""
    found = constant(vector_type((len(parts), w.lanes), element_of(kind)), 0)
    for i, part in enumerate(parts):
        found = insert(part, found, [i])
    return shape_cast(found, (*shape_of(kind), w.lanes))


def _read(
    w: Widener, source: ir.Value, places: ir.Value, mask: ir.Value | None, otherwise: ir.Value | None
) -> ir.Value:
    """An element of each lane; where the mask is clear, `otherwise`."""
    value = xegpu.load_gather(lanes_of(w, source, places), _both(w.active(), mask), mode="vc")
    return value if mask is None or otherwise is None else w.choose(mask, value, otherwise)


def _write(w: Widener, value: ir.Value, target: ir.Value, places: ir.Value, mask: ir.Value | None) -> None:
    xegpu.store_scatter(value, lanes_of(w, target, places), _both(w.active(), mask), mode="vc")


class _Transfer:
    """Where the elements of a transfer_read or transfer_write are."""

    def __init__(self, w: Widener, op: ir.Operation, first: int, kind: ir.Type) -> None:
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        count = segments[1 if first == 0 else 2]
        memref = op.operands[first]
        if not isinstance(memref.type, ir.MemRefType):
            w.fail(f"accesses {memref.type}, which lies in no memory", "bufferize it before")
        self.w, self.memref = w, w.uniform(memref)
        self.indices = list(op.operands)[first + 1 : first + 1 + count]
        self.padding = op.operands[first + 1 + count] if first == 0 else None
        self.mask = _flat(w, list(op.operands)[-1]) if segments[-1] else None
        self.shape = shape_of(kind)
        permutation = ir.AffineMapAttr(op.attributes["permutation_map"]).value
        self.dimensions = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in permutation.results]
        self.bounded = [ir.BoolAttr(b).value for b in ir.ArrayAttr(op.attributes["in_bounds"])]

    def rows(self) -> bool:
        """Whether rows of consecutive elements are moved, all of them."""
        minor = list(range(len(self.indices) - len(self.shape), len(self.indices)))
        strides, _ = ir.MemRefType(self.memref.type).get_strides_and_offset()
        contiguous = bool(self.shape) and self.dimensions == minor and strides[-1] == 1
        return contiguous and all(self.bounded) and self.mask is None

    def element(self, number: int) -> tuple[ir.Value, ir.Value | None]:
        """The place of an element in each lane, and the lanes that access it; None for all."""
        w = self.w
        place = np.unravel_index(number, self.shape) if self.shape else ()
        added = [0] * len(self.indices)
        mask = None if self.mask is None else extract(self.mask, [self._masked_by(place)])
        for d, at, bounded in zip(self.dimensions, place, self.bounded):
            if d is None:
                continue
            added[d] = int(at)
            if not bounded:
                mask = _both(self._inside(d, int(at)), mask)
        return offsets(w, self.memref, self.indices, added), mask

    def _masked_by(self, place: Sequence[Any]) -> int:
        """The element of the mask for a place of the vector. Masks have the dimensions of memory, in its order."""
        known = [(d, i) for i, d in enumerate(self.dimensions) if d is not None]
        number = 0
        for _, i in sorted(known):
            number = number * self.shape[i] + int(place[i])
        return number

    def _inside(self, dimension: int, more: int) -> ir.Value:
        extent = make("memref.dim", index_type(), self.memref, index(dimension))
        limit = make("arith.subi", index_type(), extent, index(more))
        place = self.w.wide(self.indices[dimension])
        return compare("slt", place, broadcast(limit, place.type))


@pattern("vector.transfer_read")
def transfer_read(w: Widener, op: ir.Operation) -> None:
    """Rows, or each element with what is there out of bounds."""
    if w.kept(op):
        return
    result = op.results[0]
    transfer = _Transfer(w, op, 0, result.type)
    if transfer.rows():
        w.widen(op, read_rows(w, transfer.memref, transfer.indices, transfer.shape, w.active()))
        return
    assert transfer.padding is not None
    padding = w.wide(transfer.padding)
    parts = []
    for i in range(math.prod(transfer.shape)):
        places, mask = transfer.element(i)
        parts.append(_read(w, transfer.memref, places, mask, padding))
    w.widen(op, _join(w, parts, result.type))


@pattern("vector.transfer_write")
def transfer_write(w: Widener, op: ir.Operation) -> None:
    """Rows, or each element that is in bounds."""
    if w.kept(op):
        return
    w.erase(op)
    value = op.operands[0]
    transfer = _Transfer(w, op, 1, value.type)
    if transfer.rows():
        write_rows(w, w.wide(value), transfer.memref, transfer.indices, transfer.shape, w.active())
        return
    data = _flat(w, value)
    for i in range(math.prod(transfer.shape)):
        places, mask = transfer.element(i)
        _write(w, extract(data, [i]), transfer.memref, places, mask)


def _places(w: Widener, memref: ir.Value, indices: Sequence[ir.Value], value: ir.Value, number: int) -> ir.Value:
    """Offsets of one element of a gather or scatter, whose places are along the innermost dimension."""
    along = extract(_flat(w, value), [number])
    if not isinstance(element_of(along), ir.IndexType):
        along = make("arith.index_cast", with_element(along.type, index_type()), along)
    return make("arith.addi", along.type, offsets(w, memref, indices), along)


@pattern("vector.gather")
def gather(w: Widener, op: ir.Operation) -> None:
    """Each element of each lane."""
    if w.kept(op):
        return
    source, *indices, places, mask, otherwise = op.operands
    memref, result = w.uniform(source), op.results[0]
    masks, others = _flat(w, mask), _flat(w, otherwise)
    parts = [
        _read(w, memref, _places(w, memref, indices, places, i), extract(masks, [i]), extract(others, [i]))
        for i in range(math.prod(shape_of(result)))
    ]
    w.widen(op, _join(w, parts, result.type))


@pattern("vector.scatter")
def scatter(w: Widener, op: ir.Operation) -> None:
    """Each element of each lane."""
    if w.kept(op):
        return
    w.erase(op)
    target, *indices, places, mask, value = op.operands
    memref, masks, data = w.uniform(target), _flat(w, mask), _flat(w, value)
    for i in range(math.prod(shape_of(value))):
        _write(w, extract(data, [i]), memref, _places(w, memref, indices, places, i), extract(masks, [i]))


def _along(w: Widener, memref: ir.Value, indices: Sequence[ir.Value], number: int) -> ir.Value:
    return offsets(w, memref, indices, [*[0] * (len(indices) - 1), number])


@pattern("vector.maskedload")
def masked_load(w: Widener, op: ir.Operation) -> None:
    """Each element whose bit is set."""
    if w.kept(op):
        return
    source, *indices, mask, otherwise = op.operands
    memref, result = w.uniform(source), op.results[0]
    masks, others = _flat(w, mask), _flat(w, otherwise)
    parts = [
        _read(w, memref, _along(w, memref, indices, i), extract(masks, [i]), extract(others, [i]))
        for i in range(shape_of(result)[0])
    ]
    w.widen(op, _join(w, parts, result.type))


@pattern("vector.maskedstore")
def masked_store(w: Widener, op: ir.Operation) -> None:
    """Each element whose bit is set."""
    if w.kept(op):
        return
    w.erase(op)
    target, *indices, mask, value = op.operands
    memref, masks, data = w.uniform(target), _flat(w, mask), _flat(w, value)
    for i in range(shape_of(value)[0]):
        _write(w, extract(data, [i]), memref, _along(w, memref, indices, i), extract(masks, [i]))
