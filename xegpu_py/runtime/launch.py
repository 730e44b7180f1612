"""Launching a kernel over a grid of workgroups."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from xegpu_py.engines.access import BUILTIN_OFFSETS, Layout
from xegpu_py.engines.jit.cache import Cache, folder_of
from xegpu_py.engines.jit.engine import Jit, Launch
from xegpu_py.engines.jit.llvm import available
from xegpu_py.engines.jit.native import processors
from xegpu_py.engines.memory import RuntimeFault
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.memory import DeviceMemory
from xegpu_py.runtime.progress import Progress
from xegpu_py.target import Target
from xegpu_py.visa.allocate import HEADER_BYTES, Allocation, placed
from xegpu_py.visa.flow import flow_of
from xegpu_py.visa.program import PRINT_BUFFER, Dim, Program, place_in

if TYPE_CHECKING:
    from xegpu_py.engines.batch import Batch
    from xegpu_py.engines.interpreter import Interpreter, Observer
    from xegpu_py.engines.jit.races import Shadow
    from xegpu_py.engines.races import Races
    from xegpu_py.runtime.prints import Prints

THREADS_AT_ONCE = 1024
"""Hardware threads that run together: enough to make numpy's overhead small, few enough for caches."""

Engine = Literal["jit", "interpreter", "both"]
ENGINES: tuple[Engine, ...] = ("jit", "interpreter", "both")


@lru_cache
def default_engine() -> Engine:
    """The engine if none is named: the JIT, or the interpreter, with a warning, if LLVM's library is missing."""
    if available():
        return "jit"
    warnings.warn("LLVM's library is not found: kernels run on the interpreter, which is slow", stacklevel=3)
    return "interpreter"


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


