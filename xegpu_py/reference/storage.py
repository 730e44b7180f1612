"""Numbers and allocations of the reference evaluator, in numpy."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.ir.builtin import bit_width, is_integer, vector_of
from xegpu_py.numerics import convert, fcvt
from xegpu_py.numerics.block_scaled import exponents, truncate
from xegpu_py.numerics.formats import DF, E2M1, E8M0, FLOATS, TYPES, Array, F, Format, canonical
from xegpu_py.numerics.rounding import odd_doubles
from xegpu_py.runtime.host_arrays import memory_between, overlapping, span_of

# Memory: allocations with bounds, in address spaces of global, shared local and private memory; and memrefs.

BASE = 0x100000
"""Address of the first allocation of global memory. There are no allocations below, so null pointers are errors."""

PAGE = 4096
"""Alignment of allocations, and smallest distance between them."""


class Fault(Exception):
    """An op that cannot be evaluated.

    Attributes:
        message: a clause that follows the op's name in the diagnostic.
        notes: the rule, and the fix if there is one.
    """

    def __init__(self, message: str, *notes: str) -> None:
        self.message, self.notes = message, notes
        super().__init__(message)


class FailedAssertion(Fault):
    """An assertion of the kernel that does not hold. The message stands without the op's name."""

    def __init__(self, text: str) -> None:
        super().__init__(f"assertion failed: {text}")


class UnsupportedOp(Fault):
    """An op, or a type of an op, that the evaluator does not support."""


@dataclass(frozen=True)
class MemoryAllocation:
    """Consecutive bytes.

    Attributes:
        name: its name in messages.
        address: address of its first byte.
        data: its bytes, uint8; writing them writes the memory.
        writable: whether a kernel may write it.
    """

    name: str
    address: int
    data: Array
    writable: bool = True


