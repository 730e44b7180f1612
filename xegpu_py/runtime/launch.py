"""Launches: their extents and arguments, and what is counted, printed and traced."""

from __future__ import annotations

import json
import math
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import Struct, field, structs

from xegpu_py.deferred import deferred
from xegpu_py.engines.faults import RuntimeFault
from xegpu_py.engines.jit.llvm import available
from xegpu_py.engines.operands import Batch, RegisterPositions
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.device_memory import DeviceMemory, HostMemory
from xegpu_py.runtime.host_arrays import Staged
from xegpu_py.runtime.options import Engine, Options
from xegpu_py.visa.allocate import Allocation
from xegpu_py.visa.dataflow import accesses
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Predicate
from xegpu_py.visa.print_records import BUFFER_BYTES, FIRST_RECORD, Record, read_records
from xegpu_py.visa.program import PRINT_BUFFER, Dim, Instruction, Program, analysis, extent, place_in

if TYPE_CHECKING:
    from xegpu_py.engines.interpreter import Observer
    from xegpu_py.visa import assembly
else:
    assembly = deferred("xegpu_py.visa.assembly")


THREADS_AT_ONCE = 1024
"""Hardware threads that run together: enough to make numpy's overhead small, few enough for caches."""


@lru_cache
def default_engine() -> Engine:
    """The engine if none is named: the JIT, or the interpreter, with a warning, if LLVM's library is missing."""
    if available():
        return "jit"
    warnings.warn("LLVM's library is not found: kernels run on the interpreter, which is slow", stacklevel=3)
    return "interpreter"


def engine_of(options: Options) -> Engine | Literal["reference"]:
    """The engine of a kernel with these options."""
    return options.engine or ("interpreter" if "uninit" in options.check else default_engine())


def memory_for(options: Options) -> DeviceMemory:
    """Memory for a launch of a kernel with these options: arrays stay in place where the engine can access them."""
    return HostMemory() if engine_of(options) == "jit" else DeviceMemory()


class _OneWorkgroup(int):
    """The grid of a call that states none."""


NO_GRID = _OneWorkgroup(1)
"""The default grid: a call of a kernel that reads block ids warns if it is left out."""


