"""Device memory: allocations with bounds in one flat address space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py.argument_types import checked
from xegpu_py.engines.faults import AccessFault, aligned
from xegpu_py.numerics.formats import Array

BASE = 0x100000
"""Address of the first byte. Lower addresses are not allocated, so that accesses by null pointers are faults."""

PAGE = 4096
"""Alignment of allocations, and least distance between them."""


@checked
def zeros_aligned(shape: int | Sequence[int], dtype: Any = float) -> np.ndarray[Any, Any]:
    """An array like that of `numpy.zeros`, aligned to 128 bytes.

    The engines accept any array. But numpy's arrays often begin 16 bytes after a cache line boundary of the host, so
    that each row of 64 bytes of a block crosses a boundary, which makes native code slower.

    Raises:
        TypeError, ValueError: if an extent is negative, or numpy has no such type.
    """
    extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if any(n < 0 for n in extents):
        raise ValueError(f"'shape' must be numbers of at least 0, but got {shape!r}")
    try:
        element_dtype = np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"'dtype' must be a type of numpy's, but got {dtype!r}") from None
    if not element_dtype.itemsize or math.prod(extents) >= 1 << 60:
        raise ValueError(f"an array of {dtype!r} cannot have the shape {shape!r}")
    return aligned(math.prod(extents) * element_dtype.itemsize).view(element_dtype).reshape(extents)


_PART = 1 << 20
"""The number of bytes that are copied, or compared with zero, at once."""


def copy_sparse(to: Array, source: Array) -> None:
    """Copy bytes to zeroed memory. Zeros are not written, so that the system need not provide their pages."""
    for start in range(0, len(source), _PART):
        chunk = source[start : start + _PART]
        if chunk.any():
            to[start : start + len(chunk)] = chunk


def _grown(data: Array, size: int) -> Array:
    """A copy of bytes, followed by zeros."""
    grown: Array = np.zeros(size, np.uint8)
    copy_sparse(grown, data)
    return grown


class Buffer(Struct, frozen=True):
    """An allocation.

    Attributes:
        name: its name in messages.
        address: the address of its first byte.
        bytes: its size in bytes.
    """

    name: str
    address: int
    bytes: int


class DeviceMemory:
    """Global memory.

    Attributes:
        data: all of it, uint8.
        buffers: the allocations, by address.
    """

    def __init__(self) -> None:
        self.data: Array = np.zeros(0, np.uint8)
        self.buffers: list[Buffer] = []
        self._cached_bounds: tuple[Array, Array] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._end = 0

    def allocate(self, name: str, size: int) -> Buffer:
        """A new allocation of `size` bytes of zeros."""
        buffer = self._reserve(name, size)
        self.data = _grown(self.data, self._end)
        return buffer

    def _reserve(self, name: str, size: int) -> Buffer:
        """Addresses for an allocation, after all others."""
        buffer = Buffer(name, BASE + self._end, size)
        # The gap after it detects accesses beyond its end.
        self._end += (size + PAGE - 1) // PAGE * PAGE + PAGE
        self.buffers.append(buffer)
        return buffer

    @property
    def _bounds(self) -> tuple[Array, Array]:
        """Start and end offsets of the allocations. Launches of native code do not ask."""
        if len(self._cached_bounds[0]) != len(self.buffers):
            starts = np.array([b.address - BASE for b in self.buffers], np.int64)
            self._cached_bounds = starts, starts + [b.bytes for b in self.buffers]
        return self._cached_bounds

    def copy(self) -> DeviceMemory:
        """A copy: the same allocations with the same contents."""
        clone = DeviceMemory()
        clone.data, clone.buffers = _grown(self.data, len(self.data)), list(self.buffers)
        clone._cached_bounds, clone._end = self._cached_bounds, self._end
        return clone

    def assign(self, other: DeviceMemory, name: str | None = None) -> None:
        """Copy all allocations from another memory, which has the same, or only those of a name."""
        for buffer in self.buffers:
            if name in (None, buffer.name):
                self.bytes_of(buffer)[:] = other.bytes_of(buffer)

    def bytes_of(self, buffer: Buffer) -> Array:
        """The bytes of an allocation, uint8; writing them writes the memory."""
        start = buffer.address - BASE
        return self.data[start : start + buffer.bytes]

    def ranges(self) -> list[tuple[int, int, int]]:
        """See `engines.faults.Memory`."""
        return [(b.address, b.bytes, self._host(i) - b.address) for i, b in enumerate(self.buffers)]

    def _host(self, index: int) -> int:
        return int(self.data.ctypes.data) + self.buffers[index].address - BASE

    def locate(self, addresses: Array, size: int, verb: str, required_bytes: Array | None = None) -> Array:
        """See `engines.faults.Memory`."""
        offsets: Array = (addresses - np.uint64(BASE)).view(np.int64)
        out_of_bounds = self._outside(offsets, size if required_bytes is None else required_bytes)
        if out_of_bounds.any():
            index = int(np.argmax(out_of_bounds.ravel()))
            raise AccessFault(index, f"{verb} {size} bytes at {self._describe(int(addresses.ravel()[index]), size)}")
        return offsets

    def byte_name(self, offset: int) -> str:
        """See `engines.faults.Memory`."""
        buffer = self.buffers[int(np.searchsorted(self._bounds[0], offset, "right")) - 1]
        return f"byte {offset - (buffer.address - BASE)} of '{buffer.name}'"

    def surface(self, bases: Array, extents: Array, access: str) -> Array:
        """See `engines.faults.Memory`."""
        offsets: Array = (bases - np.uint64(BASE)).view(np.int64)
        out_of_bounds = self._outside(offsets, extents)
        if out_of_bounds.any():
            index = int(np.argmax(out_of_bounds))
            where = self._describe(int(bases[index]), int(extents[index]))
            raise AccessFault(index, f"{access} of {int(extents[index])} bytes at {where}")
        return offsets

    def _outside(self, offsets: Array, size: int | Array) -> Array:
        if not self.buffers:
            return np.ones(offsets.shape, bool)
        allocation_starts, allocation_ends = self._bounds
        if len(self.buffers) == 1:
            return np.asarray((offsets < allocation_starts[0]) | (offsets > allocation_ends[0] - size))
        allocation = np.searchsorted(allocation_starts, offsets, "right") - 1
        return np.asarray((allocation < 0) | (offsets > allocation_ends[allocation] - size))

    def _describe(self, address: int, size: int) -> str:
        """An address relative to the nearest allocation, for messages."""
        if not self.buffers:
            return f"{address:#x}; there is no buffer"

        def distance(b: Buffer) -> int:
            return max(b.address - address, address + size - (b.address + b.bytes), 0)

        nearest = min(self.buffers, key=distance)
        bytes_after, bytes_before = address + size - (nearest.address + nearest.bytes), nearest.address - address
        allocation_text = f"'{nearest.name}', which has {nearest.bytes} bytes"
        if distance(nearest) > 1 << 32:
            return f"{address:#x}, which is in no buffer"
        if bytes_before > 0:
            return f"{address:#x}, {bytes_before} bytes before {allocation_text}"
        return f"{address:#x}, reaching {bytes_after} bytes over the end of {allocation_text}"


class HostMemory(DeviceMemory):
    """Global memory whose allocations are arrays of the host, in place. Only native code accesses them.

    Device addresses are those that `DeviceMemory` would assign.
    """

    def __init__(self) -> None:
        super().__init__()
        self._arrays: list[Array] = []
        self._hosts: list[int] = []

    def attach(self, name: str, array: Array) -> Buffer:
        """An allocation that is a contiguous array of bytes."""
        self._arrays.append(array)
        # As `array.ctypes.data`, in a third of the time.
        self._hosts.append(int(array.__array_interface__["data"][0]))
        return self._reserve(name, array.nbytes)

    def allocate(self, name: str, size: int) -> Buffer:
        """A new allocation of `size` bytes of zeros."""
        return self.attach(name, aligned(size))

    def copy(self) -> DeviceMemory:
        """A copy of its contents, which the interpreter can access: the same allocations."""
        clone = DeviceMemory()
        clone.data, clone.buffers, clone._end = np.zeros(self._end, np.uint8), list(self.buffers), self._end
        for buffer in self.buffers:
            copy_sparse(clone.bytes_of(buffer), self.bytes_of(buffer))
        return clone

    def bytes_of(self, buffer: Buffer) -> Array:
        """The bytes of an allocation, uint8; writing them writes the memory."""
        return self._arrays[self.buffers.index(buffer)]

    def _host(self, index: int) -> int:
        return self._hosts[index]
