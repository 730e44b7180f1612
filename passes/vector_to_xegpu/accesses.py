"""The accesses of memory that `vector-to-xegpu` rewrites, and what each becomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.checks import is_slm

from xegpu_py.ir.builtin import vector_text
from xegpu_py.ir.generic import integers, make
from xegpu_py.ir.passes import Pass

Order = npt.NDArray[np.int64]


def _constants(values: Order) -> ir.Value:
    kind = vector_text(values.shape, "index")
    return make("arith.constant", kind, value=f"dense<{values.tolist()}> : {kind}")


def _index(value: int) -> ir.Value:
    return make("arith.constant", "index", value=f"{value} : index")


def _shape(value: ir.Value) -> tuple[int, ...]:
    return tuple(ir.VectorType(value.type).shape)


def _reshape(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    kind = vector_text(shape, str(ir.VectorType(value.type).element_type))
    return value if str(value.type) == kind else make("vector.shape_cast", kind, value)


def _spread(value: ir.Value, count: int) -> ir.Value:
    return make("vector.broadcast", f"vector<{count}x{value.type}>", value)


class _Memref:
    """A memref whose elements are accessed at indices that are given."""

    def __init__(self, owner: Pass, op: ir.Operation, value: ir.Value, indices: Sequence[ir.Value]) -> None:
        if not isinstance(value.type, ir.MemRefType):
            owner.fail(op, f"accesses {value.type}, which lies in no memory", "bufferize it before")
        self.value, self.indices = value, list(indices)
        self.type = ir.MemRefType(value.type)
        self.element = str(self.type.element_type)
        self.slm = is_slm(self.type.memory_space)
        self.strides = [int(s) for s in self.type.get_strides_and_offset()[0]]
        self._owner, self._op = owner, op

    @property
    def rank(self) -> int:
        """Dimensions."""
        return len(self.indices)

    def stride(self, dimension: int) -> ir.Value | int:
        """A stride in elements."""
        if self.strides[dimension] != ir.ShapedType.get_dynamic_stride_or_offset():
            return self.strides[dimension]
        base = ir.MemRefType.get([], self.type.element_type, memory_space=self.type.memory_space)
        index = ir.IndexType.get()
        results = [base, index, *[index] * (2 * self.rank)]
        made = ir.Operation.create("memref.extract_strided_metadata", results, [self.value])
        found: ir.Value = made.results[2 + self.rank + dimension]
        return found

    def line(self, added: Sequence[int], count: int) -> ir.Value:
        """The descriptor of consecutive elements, from the indices and what is added to them."""
        if self.strides[-1] != 1:
            self._owner.fail(self._op, f"needs an innermost stride of 1, but {self.type} has another")
        dynamic = ir.ShapedType.get_dynamic_size()
        places = [make("arith.addi", "index", i, _index(a)) if a else i for i, a in zip(self.indices, added)]
        space = f", {self.type.memory_space}" if self.type.memory_space is not None else ""
        row = make(
            "memref.subview",
            f"memref<{count}x{self.element}, strided<[1], offset: ?>{space}>",
            self.value,
            *places,
            static_offsets=integers([dynamic] * self.rank),
            static_sizes=integers([*[1] * (self.rank - 1), count]),
            static_strides=integers([1] * self.rank),
            operandSegmentSizes=f"array<i32: 1, {self.rank}, 0, 0>",
        )
        scope = "memory_scope = slm, " if self.slm else ""
        tdesc = f"!xegpu.tensor_desc<{count}x{self.element}, #xegpu.tdesc_attr<{scope}boundary_check = false>>"
        found: ir.Value = xegpu.create_nd_tdesc(row, [0], tdesc=tdesc, mode="vc")
        return found

    def lanes(self, offsets: ir.Value) -> ir.Value:
        """The descriptor of elements at offsets from the memref's first."""
        scope = "memory_scope = slm, " if self.slm else ""
        count = _shape(offsets)[0]
        tdesc = f"!xegpu.tensor_desc<{count}x{self.element}, #xegpu.tdesc_attr<{scope}scattered = true>>"
        found: ir.Value = xegpu.create_tdesc(self.value, offsets, tdesc=tdesc, mode="vc", chunk_size_per_lane=1)
        return found

    def offsets(self, added: Sequence[ir.Value | Order], count: int) -> ir.Value:
        """The offsets of `count` elements: the indices, and for each dimension what is added to them."""
        kind = f"vector<{count}xindex>"
        base: ir.Value | None = None
        total: ir.Value | None = None
        known = np.zeros(count, np.int64)
        for d, index in enumerate(self.indices):
            stride = self.stride(d)
            factor = _index(stride) if isinstance(stride, int) else stride
            scaled = make("arith.muli", "index", index, factor)
            base = scaled if base is None else make("arith.addi", "index", base, scaled)
            more = added[d]
            if isinstance(more, ir.Value):
                moved = make("arith.muli", kind, more, _spread(factor, count))
            elif isinstance(stride, int):
                known += more * stride
                continue
            elif more.any():
                moved = make("arith.muli", kind, _constants(more), _spread(factor, count))
            else:
                continue
            total = moved if total is None else make("arith.addi", kind, total, moved)
        found = _constants(known)
        if total is not None:
            found = make("arith.addi", kind, found, total)
        return found if base is None else make("arith.addi", kind, found, _spread(base, count))


