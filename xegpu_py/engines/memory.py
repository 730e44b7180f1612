"""The interface of memory that engines use, and the errors of running kernels."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from msgspec import Struct

from xegpu_py.numerics.formats import Array

APART = 128
"""The alignment and distance of arrays, in bytes: processors prefetch pairs of cache lines."""


def aligned(size: int) -> Array:
    """Zero bytes, uint8[size], that begin at a multiple of `APART` and share no block of `APART` bytes with other data.

    So aligned loads do not cross cache lines, and there is no false sharing between threads that write to different
    arrays.
    """
    raw = np.zeros(size + 2 * APART, np.uint8)
    start = -raw.ctypes.data % APART
    found: Array = raw[start : start + size]
    return found


class AccessFault(Exception):
    """An access that memory refuses.

    Attributes:
        index: the flat index of the address among the addresses of the request.
        reason: what is wrong, as a clause: "reads 4 bytes at 0x10, ...".
    """

    def __init__(self, index: int, reason: str) -> None:
        """A refusal of an access."""
        super().__init__(index, reason)
        self.index, self.reason = index, reason


class Memory(Protocol):
    """Global memory: a flat array of bytes in which only allocations can be accessed."""

    data: Array
    """The whole memory as uint8. `locate` returns offsets into this array."""

    def ranges(self) -> list[tuple[int, int, int]]:
        """The address and size of each allocation, and the difference between its host address and its address."""

    def locate(self, addresses: Array, size: int, verb: str, needed: Array | None = None) -> Array:
        """Offsets into `data` of addresses; the `size` bytes at each address must be in one allocation.

        Args:
            addresses: uint64, any shape.
            verb: the kind of access for the message, such as "reads".
            needed: the number of bytes at each address that must be in an allocation, if not all `size` bytes.

        Raises:
            AccessFault: for the first address that is in no allocation.
        """

    def place(self, offset: int) -> str:
        """The name of a byte of `data`: "byte 4 of 'in0'"."""

    def surface(self, bases: Array, extents: Array, verb: str) -> Array:
        """Offsets into `data` of surfaces of 2D block messages.

        Args:
            bases: uint64[threads], addresses of their first bytes.
            extents: int64[threads], their sizes in bytes.
            verb: the kind of access for the message.

        Raises:
            AccessFault: for the first surface that is not within one allocation.
        """


class LocalMemory(Struct):
    """Shared local memory of several workgroups.

    Attributes:
        data: uint8[workgroups * bytes].
        bytes: bytes of each workgroup.
    """

    data: Array
    bytes: int

    def locate(self, groups: Array, addresses: Array, size: int, verb: str) -> Array:
        """Offsets into `data` of addresses[threads, lanes] of the workgroups groups[threads].

        Raises:
            AccessFault: for the first address at which the memory has fewer than `size` bytes.
        """
        wide = addresses.astype(np.int64)
        bad = (wide < 0) | (wide + size > self.bytes)
        if bad.any():
            index = int(np.argmax(bad.ravel()))
            at = int(wide.ravel()[index])
            raise AccessFault(
                index, f"{verb} {size} bytes at {at:#x} of the shared local memory, which has {self.bytes} bytes"
            )
        offsets: Array = wide + (groups * self.bytes)[:, None]
        return offsets


class RuntimeFault(Exception):
    """Running a kernel failed.

    Attributes:
        message: what is wrong.
        notes: the place of the failure: kernel, workgroup, thread, lane, instruction.
        position: the instruction's position in its source.
        elsewhere: a note on another instruction, and the position of that instruction in the source.
        thread: the name of the thread that failed; empty if several did.
    """

    def __init__(
        self,
        message: str,
        notes: list[str],
        position: object,
        elsewhere: tuple[str, object] | None = None,
        thread: str = "",
    ) -> None:
        """A failure."""
        super().__init__(message, notes, position, elsewhere, thread)
        self.message, self.notes, self.position = message, notes, position
        self.elsewhere, self.thread = elsewhere, thread