class Launcher(Struct, dict=True):
    """A valid program with its registers allocated, ready to be launched.

    Attributes:
        program: the program.
        target: the GPU.
        model: the rounding model of dpas.
        watch: whether to check for reads of registers that were never written.
        races: whether to check for races.
        bounds: whether 2D blocks that are not within their surface are errors.
        registers: registers of a thread; None for the target's usual number.
        observer: called for each executed instruction; the interpreter only.
        engine: "jit", "interpreter", or "both", which runs the interpreter and then the JIT, and compares all memory.
        threads: the number of operating system threads of the JIT; None for one for each processor.
        cache: the folder where the JIT caches code, or "off"; None for the environment's setting.
        progress: whether long runs show a progress bar at a terminal.
    """

    program: Program
    target: Target
    model: Model = "fma"
    watch: bool = False
    races: bool = False
    bounds: bool = False
    registers: int | None = None
    observer: Observer | None = None
    engine: Engine = "jit"
    threads: int | None = None
    cache: str | PathLike[str] | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        self.allocation = placed(self.program, self.target, self.registers)
        predicates = {p: i for i, p in enumerate(self.program.predicates)}
        self._layout = Layout(self.target, self.allocation, predicates, self.watch, self.races, self.bounds)

    @cached_property
    def _interpreter(self) -> Interpreter:
        # Imported only to interpret: it imports all golden functions.
        from xegpu_py.engines.interpreter import Interpreter

        return Interpreter(self.program, self._layout, self.model)

    def run(self, size: Grid, arguments: Mapping[str, bytes], memory: DeviceMemory) -> Statistics:
        """Run the kernel, and copy its output to standard output.

        Args:
            size: the grid.
            arguments: the bytes of each argument, by the name of its variable.
            memory: global memory, which the kernel reads and writes.

        Raises:
            RuntimeFault: if the kernel fails.
            EngineMismatch: if both engines run, and their results differ.
            ValueError: if there is an observer, and the engine does not support it.
        """
        if self.observer is not None and self.engine != "interpreter":
            raise ValueError(f"only the interpreter tells an observer what ran, not the engine '{self.engine}'")
        if not self.program.prints:
            return self._run(size, arguments, memory, None)
        from xegpu_py.runtime.prints import Prints

        prints = Prints(memory)
        try:
            return self._run(size, {**arguments, PRINT_BUFFER: prints.address}, memory, prints)
        finally:
            print(prints.text, end="")

    def _run(
        self, size: Grid, arguments: Mapping[str, bytes], memory: DeviceMemory, prints: Prints | None
    ) -> Statistics:
        def reading(run: Callable[..., Statistics], memory: DeviceMemory) -> Statistics:
            if prints is None:
                return run(size, arguments, memory)
            with prints.reading(memory):
                return run(size, arguments, memory)

        if self.engine == "interpreter":
            return reading(self._run_interpreted, memory)
        if self.engine == "jit":
            return reading(self._run_native, memory)
        golden = memory.copy()
        reading(self._run_interpreted, golden)
        printed = prints and prints.text
        done = reading(self._run_native, memory)
        if prints and prints.text != printed:
            raise EngineMismatch("the engines print different texts")
        _compare(golden, memory)
        return done

    def _run_interpreted(self, size: Grid, arguments: Mapping[str, bytes], memory: DeviceMemory) -> Statistics:
        group_size = size.threads(self.program)
        count = math.prod(size.grid)
        at_once = max(1, THREADS_AT_ONCE // max(group_size, 1))
        counter = _Counter(len(self.program.instructions), self.observer)
        self._interpreter.observer = counter
        traffic: Counter[tuple[str, str]] = Counter()
        races: Races | None = None
        if self.races:
            from xegpu_py.engines.races import Races

            races = Races(self.program, group_size, count, len(memory.data), _namer(size, group_size))
        with Progress(self.program.name, count, self.progress) as progress:
            for start in range(0, count, at_once):
                chosen = [place_in(size.grid, n) for n in range(start, min(start + at_once, count))]
                batch = self._batch(chosen, group_size, size, arguments, memory)
                if races:
                    races.begin(start, len(chosen), batch.barriers.phases.shape[1], self.program.slm_bytes)
                    batch.races = races
                self._interpreter.run(batch, _namer(size, group_size, start * group_size))
                traffic += batch.traffic
                progress(start + len(chosen))
        return Statistics(count * group_size, counter.executed, traffic, self.allocation)

    @cached_property
    def jit(self) -> Jit:
        """The program as native code."""
        folder = folder_of(self.cache)
        return Jit(self.program, self._layout, self.model, alone=False, cache=Cache(folder) if folder else None)

    def _run_native(self, size: Grid, arguments: Mapping[str, bytes], memory: DeviceMemory) -> Statistics:
        """Run native code. If its race check fails, the interpreter runs the launch again, to report the race."""
        if not self.races:
            return self._launch_native(size, arguments, memory)
        from xegpu_py.engines.jit.races import RaceSuspected, Shadow

        before = memory.copy()
        threads = math.prod(size.grid) * size.threads(self.program)
        shadow = Shadow(self.program, memory, threads, self.threads or processors())
        try:
            return self._launch_native(size, arguments, memory, shadow)
        except (RaceSuspected, RuntimeFault):
            memory.data = before.data
            return self._run_interpreted(size, arguments, memory)

    def _launch_native(
        self, size: Grid, arguments: Mapping[str, bytes], memory: DeviceMemory, shadow: Shadow | None = None
    ) -> Statistics:
        program, group_size = self.program, size.threads(self.program)
        registers = np.zeros(self.jit.frame.registers, np.uint8)
        self._fill(registers, size, arguments)
        written = self._given(len(registers)) if self.watch else None
        launch = Launch(
            size.grid,
            size.block[:2],
            group_size,
            size.items_of_a_thread(program),
            registers,
            memory,
            _namer(size, group_size),
            written,
            shadow,
        )
        with Progress(program.name, launch.groups, self.progress) as progress:
            done = self.jit.run(launch, self.threads, progress)
        return Statistics(launch.groups * group_size, done.executed, done.traffic, self.allocation)

    def _batch(
        self, groups: Sequence[Dim], group_size: int, size: Grid, arguments: Mapping[str, bytes], memory: DeviceMemory
    ) -> Batch:
        from xegpu_py.engines.batch import new_batch

        program = self.program
        batch = new_batch(
            len(groups),
            group_size,
            max(self.allocation.bytes, self.target.grf_bytes),
            len(program.predicates),
            int(program.attributes.get("NBarrierCnt", 0)),
            program.slm_bytes,
            memory,
            divergent=flow_of(program).divergent,
            watch=self.watch,
        )
        header = np.zeros((batch.threads, HEADER_BYTES), np.uint8)
        words = header.view(np.uint32)
        words[:, 2] = batch.numbers
        for i, name in enumerate(("%group_id_x", "%group_id_y", "%group_id_z")):
            words[:, BUILTIN_OFFSETS[name] // 4] = np.array([g[i] for g in groups])[batch.groups]
        batch.regs[:, :HEADER_BYTES] = header
        self._fill(batch.regs, size, arguments)
        for item in program.inputs:
            if item.kind == "LOCAL_ID":
                at = self.allocation.offset(item.var)
                batch.regs[:, at : at + item.size] = size.local_ids(program, batch.numbers).view(np.uint8)
        if batch.written is not None:
            batch.written[:] = self._given(batch.written.shape[1])
        return batch

    def _fill(self, registers: Array, size: Grid, arguments: Mapping[str, bytes]) -> None:
        """Write the inputs that all threads share to the registers, uint8[..., bytes]."""
        for item in self.program.inputs:
            if item.kind != "LOCAL_ID":
                value = _implicit(item.kind, size) if item.kind else arguments[item.var.name]
                at = self.allocation.offset(item.var)
                registers[..., at : at + item.size] = np.frombuffer(value, np.uint8)

    def _given(self, count: int) -> Array:
        """Which bytes of the registers are initialised at the start of a thread, bool[count]."""
        found = np.zeros(count, bool)
        found[:HEADER_BYTES] = True
        for item in self.program.inputs:
            at = self.allocation.offset(item.var)
            found[at : at + item.size] = True
        return found


def _compare(golden: DeviceMemory, native: DeviceMemory) -> None:
    """Compare every byte of every buffer.

    Raises:
        EngineMismatch: if two bytes differ.
    """
    for buffer in golden.buffers:
        wrong = np.flatnonzero(golden.bytes_of(buffer) != native.bytes_of(buffer))
        if len(wrong):
            at = int(wrong[0])
            wanted, found = (int(m.bytes_of(buffer)[at]) for m in (golden, native))
            raise EngineMismatch(
                f"the engines differ in {len(wrong)} bytes of '{buffer.name}', first in byte {at}: {wanted:#04x} of "
                f"the interpreter, {found:#04x} of the JIT"
            )


def _implicit(kind: str, size: Grid) -> bytes:
    return np.array(size.block if kind == "LOCAL_SIZE" else size.grid, np.uint32).tobytes()


def _namer(size: Grid, group_size: int, first: int = 0) -> Callable[[int], str]:
    """A function that names threads in messages; it numbers them from the thread `first` of the launch on."""

    def name(thread: int) -> str:
        from xegpu_py.runtime.prints import name_of

        group, number = divmod(first + thread, group_size)
        return name_of(place_in(size.grid, group), number)

    return name