def _load(owner: Pass, op: ir.Operation) -> ir.Value:
    memory = _Memref(owner, op, op.operands[0], list(op.operands)[1:])
    return _read_rows(memory, _shape(op.results[0]))


def _read_rows(memory: _Memref, shape: tuple[int, ...]) -> ir.Value:
    outer = memory.rank - len(shape)
    rows = [(*r, 0) for r in np.ndindex(*shape[:-1])]
    parts = [xegpu.load_nd(memory.line([*[0] * outer, *map(int, row)], shape[-1]), mode="vc") for row in rows]
    if len(parts) == 1:
        return _reshape(parts[0], shape)
    kind = vector_text(shape, memory.element)
    zero = "0" if memory.element[0] in "isu" else "0.0"
    found = make("arith.constant", kind, value=f"dense<{zero}> : {kind}")
    for row, part in zip(rows, parts):
        found = make("vector.insert", kind, part, found, static_position=integers([int(r) for r in row[:-1]]))
    return found


def _store(owner: Pass, op: ir.Operation) -> None:
    memory = _Memref(owner, op, op.operands[1], list(op.operands)[2:])
    _write_rows(memory, op.operands[0])


def _write_rows(memory: _Memref, value: ir.Value) -> None:
    shape = _shape(value)
    outer = memory.rank - len(shape)
    for row in np.ndindex(*shape[:-1]):
        part = value
        if row:
            position = integers([int(r) for r in row])
            part = make("vector.extract", vector_text(shape[-1:], memory.element), value, static_position=position)
        xegpu.store_nd(part, memory.line([*[0] * outer, *map(int, row), 0], shape[-1]), mode="vc")


def _consecutive(memory: _Memref, count: int) -> ir.Value:
    return memory.offsets([*[np.zeros(count, np.int64)] * (memory.rank - 1), np.arange(count)], count)


def _masked_load(owner: Pass, op: ir.Operation) -> ir.Value:
    source, *indices, mask, otherwise = op.operands
    memory = _Memref(owner, op, source, indices)
    return _gathered(memory, _consecutive(memory, _shape(mask)[0]), mask, otherwise)


_MOST_LANES = 32


def _messages(count: int) -> list[tuple[int, int]]:
    """(first element, elements) of the messages that gather or scatter so many, each for a power of two of lanes."""
    found, at = [], 0
    while at < count:
        size = min(_MOST_LANES, 1 << (count - at).bit_length() - 1)
        found.append((at, size))
        at += size
    return found


def _slice(value: ir.Value, first: int, size: int) -> ir.Value:
    if _shape(value) == (size,):
        return value
    kind = vector_text((size,), str(ir.VectorType(value.type).element_type))
    return make("vector.extract_strided_slice", kind, value, offsets=f"[{first}]", sizes=f"[{size}]", strides="[1]")