class Grid(Struct, frozen=True):
    """The extent of a launch.

    Attributes:
        grid: workgroups in x, y, z.
        block: work items of a workgroup in x, y, z. In a kernel of `Target="cm"` each work item is a hardware thread;
            in others a hardware thread has `SimdSize` work items.
    """

    grid: Dim
    block: Dim

    def threads(self, program: Program) -> int:
        """Hardware threads of a workgroup."""
        items = math.prod(self.block)
        return -(-items // self.items_of_a_thread(program))

    def local_ids(self, program: Program, threads: Array) -> Array:
        """The position in the workgroup of each thread's first work item: uint32[threads, 3]; x varies fastest."""
        item = threads * self.items_of_a_thread(program)
        x, y, _ = self.block
        return np.stack([item % x, item // x % y, item // (x * y)], axis=1).astype(np.uint32)

    def implicit(self, input_kind: str) -> bytes:
        """The bytes of an input that the launch gives: LOCAL_SIZE or GROUP_COUNT."""
        return np.array(self.block if input_kind == "LOCAL_SIZE" else self.grid, np.uint32).tobytes()

    def namer(self, group_size: int, first_thread: int = 0) -> Callable[[int], str]:
        """Return a function that names threads in messages, counted from `first_thread` of the launch on."""

        def name(thread: int) -> str:
            group, number = divmod(first_thread + thread, group_size)
            return name_of(place_in(self.grid, group), number)

        return name

    @staticmethod
    def items_of_a_thread(program: Program) -> int:
        """Work items of a hardware thread."""
        return 1 if program.attributes.get("Target") == "cm" else program.simd_size


def block_of(block: int | Sequence[int] | None, default: tuple[int, ...], subgroups: int | None) -> int | Sequence[int]:
    """The block of a launch: the given one, otherwise the one that the kernel defines.

    Raises:
        ValueError: if its number of subgroups differs from that of the kernel's maps.
    """
    if block is None:
        return default
    if subgroups and math.prod(extent(block, "block")) != subgroups:
        raise ValueError(f"'block' must be {subgroups} subgroups, as the kernel's maps say, but got {block}")
    return block


class Prepared(Struct, frozen=True, eq=False, weakref=True):
    """The arguments of a launch.

    Attributes:
        size: the grid.
        values: the bytes of each argument, by the name of its input.
        memory: global memory with the arrays.
        staged: the arrays, if some are copies; otherwise the kernel accesses all in place, and the caller keeps them.
    """

    size: Grid
    values: Mapping[str, bytes]
    memory: DeviceMemory
    staged: Staged | None = None


class Statistics(Struct):
    """Statistics of a launch.

    Attributes:
        threads: number of hardware threads.
        executed: how many times threads executed each instruction, by its index.
        traffic: bytes that messages moved, by memory ("ugm", "slm") and category ("load", "store", "atomic").
        allocation: the registers of the variables.
        misplaced: of kernels that are written in XeGPU, the first message of a 2D block whose column breaks a
            rule of the target.
    """

    threads: int
    executed: Array
    traffic: Counter[tuple[str, str]]
    allocation: Allocation
    misplaced: Instruction | None = None

    def _rows(self) -> list[tuple[str, int]]:
        rows = [("hardware threads", self.threads), ("instructions", int(self.executed.sum()))]
        return rows + [(f"{memory} {category} bytes", n) for (memory, category), n in sorted(self.traffic.items())]

    def __repr__(self) -> str:
        return f"<statistics: {', '.join(f'{n:,} {name}' for name, n in self._rows())}; {self.allocation.report()}>"

    def _repr_html_(self) -> str:
        rows = self._rows()
        cells = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{value:,}</td></tr>" for name, value in rows)
        return f"<table>{cells}</table><p>{self.allocation.report()}</p>"


class EngineMismatch(Exception):
    """The JIT and the interpreter wrote different bytes. The argument is a message with the first difference."""


class ExecutionCounter:
    """Counts the executions of each instruction, and tells an observer of them."""

    def __init__(self, length: int, next_observer: Observer | None) -> None:
        self.executed = np.zeros(length, np.int64)
        self._then = next_observer

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        self.executed[index] += len(rows)
        if self._then:
            self._then.ran(index, batch, rows)


def without_waits(program: Program, executed: Array) -> Array:
    """Executions of instructions, in which a thread that waits at a barrier counts once.

    Engines execute a barrier again when they find that a thread may continue.
    """
    for at, neighbour in _counted_as(program):
        executed[at] = executed[neighbour]
    return executed


@analysis
def _counted_as(program: Program) -> list[tuple[int, int]]:
    """The waits at barriers, and for each the instruction that a thread executes as often, in the order of copies."""
    specs = [INSTRUCTIONS[inst.name] for inst in program.instructions]
    waits = [at for at, spec in enumerate(specs) if spec.barrier in ("wait", "both")]
    # Threads come to a label from elsewhere too, but to a barrier only from the instruction before it.
    before_labels: set[int] = set()
    for at in reversed(waits):
        if specs[at + 1].is_label or at + 1 in before_labels:
            before_labels.add(at)
    copies = [(at, at + 1) for at in reversed(waits) if at not in before_labels]
    return copies + [(at, at - 1) for at in waits if at in before_labels and at and not specs[at - 1].jumps]


def first_difference(one: DeviceMemory, other: DeviceMemory) -> tuple[int, str, int, int, int] | None:
    """The first allocation in which two memories differ: how many bytes do, its name, the first of these, and both."""
    for buffer in one.buffers:
        a, b = one.bytes_of(buffer), other.bytes_of(buffer)
        differing = np.flatnonzero(a != b)
        # Records are printed in any order.
        if len(differing) and buffer.name != PRINT_BUFFER:
            at = int(differing[0])
            return len(differing), buffer.name, at, int(a[at]), int(b[at])
    return None


# Output of kernels: the print buffer of a launch, and its records.


def name_of(group: tuple[int, int, int], thread: int) -> str:
    """The name of a thread in messages."""
    x, y, z = group
    return f"workgroup ({x}, {y}, {z}), subgroup {thread}"


class Prints:
    """The buffer into which a kernel prints during one launch.

    Attributes:
        text: the output that was read so far.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._buffer = memory.allocate("printf_buffer", BUFFER_BYTES)
        memory.bytes_of(self._buffer)[:FIRST_RECORD].view(np.uint32)[:] = FIRST_RECORD, BUFFER_BYTES
        self.text = ""

    def given(self, launch: Prepared) -> Prepared:
        """A launch that prints into the buffer."""
        address = self._buffer.address.to_bytes(8, "little")
        return structs.replace(launch, values={**launch.values, PRINT_BUFFER: address})

    @contextmanager
    def reading(self, memory: DeviceMemory) -> Iterator[None]:
        """Read and empty the buffer in a memory after the kernel has ended or failed.

        Raises:
            RuntimeFault: if the kernel failed by an assertion; with the assertion's message.
        """
        try:
            yield
        except RuntimeFault as fault:
            for record in self._read(memory):
                if record.stops and name_of(record.group, record.thread) == fault.thread:
                    fault.message, fault.notes = f"assertion failed: {record.text}", fault.notes[:1]
                    break
            raise
        else:
            self._read(memory)

    def _read(self, memory: DeviceMemory) -> list[Record]:
        data = memory.bytes_of(self._buffer)
        records, lost_bytes = read_records(data)
        # Zero the records: their order depends on the engine, and `engine="both"` compares all memory.
        data[FIRST_RECORD : int(data[:4].view(np.uint32)[0])] = 0
        self.text = "".join(r.text for r in records if not r.stops)
        if lost_bytes:
            print(f"{lost_bytes} bytes of output are lost: the buffer has {BUFFER_BYTES}", file=sys.stderr)
        return records


# The progress bar of long runs at a terminal.

PATIENCE = 1.0
"""The bar appears after this many seconds."""

_REFRESH = 0.5
"""The seconds after which the bar's time is shown again."""


@contextmanager
def progress_bar(
    title: str, total: int, enabled: bool = True, unit: str = "workgroups"
) -> Iterator[Callable[[int], None]]:
    """A progress bar of a launch's workgroups, on standard error if that is a terminal, which disappears at the end.

    Its time goes on while the number does not change: the interpreter executes many workgroups at once.

    Yields:
        A function that sets the number of workgroups, or of other units, that have ended.
    """
    if not enabled or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done: None
        return
    # Its import takes a tenth of the time of a first kernel, and only terminals need it.
    from tqdm import tqdm

    with tqdm(
        total=total, desc=title, unit=f" {unit}", leave=False, dynamic_ncols=True, delay=PATIENCE, file=sys.stderr
    ) as bar:
        ended = threading.Event()

        def refresh() -> None:
            delay = max(PATIENCE, _REFRESH)
            while not ended.wait(delay):
                bar.refresh()
                delay = _REFRESH

        ticking = threading.Thread(target=refresh, daemon=True)
        ticking.start()

        def show(done: int) -> None:
            bar.update(max(done - bar.n, 0))

        try:
            yield show
        finally:
            ended.set()
            ticking.join()


# A trace of one hardware thread, and the table of a launch's statistics.

_SHOWN = 16


class Tracer(Struct):
    """Prints each instruction of one thread, with the registers that it changed.

    Attributes:
        program: the program.
        layout: where its variables lie.
        group: the traced workgroup.
        thread: the traced thread of the workgroup.
        emit: prints a line.
    """

    program: Program
    layout: RegisterPositions
    group: Dim
    thread: int
    emit: Callable[[str], None]
    _regs: Array = field(default_factory=lambda: np.zeros(0, np.uint8))

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        """See `engines.interpreter.Observer`."""
        for row in self._watched(batch, rows):
            self.emit(f"{index:5d}: {assembly.write_statement(self.program.instructions[index], self.program.modern)}")
            for line in self._changes(index, batch, row):
                self.emit(f"         {line}")
            self._regs = batch.regs[row].copy()

    def _watched(self, batch: Batch, rows: Array) -> Iterator[int]:
        header_words = batch.regs[rows, :32].view(np.uint32)
        x, y, z = self.group
        match = (
            (header_words[:, 1] == x)
            & (header_words[:, 6] == y)
            & (header_words[:, 7] == z)
            & (batch.numbers[rows] == self.thread)
        )
        yield from (int(r) for r in rows[match])

    def _changes(self, index: int, batch: Batch, row: int) -> Iterator[str]:
        inst = self.program.instructions[index]
        for access in accesses(inst, self.layout.target):
            if not access.writes:
                continue
            # If the instruction names an alias of the variable, its type is the one to print.
            destination = inst.values.get("dst")
            var = (
                destination.var
                if destination is not None and getattr(destination, "var", None) is not None
                else access.var
            )
            size = var.format.bytes
            base = self.layout.allocation.offset(access.var)
            span_start, span_end = access.start // size * size, -(-access.end // size) * size
            register_bytes = batch.regs[row, base + span_start : base + span_end]
            previous_bytes = (
                self._regs[base + span_start : base + span_end] if len(self._regs) else np.zeros_like(register_bytes)
            )
            changed_elements = (register_bytes != previous_bytes).reshape(-1, size).any(axis=1)
            values = np.ascontiguousarray(register_bytes).view(var.format.dtype)
            root = var.root[1]
            changes = [
                f"[{(span_start - root) // size + i}] = {values[i]}" for i in np.nonzero(changed_elements)[0][:_SHOWN]
            ]
            further_changes = (
                f", and {int(changed_elements.sum()) - _SHOWN} more" if changed_elements.sum() > _SHOWN else ""
            )
            if changes:
                yield f"{var.name}: {', '.join(changes)}{further_changes}"
        flag = inst.values.get("dst")
        if flag is not None and isinstance(getattr(flag, "var", None), Predicate):
            at = self.program.predicates.index(flag.var)
            bits = "".join("1" if b else "0" for b in batch.flags[row, at, : flag.var.count])
            yield f"{flag.var.name}: {bits}"


def _by_category(program: Program, statistics: Statistics) -> Counter[str]:
    """The executed instructions by category."""
    counts: Counter[str] = Counter()
    for inst, executions in zip(program.instructions, statistics.executed):
        spec = INSTRUCTIONS[inst.name]
        if not spec.is_label:
            counts[spec.category] += int(executions)
    return counts


def statistics_json(program: Program, statistics: Statistics, **more: Any) -> str:
    """A launch's statistics as one line of JSON, with the same numbers as `statistics_table`.

    Args:
        more: further members of the object.
    """
    counts = _by_category(program, statistics)
    fields = {
        **more,
        "kernel": program.name,
        "threads": statistics.threads,
        "instructions": {"all": sum(counts.values()), **dict(sorted(counts.items()))},
        "bytes": {
            f"{memory} {category}": byte_count for (memory, category), byte_count in sorted(statistics.traffic.items())
        },
        "registers": {"pressure": statistics.allocation.pressure, "available": statistics.allocation.registers},
    }
    return json.dumps(fields)


def statistics_table(program: Program, statistics: Statistics) -> str:
    """The table of a launch's statistics: instructions by category, bytes moved, register pressure."""
    counts = _by_category(program, statistics)
    out = [f"kernel '{program.name}': {statistics.threads} hardware threads"]
    out.append(f"  instructions    {sum(counts.values()):>14}")
    out += [f"    {name:<13} {count:>14}" for name, count in sorted(counts.items())]
    for (memory, category), byte_count in sorted(statistics.traffic.items()):
        out.append(f"  {memory} {category + ' bytes':<13} {byte_count:>12}")
    out.append(f"  {statistics.allocation.report()}")
    return "\n".join(out)


def summary(program: Program, statistics: Statistics, engine: str, seconds: float) -> str:
    """A summary of a launch in one line: kernel, time, and the speed of its matrix products if it has any.

    Args:
        seconds: the time of the call.
    """
    operations = sum(
        2 * inst["RC"] * inst.exec_size * inst["SD"] * ops_per_channel(inst["W"], inst["A"]) * int(executions)
        for inst, executions in zip(program.instructions, statistics.executed)
        if "SD" in inst.values
    )
    speed = f", {operations / seconds / 1e9:.3g} GFLOP/s in dpas" if operations else ""
    return f"{program.name}: {statistics.threads} hardware threads in {seconds:.3g} s on the {engine} engine{speed}"
