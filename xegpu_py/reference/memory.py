"""Memory: allocations with bounds, in address spaces of global, shared local and private memory; and memrefs."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.numerics.arrays import memory_between, overlapping, span_of
from xegpu_py.numerics.formats import Array
from xegpu_py.reference.elements import Element, element_of

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


class Unknown(Fault):
    """An op, or a type of an op, that the evaluator does not support."""


@dataclass(frozen=True)
class Allocation:
    """Consecutive bytes.

    Attributes:
        name: what messages call it.
        address: address of its first byte.
        data: its bytes, uint8; writing them writes the memory.
        writable: whether a kernel may write it.
    """

    name: str
    address: int
    data: Array
    writable: bool = True


class Memory:
    """One address space.

    Attributes:
        name: what messages call it.
        allocations: by address.
        watched: addresses whose writes set `is_touched`.
        is_touched: whether a watched address was written since this was cleared.
    """

    def __init__(self, name: str, base: int = 0) -> None:
        self.name = name
        self.allocations: list[Allocation] = []
        self._starts: list[int] = []
        self._next = base
        self.watched = range(0)
        self.is_touched = False

    def place(self, name: str, data: Array, writable: bool = True) -> Allocation:
        """Add bytes as an allocation, followed by a gap that makes accesses beyond its end errors."""
        made = Allocation(name, self._next, data, writable)
        self._next += -(-len(data) // PAGE) * PAGE + PAGE
        self.allocations.append(made)
        self._starts.append(made.address)
        return made

    def allocate(self, name: str, size: int) -> Allocation:
        """Add an allocation of zeros; `size` is in bytes."""
        return self.place(name, np.zeros(size, np.uint8))

    def _found(self, addresses: Array, size: int, verb: str) -> tuple[Allocation, Array] | None:
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
        found = self._found(addresses, dtype.itemsize, "reads")
        if found is None:
            each = [self.read(np.array([a]), dtype)[0] for a in addresses.ravel().tolist()]
            return np.array(each, dtype).reshape(addresses.shape)
        allocation, places = found
        if _aligned(allocation.data, places, dtype.itemsize):
            return np.asarray(_as(allocation.data, dtype)[places // dtype.itemsize])
        raw = allocation.data[places[..., None] + np.arange(dtype.itemsize)]
        return np.ascontiguousarray(raw).view(dtype)[..., 0]

    def write(self, addresses: Array, values: Array) -> None:
        """Write elements in order: of several at one address the last one remains.

        Raises:
            Fault: if one lies outside of all allocations, or may not be written.
        """
        if not addresses.size:
            return
        dtype = values.dtype
        found = self._found(addresses, dtype.itemsize, "writes")
        if found is None:
            for a, v in zip(addresses.ravel().tolist(), values.ravel()):
                self.write(np.array([a]), np.array([v], dtype))
            return
        allocation, places = found
        if self.watched:
            low, high = self.watched.start - dtype.itemsize, self.watched.stop
            self.is_touched |= bool(((addresses > low) & (addresses < high)).any())
        if not allocation.writable:
            raise Fault(f"writes to '{allocation.name}', which is read-only")
        if _aligned(allocation.data, places, dtype.itemsize):
            _as(allocation.data, dtype)[places // dtype.itemsize] = values
            return
        raw = np.ascontiguousarray(values)[..., None].view(np.uint8)
        allocation.data[places[..., None] + np.arange(dtype.itemsize)] = raw

    def elements(self, base: int, places: Array, element: Element) -> Array:
        """Elements by their indices (int64, any shape) relative to an address.

        Raises:
            Fault: if one lies outside of all allocations.
        """
        if not element.shares_bytes:
            return element.from_memory(self.read(base + places * element.bytes, element.memory))
        bits = places * element.bits
        held = self.read(base + (bits >> 3), np.dtype(np.uint8))
        found = held >> (bits & 7).astype(np.uint8) & np.uint8((1 << element.bits) - 1)
        return found.view(element.dtype) if element.is_float else element.from_memory(found.view(np.int8))

    def set_elements(self, base: int, places: Array, values: Array, element: Element) -> None:
        """Write elements by their numbers; those that share bytes one after the other.

        Raises:
            Fault: if one lies outside of all allocations, or may not be written.
        """
        if not element.shares_bytes:
            self.write(base + places * element.bytes, element.to_memory(values))
            return
        mask = (1 << element.bits) - 1
        patterns = np.ascontiguousarray(values, element.dtype).view(np.uint8)
        for bit, value in zip((places * element.bits).ravel().tolist(), patterns.ravel().tolist()):
            address, shift = np.array([base + (bit >> 3)]), bit & 7
            held = int(self.read(address, np.dtype(np.uint8))[0]) & ~(mask << shift)
            self.write(address, np.array([held | (int(value) & mask) << shift], np.uint8))

    def describe(self, address: int, size: int) -> str:
        """Describe an address relative to the nearest allocation, for messages."""
        if not self.allocations:
            return f"{address:#x} of {self.name}, which has no allocations"
        gaps = [max(a.address - address, address + size - a.address - len(a.data)) for a in self.allocations]
        near = self.allocations[gaps.index(min(gaps))]
        what = f"'{near.name}', which has {len(near.data)} bytes"
        if address < near.address:
            return f"{address:#x} of {self.name}, {near.address - address} bytes before {what}"
        over = address + size - near.address - len(near.data)
        return f"{address:#x} of {self.name}, reaching {over} bytes over the end of {what}"


def _aligned(data: Array, places: Array, size: int) -> bool:
    return size == 1 or (data.ctypes.data % size == 0 and not (places % size).any())


def _as(data: Array, dtype: np.dtype[Any]) -> Array:
    return data[: len(data) // dtype.itemsize * dtype.itemsize].view(dtype)


def attach(memory: Memory, arrays: Sequence[tuple[str, np.ndarray[Any, Any]]]) -> list[int]:
    """Add arrays of the host as allocations in place; arrays that share memory share an allocation.

    Args:
        arrays: names and arrays without negative strides.

    Returns:
        The address of each array's first element.
    """
    spans = [span_of(array) for _, array in arrays]
    addresses = [0] * len(arrays)
    for group in overlapping(spans):
        start, end = min(spans[i][0] for i in group), max(spans[i][1] for i in group)
        name = ", ".join(arrays[i][0] for i in group)
        writable = all(arrays[i][1].flags.writeable for i in group)
        made = memory.place(name, memory_between(start, end), writable)
        for i in group:
            addresses[i] = made.address + spans[i][0] - start
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

    memory: Memory
    base: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Element

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
        return np.asarray(self.base + self.places(indices) * self.element.bytes)

    def places(self, indices: Sequence[Any]) -> Array:
        """The offsets of the elements at indices from the buffer's first element."""
        places = sum((np.asarray(i, np.int64) * s for i, s in zip(indices, self.strides)), np.int64(0))
        return np.asarray(self.offset + places)

    def load(self, indices: Sequence[Any]) -> Array:
        """The elements at indices."""
        return self.memory.elements(self.base, self.places(indices), self.element)

    def store(self, values: Array, indices: Sequence[Any]) -> None:
        """Write the elements at indices, in row-major order of the indices."""
        self.memory.set_elements(self.base, self.places(indices), values, self.element)

    def part(self, offset: int, shape: Sequence[int], strides: Sequence[int]) -> MemRef:
        """A view of the same buffer."""
        return replace(self, offset=offset, shape=tuple(shape), strides=tuple(strides))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of contiguous elements in row-major order."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def allocated(memory: Memory, kind: ir.MemRefType, name: str) -> MemRef:
    """A memref of a static shape in a new allocation.

    Raises:
        Fault: if the shape is dynamic.
    """
    element = element_of(str(kind.element_type))
    if not kind.has_static_shape:
        raise Fault("allocates memory of unknown size", "use a memref with a static shape")
    strides, _ = kind.get_strides_and_offset()
    shape = tuple(kind.shape)
    count = sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if math.prod(shape) else 0
    size = -(-count * element.bits // 8) if element.shares_bytes else count * element.bytes
    made = memory.allocate(name, size)
    return MemRef(memory, made.address, 0, shape, tuple(strides), element)
