"""Detection of races: the history of a launch's accesses, and which of them are ordered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xegpu_py.engines.faults import SLM, UGM, granule_bytes
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction, Program

# Race detection: unordered accesses of one byte by two threads, at least one of them a write.
#
# Two threads of a workgroup are ordered by a barrier: what one did before its signal comes before what the other does
# after its wait. Its writes are visible only if there is a fence of that memory between the write and the signal. Only
# atomics order threads of different workgroups: what a thread did before an atomic comes before what another one does
# after its own atomic of the same place. Writes are visible only if there is a fence whose scope is larger than the
# workgroup. Writes that do not change memory, or that all write the same value, are no races.

_READ, _WRITE, _ATOMIC = range(3)

_KINDS = {"load": _READ, "store": _WRITE, "atomic": _ATOMIC}

_SLOTS = {_READ: slice(1, 3), _ATOMIC: slice(3, 5)}
"""The slots of the latest accesses of a granule by two threads. The latest write is in slot 0."""

_OPPONENTS = {_READ: (0, 3, 4), _WRITE: (1, 2, 3, 4), _ATOMIC: (0, 1, 2)}


class RaceFault(Exception):
    """Two accesses race.

    Attributes:
        thread, other: the numbers in the launch of the threads of the current and of the earlier access.
        earlier: the instruction of the earlier access.
        slm: whether the place is in shared local memory; otherwise it is in global memory.
        offset: the offset in that memory of a byte that both access.
        unfenced: whether there is a barrier between the accesses, but no fence before the barrier.
    """

    def __init__(self, thread: int, other: int, earlier: Instruction, slm: bool, offset: int, unfenced: bool) -> None:
        super().__init__(thread, other, earlier, slm, offset, unfenced)
        self.thread, self.other, self.earlier = thread, other, earlier
        self.slm, self.offset, self.unfenced = slm, offset, unfenced


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
        first_event = self.count
        self.count += size
        return first_event


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
        self._time = 0
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
        groups, thread_in_group = np.divmod(rows, self._group_size)
        self._clocks[0, rows, thread_in_group] = self._time
        acquired = self._acquired[:, self._first() + rows, None]
        known = np.concatenate([self._clocks[:, rows], acquired], axis=2)
        np.maximum.at(self._gathering, (groups, barrier), known.transpose(1, 0, 2))
        complete = phases > self._phases
        self._complete[complete] = self._gathering[complete]
        self._phases = phases.copy()

    def passed(self, rows: Array, barrier: Array) -> None:
        """Record that threads of the batch have passed their waits."""
        completed_phases = self._complete[rows // self._group_size, barrier].transpose(1, 0, 2)
        self._clocks[:, rows] = np.maximum(self._clocks[:, rows], completed_phases[:, :, :-1])
        threads = self._first() + rows
        self._acquired[:, threads] = np.maximum(self._acquired[:, threads], completed_phases[:, :, -1])

    def fence(self, rows: Array, slm: bool, wide: bool) -> None:
        """Record that threads of the batch have fenced a memory.

        Args:
            wide: whether the fence orders accesses for other workgroups too.
        """
        memory = SLM if slm else UGM
        self._clocks[memory, rows, rows % self._group_size] = self._time
        for fenced in self._fenced[: 1 + wide, memory]:
            # Accesses of other threads before a barrier are fenced too.
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
        memory, access_kind = SLM if slm else UGM, _KINDS[INSTRUCTIONS[inst.name].category]
        self._time += 1
        granule = self._granules[memory]
        granules, access_index = self._granules_of(offsets, size, granule)
        if access_kind == _ATOMIC:
            self._synchronize(rows[access_index], granules, memory)
        threads, numbers = np.unique(rows, return_inverse=True)
        clock = 0 if access_kind == _READ else memory
        first_event = self._events.add(self._first() + threads, clock, self._time, self._number(inst))
        events, threads_of_granules = first_event + numbers.ravel()[access_index], rows[access_index]
        latest = self._latest[memory]
        if values is not None:
            at = granules[:, None] * granule + np.arange(granule)
            stored_bytes = values[access_index[:, None], at - offsets[access_index][:, None]]
            changes = (data[at] != stored_bytes).any(axis=1)
            self._compare(latest[0][granules[changes]], threads_of_granules[changes], granules[changes], memory)
        for slot in _OPPONENTS[access_kind]:
            self._compare(latest[slot][granules], threads_of_granules, granules, memory)
        if values is not None:
            latest[1:, granules] = -1
            latest[0][granules] = events
            differs = (stored_bytes != stored_bytes[_last_equal(granules)]).any(axis=1)
            self._compare(latest[0][granules[differs]], threads_of_granules[differs], granules[differs], memory)
        else:
            self._keep(latest[_SLOTS[access_kind]], granules, events, threads_of_granules)

    def _granules_of(self, offsets: Array, size: int, granule: int) -> tuple[Array, Array]:
        """The granules of accesses, and for each granule its access."""
        starts, ends = -(-offsets // granule), (offsets + size) // granule
        spread = starts[:, None] + np.arange(-(-size // granule))
        inside = spread < ends[:, None]
        access_index = np.broadcast_to(np.arange(len(offsets))[:, None], spread.shape)
        return spread[inside], access_index[inside]

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

    def _synchronize(self, rows_of_atomics: Array, granules: Array, memory: int) -> None:
        """Acquire what other threads released by their latest atomics of the same granules, and release."""
        # Simultaneous atomics of one granule come in the order of their threads.
        order = np.lexsort((rows_of_atomics, granules))
        thread_numbers, at = self._first() + rows_of_atomics[order], granules[order]
        successors = np.flatnonzero((at[1:] == at[:-1]) & (thread_numbers[1:] != thread_numbers[:-1])) + 1
        np.maximum.at(self._acquired[memory], thread_numbers[successors], self._time)
        for slot in self._latest[memory][_SLOTS[_ATOMIC]]:
            thread, _, when, _ = self._events.fields[:, slot[at]]
            by_other = (slot[at] >= 0) & (thread != thread_numbers)
            np.maximum.at(self._acquired[memory], thread_numbers[by_other], when[by_other])
        rows = np.unique(rows_of_atomics)
        threads = self._known_to(rows)
        wide = self._fenced[int(memory == UGM)]
        for clock, released in enumerate(self._released[memory]):
            known = self._clocks[clock, rows]
            np.maximum.at(released, threads, known if clock == 0 else np.minimum(known, wide[clock, threads]))
        self._released[memory, 0, self._first() + rows] = self._time

    def _compare(self, old_events: Array, threads: Array, granules: Array, memory: int) -> None:
        """Compare accesses by threads `threads` of the batch with earlier ones of the same granules, -1 for none."""
        indices = np.flatnonzero(old_events >= 0)
        if not len(indices):
            return
        threads = threads[indices]
        thread, clock, when, inst = self._events.fields[:, old_events[indices]]
        thread_numbers = threads + self._first()
        (group, other_in_group), group_of_thread = (
            np.divmod(thread, self._group_size),
            thread_numbers // self._group_size,
        )
        same_group = group == group_of_thread
        ordered = (thread == thread_numbers) | (same_group & (self._clocks[clock, threads, other_in_group] >= when))
        for atomics, counts in ((UGM, True), (SLM, same_group)):
            released = np.minimum(self._released[atomics, clock, thread], self._acquired[atomics, thread_numbers])
            ordered |= counts & (when <= released)
        if ordered.all():
            return
        i = int(np.argmin(ordered))
        raise RaceFault(
            int(thread_numbers[i]),
            int(thread[i]),
            self._instructions[int(inst[i])],
            memory == SLM,
            int(granules[indices[i]]) * self._granules[memory],
            bool(same_group[i] and self._clocks[0, threads[i], other_in_group[i]] >= when[i]),
        )

    def _keep(self, latest: Array, granules: Array, events: Array, threads: Array) -> None:
        """Record accesses; each granule keeps the latest of two threads."""
        latest_event, other_event = latest
        latest_before, older_event = latest_event[granules], other_event[granules]
        # Of simultaneous accesses of one granule the first and the last are kept.
        other_event[granules[::-1]] = events[::-1]
        latest_event[granules] = events
        single = other_event[granules] == latest_event[granules]
        same = self._events.fields[0, latest_before] == threads + self._first()
        replaced = np.where((latest_before >= 0) & ~same, latest_before, older_event)
        other_event[granules[single]] = replaced[single]


def _last_equal(granules: Array) -> Array:
    """Return, for each granule, the index of the last equal granule."""
    _, group_index = np.unique(granules, return_inverse=True)
    last_index = np.zeros(len(granules), np.int64)
    last_index[group_index] = np.arange(len(granules))
    return last_index[group_index]


def _nothing(size: int, granule: int) -> Array:
    return np.full((5, -(-size // granule)), -1, np.int32)
