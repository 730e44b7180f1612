"""How a grid runs on an engine, and what is counted, printed and traced."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import Struct, field, structs

from xegpu_py.cache import Cache, folder_of
from xegpu_py.engines.faults import Races, RuntimeFault
from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.engines.jit.checks import MOST_KEPT, RaceSuspected, Shadow
from xegpu_py.engines.jit.engine import Jit, Launch
from xegpu_py.engines.jit.llvm import available
from xegpu_py.engines.jit.native_code import processors
from xegpu_py.engines.operands import BUILTIN_OFFSETS, Batch, Layout, new_batch
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.device_memory import DeviceMemory, HostMemory
from xegpu_py.runtime.executable import CHECKS, Engine, Options
from xegpu_py.runtime.host_arrays import Staged
from xegpu_py.target import target as target_of
from xegpu_py.visa.allocate import HEADER_BYTES, Allocation, placed
from xegpu_py.visa.assembly import write_statement
from xegpu_py.visa.dataflow import accesses, flow_of, has_calls, polls
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.modes import with_modes
from xegpu_py.visa.program import (
    BUFFER_BYTES,
    FIRST_RECORD,
    PRINT_BUFFER,
    STATE,
    Dim,
    Predicate,
    Program,
    Record,
    place_in,
    read_records,
)

if TYPE_CHECKING:
    from xegpu_py.engines.interpreter import Observer
    from xegpu_py.engines.jit.checks import Log


# Launching a kernel over a grid of workgroups.

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

    @staticmethod
    def items_of_a_thread(program: Program) -> int:
        """Work items of a hardware thread."""
        return 1 if program.attributes.get("Target") == "cm" else program.simd_size


class Prepared(Struct, frozen=True):
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
    """

    threads: int
    executed: Array
    traffic: Counter[tuple[str, str]]
    allocation: Allocation

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


class _Counter:
    def __init__(self, length: int, then: Observer | None) -> None:
        self.executed = np.zeros(length, np.int64)
        self._then = then

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        self.executed[index] += len(rows)
        if self._then:
            self._then.ran(index, batch, rows)


