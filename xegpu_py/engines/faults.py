"""What a kernel may access, and which faults are reported: bounds and races."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from msgspec import Struct

from xegpu_py.ir.diagnostics import Position
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction, Program

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
        """The name of a byte of `data`: "byte 4 of '%A'"."""

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
        return wide + (groups * self.bytes)[:, None]


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
        position: Position,
        elsewhere: tuple[str, Position] | None = None,
        thread: str = "",
    ) -> None:
        """A failure."""
        super().__init__(message, notes, position, elsewhere, thread)
        self.message, self.notes, self.position = message, notes, position
        self.elsewhere, self.thread = elsewhere, thread


# Race detection: unordered accesses of one byte by two threads, at least one of them a write.
#
# Two threads of a workgroup are ordered by a barrier: what one did before its signal comes before what the other does
# after its wait. Its writes are visible only if there is a fence of that memory between the write and the signal. Only
# atomics order threads of different workgroups: what a thread did before an atomic comes before what another one does
# after its own atomic of the same place. Writes are visible only if there is a fence whose scope is larger than the
# workgroup. Writes that do not change memory, or that all write the same value, are no races.

UGM, SLM = 1, 2
"""The memories, by the numbers of their clocks. Clock 0 is the clock of reads. A clock has the time up to which the
accesses of a thread are known to have happened before: `Races.note` counts time."""

_READ, _WRITE, _ATOMIC = range(3)

_KINDS = {"load": _READ, "store": _WRITE, "atomic": _ATOMIC}

_SLOTS = {_READ: slice(1, 3), _ATOMIC: slice(3, 5)}
"""The slots of the latest accesses of a granule by two threads. The latest write is in slot 0."""

_OPPONENTS = {_READ: (0, 3, 4), _WRITE: (1, 2, 3, 4), _ATOMIC: (0, 1, 2)}


@dataclass
class RaceFault(Exception):
    """Two accesses race.

    Attributes:
        thread, other: the numbers in the launch of the threads of the current and of the earlier access.
        earlier: the instruction of the earlier access.
        slm: whether the place is in shared local memory; otherwise it is in global memory.
        place: the offset in that memory of a byte that both access.
        unfenced: whether there is a barrier between the accesses, but no fence before the barrier.
    """

    thread: int
    other: int
    earlier: Instruction
    slm: bool
    place: int
    unfenced: bool


class _Events:
    """The accesses so far: thread, clock with which later accesses are compared, time, instruction."""

    def __init__(self) -> None:
        self.count = 0
        self.fields = np.zeros((4, 1024), np.int64)

    def add(self, *columns: Array | int) -> int:
        """Add events with these fields; return the number of the first event."""
        size = len(np.atleast_1d(columns[0]))
        while self.count + size > self.fields.shape[1]:
            self.fields = np.concatenate([self.fields, np.zeros_like(self.fields)], axis=1)
        for field, column in zip(self.fields, columns):
            field[self.count : self.count + size] = column
        first = self.count
        self.count += size
        return first


class Races:
    """The history of memory accesses of a launch.

    Args:
        program: the kernel.
        group_size: threads of a workgroup.
        groups: workgroups of the launch.
        memory_bytes: bytes of global memory.
        name_thread: names a thread by its number in the launch.
    """

    def __init__(
        self, program: Program, group_size: int, groups: int, memory_bytes: int, name_thread: Callable[[int], str]
    ) -> None:
        self.name_thread = name_thread
        self._group_size = group_size
        self._granules = {UGM: granule_bytes(program, False), SLM: granule_bytes(program, True)}
        self._instructions: list[Instruction] = []
        self._numbers: dict[int, int] = {}
        self._events = _Events()
        self._now = 0
        self._latest = {UGM: _nothing(memory_bytes, self._granules[UGM])}
        # For each thread of the launch and memory of atomics: the time up to which its accesses of each clock are
        # released, and the time up to which it has acquired what others released.
        threads = groups * group_size
        self._released = np.full((3, 3, threads), -1, np.int64)
        self._acquired = np.full((3, threads), -1, np.int64)
        self._fenced = np.full((2, 3, threads), -1, np.int64)

    def begin(self, first_group: int, groups: int, barriers: int, slm_bytes: int) -> None:
        """Begin the next workgroups, from number `first_group` on."""
        size = self._group_size
        self._first_group = first_group
        self._clocks = np.full((3, groups * size, size), -1, np.int64)
        # Of each barrier the clocks of those that have signalled, and behind them what they have acquired.
        self._gathering = np.full((groups, barriers, 3, size + 1), -1, np.int64)
        self._complete = self._gathering.copy()
        self._phases = np.zeros((groups, barriers), np.int64)
        self._latest[SLM] = _nothing(groups * slm_bytes, self._granules[SLM])

    def signalled(self, rows: Array, barrier: Array, phases: Array) -> None:
        """Record that threads of the batch have signalled barriers, which completes `phases`."""
        groups, own = np.divmod(rows, self._group_size)
        self._clocks[0, rows, own] = self._now
        acquired = self._acquired[:, self._first() + rows, None]
        known = np.concatenate([self._clocks[:, rows], acquired], axis=2)
        np.maximum.at(self._gathering, (groups, barrier), known.transpose(1, 0, 2))
        done = phases > self._phases
        self._complete[done] = self._gathering[done]
        self._phases = phases.copy()

    def passed(self, rows: Array, barrier: Array) -> None:
        """Record that threads of the batch have passed their waits."""
        known = self._complete[rows // self._group_size, barrier].transpose(1, 0, 2)
        self._clocks[:, rows] = np.maximum(self._clocks[:, rows], known[:, :, :-1])
        threads = self._first() + rows
        self._acquired[:, threads] = np.maximum(self._acquired[:, threads], known[:, :, -1])

    def fence(self, rows: Array, slm: bool, wide: bool) -> None:
        """Record that threads of the batch have fenced a memory.

        Args:
            wide: whether the fence orders accesses for other workgroups too.
        """
        memory = SLM if slm else UGM
        self._clocks[memory, rows, rows % self._group_size] = self._now
        for fenced in self._fenced[: 1 + wide, memory]:
            # What other threads did before a barrier is fenced too.
            np.maximum.at(fenced, self._known_to(rows), self._clocks[memory, rows])

    def note(
        self,
        inst: Instruction,
        rows: Array,
        offsets: Array,
        size: int,
        slm: bool,
        data: Array,
        values: Array | None = None,
    ) -> None:
        """Compare accesses with earlier ones, and record them.

        Args:
            rows: int64[accesses], threads of the batch.
            offsets: int64[accesses], offsets in global memory, or in the shared local memory of all workgroups of the
                batch.
            size: bytes of each access.
            slm: whether the accesses are to shared local memory.
            data: uint8[bytes], the memory before the accesses.
            values: uint8[accesses, size], the bytes that a store writes.

        Raises:
            RaceFault: if an access races with another.
        """
        if not len(rows):
            return
        memory, kind = SLM if slm else UGM, _KINDS[INSTRUCTIONS[inst.name].category]
        self._now += 1
        granule = self._granules[memory]
        places, which = self._places(offsets, size, granule)
        if kind == _ATOMIC:
            self._synchronize(rows[which], places, memory)
        threads, numbers = np.unique(rows, return_inverse=True)
        clock = 0 if kind == _READ else memory
        first = self._events.add(self._first() + threads, clock, self._now, self._number(inst))
        found, who = first + numbers.ravel()[which], rows[which]
        latest = self._latest[memory]
        if values is not None:
            at = places[:, None] * granule + np.arange(granule)
            new = values[which[:, None], at - offsets[which][:, None]]
            changes = (data[at] != new).any(axis=1)
            self._compare(latest[0][places[changes]], who[changes], places[changes], memory)
        for slot in _OPPONENTS[kind]:
            self._compare(latest[slot][places], who, places, memory)
        if values is not None:
            latest[1:, places] = -1
            latest[0][places] = found
            differs = (new != new[_last(places)]).any(axis=1)
            self._compare(latest[0][places[differs]], who[differs], places[differs], memory)
        else:
            self._keep(latest[_SLOTS[kind]], places, found, who)

    def _places(self, offsets: Array, size: int, granule: int) -> tuple[Array, Array]:
        """The granules of accesses, and for each granule its access."""
        starts, ends = -(-offsets // granule), (offsets + size) // granule
        spread = starts[:, None] + np.arange(-(-size // granule))
        inside = spread < ends[:, None]
        which = np.broadcast_to(np.arange(len(offsets))[:, None], spread.shape)
        return spread[inside], which[inside]

    def _number(self, inst: Instruction) -> int:
        number = self._numbers.get(id(inst))
        if number is None:
            number = self._numbers[id(inst)] = len(self._instructions)
            self._instructions.append(inst)
        return number

    def _first(self) -> int:
        """The number in the launch of the batch's first thread."""
        return self._first_group * self._group_size

    def _known_to(self, rows: Array) -> Array:
        """The numbers in the launch of all threads of the workgroup of each thread."""
        start = self._first() + rows - rows % self._group_size
        return start[:, None] + np.arange(self._group_size)

    def _synchronize(self, who: Array, places: Array, memory: int) -> None:
        """Acquire what other threads released by their latest atomics of the same places, and release."""
        # Simultaneous atomics of one place come in the order of their threads.
        order = np.lexsort((who, places))
        mine, at = self._first() + who[order], places[order]
        after = np.flatnonzero((at[1:] == at[:-1]) & (mine[1:] != mine[:-1])) + 1
        np.maximum.at(self._acquired[memory], mine[after], self._now)
        for slot in self._latest[memory][_SLOTS[_ATOMIC]]:
            thread, _, when, _ = self._events.fields[:, slot[at]]
            other = (slot[at] >= 0) & (thread != mine)
            np.maximum.at(self._acquired[memory], mine[other], when[other])
        rows = np.unique(who)
        threads = self._known_to(rows)
        wide = self._fenced[int(memory == UGM)]
        for clock, released in enumerate(self._released[memory]):
            known = self._clocks[clock, rows]
            np.maximum.at(released, threads, known if clock == 0 else np.minimum(known, wide[clock, threads]))
        self._released[memory, 0, self._first() + rows] = self._now

    def _compare(self, old: Array, who: Array, places: Array, memory: int) -> None:
        """Compare accesses by threads `who` of the batch with earlier ones of the same granules, -1 for none."""
        found = np.flatnonzero(old >= 0)
        if not len(found):
            return
        who = who[found]
        thread, clock, when, inst = self._events.fields[:, old[found]]
        mine = who + self._first()
        (group, own), here = np.divmod(thread, self._group_size), mine // self._group_size
        together = group == here
        ordered = (thread == mine) | (together & (self._clocks[clock, who, own] >= when))
        for atomics, counts in ((UGM, True), (SLM, together)):
            released = np.minimum(self._released[atomics, clock, thread], self._acquired[atomics, mine])
            ordered |= counts & (when <= released)
        if ordered.all():
            return
        i = int(np.argmin(ordered))
        raise RaceFault(
            int(mine[i]),
            int(thread[i]),
            self._instructions[int(inst[i])],
            memory == SLM,
            int(places[found[i]]) * self._granules[memory],
            bool(together[i] and self._clocks[0, who[i], own[i]] >= when[i]),
        )

    def _keep(self, latest: Array, places: Array, found: Array, who: Array) -> None:
        """Record accesses; each granule keeps the latest of two threads."""
        one, two = latest
        before, older = one[places], two[places]
        # Of simultaneous accesses of one granule the first and the last are kept.
        two[places[::-1]] = found[::-1]
        one[places] = found
        single = two[places] == one[places]
        same = self._events.fields[0, before] == who + self._first()
        rest = np.where((before >= 0) & ~same, before, older)
        two[places[single]] = rest[single]


def _last(places: Array) -> Array:
    """For each granule the index of the last equal one."""
    _, which = np.unique(places, return_inverse=True)
    last = np.zeros(len(places), np.int64)
    last[which] = np.arange(len(places))
    return last[which]


def _nothing(size: int, granule: int) -> Array:
    return np.full((5, -(-size // granule)), -1, np.int32)


def granule_bytes(program: Program, slm: bool, loads: bool = True) -> int:
    """The largest granule in bytes that every aligned message to a memory accesses wholly or not at all.

    Args:
        loads: whether messages count that only load.
    """
    sizes = []
    for inst in program.instructions:
        category = INSTRUCTIONS[inst.name].category
        if category in _KINDS and (loads or category != "load") and slm == (inst.values.get("sfid") == "slm"):
            sizes.append(inst["block"].size // 8 if "block" in inst.values else inst["data"].memory_bytes)
    return min(sizes, default=1)
