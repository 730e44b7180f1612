"""Exact counts of a launch: what each instruction executed, and which memory its messages touched."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from xegpu_py.engines.golden.memory import lane_addresses
from xegpu_py.engines.operands import Batch, Layout, Mask, Rows, count_of, masker, reader
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.device_memory import Buffer, DeviceMemory
from xegpu_py.target import Target
from xegpu_py.visa.assembly import write_statement
from xegpu_py.visa.dataflow import live_ranges
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import BlockShape, DataShape

LINE = 64
"""Bytes of a line of the caches."""

BANKS, BANK_BYTES = 16, 4
"""Banks of the shared local memory, and the bytes of each. Source: Intel's oneAPI GPU Optimization Guide 2025.2."""

HELD = 1 << 18
"""The number of lanes, and of rows of blocks, after which executions of messages are counted."""

STEPS = 1 << 13
"""The number of instructions of the first workgroup that are listed."""

KINDS = ("load", "store", "atomic", "prefetch")
"""What messages do. A prefetch is a load without a destination."""

# Messages as segments: the bytes of memory that each of their lanes, or each row of a block, touches.


class Segments(Struct, dict=True):
    """What a message touches in each of several executions.

    Attributes:
        threads: int64[messages], the numbers of the hardware threads in the launch.
        starts, ends: int64[messages, segments], the addresses of the first byte of each, and of the byte after it.
        valid: bool[messages, segments], the segments that exist.
        beyond: the bytes of 2D blocks that lie outside of their surfaces.
    """

    threads: Array
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

    def existing(self, values: Array) -> Array:
        """The values of the segments that exist, of [messages, segments]."""
        found: Array = values.ravel() if self.whole else values[self.valid]
        return found