def _gathered(memory: _Memref, offsets: ir.Value, mask: ir.Value, otherwise: ir.Value) -> ir.Value:
    result = otherwise
    for first, size in _messages(_shape(mask)[0]):
        at, active, other = (_slice(v, first, size) for v in (offsets, mask, otherwise))
        loaded = xegpu.load_gather(memory.lanes(at), active, mode="vc")
        found = make("arith.select", other.type, active, loaded, other)
        if size == _shape(mask)[0]:
            return found
        place = {"offsets": f"[{first}]", "strides": "[1]"}
        result = make("vector.insert_strided_slice", result.type, found, result, **place)
    return result


def _scattered(memory: _Memref, value: ir.Value, offsets: ir.Value, mask: ir.Value) -> None:
    for first, size in _messages(_shape(mask)[0]):
        part, at, active = (_slice(v, first, size) for v in (value, offsets, mask))
        xegpu.store_scatter(part, memory.lanes(at), active, mode="vc")


def _masked_store(owner: Pass, op: ir.Operation) -> None:
    target, *indices, mask, value = op.operands
    memory = _Memref(owner, op, target, indices)
    _scattered(memory, value, _consecutive(memory, _shape(mask)[0]), mask)


def _places(memory: _Memref, value: ir.Value) -> tuple[ir.Value, int]:
    """Offsets of a gather or scatter, whose indices are along the innermost dimension."""
    shape = _shape(value)
    count = math.prod(shape)
    flat = _reshape(value, (count,))
    if str(ir.VectorType(flat.type).element_type) != "index":
        flat = make("arith.index_cast", f"vector<{count}xindex>", flat)
    return memory.offsets([*[np.zeros(count, np.int64)] * (memory.rank - 1), flat], count), count


def _gather(owner: Pass, op: ir.Operation) -> ir.Value:
    source, *indices, places, mask, otherwise = op.operands
    memory = _Memref(owner, op, source, indices)
    offsets, count = _places(memory, places)
    found = _gathered(memory, offsets, _reshape(mask, (count,)), _reshape(otherwise, (count,)))
    return _reshape(found, _shape(op.results[0]))


def _scatter(owner: Pass, op: ir.Operation) -> None:
    target, *indices, places, mask, value = op.operands
    memory = _Memref(owner, op, target, indices)
    offsets, count = _places(memory, places)
    _scattered(memory, _reshape(value, (count,)), offsets, _reshape(mask, (count,)))


def _atomic(owner: Pass, op: ir.Operation) -> ir.Value:
    value, target, *indices = op.operands
    memory = _Memref(owner, op, target, indices)
    offsets = memory.offsets([np.zeros(1, np.int64)] * memory.rank, 1)
    one = make("arith.constant", "vector<1xi1>", value="dense<true> : vector<1xi1>")
    kind = AtomicRMWKind(ir.IntegerAttr(op.attributes["kind"]).value)
    old = xegpu.atomic_rmw(kind, _spread(value, 1), memory.lanes(offsets), one, mode="vc")
    return make("vector.extract", value.type, old, static_position="array<i64: 0>")


