"""`vector`: transfers, gathers and masked accesses of each lane's vectors, element by element if necessary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from mlir import ir

from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.transfers import Transfer
from xegpu_py.passes.common.values import element_of, shape_of
from xegpu_py.passes.xegpu_simt_to_vc.control import both
from xegpu_py.passes.xegpu_simt_to_vc.memory import gather_elements, offsets, read_rows, scatter_elements, write_rows
from xegpu_py.passes.xegpu_simt_to_vc.widen import Widener, pattern


def _flat(w: Widener, value: ir.Value) -> ir.Value:
    """A value as [count, lanes]."""
    return build.shape_cast(w.wide(value), (math.prod(shape_of(value)), w.lanes))


def _read(
    w: Widener, source: ir.Value, places: ir.Value, mask: ir.Value | None, otherwise: ir.Value | None
) -> ir.Value:
    """Load an element of each lane; `otherwise` where the mask is clear."""
    value = gather_elements(w, source, places, both(w.active(), mask))
    return value if mask is None or otherwise is None else w.choose(mask, value, otherwise)


def _write(w: Widener, value: ir.Value, target: ir.Value, places: ir.Value, mask: ir.Value | None) -> None:
    scatter_elements(w, value, target, places, both(w.active(), mask))


class _Elements:
    """The positions of a transfer's elements, which are accessed one by one."""

    def __init__(self, w: Widener, transfer: Transfer) -> None:
        self._w, self._transfer, self._memref = w, transfer, w.uniform(transfer.memref)
        self._mask = None if transfer.mask is None else _flat(w, transfer.mask)
        self._shape = shape_of(transfer.vector)

    def __iter__(self) -> Iterator[tuple[ir.Value, ir.Value | None]]:
        """The offset of each element in each lane, and the lanes that access it; None for all."""
        w, transfer = self._w, self._transfer
        for place in np.ndindex(*self._shape):
            added = [0] * len(transfer.indices)
            mask = None if self._mask is None else build.extract(self._mask, [self._masked_by(place)])
            for d, at, bounded in zip(transfer.dimensions, place, transfer.in_bounds):
                if d is not None:
                    added[d] = at
                    if not bounded:
                        mask = both(self._inside(d, at), mask)
            yield offsets(w, self._memref, transfer.indices, added), mask

    def _masked_by(self, place: Sequence[int]) -> int:
        """The element of the mask for a position of the vector."""
        number = 0
        for i in self._transfer.mask_dims:
            number = number * self._shape[i] + place[i]
        return number

    def _inside(self, dimension: int, more: int) -> ir.Value:
        extent = build.make("memref.dim", build.index_type(), self._memref, build.index(dimension))
        limit = build.binary("subi", extent, build.index(more))
        place = self._w.wide(self._transfer.indices[dimension])
        return build.compare("slt", place, build.broadcast(limit, place.type))


def _transfer(w: Widener, op: ir.Operation) -> tuple[Transfer, ir.Value]:
    """A transfer, and its memref in the subgroup's program."""
    found = Transfer(op)
    if not isinstance(found.memref.type, ir.MemRefType):
        w.fail(f"accesses {found.memref.type}, which is not in memory", "run bufferization first")
    return found, w.uniform(found.memref)


@pattern("vector.transfer_read")
def transfer_read(w: Widener, op: ir.Operation) -> None:
    """Read rows, or single elements, with the padding for those out of bounds."""
    result, (transfer, memref) = op.results[0], _transfer(w, op)
    if transfer.is_rows():
        w.widen(op, read_rows(w, memref, transfer.indices, shape_of(result), w.active()))
        return
    elements = _Elements(w, transfer)
    assert transfer.padding is not None
    padding = w.wide(transfer.padding)
    w.widen(op, w.stacked([_read(w, memref, places, mask, padding) for places, mask in elements], result.type))


@pattern("vector.transfer_write")
def transfer_write(w: Widener, op: ir.Operation) -> None:
    """Write rows, or single elements that are in bounds."""
    w.erase(op)
    transfer, memref = _transfer(w, op)
    value = transfer.vector
    if transfer.is_rows():
        write_rows(w, w.wide(value), memref, transfer.indices, shape_of(value), w.active())
        return
    elements, data = _Elements(w, transfer), _flat(w, value)
    for i, (places, mask) in enumerate(elements):
        _write(w, build.extract(data, [i]), memref, places, mask)


def _place(w: Widener, memref: ir.Value, indices: Sequence[ir.Value], places: ir.Value | None, number: int) -> ir.Value:
    """Offsets of element `number` of an access along the innermost dimension.

    Args:
        places: the elements' offsets of gathers and scatters; None if the elements are consecutive.
    """
    if places is None:
        return offsets(w, memref, indices, [*[0] * (len(indices) - 1), number])
    along = build.extract(_flat(w, places), [number])
    if not isinstance(element_of(along), ir.IndexType):
        along = build.make("arith.index_cast", build.with_element(along.type, build.index_type()), along)
    return build.binary("addi", offsets(w, memref, indices), along)


@pattern("vector.gather", "vector.maskedload")
def gather(w: Widener, op: ir.Operation) -> None:
    """Each element of each lane whose bit is set."""
    source, *indices, mask, otherwise = op.operands
    places = indices.pop() if op.name == "vector.gather" else None
    memref, kind = w.uniform(source), op.results[0].type
    masks, others = _flat(w, mask), _flat(w, otherwise)
    parts = [
        _read(w, memref, _place(w, memref, indices, places, i), build.extract(masks, [i]), build.extract(others, [i]))
        for i in range(math.prod(shape_of(kind)))
    ]
    w.widen(op, w.stacked(parts, kind))


@pattern("vector.scatter", "vector.maskedstore")
def scatter(w: Widener, op: ir.Operation) -> None:
    """Each element of each lane whose bit is set."""
    w.erase(op)
    target, *indices, mask, value = op.operands
    places = indices.pop() if op.name == "vector.scatter" else None
    memref, masks, data = w.uniform(target), _flat(w, mask), _flat(w, value)
    for i in range(math.prod(shape_of(value))):
        _write(w, build.extract(data, [i]), memref, _place(w, memref, indices, places, i), build.extract(masks, [i]))