class Launcher:
    """A valid program with its registers allocated, which engines run.

    Attributes:
        program: the program.
        options: the options.
        target: the GPU.
        runnable: the program, whose instructions say how they round, as engines run it.
        engine: the engine that runs it: that of the options, or else the default.
        watch: whether to check for reads of registers that were never written.
        races: whether to check for races.
        allocation: the registers of the variables.
        layout: where the variables lie.
        observer: called for each executed instruction; the interpreter only.
        log: takes the records of messages, if the layout says that there are some; native code only.
        groups: the numbers of the workgroups that run, x varying fastest; None for all.
    """

    def __init__(self, program: Program, options: Options) -> None:
        self.program, self.options, self.target = program, options, target_of(options.target)
        self.runnable = with_modes(program, self.target, options.dpas_denormals == "flush")
        self.watch, self.races, bounds = (name in options.check for name in CHECKS[1:])
        self.engine = engine_of(options)
        self.observer: Observer | None = None
        self.log: Log | None = None
        self.groups: range | None = None
        self.allocation = placed(program, self.target, options.registers)
        predicates = {p: i for i, p in enumerate(program.predicates)}
        self.layout = Layout(
            self.target, self.allocation, predicates, self.watch, self.races, bounds, program.local_bits
        )
        # The allocations whose loads native code records, as earlier launches found: see `Shadow`.
        self._recorded: set[int] = set()
        self._shadow: Shadow | None = None

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.runnable, self.layout, self.options.model)

    def run(self, launch: Prepared) -> Statistics:
        """Run the program, and copy its output to standard output.

        Raises:
            RuntimeFault: if the kernel fails.
            EngineMismatch: if both engines run, and their results differ.
            ValueError: if there is an observer, and the engine does not support it.
        """
        if self.observer is not None and self.engine != "interpreter":
            raise ValueError(f"only the interpreter tells an observer what ran, not the engine '{self.engine}'")
        if self.options.schedules:
            self._compare_schedules(launch)
        if not self.program.prints:
            return self._run(launch, None)
        prints = Prints(launch.memory)
        try:
            return self._run(prints.given(launch), prints)
        finally:
            print(prints.text, end="")

    def _run(self, launch: Prepared, prints: Prints | None) -> Statistics:
        def reading(run: Callable[[Prepared], Statistics], launch: Prepared) -> Statistics:
            if prints is None:
                return run(launch)
            with prints.reading(launch.memory):
                return run(launch)

        if self.engine == "interpreter":
            return reading(self._run_interpreted, launch)
        if self.engine == "jit":
            return reading(self._run_native, launch)
        golden = structs.replace(launch, memory=launch.memory.copy())
        reading(self._run_interpreted, golden)
        printed = prints and prints.text
        done = reading(self._run_native, launch)
        if prints and prints.text != printed:
            raise EngineMismatch("the engines print different texts")
        if unlike := _difference(golden.memory, launch.memory):
            count, name, at, wanted, found = unlike
            raise EngineMismatch(
                f"the engines differ in {count} bytes of '{name}', first in byte {at}: {wanted:#04x} of "
                f"the interpreter, {found:#04x} of the JIT"
            )
        return done

    def _compare_schedules(self, launch: Prepared) -> None:
        """Run the launch on copies of the memory, in the usual order of threads and in others, with and without delays
        of stores.

        Raises:
            RuntimeFault: if it fails in one of the orders, or leaves other bytes; a note names the order.
        """
        if self.program.prints:
            launch = structs.replace(launch, memory=launch.memory.copy())
            launch = Prints(launch.memory).given(launch)
        usual: DeviceMemory | None = None
        others = [(seed, delays) for seed in range(1, self.options.schedules + 1) for delays in (False, True)]
        for seed, delays in [(0, False), *others]:
            found = launch.memory.copy()
            note = f"in the order of threads of seed {seed}{', with delayed stores' * delays}"
            self._interpreter.order = np.random.default_rng(seed) if seed else None
            self._interpreter.delays = delays
            try:
                self._run_interpreted(structs.replace(launch, memory=found))
            except RuntimeFault as fault:
                if seed:
                    fault.notes.append(note)
                raise
            finally:
                self._interpreter.order, self._interpreter.delays = None, False
            if usual is None:
                usual = found
                continue
            if unlike := _difference(usual, found):
                count, name, at, first, second = unlike
                raise RuntimeFault(
                    f"the results of kernel '{self.program.name}' depend on the order of threads: "
                    f"{count} bytes of '{name}' differ, first byte {at}: {first:#04x} or {second:#04x}",
                    [note],
                    self.program.where,
                )

    def _run_interpreted(self, launch: Prepared) -> Statistics:
        size, group_size = launch.size, launch.size.threads(self.program)
        groups = range(math.prod(size.grid)) if self.groups is None else self.groups
        count = len(groups)
        most = max(1, THREADS_AT_ONCE // max(group_size, 1))
        counter = _Counter(len(self.program.instructions), self.observer)
        self._interpreter.observer = counter
        traffic: Counter[tuple[str, str]] = Counter()
        races: Races | None = None
        # Delayed stores would seem to change what other threads have changed; the usual order has been checked.
        if self.races and not self._interpreter.delays:
            races = Races(self.runnable, group_size, count, len(launch.memory.data), _namer(size, group_size))
        with progress_bar(self.program.name, count, self.options.progress) as progress:
            # Most races show in the first workgroup.
            start, at_once = 0, 1 if races and self._interpreter.order is None and not polls(self.program) else most
            while start < count:
                chosen = np.asarray(groups[start : start + at_once], np.int64)
                batch = self._batch(chosen, launch)
                if races:
                    races.begin(start, len(chosen), batch.barriers.phases.shape[1], self.program.slm_bytes)
                    batch.races = races
                self._interpreter.run(batch, _namer(size, group_size, start * group_size))
                traffic += batch.traffic
                start, at_once = start + len(chosen), most
                progress(start)
        executed = _without_waits(self.runnable, counter.executed)
        return Statistics(count * group_size, executed, traffic, self.allocation)

    @cached_property
    def jit(self) -> Jit:
        """The program as native code."""
        cache = Cache(folder_of(self.options.cache))
        return Jit(self.runnable, self.layout, self.options.model, alone=False, cache=cache)

    def _run_native(self, launch: Prepared) -> Statistics:
        """Run native code. If its race check fails, the interpreter runs the launch again, to report the race."""
        if not self.races:
            return self._launch_native(launch)
        memory, threads = launch.memory, math.prod(launch.size.grid) * launch.size.threads(self.program)
        while True:
            before, self._shadow = self._shadow, None
            workers = self.options.threads or processors()
            shadow = Shadow(self.runnable, memory, threads, workers, self._recorded, before)
            try:
                done = self._launch_native(launch, shadow)
            except (RaceSuspected, RuntimeFault):
                shadow.restore()
                golden = memory.copy()
                try:
                    done = self._run_interpreted(structs.replace(launch, memory=golden))
                except RuntimeFault:
                    memory.assign(golden, PRINT_BUFFER)
                    raise
                memory.assign(golden)
                return done
            if shadow.bytes <= MOST_KEPT:
                self._shadow = shadow
            unrecorded = shadow.unrecorded()
            if not unrecorded:
                return done
            shadow.restore()
            self._recorded |= unrecorded

    def _launch_native(self, given: Prepared, shadow: Shadow | None = None) -> Statistics:
        program, size = self.runnable, given.size
        group_size = size.threads(program)
        registers = np.zeros(self.jit.frame.registers, np.uint8)
        self._fill(registers, given)
        written = self._given(len(registers)) if self.watch else None
        launch = Launch(
            size.grid,
            size.block[:2],
            group_size,
            size.items_of_a_thread(program),
            registers,
            given.memory,
            _namer(size, group_size),
            written,
            shadow,
            self.log,
            chosen=self.groups,
        )
        with progress_bar(program.name, launch.groups, self.options.progress) as progress:
            done = self.jit.run(launch, self.options.threads, progress)
        executed = _without_waits(program, done.executed)
        return Statistics(launch.groups * group_size, executed, done.traffic, self.allocation)

    def _batch(self, groups: Array, launch: Prepared) -> Batch:
        program, size = self.runnable, launch.size
        batch = new_batch(
            len(groups),
            size.threads(program),
            max(self.allocation.bytes, self.target.grf_bytes),
            len(program.predicates),
            int(program.attributes.get("NBarrierCnt", 0)),
            program.slm_bytes,
            launch.memory,
            divergent=flow_of(program).divergent,
            watch=self.watch,
            calls=has_calls(program),
        )
        header = np.zeros((batch.threads, HEADER_BYTES), np.uint8)
        words = header.view(np.uint32)
        words[:, 2] = batch.numbers
        x, y, _ = size.grid
        for name, each in (
            ("%group_id_x", groups % x),
            ("%group_id_y", groups // x % y),
            ("%group_id_z", groups // (x * y)),
        ):
            words[:, BUILTIN_OFFSETS[name] // 4] = each[batch.groups]
        batch.regs[:, :HEADER_BYTES] = header
        self._fill(batch.regs, launch)
        for item in program.inputs:
            if item.kind == "LOCAL_ID":
                at = self.allocation.offset(item.var)
                batch.regs[:, at : at + item.size] = size.local_ids(program, batch.numbers).view(np.uint8)
        if batch.written is not None:
            batch.written[:] = self._given(batch.written.shape[1])
        return batch

    def _fill(self, registers: Array, launch: Prepared) -> None:
        """Write the inputs that all threads share to the registers, uint8[..., bytes]."""
        for item in self.program.inputs:
            if item.kind != "LOCAL_ID":
                value = _implicit(item.kind, launch.size) if item.kind else launch.values[item.var.name]
                at = self.allocation.offset(item.var)
                registers[..., at : at + item.size] = np.frombuffer(value, np.uint8)

    def _given(self, count: int) -> Array:
        """Which bytes of the registers are initialised at the start of a thread, bool[count]."""
        found = np.zeros(count, bool)
        found[:HEADER_BYTES] = True
        for var in (*(item.var for item in self.program.inputs), *STATE.values()):
            if var.root[0] in self.allocation.offsets:
                at = self.allocation.offset(var)
                found[at : at + var.bytes] = True
        return found


def _without_waits(program: Program, executed: Array) -> Array:
    """Executions of instructions, in which a thread that waits at a barrier counts once.

    Engines execute a barrier again when they find that a thread may continue.
    """
    specs = [INSTRUCTIONS[inst.name] for inst in program.instructions]
    waits = [at for at, spec in enumerate(specs) if spec.barrier in ("wait", "both")]
    # Threads come to a label from elsewhere too, but to a barrier only from the instruction before it.
    for at in reversed(waits):
        if at + 1 < len(specs) and not specs[at + 1].is_label:
            executed[at] = executed[at + 1]
    for at in waits:
        if at and (at + 1 == len(specs) or specs[at + 1].is_label) and not specs[at - 1].jumps:
            executed[at] = executed[at - 1]
    return executed


def _difference(one: DeviceMemory, other: DeviceMemory) -> tuple[int, str, int, int, int] | None:
    """The first allocation in which two memories differ: how many bytes do, its name, the first of these, and both."""
    for buffer in one.buffers:
        a, b = one.bytes_of(buffer), other.bytes_of(buffer)
        wrong = np.flatnonzero(a != b)
        # Records are printed in any order.
        if len(wrong) and buffer.name != PRINT_BUFFER:
            at = int(wrong[0])
            return len(wrong), buffer.name, at, int(a[at]), int(b[at])
    return None


def _implicit(kind: str, size: Grid) -> bytes:
    return np.array(size.block if kind == "LOCAL_SIZE" else size.grid, np.uint32).tobytes()


def _namer(size: Grid, group_size: int, first: int = 0) -> Callable[[int], str]:
    """A function that names threads in messages; it numbers them from the thread `first` of the launch on."""

    def name(thread: int) -> str:
        group, number = divmod(first + thread, group_size)
        return name_of(place_in(size.grid, group), number)

    return name


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
                    fault.message, fault.notes = f"'cf.assert' op does not hold: {record.text}", fault.notes[:1]
                    break
            raise
        else:
            self._read(memory)

    def _read(self, memory: DeviceMemory) -> list[Record]:
        data = memory.bytes_of(self._buffer)
        records, lost = read_records(data)
        # Zero the records: their order depends on the engine, and `engine="both"` compares all memory.
        data[FIRST_RECORD : int(data[:4].view(np.uint32)[0])] = 0
        self.text = "".join(r.text for r in records if not r.stops)
        if lost:
            print(f"{lost} bytes of output are lost: the buffer has {BUFFER_BYTES}", file=sys.stderr)
        return records


# The progress bar of long runs at a terminal.

PATIENCE = 1.0
"""The bar appears after this many seconds."""


@contextmanager
def progress_bar(title: str, total: int, wanted: bool = True) -> Iterator[Callable[[int], None]]:
    """A progress bar of a launch's workgroups, on standard error if that is a terminal, which disappears at the end.

    Yields:
        What sets the number of workgroups that have ended.
    """
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done: None
        return
    # Its import takes a tenth of the time of a first kernel, and only terminals need it.
    from tqdm import tqdm

    with tqdm(
        total=total, desc=title, unit=" workgroups", leave=False, dynamic_ncols=True, delay=PATIENCE, file=sys.stderr
    ) as bar:

        def show(done: int) -> None:
            bar.update(max(done - bar.n, 0))

        yield show


# A trace of one hardware thread, and the table of a launch's statistics.

_SHOWN = 16


class Tracer(Struct):
    """Prints each instruction of one thread, with the registers that it changed.

    Attributes:
        kernel: the kernel.
        group: the traced workgroup.
        thread: the traced thread of the workgroup.
        emit: prints a line.
    """

    kernel: Launcher
    group: Dim
    thread: int
    emit: Callable[[str], None]
    _regs: Array = field(default_factory=lambda: np.zeros(0, np.uint8))

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        """See `engines.interpreter.Observer`."""
        for row in self._watched(batch, rows):
            program = self.kernel.program
            self.emit(f"{index:5d}: {write_statement(program.instructions[index], program.modern)}")
            for line in self._changes(index, batch, row):
                self.emit(f"         {line}")
            self._regs = batch.regs[row].copy()

    def _watched(self, batch: Batch, rows: Array) -> Iterator[int]:
        words = batch.regs[rows, :32].view(np.uint32)
        x, y, z = self.group
        match = (words[:, 1] == x) & (words[:, 6] == y) & (words[:, 7] == z) & (batch.numbers[rows] == self.thread)
        yield from (int(r) for r in rows[match])

    def _changes(self, index: int, batch: Batch, row: int) -> Iterator[str]:
        inst = self.kernel.program.instructions[index]
        for access in accesses(inst, self.kernel.target):
            if not access.writes:
                continue
            # If the instruction names an alias of the variable, its type is the one to print.
            named = inst.values.get("dst")
            var = named.var if named is not None and getattr(named, "var", None) is not None else access.var
            size = var.format.bytes
            base = self.kernel.allocation.offset(access.var)
            start, end = access.start // size * size, -(-access.end // size) * size
            now = batch.regs[row, base + start : base + end]
            before = self._regs[base + start : base + end] if len(self._regs) else np.zeros_like(now)
            changed = (now != before).reshape(-1, size).any(axis=1)
            values = np.ascontiguousarray(now).view(var.format.dtype)
            root = var.root[1]
            shown = [f"[{(start - root) // size + i}] = {values[i]}" for i in np.nonzero(changed)[0][:_SHOWN]]
            more = f", and {int(changed.sum()) - _SHOWN} more" if changed.sum() > _SHOWN else ""
            if shown:
                yield f"{var.name}: {', '.join(shown)}{more}"
        flag = inst.values.get("dst")
        if flag is not None and isinstance(getattr(flag, "var", None), Predicate):
            at = self.kernel.program.predicates.index(flag.var)
            bits = "".join("1" if b else "0" for b in batch.flags[row, at, : flag.var.count])
            yield f"{flag.var.name}: {bits}"


def _by_category(program: Program, done: Statistics) -> Counter[str]:
    """The executed instructions by category."""
    counts: Counter[str] = Counter()
    for inst, times in zip(program.instructions, done.executed):
        spec = INSTRUCTIONS[inst.name]
        if not spec.is_label:
            counts[spec.category] += int(times)
    return counts


def statistics_json(program: Program, done: Statistics, **more: Any) -> str:
    """A launch's statistics as one line of JSON, with the same numbers as `statistics_table`.

    Args:
        more: further members of the object.
    """
    counts = _by_category(program, done)
    found = {
        **more,
        "kernel": program.name,
        "threads": done.threads,
        "instructions": {"all": sum(counts.values()), **dict(sorted(counts.items()))},
        "bytes": {f"{memory} {category}": moved for (memory, category), moved in sorted(done.traffic.items())},
        "registers": {"pressure": done.allocation.pressure, "available": done.allocation.registers},
    }
    return json.dumps(found)


def statistics_table(program: Program, done: Statistics) -> str:
    """The table of a launch's statistics: instructions by category, bytes moved, register pressure."""
    counts = _by_category(program, done)
    out = [f"kernel '{program.name}': {done.threads} hardware threads"]
    out.append(f"  instructions    {sum(counts.values()):>14}")
    out += [f"    {name:<13} {count:>14}" for name, count in sorted(counts.items())]
    for (memory, category), moved in sorted(done.traffic.items()):
        out.append(f"  {memory} {category + ' bytes':<13} {moved:>12}")
    out.append(f"  {done.allocation.report()}")
    return "\n".join(out)


def summary(program: Program, done: Statistics, engine: str, seconds: float) -> str:
    """A summary of a launch in one line: kernel, time, and the speed of its matrix products if it has any.

    Args:
        seconds: the time of the call.
    """
    operations = sum(
        2 * inst["RC"] * inst.exec_size * inst["SD"] * ops_per_channel(inst["W"], inst["A"]) * int(times)
        for inst, times in zip(program.instructions, done.executed)
        if "SD" in inst.values
    )
    speed = f", {operations / seconds / 1e9:.3g} GFLOP/s in dpas" if operations else ""
    return f"{program.name}: {done.threads} hardware threads in {seconds:.3g} s on the {engine} engine{speed}"