@dataclass
class _Transfer:
    """A transfer_read or transfer_write.

    Attributes:
        dimensions: for each dimension of the vector that of memory that it follows; None repeats the same element.
        mask: what of the vector is accessed, or None for all of it.
    """

    memory: _Memref
    shape: tuple[int, ...]
    dimensions: list[int | None]
    bounded: list[bool]
    mask: ir.Value | None

    @classmethod
    def of(
        cls, owner: Pass, op: ir.Operation, source: ir.Value, indices: Sequence[ir.Value], kind: ir.Type
    ) -> _Transfer:
        permutation = ir.AffineMapAttr(op.attributes["permutation_map"]).value
        dimensions = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in permutation.results]
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        mask = list(op.operands)[-1] if segments[-1] else None
        bounded = [ir.BoolAttr(b).value for b in ir.ArrayAttr(op.attributes["in_bounds"])]
        memory = _Memref(owner, op, source, indices)
        return cls(memory, tuple(ir.VectorType(kind).shape), dimensions, bounded, mask)

    def rows(self) -> bool:
        """Whether it moves rows of consecutive elements, all of them."""
        minor = list(range(self.memory.rank - len(self.shape), self.memory.rank))
        contiguous = bool(self.shape) and self.dimensions == minor and self.memory.strides[-1] == 1
        return contiguous and all(self.bounded) and self.mask is None

    def elements(self) -> tuple[ir.Value, ir.Value, int]:
        """The offsets of all elements in row-major order, which of them are accessed, and how many there are."""
        count = math.prod(self.shape)
        added = [np.zeros(count, np.int64) for _ in range(self.memory.rank)]
        places = np.indices(self.shape).reshape(len(self.shape), count)
        kind = f"vector<{count}xi1>"
        active = None if self.mask is None else self._active(self.mask, places)
        for i, d in enumerate(self.dimensions):
            if d is None:
                continue
            added[d] = places[i]
            if self.bounded[i]:
                continue
            index = _index(d)
            extent = make("memref.dim", "index", self.memory.value, index)
            left = make("arith.subi", "index", extent, self.memory.indices[d])
            inside = make("arith.cmpi", kind, _constants(places[i]), _spread(left, count), predicate="2 : i64")
            active = inside if active is None else make("arith.andi", kind, active, inside)
        if active is None:
            active = make("arith.constant", kind, value=f"dense<true> : {kind}")
        return self.memory.offsets(added, count), active, count

    def _active(self, mask: ir.Value, places: Order) -> ir.Value:
        """Which elements a mask leaves, in row-major order. It has the dimensions of memory, in their order."""
        order = [i for _, i in sorted((d, i) for i, d in enumerate(self.dimensions) if d is not None)]
        flat = _reshape(mask, (math.prod(_shape(mask)),))
        if not order:
            # It has one element, for all.
            chosen = np.zeros(places.shape[1], np.int64)
        else:
            chosen = np.ravel_multi_index(tuple(places[i] for i in order), tuple(self.shape[i] for i in order))
        if np.array_equal(chosen, np.arange(*_shape(flat))):
            return flat
        kind = vector_text((len(chosen),), "i1")
        return make("vector.shuffle", kind, flat, flat, mask=integers([int(n) for n in chosen]))


def _transfer_read(owner: Pass, op: ir.Operation) -> ir.Value:
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    source, *indices = list(op.operands)[: 1 + segments[1]]
    padding = op.operands[1 + segments[1]]
    result = op.results[0].type
    transfer = _Transfer.of(owner, op, source, indices, result)
    if not transfer.shape:
        one = make("memref.load", ir.VectorType(result).element_type, source, *indices)
        return make("vector.broadcast", result, one)
    if transfer.rows():
        return _read_rows(transfer.memory, transfer.shape)
    offsets, active, count = transfer.elements()
    found = _gathered(transfer.memory, offsets, active, _spread(padding, count))
    return _reshape(found, transfer.shape)


def _transfer_write(owner: Pass, op: ir.Operation) -> None:
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    value, target, *indices = list(op.operands)[: 2 + segments[2]]
    transfer = _Transfer.of(owner, op, target, indices, value.type)
    if not transfer.shape:
        one = make("vector.extract", transfer.memory.element, value, static_position="array<i64>")
        ir.Operation.create("memref.store", [], [one, target, *indices], {})
        return
    if transfer.rows():
        _write_rows(transfer.memory, value)
        return
    offsets, active, count = transfer.elements()
    _scattered(transfer.memory, _reshape(value, (count,)), offsets, active)


RULES: dict[str, Callable[[Pass, ir.Operation], Any]] = {
    "memref.atomic_rmw": _atomic,
    "vector.load": _load,
    "vector.store": _store,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
    "vector.gather": _gather,
    "vector.scatter": _scatter,
    "vector.transfer_read": _transfer_read,
    "vector.transfer_write": _transfer_write,
}
