"""Exact counts of a launch: what each instruction executed, and which memory its messages touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from xegpu_py.engines.faults import AccessFault, RuntimeFault
from xegpu_py.engines.jit.checks import Records
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.device_memory import Buffer, DeviceMemory
from xegpu_py.runtime.launch import Grid
from xegpu_py.target import Target
from xegpu_py.visa.assembly import write_statement
from xegpu_py.visa.dataflow import flow_of, liveness_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import BlockShape, DataShape

LINE = 64
"""Bytes of a line of the caches."""

BANKS, BANK_BYTES = 16, 4
"""Banks of the shared local memory, and the bytes of each. Source: Intel's oneAPI GPU Optimization Guide 2025.2."""

STEPS = 1 << 13
"""The number of blocks of the first workgroups that are listed."""

THREADS = 1 << 12
"""The number of hardware threads of adjacent workgroups that are taken to run at the same time; no workgroup of a
target has more."""

KINDS = ("load", "store", "atomic", "prefetch")
"""Kinds of messages. A prefetch is a load without a destination."""

VERBS = {"load": "reads", "store": "writes", "atomic": "changes", "prefetch": "reads"}

# Messages as segments: the bytes of memory that each of their lanes, or each row of a block, touches.


class Segments(Struct, dict=True):
    """The memory that a message accesses in each of several executions.

    Attributes:
        starts, ends: int64[messages, segments], the addresses of the first byte of each, and of the byte after it.
        valid: bool[messages, segments], the segments that exist.
        beyond: the bytes of 2D blocks that lie outside of their surfaces.
    """

    starts: Array
    ends: Array
    valid: Array
    beyond: int = 0

    @cached_property
    def whole(self) -> bool:
        """Whether all segments exist."""
        return bool(self.valid.all())

    @cached_property
    def sizes(self) -> Array:
        """int64[messages, segments], the bytes of each; 0 if it does not exist."""
        sizes: Array = self.ends - self.starts
        return sizes if self.whole else sizes * self.valid

    @cached_property
    def alike(self) -> bool:
        """Whether all messages have segments of the same sizes at the same distances, and all exist."""
        steps = self.starts - self.starts[:, :1]
        return self.whole and bool((steps == steps[0]).all() and (self.sizes == self.sizes[0]).all())

    def existing(self, values: Array) -> Array:
        """The values of the segments that exist, of [messages, segments]."""
        return values.ravel() if self.whole else values[self.valid]


def kind_of(inst: Instruction) -> str:
    """The kind of a message, of `KINDS`."""
    category = INSTRUCTIONS[inst.name].category
    return "prefetch" if category == "load" and inst["dst"].var is None else category