class AddressSpace:
    """One address space.

    Attributes:
        name: its name in messages.
        allocations: by address.
        watched: addresses whose writes set `is_touched`.
        is_touched: whether a watched address was written since this was cleared.
    """

    def __init__(self, name: str, base: int = 0) -> None:
        self.name = name
        self.allocations: list[MemoryAllocation] = []
        self._starts: list[int] = []
        self._next = base
        self.watched = range(0)
        self.is_touched = False

    def add(self, name: str, data: Array, writable: bool = True) -> MemoryAllocation:
        """Add bytes as an allocation, followed by a gap that makes accesses beyond its end errors."""
        allocation_ = MemoryAllocation(name, self._next, data, writable)
        self._next += -(-len(data) // PAGE) * PAGE + PAGE
        self.allocations.append(allocation_)
        self._starts.append(allocation_.address)
        return allocation_

    def allocate(self, name: str, size: int) -> MemoryAllocation:
        """Add an allocation of zeros; `size` is in bytes."""
        return self.add(name, np.zeros(size, np.uint8))

    def _locate(self, addresses: Array, size: int, verb: str) -> tuple[MemoryAllocation, Array] | None:
        """The allocation that contains all elements, and their offsets in it; None if there are several."""
        low, high = int(addresses.min()), int(addresses.max())
        at = bisect.bisect_right(self._starts, low) - 1
        if at >= 0 and high + size <= self.allocations[at].address + len(self.allocations[at].data):
            return self.allocations[at], addresses - self.allocations[at].address
        for address in addresses.ravel().tolist():
            at = bisect.bisect_right(self._starts, address) - 1
            if at < 0 or address + size > self.allocations[at].address + len(self.allocations[at].data):
                raise Fault(f"{verb} {size} bytes at {self.describe(address, size)}")
        return None

    def read(self, addresses: Array, dtype: np.dtype[Any]) -> Array:
        """The elements at addresses (int64, any shape).

        Raises:
            Fault: if one lies outside of all allocations.
        """
        if not addresses.size:
            return np.zeros(addresses.shape, dtype)
        location = self._locate(addresses, dtype.itemsize, "reads")
        if location is None:
            elements = [self.read(np.array([a]), dtype)[0] for a in addresses.ravel().tolist()]
            return np.array(elements, dtype).reshape(addresses.shape)
        allocation, offsets = location
        if _aligned(allocation.data, offsets, dtype.itemsize):
            return np.asarray(_as(allocation.data, dtype)[offsets // dtype.itemsize])
        raw = allocation.data[offsets[..., None] + np.arange(dtype.itemsize)]
        return np.ascontiguousarray(raw).view(dtype)[..., 0]

    def write(self, addresses: Array, values: Array) -> None:
        """Write elements in order: of several at one address the last one remains.

        Raises:
            Fault: if one lies outside of all allocations, or may not be written.
        """
        if not addresses.size:
            return
        dtype = values.dtype
        location = self._locate(addresses, dtype.itemsize, "writes")
        if location is None:
            for a, v in zip(addresses.ravel().tolist(), values.ravel()):
                self.write(np.array([a]), np.array([v], dtype))
            return
        allocation, offsets = location
        if self.watched:
            low, high = self.watched.start - dtype.itemsize, self.watched.stop
            self.is_touched |= bool(((addresses > low) & (addresses < high)).any())
        if not allocation.writable:
            raise Fault(f"writes to '{allocation.name}', which is read-only")
        if _aligned(allocation.data, offsets, dtype.itemsize):
            _as(allocation.data, dtype)[offsets // dtype.itemsize] = values
            return
        raw = np.ascontiguousarray(values)[..., None].view(np.uint8)
        allocation.data[offsets[..., None] + np.arange(dtype.itemsize)] = raw

    def elements(self, base: int, element_indices: Array, element: ElementType) -> Array:
        """Elements by their indices (int64, any shape) relative to an address.

        Raises:
            Fault: if one lies outside of all allocations.
        """
        if not element.shares_bytes:
            return element.from_memory(self.read(base + element_indices * element.bytes, element.memory))
        bits = element_indices * element.bits
        raw_bytes = self.read(base + (bits >> 3), np.dtype(np.uint8))
        found = raw_bytes >> (bits & 7).astype(np.uint8) & np.uint8((1 << element.bits) - 1)
        return found.view(element.dtype) if element.is_float else element.from_memory(found.view(np.int8))

    def set_elements(self, base: int, element_indices: Array, values: Array, element: ElementType) -> None:
        """Write elements by their numbers; those that share bytes one after the other.

        Raises:
            Fault: if one lies outside of all allocations, or may not be written.
        """
        if not element.shares_bytes:
            self.write(base + element_indices * element.bytes, element.to_memory(values))
            return
        mask = (1 << element.bits) - 1
        patterns = np.ascontiguousarray(values, element.dtype).view(np.uint8)
        for bit, value in zip((element_indices * element.bits).ravel().tolist(), patterns.ravel().tolist()):
            address, shift = np.array([base + (bit >> 3)]), bit & 7
            old_byte = int(self.read(address, np.dtype(np.uint8))[0]) & ~(mask << shift)
            self.write(address, np.array([old_byte | (int(value) & mask) << shift], np.uint8))

    def describe(self, address: int, size: int) -> str:
        """Describe an address relative to the nearest allocation, for messages."""
        if not self.allocations:
            return f"{address:#x} of {self.name}, which has no allocations"
        gaps = [max(a.address - address, address + size - a.address - len(a.data)) for a in self.allocations]
        nearest = self.allocations[gaps.index(min(gaps))]
        allocation_text = f"'{nearest.name}', which has {len(nearest.data)} bytes"
        if address < nearest.address:
            return f"{address:#x} of {self.name}, {nearest.address - address} bytes before {allocation_text}"
        over = address + size - nearest.address - len(nearest.data)
        return f"{address:#x} of {self.name}, reaching {over} bytes over the end of {allocation_text}"


def _aligned(data: Array, offsets: Array, size: int) -> bool:
    return size == 1 or (data.ctypes.data % size == 0 and not (offsets % size).any())


def _as(data: Array, dtype: np.dtype[Any]) -> Array:
    return data[: len(data) // dtype.itemsize * dtype.itemsize].view(dtype)


def attach(memory: AddressSpace, arrays: Sequence[tuple[str, np.ndarray[Any, Any]]]) -> list[int]:
    """Add arrays of the host as allocations in place; arrays that share memory share an allocation.

    Args:
        arrays: names and arrays without negative strides.

    Returns:
        The address of each array's first element.
    """
    spans = [span_of(array) for _, array in arrays]
    addresses = [0] * len(arrays)
    for group in overlapping(spans):
        group_start, group_end = min(spans[i][0] for i in group), max(spans[i][1] for i in group)
        name = ", ".join(arrays[i][0] for i in group)
        writable = all(arrays[i][1].flags.writeable for i in group)
        allocation = memory.add(name, memory_between(group_start, group_end), writable)
        for i in group:
            addresses[i] = allocation.address + spans[i][0] - group_start
    return addresses


@dataclass(frozen=True)
class MemRef:
    """A memref.

    Attributes:
        memory: the memory that it refers to.
        base: address of the buffer's first byte.
        offset: offset of the first element from `base`, in elements.
        shape, strides: extent and stride of each dimension, strides in elements.
        element: the element type.
    """

    memory: AddressSpace
    base: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: ElementType

    @property
    def address(self) -> int:
        """The address of the first element.

        Raises:
            Fault: if it is not at the beginning of a byte.
        """
        if not self.element.shares_bytes:
            return self.base + self.offset * self.element.bytes
        if self.offset * self.element.bits % 8:
            raise Fault(f"takes the address of element {self.offset}, which lies within a byte")
        return self.base + self.offset * self.element.bits // 8

    def addresses(self, indices: Sequence[Any]) -> Array:
        """The addresses of the elements at indices: an array or number for each dimension."""
        return np.asarray(self.base + self.element_offsets(indices) * self.element.bytes)

    def element_offsets(self, indices: Sequence[Any]) -> Array:
        """The offsets of the elements at indices from the buffer's first element."""
        offsets = sum((np.asarray(i, np.int64) * s for i, s in zip(indices, self.strides)), np.int64(0))
        return np.asarray(self.offset + offsets)

    def load(self, indices: Sequence[Any]) -> Array:
        """The elements at indices."""
        return self.memory.elements(self.base, self.element_offsets(indices), self.element)

    def store(self, values: Array, indices: Sequence[Any]) -> None:
        """Write the elements at indices, in row-major order of the indices."""
        self.memory.set_elements(self.base, self.element_offsets(indices), values, self.element)

    def part(self, offset: int, shape: Sequence[int], strides: Sequence[int]) -> MemRef:
        """A view of the same buffer."""
        return replace(self, offset=offset, shape=tuple(shape), strides=tuple(strides))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of contiguous elements in row-major order."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def allocated(memory: AddressSpace, memref_type: ir.MemRefType, name: str) -> MemRef:
    """A memref of a static shape in a new allocation.

    Raises:
        Fault: if the shape is dynamic.
    """
    element = element_of(str(memref_type.element_type))
    if not memref_type.has_static_shape:
        raise Fault("allocates memory of unknown size", "use a memref with a static shape")
    strides, _ = memref_type.get_strides_and_offset()
    shape = tuple(memref_type.shape)
    count = sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if math.prod(shape) else 0
    size = -(-count * element.bits // 8) if element.shares_bytes else count * element.bytes
    allocation = memory.allocate(name, size)
    return MemRef(memory, allocation.address, 0, shape, tuple(strides), element)


# Element types: their representation in numpy, and conversions between them.
#
# An integer of any width and signedness is represented as a signed number in the next larger numpy type;
# an `i1` is a bool, an `index` an int64. A float has its storage type (docs/numerics.md), and a `tf32` is a float32.


@dataclass(frozen=True)
class ElementType:
    """An element type.

    Attributes:
        name: MLIR's name.
        bits: width of a number.
        dtype: numpy's type of a number.
        memory: numpy's type of a number in memory, of the same width or wider: a byte for `i1`.
        format: the format of a floating-point type.
    """

    name: str
    bits: int
    dtype: np.dtype[Any]
    memory: np.dtype[Any]
    format: Format | None = None

    @property
    def shares_bytes(self) -> bool:
        """Whether a byte in memory has several elements, from the lowest bits on."""
        return self.bits in (2, 4)

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.format is not None

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory."""
        return self.memory.itemsize

    def signed(self, values: Array) -> Array:
        """Integers of this type interpreted as signed; a true `i1` is -1."""
        return np.asarray(-values.astype(np.int8) if self.bits == 1 else values)

    def unsigned(self, values: Array) -> Array:
        """Integers of this type interpreted as unsigned, in an unsigned numpy type."""
        if self.bits == 1:
            return values.astype(np.uint8)
        wide = np.asarray(values).view(f"u{self.dtype.itemsize}")
        return wide if self.bits == 8 * self.dtype.itemsize else wide & wide.dtype.type((1 << self.bits) - 1)

    def numbers(self, values: Array) -> Array:
        """Integers of this type as int64: unsigned if the type says so, otherwise signed."""
        read = self.unsigned if self.name.startswith("u") else self.signed
        return np.asarray(read(np.asarray(values))).astype(np.int64)

    def wrap(self, values: Array) -> Array:
        """The lowest bits of integers of any numpy type, as integers of this type."""
        if self.bits == 1:
            return np.asarray(np.asarray(values).astype(np.uint8) & np.uint8(1) != 0)
        bits_array = np.asarray(values).astype(self.dtype)
        over = self.dtype.type(8 * self.dtype.itemsize - self.bits)
        return np.asarray(bits_array << over >> over if over else bits_array)

    def finish(self, values: Array) -> Array:
        """Floating-point results with canonical NaNs."""
        assert self.format
        return canonical(np.array(values, self.dtype), self.format)

    def to_memory(self, values: Array) -> Array:
        """Numbers in their type in memory."""
        return np.asarray(values).astype(self.memory, copy=False)

    def from_memory(self, values: Array) -> Array:
        """Numbers from their type in memory."""
        if self.bits == 1:
            return np.asarray(values != 0)
        return values.astype(self.dtype, copy=False) if self.is_float else self.wrap(values)


@lru_cache(maxsize=256)
def element_of(name: str) -> ElementType:
    """The element type of MLIR's name.

    Raises:
        UnsupportedOp: if it is not a type of numbers, or has more than 64 bits.
    """
    if name in FLOATS:
        fmt = FLOATS[name]
        return ElementType(name, fmt.bits, fmt.dtype, fmt.dtype, fmt)
    if name == "index" or name.startswith("!tt.ptr<"):
        return ElementType(name, 64, np.dtype(np.int64), np.dtype(np.int64))
    if not is_integer(name) or bit_width(name) > 64:
        raise UnsupportedOp(f"has values of type {name}, which the reference evaluator does not support")
    bits = bit_width(name)
    if bits == 1:
        return ElementType(name, 1, np.dtype(bool), np.dtype(np.uint8))
    size = next(n for n in (1, 2, 4, 8) if 8 * n >= bits)
    return ElementType(name, bits, np.dtype(f"i{size}"), np.dtype(f"i{size}"))


@dataclass(frozen=True)
class ValueKind:
    """The type of a number or vector.

    Attributes:
        shape: the shape of a vector, or () for a number.
        element: the type of its elements.
        is_vector: whether it is a vector, possibly of no dimensions.
    """

    shape: tuple[int, ...]
    element: ElementType
    is_vector: bool


_TENSOR = re.compile(r"tensor<((?:\d+x)*)([^?]*)>\Z")


@lru_cache(maxsize=4096)
def kind_of(text: str) -> ValueKind:
    """The kind of a type, from its text.

    Raises:
        UnsupportedOp: if it is neither a type of numbers nor a vector or tensor of fixed size.
    """
    if text.startswith("vector<") and "[" not in text:
        shape, element = vector_of(text)
        return ValueKind(shape, element_of(element), True)
    if m := _TENSOR.match(text):
        return ValueKind(tuple(map(int, m[1].split("x")[:-1])), element_of(m[2]), True)
    return ValueKind((), element_of(text), False)


def _widened(values: Array) -> Array:
    """Floats as f64, exactly."""
    with np.errstate(invalid="ignore"):
        return np.asarray(values).astype(np.float64)


def _odd_single(wide: Array) -> Array:
    """f64 numbers rounded to odd to f32, so that rounding the result again equals one rounding."""
    nearest = wide.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.int32)
    moves = (back != wide) & (bits & 1 == 0) & np.isfinite(wide)
    outward = np.abs(wide) > np.abs(back)
    return np.asarray(bits + np.where(moves, np.where(outward, 1, -1), 0).astype(np.int32)).view(np.float32)


def to_float(values: Array, source: ElementType, target: ElementType) -> Array:
    """Floats in another format: rounded once to nearest even, with canonical NaNs (docs/numerics.md, mov and FCVT)."""
    assert source.format and target.format
    with np.errstate(all="ignore"):
        if source == target:
            return np.asarray(values)
        if target.name == "tf32" and source.bits < 32 and source.bits != 16:
            return canonical(np.asarray(values).astype(np.float32), F)
        if target.format.name not in TYPES:
            single = _odd_single(_widened(values))
            if target.name == "tf32":
                return fcvt(single, "tf32")
            if target.format is E8M0:
                return exponents(single)
            if target.format is E2M1:
                return truncate(single, "f", "e2m1")
            return canonical(single.astype(target.dtype), target.format)
        if source.format.name in TYPES:
            return convert(values, source.format.name, target.format.name)
        wide = canonical(_widened(values), DF)
        return wide if target.format is DF else convert(wide, "df", target.format.name)


def from_integers(values: Array, target: ElementType) -> Array:
    """Integers, of any numpy type, as floats: rounded once to nearest even; infinity from overflow."""
    assert target.format
    integers = np.asarray(values)
    if target.format.name in TYPES:
        source = next(f.name for f in TYPES.values() if not f.is_float and f.dtype == integers.dtype)
        return convert(integers, source, target.format.name)
    return to_float(odd_doubles(integers), element_of("f64"), target)


def to_integers(values: Array, target: ElementType, *, signed: bool) -> Array:
    """Floats toward zero; out of range the nearest limit, and 0 for NaN (docs/numerics.md, mov)."""
    low, high = (-(1 << target.bits - 1), (1 << target.bits - 1) - 1) if signed else (0, (1 << target.bits) - 1)
    quadwords = convert(_widened(values), "df", "q" if signed else "uq")
    return target.wrap(np.clip(quadwords, low, high))