class MessageReader:
    """Reads the segments of a message from the registers of the threads that execute it next.

    Attributes:
        kind: its kind, of `KINDS`.
        form: "block2d", "block" (one contiguous piece of memory) or "gather" (an address for each lane).
        slm: whether it accesses the shared local memory.
        width: the bytes of an element.
        each: segments of each lane.
    """

    def __init__(self, inst: Instruction, layout: Layout) -> None:
        self._mask = masker(inst, layout)
        category = INSTRUCTIONS[inst.name].category
        prefetches = category == "load" and inst["dst"].var is None
        self.kind = "prefetch" if prefetches else category
        self.slm = inst.values.get("sfid") == "slm"
        if "block" in inst.values:
            self.form = "block2d"
            block: BlockShape = inst["block"]
            self._block, self.width, self.each = block, block.size // 8, block.height
            names = ("base", "width", "height", "pitch", "x", "y")
            self._scalars = [(name, reader(inst[name], 1, layout)) for name in names]
            return
        shape: DataShape = inst["data"]
        self.each = 1
        self.form = "block" if shape.transpose else "gather"
        self.width, self._bytes = shape.memory_bytes, shape.memory_bytes * shape.vector
        self._addresses = lane_addresses(inst, layout)

    def taken(self, batch: Batch, rows: Rows, active: Array | None) -> tuple[Array, ...]:
        """What an execution reads of the registers: the lanes that act, bool[threads, lanes], and its operands."""
        reads = [read for _, read in self._scalars] if self.form == "block2d" else [self._addresses]
        operands, count = [np.array(read(batch, rows)) for read in reads], count_of(batch, rows)
        mask, lanes = self._mask(batch, rows, active), operands[0].shape[1]
        acting = np.ones((count, lanes), bool)
        if mask is not None:
            acting &= mask[:, :lanes]
        return acting, *(np.repeat(operand, count, 0) if len(operand) != count else operand for operand in operands)

    def segments(self, threads: Array, taken: Sequence[Array]) -> Segments:
        """The segments of executions.

        Args:
            threads: int64[messages], the numbers of their threads in the launch.
            taken: what `taken` gave for them.
        """
        acts, *operands = taken
        operands = [operand.view(f"u{operand.dtype.itemsize}").astype(np.int64) for operand in operands]
        if self.form != "block2d":
            (starts,) = operands
            return Segments(threads, starts, starts + self._bytes, acts)
        block, size = self._block, self.width
        base, width, height, pitch = (operand + add for operand, add in zip(operands, (0, 1, 1, 1)))
        x, y = (operand.astype(np.int32).astype(np.int64) for operand in operands[4:])
        row = y + np.arange(block.height)
        across = block.count * block.width
        left = np.clip(x * size, 0, width)
        # A row whose last element is not wholly inside loses that element.
        right = np.clip((x + across) * size, 0, width // size * size)
        inside = (y >= 0) & (y + block.height <= height) & (right > left) & acts
        if inside.all():
            valid = np.ones(row.shape, bool)
        else:
            valid = (row >= 0) & (row < height) & (right > left) & acts
        starts = np.asarray(row * pitch + (base + left))
        ends = starts + (right - left)
        asked = int(acts.sum()) * block.height * across * size
        found = Segments(threads, starts, ends, valid)
        found.beyond = asked - int(found.sizes.sum())
        return found


def lines_of(segments: Segments, size: int = LINE) -> tuple[Array, Array]:
    """The distinct lines that each message touches: their numbers int64[messages, n], and which of these exist.

    Args:
        size: bytes of a line, a power of two.
    """
    shift = size.bit_length() - 1
    first, last = segments.starts >> shift, (segments.ends - 1) >> shift
    most = int(segments.existing(last - first).max(initial=0)) + 1
    steps = np.arange(most)
    if segments.whole and (first[:, 1:] >= last[:, :-1]).all():
        # They are in order, if those that do not exist repeat the last line.
        ordered = first
        if most > 1:
            ordered = np.minimum(first[:, :, None] + steps, last[:, :, None]).reshape(len(first), -1)
        exists = np.ones(ordered.shape, bool)
        exists[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        return ordered, exists
    lines = (first[:, :, None] + steps).reshape(len(first), -1)
    there = (segments.valid[:, :, None] & (first[:, :, None] + steps <= last[:, :, None])).reshape(lines.shape)
    return _distinct(lines, there)


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
    words, exists = lines_of(segments, BANK_BYTES)
    if exists.all() and (np.diff(words, axis=1) == 1).all():
        each = -(-words.shape[1] // BANKS)
        return each * len(words), 0
    loads = ((words % BANKS)[:, :, None] == np.arange(BANKS)) & exists[:, :, None]
    worst = loads.sum(axis=1).max(axis=1, initial=0)
    ideal = -(-exists.sum(axis=1) // BANKS)
    return int(worst.sum()), int((worst - ideal).sum())


# The results.


class Traffic(Struct):
    """What messages of one kind moved between one buffer and the registers.

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
    """The lines of global memory that a launch touched, in the order of execution.

    Attributes:
        lines: int64, the line's number: its address divided by 64.
        threads: int32, the hardware thread.
        instructions: int32, the message.
        complete: whether it has all of them.
    """

    lines: Array
    threads: Array
    instructions: Array
    complete: bool


class Counts:
    """The recorder of a launch; see `engines.interpreter.Recorder`.

    Attributes:
        program: the kernel.
        layout: where its variables lie.
        tables: the counts of each instruction, by the names in `SUMMED`.
        traffic: what messages moved, by buffer and kind.
        skipped: the instructions that are counted, but have no effect.
        steps: the first instructions of the first workgroup, in order, with its threads that executed them.
    """

    def __init__(
        self,
        program: Program,
        layout: Layout,
        group_size: int,
        groups: Sequence[int],
        trace_limit: int = 1 << 22,
        sample: bool = False,
    ) -> None:
        """Make a recorder.

        Args:
            layout: where the program's variables lie.
            group_size: hardware threads of a workgroup.
            groups: the numbers of the workgroups that run, in this order.
            trace_limit: the number of lines after which the trace ends.
            sample: whether the workgroups are a sample, of which distinct bytes are not counted.
        """
        self.program, self.buffers, self.layout = program, list[Buffer](), layout
        self._group_size, self._groups, self._sample = group_size, groups, sample
        self._batch: Batch | None = None
        self._done = 0
        self._threads = self._clock = self._arrived = np.zeros(0, np.int64)
        self._trace_limit, self._traced = trace_limit, 0
        self._pieces: list[tuple[Array, Array, int]] = []
        # Executions of messages that are not counted yet: by instruction, when, by which threads, and what they read.
        self._pending: dict[int, list[tuple[int, Array, tuple[Array, ...]]]] = {}
        self._executed, self._held = 0, 0
        self._old: list[tuple[Array, Array]] = []
        self.skipped: Collection[int] = ()
        self.steps: list[tuple[range, list[int]]] = []
        self._listed = 0
        self.traffic: dict[tuple[str, str], Traffic] = {}
        # What messages of each kind have touched of each buffer: whole lines, and bytes.
        self._lines: dict[tuple[str, str], Array] = {}
        self._touched: dict[tuple[str, str], Array] = {}
        self._atomics: dict[str, Array] = {}
        self._readers: dict[int, MessageReader] = {}
        self._masks: dict[int, Mask] = {}
        self.tables = {name: np.zeros(len(program.instructions), np.int64) for name in SUMMED}
        specs = [INSTRUCTIONS[i.name] for i in program.instructions]
        self._guarded = [i.guard is not None and not s.selects for i, s in zip(program.instructions, specs)]
        self._lanes = np.array([i.exec_size if s.exec_sizes else 1 for i, s in zip(program.instructions, specs)])

    # Recording.

    def runs(self, index: int, batch: Batch, rows: Rows, active: Array | None) -> None:
        """Count an instruction that threads of the interpreter execute next."""
        if batch is not self._batch:
            self._begin(batch)
        inst, tables = self.program.instructions[index], self.tables
        spec = INSTRUCTIONS[inst.name]
        if spec.barrier in ("wait", "both"):
            fresh = np.arange(batch.threads)[rows]
            # A thread that waits comes here again, without another instruction between.
            rows = fresh[self._arrived[fresh] != self._clock[fresh] * len(self._guarded) + index]
            self._clock[rows] += 1
            self._arrived[rows] = self._clock[rows] * len(self._guarded) + index
            if not spec.named_barrier:
                tables["waited"][index] += self._meet(batch, rows, index)
        else:
            self._clock[rows] += 1
        self._list(range(index, index + 1), batch, rows)
        count = count_of(batch, rows)
        tables["executions"][index] += count
        lanes = int(self._lanes[index])
        tables["possible"][index] += count * lanes
        acting = count * lanes
        if active is not None or self._guarded[index]:
            acting = self._acting(index, batch, rows, active)
        tables["lanes"][index] += acting
        if spec.is_message and acting:
            found, threads = self._reader(index), self._threads[rows]
            taken = found.taken(batch, rows, active)
            self._pending.setdefault(index, []).append((self._executed, threads, taken))
            self._executed += 1
            self._held += taken[0].size * found.each
            if found.kind in ("store", "atomic") and not found.slm and index not in self.skipped:
                self._save(batch, found.segments(threads, taken))
            if self._held > HELD:
                self.count()

    def passes(self, run: range, batch: Batch, rows: Rows, active: Array | None) -> None:
        """Count instructions that are skipped; see `engines.interpreter.Recorder`."""
        if batch is not self._batch:
            self._begin(batch)
        self._clock[rows] += len(run)
        self._list(run, batch, rows)
        count, own = count_of(batch, rows), slice(run.start, run.stop)
        possible = count * self._lanes[own]
        self.tables["executions"][own] += count
        self.tables["possible"][own] += possible
        if active is not None:
            possible = np.array([self._acting(index, batch, rows, active) for index in run])
        self.tables["lanes"][own] += possible

    def _acting(self, index: int, batch: Batch, rows: Rows, active: Array | None) -> int:
        """The lanes in which an instruction acts, summed over threads."""
        count, lanes = count_of(batch, rows), int(self._lanes[index])
        mask = self._mask(index)(batch, rows, active) if count else None
        return count * lanes if mask is None else int(np.broadcast_to(mask, (count, lanes)).sum())

    def _list(self, run: range, batch: Batch, rows: Rows) -> None:
        """List what the first workgroup executes."""
        if not self._done and self._listed < STEPS and not self._sample:
            own = range(self._group_size) if isinstance(rows, slice) else rows[rows < self._group_size]
            if len(own):
                self.steps.append((run[: STEPS - self._listed], list(map(int, own))))
                self._listed += len(run)

    def _begin(self, batch: Batch) -> None:
        if self._batch is not None:
            self._done += self._batch.threads
        self._batch = batch
        assert isinstance(batch.memory, DeviceMemory)
        self.buffers = batch.memory.buffers
        count = batch.threads
        self._clock, self._arrived = np.zeros(count, np.int64), np.full(count, -1)
        first = self._done // self._group_size
        own = np.asarray(self._groups[first : first + count // self._group_size], np.int64)
        self._threads = np.repeat(own, self._group_size) * self._group_size + batch.numbers

    def _meet(self, batch: Batch, rows: Array, index: int) -> int:
        """Let threads arrive at the barrier of their workgroups; the waiting of the workgroups that are complete."""
        length, size = len(self._guarded), self._group_size
        clock, arrived = self._clock.reshape(-1, size), self._arrived.reshape(-1, size)
        touched = np.unique(batch.groups[rows])
        complete = touched[(arrived[touched] == clock[touched] * length + index).all(axis=1)]
        last = clock[complete].max(axis=1, keepdims=True, initial=0)
        waited = int((last - clock[complete]).sum())
        clock[complete] = last
        arrived[complete] = last * length + index
        return waited

    def _mask(self, index: int) -> Mask:
        found = self._masks.get(index)
        if found is None:
            found = self._masks[index] = masker(self.program.instructions[index], self.layout)
        return found

    def _reader(self, index: int) -> MessageReader:
        found = self._readers.get(index)
        if found is None:
            found = self._readers[index] = MessageReader(self.program.instructions[index], self.layout)
        return found

    def count(self) -> None:
        """Count the executions of messages that were not counted yet, those of each message at once."""
        pieces: list[tuple[int, Array, Array, int]] = []
        traces = self._traced < self._trace_limit
        for index, executions in self._pending.items():
            orders, threads, taken = zip(*executions)
            parts = [np.concatenate(part) for part in zip(*taken)]
            segments = self._reader(index).segments(np.concatenate(threads), parts)
            which, lines = self._message(index, segments)
            if traces:
                owners = segments.threads.astype(np.int32)[which]
                ends = np.searchsorted(which, np.cumsum([len(t) for t in threads])[:-1])
                split = zip(orders, np.split(lines, ends), np.split(owners, ends))
                pieces += [(order, own, by, index) for order, own, by in split]
            self._traced += len(lines)
        self._pending, self._held = {}, 0
        self._pieces += [piece[1:] for piece in sorted(pieces, key=lambda piece: piece[0])]

    def _message(self, index: int, segments: Segments) -> tuple[Array, Array]:
        """Count executions of a message; which of them touched lines of global memory, in order, and these lines."""
        found, tables = self._reader(index), self.tables
        messages = len(segments.valid) if segments.whole else int(segments.valid.any(axis=1).sum())
        sizes = segments.sizes
        asked = int(sizes.sum())
        tables["messages"][index] += messages
        tables["bytes"][index] += asked
        tables["beyond"][index] += segments.beyond
        if found.kind == "atomic":
            _, exists = _distinct(segments.starts, segments.valid)
            tables["collisions"][index] += int(segments.valid.sum() - exists.sum())
        if found.slm:
            cycles, conflicts = slm_cycles(segments)
            tables["slm_cycles"][index] += cycles
            tables["conflicts"][index] += conflicts
            entry = self._entry("slm", found.kind)
            entry.messages += messages
            entry.bytes += asked
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        lines, exists = lines_of(segments)
        touched = int(np.count_nonzero(exists))
        tables["lines"][index] += touched
        if found.kind in ("store", "atomic"):
            tables["halves"][index] += int(lines_of(segments, LINE // 2)[1].sum())
        if touched == lines.size:
            which, numbers = np.repeat(np.arange(len(lines)), lines.shape[1]), lines.ravel()
        else:
            which, numbers = np.broadcast_to(np.arange(len(lines))[:, None], lines.shape)[exists], lines[exists]
        if not touched or (self._sample and found.kind != "atomic"):
            return which, numbers
        first, last = self._owners(numbers[[numbers.argmin(), numbers.argmax()]] * LINE + LINE - 1)
        if first == last:
            entry = self._entry(self.buffers[first].name, found.kind)
            entry.messages += messages
            entry.bytes += asked
            entry.lines += touched
            starts, ends = segments.existing(segments.starts), segments.existing(segments.ends)
            self._touch(self.buffers[first], found.kind, starts, ends)
            return which, numbers
        owner = self._owners(segments.starts)
        # The lanes of a gather may access several buffers.
        for number in np.unique(owner[segments.valid]):
            own = segments.valid & (owner == number)
            buffer = self.buffers[number]
            entry = self._entry(buffer.name, found.kind)
            entry.messages += int(own.any(axis=1).sum())
            entry.bytes += int(sizes[own].sum())
            inside = (numbers >= buffer.address // LINE) & (numbers <= (buffer.address + buffer.bytes - 1) // LINE)
            entry.lines += int(inside.sum())
            self._touch(buffer, found.kind, segments.starts[own], segments.ends[own])
        return which, numbers

    def _owners(self, addresses: Array) -> Array:
        starts = np.array([b.address for b in self.buffers], np.int64)
        return np.clip(np.searchsorted(starts, addresses, "right") - 1, 0, len(self.buffers) - 1)

    def _entry(self, buffer: str, kind: str) -> Traffic:
        found = self.traffic.get((buffer, kind))
        if found is None:
            found = self.traffic[buffer, kind] = Traffic(buffer, kind)
        return found

    def _touch(self, buffer: Buffer, kind: str, starts: Array, ends: Array) -> None:
        """Note the bytes of a buffer that are touched, and how often atomics change each dword."""
        if kind == "atomic":
            changed = self._atomics.get(buffer.name)
            if changed is None:
                changed = self._atomics[buffer.name] = np.zeros(-(-buffer.bytes // 4), np.int32)
            np.add.at(changed, (starts - buffer.address) // 4, 1)
        if self._sample:
            return
        places, sizes = starts - buffer.address, ends - starts
        alike = sizes.min() == sizes.max()
        for size in [int(sizes[0])] if alike else np.unique(sizes).tolist():
            first = places if alike else places[sizes == size]
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
    def _marks(kept: dict[tuple[str, str], Array], buffer: Buffer, kind: str, *each: int) -> Array:
        """The marks of a buffer and a kind of message, bool[lines, *each]."""
        found = kept.get((buffer.name, kind))
        if found is None:
            found = kept[buffer.name, kind] = np.zeros((-(-buffer.bytes // LINE), *each), bool)
        return found

    def _save(self, batch: Batch, segments: Segments) -> None:
        sizes = np.where(segments.valid, segments.ends - segments.starts, 0)
        for size in np.unique(sizes[sizes > 0]):
            chosen = segments.starts[sizes == size].astype(np.uint64)
            places = batch.memory.locate(chosen, int(size), "writes")[:, None] + np.arange(size)
            self._old.append((places, batch.memory.data[places]))

    def restore(self) -> None:
        """Undo the stores and atomics to global memory that were kept."""
        for places, values in reversed(self._old):
            assert self._batch
            self._batch.memory.data[places] = values
        self._old.clear()

    # Results.

    def rows(self) -> list[Row]:
        """The counts of each instruction that is not a label."""
        found = []
        live = live_bytes(self.program, self.layout.target)
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

    def trace(self) -> Trace:
        """The lines that were touched; see `Trace`."""
        lines = np.concatenate([np.zeros(0, np.int64), *(p[0] for p in self._pieces)])
        threads = np.concatenate([np.zeros(0, np.int32), *(p[1] for p in self._pieces)])
        numbers = np.repeat([p[2] for p in self._pieces], [len(p[0]) for p in self._pieces]).astype(np.int32)
        return Trace(lines, threads, numbers, self._traced <= len(lines))

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
        trace = self.trace()
        owners = np.unique(trace.threads[trace.lines == number] // self._group_size)
        return most, len(owners) > 1


def live_bytes(program: Program, target: Target) -> Array:
    """The bytes of registers that are live at each instruction, int64[instructions]."""
    change = np.zeros(len(program.instructions) + 2, np.int64)
    for var, (first, last) in live_ranges(program, target).items():
        change[first] += var.bytes
        change[last + 1] -= var.bytes
    found: Array = np.cumsum(change)[: len(program.instructions)]
    return found


def by_line(rows: Sequence[Row]) -> Iterator[tuple[str, int, dict[str, int]]]:
    """The counts of each line of the source: its file and number, and the sums of its instructions' counts."""
    sums: dict[tuple[str, int], dict[str, int]] = {}
    for row in rows:
        total = sums.setdefault((row.file, row.line), dict.fromkeys(SUMMED, 0))
        for name in SUMMED:
            total[name] += getattr(row, name)
    for (file, line), total in sorted(sums.items()):
        yield file, line, total
