"""The caller's arrays in device memory while a kernel runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py.numerics.arrays import check_numbers, memory_between, overlapping, span_of
from xegpu_py.runtime.memory import Buffer, DeviceMemory, HostMemory, copy_sparse


class _Given(Struct):
    """An array argument: its input's name, its name in messages, and the addresses from `start` up to `end`."""

    name: str
    array: np.ndarray[Any, Any]
    title: str
    start: int
    end: int


class Staged:
    """The array arguments of a launch, copied to device memory and back, as if the kernel worked on them in place.

    An array that is passed twice is one buffer; other arrays that share elements are an error. If an array lies between
    the rows of a strided array, it does on the device too. The bytes between the rows of a strided array can be
    accessed, as on a GPU, and are copied back too.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._given: list[_Given] = []
        self._packed: list[tuple[_Given, Buffer]] = []
        self._groups: list[tuple[list[_Given], int, Buffer]] = []
        self._in_place: list[tuple[list[_Given], int, Buffer]] = []

    def add(self, name: str, array: np.ndarray[Any, Any], title: str, packed: bool = False) -> None:
        """Add the array of an input.

        Args:
            packed: whether the kernel accesses the elements of a strided array as contiguous, in row-major order.

        Raises:
            TypeError: if it has a mask, or its elements are not numbers in native byte order.
            ValueError: if it has a negative stride.
        """
        check_numbers(array, title)
        if packed and not array.flags.c_contiguous:
            buffer = self._memory.allocate(name, array.nbytes)
            self._memory.bytes_of(buffer)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._packed.append((_Given(name, array, title, 0, 0), buffer))
            return
        try:
            self._given.append(_Given(name, array, title, *span_of(array)))
        except ValueError as e:
            raise ValueError(f"{title} {e}") from None

    def addresses(self) -> dict[str, bytes]:
        """Move all arrays to device memory; returns their addresses by the names of their inputs.

        Arrays are copied, except those that native code can access in place.

        Raises:
            ValueError: if different arrays overlap, or a packed array shares memory with another one.
        """
        found = {given.name: np.uint64(buffer.address).tobytes() for given, buffer in self._packed}
        for given, _ in self._packed:
            for other in [*self._given, *(g for g, _ in self._packed if g is not given)]:
                if _share_elements(given.array, other.array):
                    raise ValueError(f"{given.title} shares memory with {other.title}, and is not contiguous")
        for numbers in overlapping([(g.start, g.end) for g in self._given]):
            members = [self._given[i] for i in numbers]
            _refuse_overlaps(members)
            start, end = min(m.start for m in members), max(m.end for m in members)
            names = ", ".join(m.name for m in members)
            if (
                isinstance(self._memory, HostMemory)
                and start % 8 == 0
                and all(m.array.flags.writeable for m in members)
            ):
                self._in_place.append((members, start, self._memory.attach(names, memory_between(start, end))))
                continue
            buffer = self._memory.allocate(names, end - start)
            copy_sparse(self._memory.bytes_of(buffer), memory_between(start, end))
            self._groups.append((members, start, buffer))
        return found | {
            m.name: np.uint64(buffer.address + m.start - start).tobytes()
            for members, start, buffer in [*self._groups, *self._in_place]
            for m in members
        }

    @property
    def in_place(self) -> bool:
        """Whether the kernel accesses all arrays where they are."""
        return not self._packed and not self._groups

    def write_back(self, kernel: str) -> None:
        """Copy the arrays that the kernel changed back.

        Raises:
            ValueError: if a read-only array has changed. Nothing is copied then.
        """
        packed = []
        for given, buffer in self._packed:
            elements = self._memory.bytes_of(buffer).view(given.array.dtype).reshape(given.array.shape)
            if elements.tobytes() != given.array.tobytes():
                packed.append((given.array, elements))
                if not given.array.flags.writeable:
                    raise ValueError(f"{given.title} is read-only, but kernel '{kernel}' writes to it")
        changed = []
        for members, start, buffer in self._groups:
            now, before = self._memory.bytes_of(buffer), memory_between(start, start + buffer.bytes)
            if not np.array_equal(now, before):
                changed.append((members, now, before))
                for m in members:
                    own = slice(m.start - start, m.end - start)
                    if not m.array.flags.writeable and not np.array_equal(now[own], before[own]):
                        raise ValueError(f"{m.title} is read-only, but kernel '{kernel}' writes to it")
        for _, now, before in changed:
            before[:] = now
        for array, elements in packed:
            array[...] = elements


def _refuse_overlaps(members: list[_Given]) -> None:
    """Check that each two arrays are the same memory, or share no elements.

    Raises:
        ValueError: if two different arrays share elements.
    """
    for a, b in itertools.combinations(members, 2):
        if (a.start, a.end) != (b.start, b.end) and _share_elements(a.array, b.array):
            raise ValueError(f"{b.title} overlaps {a.title.rstrip(',')}; give one array for both, or a copy")


def _share_elements(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether arrays have an element in common. True also if that takes too long to find out."""
    most: Any = 1 << 20
    try:
        return np.shares_memory(a, b, max_work=most)
    except np.exceptions.TooHardError:
        return True
