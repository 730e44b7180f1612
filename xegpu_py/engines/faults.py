"""Memory of a kernel, and the faults of accesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct

from xegpu_py.ir.diagnostics import Position
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program

# The interface of memory that engines use, and the errors of running kernels.

APART = 128
"""The alignment and distance of arrays, in bytes: processors prefetch pairs of cache lines."""


def aligned(size: int) -> Array:
    """Zero bytes, uint8[size], that begin at a multiple of `APART` and share no block of `APART` bytes with other data.

    So aligned loads do not cross cache lines, and there is no false sharing between threads that write to different
    arrays.
    """
    raw = np.zeros(size + 2 * APART, np.uint8)
    start = -raw.ctypes.data % APART
    return raw[start : start + size]


class AccessFault(Exception):
    """An access that memory refuses.

    Attributes:
        index: the flat index of the address among the addresses of the request.
        reason: the fault as a clause: "reads 4 bytes at 0x10, ...".
        notes: the rules that it breaks, and what GPUs do.
    """

    def __init__(self, index: int, reason: str, notes: Sequence[str] = ()) -> None:
        """A refusal of an access."""
        super().__init__(index, reason, notes)
        self.index, self.reason, self.notes = index, reason, notes


class GlobalMemory(Protocol):
    """Global memory: a flat array of bytes in which only allocations can be accessed."""

    data: Array
    """The whole memory as uint8. `locate` returns offsets into this array."""

    def ranges(self) -> list[tuple[int, int, int]]:
        """The address and size of each allocation, and the difference between its host address and its address."""

    def locate(self, addresses: Array, size: int, verb: str, required_bytes: Array | None = None) -> Array:
        """Offsets into `data` of addresses; the `size` bytes at each address must be in one allocation.

        Args:
            addresses: uint64, any shape.
            verb: the kind of access for the message, such as "reads".
            required_bytes: the number of bytes at each address that must be in an allocation, if not all `size` bytes.

        Raises:
            AccessFault: for the first address that is in no allocation.
        """

    def byte_name(self, offset: int) -> str:
        """The name of a byte of `data`: "byte 4 of '%A'"."""

    def surface(self, bases: Array, extents: Array, access: str) -> Array:
        """Offsets into `data` of surfaces of 2D block messages, or of what messages access of them.

        Args:
            bases: uint64[threads], addresses of their first bytes.
            extents: int64[threads], their sizes in bytes.
            access: the access and of what it is, for the message: `reads a surface`.

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
        out_of_bounds = (wide < 0) | (wide + size > self.bytes)
        if out_of_bounds.any():
            index = int(np.argmax(out_of_bounds.ravel()))
            at = int(wide.ravel()[index])
            raise AccessFault(
                index, f"{verb} {size} bytes at {at:#x} of the shared local memory, which has {self.bytes} bytes"
            )
        return wide + (groups * self.bytes)[:, None]


class RuntimeFault(Exception):
    """Running a kernel failed.

    Attributes:
        message: the error.
        notes: the place of the failure: kernel, workgroup, thread, lane, instruction.
        position: the instruction's position in its source.
        elsewhere: a note on another instruction, and the position of that instruction in the source.
        thread: the name of the thread that failed; empty if several did.
    """

    def __init__(
        self,
        message: str,
        notes: list[str],
        position: Position,
        elsewhere: tuple[str, Position] | None = None,
        thread: str = "",
    ) -> None:
        """A failure."""
        super().__init__(message, notes, position, elsewhere, thread)
        self.message, self.notes, self.position = message, notes, position
        self.elsewhere, self.thread = elsewhere, thread


UGM, SLM = 1, 2
"""The memories, by the numbers of their clocks. Clock 0 is the clock of reads. A clock has the time up to which the
accesses of a thread are known to have happened before: `Races.note` counts time."""


def granule_bytes(program: Program, slm: bool, loads: bool = True) -> int:
    """The largest granule in bytes that every aligned message to a memory accesses wholly or not at all.

    Args:
        loads: whether messages count that only load.
    """
    sizes = []
    for inst in program.instructions:
        category = INSTRUCTIONS[inst.name].category
        accesses = category in ("store", "atomic") or (loads and category == "load")
        if accesses and slm == (inst.values.get("sfid") == "slm"):
            sizes.append(inst["block"].size // 8 if "block" in inst.values else inst["data"].memory_bytes)
    return min(sizes, default=1)