def segments_of(inst: Instruction, records: Records) -> Segments:
    """The segments of executions of a message."""
    block: BlockShape | None = inst.values.get("block")
    lanes = 1 if block else records.operands.shape[1]
    acts = (records.values[:, None] >> np.arange(lanes) & 1).astype(bool)
    if block is None:
        shape: DataShape = inst["data"]
        return Segments(records.operands, records.operands + shape.memory_bytes * shape.vector, acts)
    size = block.size // 8
    base, width, height, pitch, x, y = (column[:, None] for column in records.operands.T)
    row = y + np.arange(block.height)
    across = block.count * block.width
    starts_x = np.clip(x * size, 0, width)
    # A row whose last element is not wholly inside loses that element.
    right = np.clip((x + across) * size, 0, width // size * size)
    valid = (row >= 0) & (row < height) & (right > starts_x) & acts
    starts = np.asarray(row * pitch + (base + starts_x))
    requested_bytes = int(acts.sum()) * block.height * across * size
    segments = Segments(starts, starts + (right - starts_x), valid)
    segments.beyond = requested_bytes - int(segments.sizes.sum())
    return segments


class TouchedLines(Struct):
    """The distinct lines that each message touches: the sums of `origins` and `offsets` that exist.

    Attributes:
        origins: int64[messages, 1].
        offsets: int64[messages or 1, n].
        exists: bool[messages or 1, n].
    """

    origins: Array
    offsets: Array
    exists: Array

    @property
    def counts(self) -> Array:
        """int64[messages]."""
        return np.broadcast_to(self.exists.sum(axis=1), len(self.origins))

    @property
    def numbers(self) -> Array:
        """The lines of one message after the other, int64."""
        lines = self.origins + self.offsets
        return lines.ravel() if self.exists.all() else lines[np.broadcast_to(self.exists, lines.shape)]


def lines_of(segments: Segments, size: int = LINE) -> TouchedLines:
    """The distinct lines that each message touches; they have `size` bytes, a power of two."""
    shift = size.bit_length() - 1
    starts, ends, valid = segments.starts, segments.ends, segments.valid
    origins = np.zeros((len(starts), 1), np.int64)
    if segments.alike and not ((starts[:, :1] - starts[0, 0]) % size).any():
        origins = starts[:, :1] - starts[0, 0] >> shift
        starts, ends, valid = starts[:1], ends[:1], valid[:1]
    first, last = starts >> shift, (ends - 1) >> shift
    most = int((last - first).max(initial=0, where=valid)) + 1
    steps = np.arange(most)
    if segments.whole and (first[:, 1:] >= last[:, :-1]).all():
        # They are in order, if those that do not exist repeat the last line.
        ordered = first
        if most > 1:
            ordered = np.minimum(first[:, :, None] + steps, last[:, :, None]).reshape(len(first), -1)
        exists = np.ones(ordered.shape, bool)
        exists[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        return TouchedLines(origins, ordered, exists)
    lines = (first[:, :, None] + steps).reshape(len(first), -1)
    there = (valid[:, :, None] & (first[:, :, None] + steps <= last[:, :, None])).reshape(lines.shape)
    return TouchedLines(origins, *_distinct(lines, there))


def _distinct(values: Array, there: Array) -> tuple[Array, Array]:
    """The sorted distinct values of each row, and which of them exist."""
    ordered = np.sort(np.where(there, values, np.iinfo(np.int64).max), axis=1)
    exists = ordered != np.iinfo(np.int64).max
    exists[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return ordered, exists


def slm_cycles(segments: Segments) -> tuple[int, int]:
    """Cycles in which the banks of the shared local memory serve messages, and those that bank conflicts add.

    A bank serves one dword a cycle; lanes that access one dword share it.
    """
    words = lines_of(segments, BANK_BYTES)
    # Messages that differ in where they begin have as many conflicts.
    loads = ((words.offsets % BANKS)[:, :, None] == np.arange(BANKS)) & words.exists[:, :, None]
    worst = loads.sum(axis=1).max(axis=1, initial=0)
    ideal = -(-words.exists.sum(axis=1) // BANKS)
    times = len(segments.starts) // max(len(worst), 1)
    return times * int(worst.sum()), times * int((worst - ideal).sum())


# The results.


class Traffic(Struct):
    """The data that messages of one kind moved between one buffer and the registers.

    Attributes:
        buffer: the buffer's name; "slm" for the shared local memory.
        kind: of `KINDS`.
        messages: executions of messages by a thread, in which at least one lane acts.
        bytes: bytes that they asked for: each lane's, or those of a block that lie within its surface.
        lines: 64-byte lines that they touched, summed over messages.
        unique: distinct bytes that they touched.
    """

    buffer: str
    kind: str
    messages: int = 0
    bytes: int = 0
    lines: int = 0
    unique: int = 0

    @property
    def coalescing(self) -> float:
        """Bytes asked for of the bytes of the lines touched, at most 1 unless lanes share bytes."""
        return self.bytes / (self.lines * LINE) if self.lines else 0.0


class Row(Struct):
    """The counts of one instruction.

    Attributes:
        index: its index in the program.
        text: its assembly.
        name, category: its name, and its category (`visa.spec.InstructionSpec`).
        file, line: the line of the source from which it was lowered; line 0 if that is not known.
        executions: how often a hardware thread executed it.
        lanes, possible: lanes that acted, of those that could have.
        messages, bytes, lines: of a message: see `Traffic`.
        halves: of a store or an atomic: halves of lines that it touched.
        beyond: bytes of 2D blocks outside of their surfaces.
        slm_cycles, conflicts: cycles of the banks of the shared local memory, and those that conflicts add.
        collisions: of an atomic: lanes whose location another lane of the same message also changes.
        waited: of a barrier: how many more instructions the last thread executed before it arrived than each
            of the others, summed.
        live: bytes of registers that hold values which are needed later.
    """

    index: int
    text: str
    name: str
    category: str
    file: str
    line: int
    executions: int = 0
    lanes: int = 0
    possible: int = 0
    messages: int = 0
    bytes: int = 0
    lines: int = 0
    halves: int = 0
    beyond: int = 0
    slm_cycles: int = 0
    conflicts: int = 0
    collisions: int = 0
    waited: int = 0
    live: int = 0


SUMMED = tuple(Row.__struct_fields__[6:-1])
"""The counts of a row that are summed over the instructions of a line."""


class Trace(Struct):
    """The lines of global memory that a launch touched.

    Adjacent workgroups are taken to run at the same time (`THREADS`), and all threads equally fast.

    Attributes:
        lines: int64, the line's number: its address divided by 64.
        threads: int32, the hardware thread.
        times: int64, how many instructions that thread had executed.
        instructions: int32, the message.
        complete: whether it has all of them.
    """

    lines: Array
    threads: Array
    times: Array
    instructions: Array
    complete: bool


class Counts:
    """Counts of the workgroups of a launch, from the log of native code.

    Attributes:
        program: the kernel.
        target: the GPU.
        memory: its global memory.
        tables: the counts of each instruction, by the names in `SUMMED`.
        traffic: what messages moved, by buffer and kind.
        steps: the first blocks of instructions of the first workgroup that each of its threads executed, in order.
    """

    def __init__(
        self,
        program: Program,
        target: Target,
        memory: DeviceMemory,
        size: Grid,
        starts: Sequence[int],
        trace_limit: int = 1 << 20,
        sample: bool = False,
    ) -> None:
        """Begin without counts.

        Args:
            starts: the instructions that begin blocks of native code.
            trace_limit: the number of lines after which the trace ends.
            sample: whether the workgroups are a sample, of which distinct bytes are not counted.
        """
        self.program, self.target, self.memory = program, target, memory
        self.buffers = memory.buffers
        self._group_size, self._sample = size.threads(program), sample
        self._across = np.array([1, size.grid[0], size.grid[0] * size.grid[1]])
        self._together = THREADS // self._group_size
        self._trace_limit, self._traced = trace_limit, 0
        self._pieces: list[tuple[Array, Array, Array, int, TouchedLines]] = []
        self._arrivals: list[tuple[Array, ...]] = []
        self.steps: list[tuple[range, int]] = []
        self.traffic: dict[tuple[str, str], Traffic] = {}
        # Lines, and bytes, of each buffer that messages of each kind have accessed.
        self._lines: dict[tuple[str, str], Array] = {}
        self._touched: dict[tuple[str, str], Array] = {}
        self._atomics: dict[str, Array] = {}
        instructions = program.instructions
        self.tables = {name: np.zeros(len(instructions), np.int64) for name in SUMMED}
        ends = np.array([*starts, len(instructions)])
        self._ends = ends[np.searchsorted(ends, np.arange(len(instructions)), "right")]

    # Recording.

    def receive(self, taken_records: Mapping[int, Records]) -> None:
        """Count records; see `engines.jit.checks.Log`."""
        traces = self._traced < self._trace_limit
        for index, records in taken_records.items():
            groups = records.workgroups @ self._across
            if index == len(self.program.instructions):
                first_group = groups == 0
                for start, thread in zip(records.values[first_group].tolist(), records.threads[first_group].tolist()):
                    self.steps.append((range(start, int(self._ends[start])), thread))
                continue
            inst, threads = self.program.instructions[index], groups * self._group_size + records.threads
            if INSTRUCTIONS[inst.name].barrier:
                first_group = records.values == 0
                self._arrivals.append(
                    (np.full(first_group.sum(), index), threads[first_group], records.clocks[first_group])
                )
                continue
            lines = self._message(index, segments_of(inst, records))
            if lines is not None:
                self._traced += int(lines.counts.sum())
                if traces:
                    times = records.clocks - (self._ends[index] - index)
                    self._pieces.append((groups // self._together, times, threads, index, lines))

    def end(self, executed: Array, lanes: Array) -> None:
        """End a run of workgroups.

        Args:
            executed: int64[instructions], by how many threads each was executed.
            lanes: see `engines.jit.checks.Log`.
        """
        divergent = flow_of(self.program).divergent
        for index, inst in enumerate(self.program.instructions):
            spec = INSTRUCTIONS[inst.name]
            each = inst.exec_size if spec.exec_sizes else 1
            counted = (inst.guard is not None and not spec.selects) or (
                divergent and bool(spec.exec_sizes) and not inst.no_mask
            )
            self.tables["executions"][index] += executed[index]
            self.tables["possible"][index] += each * executed[index]
            self.tables["lanes"][index] += lanes[index] if counted else each * executed[index]
        if any(len(part[0]) for part in self._arrivals):
            self._wait(*(np.concatenate(parts) for parts in zip(*self._arrivals)))
        self._arrivals = []

    def _wait(self, indices: Array, threads: Array, clocks: Array) -> None:
        """Count how long the threads wait that pass barriers of workgroups."""
        order = np.lexsort((clocks, threads))
        indices, threads, clocks = indices[order], threads[order], clocks[order]
        fresh = np.r_[True, threads[1:] != threads[:-1]]
        cycles = clocks - np.where(fresh, 0, np.r_[0, clocks[:-1]])
        starts = np.flatnonzero(fresh)
        phases = np.arange(len(threads)) - np.repeat(starts, np.diff(starts, append=len(threads)))
        _, meetings = np.unique(threads // self._group_size * len(threads) + phases, return_inverse=True)
        last = np.zeros(meetings.max() + 1, np.int64)
        np.maximum.at(last, meetings, cycles)
        complete = np.bincount(meetings) == self._group_size
        np.add.at(self.tables["waited"], indices, np.where(complete[meetings], last[meetings] - cycles, 0))

    def _message(self, index: int, segments: Segments) -> TouchedLines | None:
        """Count executions of a message; the lines of global memory that they touched."""
        inst, tables = self.program.instructions[index], self.tables
        kind = kind_of(inst)
        messages = len(segments.valid) if segments.whole else int(segments.valid.any(axis=1).sum())
        sizes = segments.sizes
        requested_bytes = int(sizes.sum())
        tables["messages"][index] += messages
        tables["bytes"][index] += requested_bytes
        tables["beyond"][index] += segments.beyond
        if kind == "atomic":
            _, exists = _distinct(segments.starts, segments.valid)
            tables["collisions"][index] += int(segments.valid.sum() - exists.sum())
        if inst.values.get("sfid") == "slm":
            cycles, conflicts = slm_cycles(segments)
            tables["slm_cycles"][index] += cycles
            tables["conflicts"][index] += conflicts
            entry = self._entry("slm", kind)
            entry.messages += messages
            entry.bytes += requested_bytes
            return None
        starts, ends = segments.existing(segments.starts), segments.existing(segments.ends)
        alone = self._only_buffer(starts, ends)
        if alone is None:
            try:
                most = int((ends - starts).max(initial=0))
                self.memory.locate(starts.view(np.uint64), most, VERBS[kind], ends - starts)
            except AccessFault as fault:
                raise RuntimeFault(f"'{inst.name}' {fault.reason}", [], inst.where) from None
        lines = lines_of(segments)
        touched = int(lines.counts.sum())
        tables["lines"][index] += touched
        if kind in ("store", "atomic"):
            tables["halves"][index] += int(lines_of(segments, LINE // 2).counts.sum())
        if not touched or (self._sample and kind != "atomic"):
            return lines
        if alone:
            entry = self._entry(alone.name, kind)
            entry.messages += messages
            entry.bytes += requested_bytes
            entry.lines += touched
            self._touch(alone, kind, starts, ends)
            return lines
        numbers, owner = lines.numbers, self._owners(segments.starts)
        # The lanes of a gather may access several buffers.
        for number in np.unique(owner[segments.valid]):
            in_buffer = segments.valid & (owner == number)
            buffer = self.buffers[number]
            entry = self._entry(buffer.name, kind)
            entry.messages += int(in_buffer.any(axis=1).sum())
            entry.bytes += int(sizes[in_buffer].sum())
            inside = (numbers >= buffer.address // LINE) & (numbers <= (buffer.address + buffer.bytes - 1) // LINE)
            entry.lines += int(inside.sum())
            self._touch(buffer, kind, segments.starts[in_buffer], segments.ends[in_buffer])
        return lines

    def _only_buffer(self, starts: Array, ends: Array) -> Buffer | None:
        """The buffer in which all segments lie; None if there are several, or some lie outside."""
        low, high = starts.min(initial=np.iinfo(np.int64).max), ends.max(initial=0)
        return next((b for b in self.buffers if b.address <= low and high <= b.address + b.bytes), None)

    def _owners(self, addresses: Array) -> Array:
        starts = np.array([b.address for b in self.buffers], np.int64)
        return np.clip(np.searchsorted(starts, addresses, "right") - 1, 0, len(self.buffers) - 1)

    def _entry(self, buffer: str, kind: str) -> Traffic:
        entry = self.traffic.get((buffer, kind))
        if entry is None:
            entry = self.traffic[buffer, kind] = Traffic(buffer, kind)
        return entry

    def _touch(self, buffer: Buffer, kind: str, starts: Array, ends: Array) -> None:
        """Note the bytes of a buffer that are touched, and how often atomics change each dword."""
        if kind == "atomic":
            changed = self._atomics.get(buffer.name)
            if changed is None:
                changed = self._atomics[buffer.name] = np.zeros(-(-buffer.bytes // 4), np.int32)
            np.add.at(changed, (starts - buffer.address) // 4, 1)
        if self._sample:
            return
        offsets, sizes = starts - buffer.address, ends - starts
        alike = sizes.min() == sizes.max()
        for size in [int(sizes[0])] if alike else np.unique(sizes).tolist():
            first = offsets if alike else offsets[sizes == size]
            whole, part = divmod(size, LINE)
            if not part and not (first % LINE).any():
                self._marks(self._lines, buffer, kind)[first[:, None] // LINE + np.arange(whole)] = True
                continue
            marks = self._marks(self._touched, buffer, kind, LINE).reshape(-1)
            if not whole and LINE % part == 0 and not (first % part).any():
                marks.reshape(-1, part)[first // part] = True
            else:
                marks[first[:, None] + np.arange(size)] = True

    @staticmethod
    def _marks(marks: dict[tuple[str, str], Array], buffer: Buffer, kind: str, *each: int) -> Array:
        """The marks of a buffer and a kind of message, bool[lines, *each]."""
        buffer_marks = marks.get((buffer.name, kind))
        if buffer_marks is None:
            buffer_marks = marks[buffer.name, kind] = np.zeros((-(-buffer.bytes // LINE), *each), bool)
        return buffer_marks

    # Results.

    def rows(self) -> list[Row]:
        """The counts of each instruction that is not a label."""
        found = []
        live = live_bytes(self.program, self.target)
        for index, inst in enumerate(self.program.instructions):
            spec = INSTRUCTIONS[inst.name]
            if spec.is_label:
                continue
            values = {name: int(table[index]) for name, table in self.tables.items()}
            text = write_statement(inst).strip()
            where = inst.where
            found.append(
                Row(index, text, inst.name, spec.category, where.file, where.line, **values, live=int(live[index]))
            )
        return found

    def moved(self) -> list[Traffic]:
        """The traffic of each buffer and kind of message."""
        for key, entry in self.traffic.items():
            whole, marks = self._lines.get(key), self._touched.get(key)
            entry.unique = 0 if whole is None else LINE * int(np.count_nonzero(whole))
            if marks is not None:
                entry.unique += int(np.count_nonzero(marks if whole is None else marks[~whole]))
        return sorted(self.traffic.values(), key=lambda t: (t.buffer, KINDS.index(t.kind)))

    @cached_property
    def trace(self) -> Trace:
        """The lines that were touched; see `Trace`."""
        if not self._pieces:
            none = np.zeros(0, np.int64)
            return Trace(none, none, none, none, True)
        together, times, threads = (np.concatenate(parts) for parts in list(zip(*self._pieces))[:3])
        indices = np.repeat([index for *_, index, _ in self._pieces], [len(piece[0]) for piece in self._pieces])
        counts, lines = (
            np.concatenate([getattr(piece[-1], name) for piece in self._pieces]) for name in ("counts", "numbers")
        )
        order = np.lexsort((threads, times, together))
        sizes = counts[order]
        shift = (np.cumsum(counts) - counts)[order] - (np.cumsum(sizes) - sizes)
        positions = np.repeat(shift, sizes) + np.arange(len(lines))
        numbers, owners = (np.repeat(part[order].astype(np.int32), sizes) for part in (indices, threads))
        return Trace(lines[positions], owners, np.repeat(times[order], sizes), numbers, self._traced <= len(lines))

    @property
    def hottest(self) -> int:
        """The number of atomic operations on the location that has most."""
        return max((int(t.max(initial=0)) for t in self._atomics.values()), default=0)

    @property
    def hottest_line(self) -> tuple[int, bool]:
        """The number of atomic operations on the line that has most, and whether several workgroups change it."""
        most, number = 0, -1
        for buffer in self.buffers:
            table = self._atomics.get(buffer.name)
            if table is not None and len(table):
                padded = np.pad(table, (0, -len(table) % (LINE // 4)))
                lines = padded.reshape(-1, LINE // 4).sum(axis=1)
                if int(lines.max()) > most:
                    most, number = int(lines.max()), buffer.address // LINE + int(lines.argmax())
        owners = np.unique(self.trace.threads[self.trace.lines == number] // self._group_size)
        return most, len(owners) > 1


def live_bytes(program: Program, target: Target) -> Array:
    """The bytes of registers that are live at each instruction, int64[instructions]."""
    change = np.zeros(len(program.instructions) + 2, np.int64)
    for var, (first, last) in liveness_of(program, target).ranges.items():
        change[first] += var.bytes
        change[last + 1] -= var.bytes
    return np.cumsum(change)[: len(program.instructions)]


def by_line(rows: Sequence[Row]) -> Iterator[tuple[str, int, dict[str, int]]]:
    """The counts of each line of the source: its file and number, and the sums of its instructions' counts."""
    sums: dict[tuple[str, int], dict[str, int]] = {}
    for row in rows:
        total = sums.setdefault((row.file, row.line), dict.fromkeys(SUMMED, 0))
        for name in SUMMED:
            total[name] += getattr(row, name)
    for (file, line), total in sorted(sums.items()):
        yield file, line, total
