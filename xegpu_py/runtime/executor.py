"""`Executor`: runs the launches of a program on an engine, or on both, with the checks of its options."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import structs

from xegpu_py.cache import Cache, folder_of
from xegpu_py.deferred import deferred
from xegpu_py.engines.faults import RuntimeFault
from xegpu_py.engines.jit.checks import MAX_REUSED_BYTES, RaceSuspected, Shadow
from xegpu_py.engines.jit.engine import Jit
from xegpu_py.engines.jit.llvm import LLVMError
from xegpu_py.engines.jit.native_code import processors
from xegpu_py.engines.jit.native_launch import NativeLaunch
from xegpu_py.engines.operands import BUILTIN_OFFSETS, Batch, RegisterPositions, new_batch
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.numerics.choices import selected
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.caller_warnings import warn_caller
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.executable import Executable
from xegpu_py.runtime.launch import (
    THREADS_AT_ONCE,
    EngineMismatch,
    ExecutionCounter,
    Prepared,
    Prints,
    Statistics,
    engine_of,
    first_difference,
    progress_bar,
    without_waits,
)
from xegpu_py.runtime.options import Options
from xegpu_py.runtime.repairs import Repairs
from xegpu_py.target import target as target_of
from xegpu_py.visa.allocate import HEADER_BYTES, engine_allocation
from xegpu_py.visa.choices import with_choices
from xegpu_py.visa.dataflow import flow_of, has_calls, may_multiply_unwritten, polls
from xegpu_py.visa.fp_modes import with_modes
from xegpu_py.visa.legacy_messages import expand_legacy
from xegpu_py.visa.operands import STATE
from xegpu_py.visa.program import PRINT_BUFFER, Instruction
from xegpu_py.visa.verify import verify

if TYPE_CHECKING:
    from xegpu_py.engines import interpreter as interpretation
    from xegpu_py.engines import races as race_detection
    from xegpu_py.engines.interpreter import Observer
    from xegpu_py.engines.jit.checks import Log
else:
    interpretation = deferred("xegpu_py.engines.interpreter")
    race_detection = deferred("xegpu_py.engines.races")


class Executor:
    """Runs launches of a program, whose arguments are in device memory.

    Attributes:
        name: the kernel's name.
        program: the program; messages of earlier GPUs are those for which they stand.
        runnable: the program as engines run it, whose instructions say how they round.
        options: the options.
        target: the GPU.
        sources: the texts that errors quote.
        repairs: tells which 2D blocks other messages move.
        engine: the engine that runs it: that of the options, or else the default.
        allocation: the registers of the variables.
        layout: where the variables lie.
        observer: called for each executed instruction; the interpreter only.
        log: takes the records of messages, if the layout says that there are some; native code only.
        groups: the numbers of the workgroups that run, x varying fastest; None for all.
    """

    def __init__(self, executable: Executable, options: Options) -> None:
        """Verify a lowered kernel's program, and place its variables.

        Raises:
            DiagnosticError: if the program breaks a rule, or does not fit with `strict_grf`.
        """
        self.name = executable.name
        self.sources = [executable.source] if executable.source else []
        program, self.options, self.target = executable.program, options, target_of(options.target)
        issues = verify(program, self.target)
        if issues:
            raise DiagnosticError([i.diagnostic() for i in issues], self.sources)
        # The text keeps messages of earlier GPUs; what runs has those for which they stand.
        self.program = program = expand_legacy(program, self.target)
        runnable = with_modes(program, self.target, options.dpas_denormals == "flush")
        self.runnable = with_choices(runnable, self.target, tuple(selected(options.choices).items()))
        self.engine = engine_of(options)
        self.repairs = Repairs(executable, self.target)
        self.observer: Observer | None = None
        self.log: Log | None = None
        self.groups: range | None = None
        self.allocation = engine_allocation(program, self.target, options.registers)
        predicates = {p: i for i, p in enumerate(program.predicates)}
        watch, races, bounds = (name in options.check for name in ("uninit", "races", "bounds"))
        watch_products = not watch and self.target.strict_dpas and may_multiply_unwritten(program, self.target)
        self.layout = RegisterPositions(
            self.target,
            self.allocation,
            predicates,
            watch or watch_products,
            races,
            bounds,
            executable.exact_messages,
            program.local_bits,
            watch_products=watch_products,
            exact_addresses=executable.is_assembly or executable.exact_addresses,
            watches_columns=executable.repaired is not None and not executable.exact_messages,
        )
        # The allocations whose loads native code records, as earlier launches found: see `Shadow`.
        self._recorded: set[int] = set()
        self._shadow: Shadow | None = None
        self._measured = False
        # The arguments of native code live as long as those of the launch.
        self._native_launches: WeakKeyDictionary[Prepared, NativeLaunch] = WeakKeyDictionary()
        if options.strict_grf and self.allocation.beyond:
            raise self.error(f"kernel '{self.name}' does not fit: {self.allocation.report()}")

    @functools.cached_property
    def interpreter(self) -> interpretation.Interpreter:
        """The interpreter of the program."""
        return interpretation.Interpreter(self.runnable, self.layout, self.options.model)

    def run(self, launch: Prepared) -> Statistics:
        """Run a launch, and copy its output to the user's arrays and to standard output.

        Raises:
            ValueError: if there is an observer, and the engine does not support it.
            DiagnosticError: if the kernel fails as it runs; arrays may hold what it had written by then.
        """
        if self.observer is not None and self.engine != "interpreter":
            raise ValueError(f"only the interpreter tells an observer what ran, not the engine '{self.engine}'")
        try:
            if self.options.schedules:
                self._compare_schedules(launch)
            statistics = self._printing(launch) if self.program.prints else self._on_engine()(launch)
        except RuntimeFault as fault:
            raise DiagnosticError([_diagnostic(fault)], self.sources) from None
        except EngineMismatch as mismatch:
            raise self.error(f"kernel '{self.name}': {mismatch}") from None
        except LLVMError as failure:
            note = "the interpreter runs it: engine='interpreter', or --engine=interpreter"
            raise self.error(f"kernel '{self.name}' has no native code: {failure}", note) from None
        if launch.staged:
            launch.staged.write_back(self.name)
        warn_caller(self.repairs.of_launch(statistics))
        return statistics

    def broken_rules(self, launch: Prepared) -> DiagnosticError | None:
        """Run on the interpreter, also what breaks a rule of the target's messages; memory does not change.

        Returns:
            The error of each instruction that breaks one, and that with which the run ends; None without errors.
        """
        tolerated: dict[int, RuntimeFault] = {}
        self.interpreter.tolerated = tolerated
        ends: list[Diagnostic] = []
        try:
            self.run(structs.replace(launch, memory=launch.memory.copy(), staged=None))
        except DiagnosticError as failure:
            ends += failure.diagnostics
        errors = [*map(_diagnostic, tolerated.values()), *ends]
        return DiagnosticError(errors, self.sources) if errors else None

    def error(self, message: str, *notes: str) -> DiagnosticError:
        """An error at the kernel."""
        where = self.program.where
        error = Diagnostic("error", message, where, tuple(Diagnostic("note", n, where) for n in notes))
        return DiagnosticError([error], self.sources)

    def compile(self) -> None:
        """Compile the native code, if launches run it."""
        self._on_engine()

    def optimize(self) -> None:
        """Run optimized native code from now on, since launches are measured."""
        self._measured = True
        if "jit" in self.__dict__:
            self.jit.code.optimize()

    def _on_engine(self) -> Callable[[Prepared], Statistics]:
        """The method that runs a launch on the kernel's engine."""
        if self.engine == "interpreter":
            return self._run_interpreted
        if self.engine == "both":
            return self._run_both
        # Only native code records messages.
        if self.log is None and not self._has_native_code:
            return self._run_in_place
        return self._run_race_checked if self.layout.races else self._run_native

    def _printing(self, launch: Prepared) -> Statistics:
        """Run a launch, and print what the kernel prints."""
        prints = Prints(launch.memory)
        launch = prints.given(launch)
        try:
            if self.engine == "both":
                return self._run_both(launch, prints)
            with prints.reading(launch.memory):
                return self._on_engine()(launch)
        finally:
            print(prints.text, end="")

    def _run_both(self, launch: Prepared, prints: Prints | None = None) -> Statistics:
        """Run a launch on both engines, and compare all memory."""
        interpreted = structs.replace(launch, memory=launch.memory.copy())
        with prints.reading(interpreted.memory) if prints else nullcontext():
            self._run_interpreted(interpreted)
        printed = prints and prints.text
        with prints.reading(launch.memory) if prints else nullcontext():
            statistics = (self._run_race_checked if self.layout.races else self._run_native)(launch)
        if prints and prints.text != printed:
            raise EngineMismatch("the engines print different texts")
        if unlike := first_difference(interpreted.memory, launch.memory):
            count, name, at, expected, actual = unlike
            raise EngineMismatch(
                f"the engines differ in {count} bytes of '{name}', first in byte {at}: {expected:#04x} of "
                f"the interpreter, {actual:#04x} of the JIT"
            )
        return statistics

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
        schedules = [(seed, delays) for seed in range(1, self.options.schedules + 1) for delays in (False, True)]
        for seed, delays in [(0, False), *schedules]:
            memory = launch.memory.copy()
            note = f"in the order of threads of seed {seed}{', with delayed stores' * delays}"
            self.interpreter.order = np.random.default_rng(seed) if seed else None
            self.interpreter.delays = delays
            try:
                self._run_interpreted(structs.replace(launch, memory=memory))
            except RuntimeFault as fault:
                if seed:
                    fault.notes.append(note)
                raise
            finally:
                self.interpreter.order, self.interpreter.delays = None, False
            if usual is None:
                usual = memory
                continue
            if unlike := first_difference(usual, memory):
                count, name, at, first_bytes, second_bytes = unlike
                raise RuntimeFault(
                    f"the results of kernel '{self.name}' depend on the order of threads: "
                    f"{count} bytes of '{name}' differ, first byte {at}: {first_bytes:#04x} or {second_bytes:#04x}",
                    [note],
                    self.program.where,
                )

    def _run_interpreted(self, launch: Prepared) -> Statistics:
        size, group_size = launch.size, launch.size.threads(self.program)
        groups = range(math.prod(size.grid)) if self.groups is None else self.groups
        count = len(groups)
        group_limit = max(1, THREADS_AT_ONCE // group_size)
        counter = ExecutionCounter(len(self.program.instructions), self.observer)
        self.interpreter.observer = counter
        traffic: Counter[tuple[str, str]] = Counter()
        misplaced: Instruction | None = None
        races: race_detection.Races | None = None
        # Delayed stores would seem to change what other threads have changed; the usual order has been checked.
        if self.layout.races and not self.interpreter.delays:
            races = race_detection.Races(
                self.runnable, group_size, count, len(launch.memory.data), size.namer(group_size)
            )
        with progress_bar(self.program.name, count, self.options.progress) as progress:
            # Most races show in the first workgroup.
            start, at_once = (
                0,
                1 if races and self.interpreter.order is None and not polls(self.program) else group_limit,
            )
            while start < count:
                group_numbers = np.asarray(groups[start : start + at_once], np.int64)
                batch = self._batch(group_numbers, launch)
                if races:
                    races.begin(start, len(group_numbers), batch.barriers.phases.shape[1], self.program.slm_bytes)
                    batch.races = races
                self.interpreter.run(batch, size.namer(group_size, start * group_size))
                traffic += batch.traffic
                misplaced = misplaced or batch.misplaced
                start, at_once = start + len(group_numbers), group_limit
                progress(start)
        executed = without_waits(self.runnable, counter.executed)
        return Statistics(count * group_size, executed, traffic, self.allocation, misplaced)

    @functools.cached_property
    def jit(self) -> Jit:
        """The program as native code."""
        cache = Cache(folder_of(self.options.cache))
        return Jit(
            self.runnable, self.layout, self.options.model, single_thread=False, cache=cache, quick=not self._measured
        )

    @functools.cached_property
    def _has_native_code(self) -> bool:
        """Whether LLVM compiles the program. If it fails, the interpreter runs the launches, with one warning."""
        try:
            return bool(self.jit)
        except LLVMError as failure:
            warn_caller(
                f"kernel '{self.name}' runs on the interpreter, which is slow: it has no native code: {failure}"
            )
            return False

    def _run_in_place(self, launch: Prepared) -> Statistics:
        """Run the interpreter on memory that was prepared for native code."""
        interpreted = launch.memory.copy()
        try:
            return self._run_interpreted(structs.replace(launch, memory=interpreted))
        finally:
            launch.memory.assign(interpreted)

    def _run_race_checked(self, launch: Prepared) -> Statistics:
        """Run native code that looks for races. If it fails, the interpreter runs the launch again, to report them."""
        memory, threads = launch.memory, math.prod(launch.size.grid) * launch.size.threads(self.program)
        while True:
            earlier_shadow, self._shadow = self._shadow, None
            workers = self.options.threads or processors()
            shadow = Shadow(self.runnable, memory, threads, workers, self._recorded, earlier_shadow)
            try:
                statistics = self._run_native(launch, shadow)
            except (RaceSuspected, RuntimeFault):
                shadow.restore()
                interpreted = memory.copy()
                try:
                    statistics = self._run_interpreted(structs.replace(launch, memory=interpreted))
                except RuntimeFault:
                    memory.assign(interpreted, PRINT_BUFFER)
                    raise
                memory.assign(interpreted)
                return statistics
            if shadow.bytes <= MAX_REUSED_BYTES:
                self._shadow = shadow
            unrecorded = shadow.unrecorded()
            if not unrecorded:
                return statistics
            shadow.restore()
            self._recorded |= unrecorded

    def _native_launch(self, prepared: Prepared) -> NativeLaunch:
        """The arguments of native code, kept for another launch with the same arguments."""
        if known := self._native_launches.get(prepared):
            return known
        program, size = self.runnable, prepared.size
        group_size = size.threads(program)
        registers = np.zeros(self.jit.frame.registers, np.uint8)
        self._fill(registers, prepared)
        launch = NativeLaunch(
            size.grid,
            size.block[:2],
            group_size,
            size.items_of_a_thread(program),
            registers,
            prepared.memory,
            size.namer(group_size),
            self._initialised_bytes(len(registers)) if self.layout.watch else None,
        )
        self._native_launches[prepared] = launch
        return launch

    def _run_native(self, prepared: Prepared, shadow: Shadow | None = None) -> Statistics:
        """Run native code."""
        program, launch = self.runnable, self._native_launch(prepared)
        if shadow or self.log or self.groups is not None:
            launch = structs.replace(launch, shadow=shadow, log=self.log, chosen=self.groups)
        with progress_bar(program.name, launch.groups, self.options.progress) as progress:
            statistics = self.jit.run(launch, self.options.threads, progress)
        executed = without_waits(program, statistics.executed)
        number = statistics.misplaced
        misplaced = None if number is None else program.instructions[number]
        return Statistics(launch.groups * launch.group_size, executed, statistics.traffic, self.allocation, misplaced)

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
            watch=self.layout.watch,
            calls=has_calls(program),
        )
        header = np.zeros((batch.threads, HEADER_BYTES), np.uint8)
        header_words = header.view(np.uint32)
        header_words[:, 2] = batch.numbers
        x, y, _ = size.grid
        for axis, coordinates in zip("xyz", (groups % x, groups // x % y, groups // (x * y))):
            header_words[:, BUILTIN_OFFSETS[f"%group_id_{axis}"] // 4] = coordinates[batch.groups]
        batch.regs[:, :HEADER_BYTES] = header
        self._fill(batch.regs, launch)
        for item in program.inputs:
            if item.kind == "LOCAL_ID":
                at = self.allocation.offset(item.var)
                batch.regs[:, at : at + item.size] = size.local_ids(program, batch.numbers).view(np.uint8)
        if batch.written is not None:
            batch.written[:] = self._initialised_bytes(batch.written.shape[1])
        return batch

    def _fill(self, registers: Array, launch: Prepared) -> None:
        """Write the inputs that all threads share to the registers, uint8[..., bytes]."""
        for item in self.program.inputs:
            if item.kind != "LOCAL_ID":
                value = launch.size.implicit(item.kind) if item.kind else launch.values[item.var.name]
                at = self.allocation.offset(item.var)
                registers[..., at : at + item.size] = np.frombuffer(value, np.uint8)

    def _initialised_bytes(self, count: int) -> Array:
        """Return the mask of register bytes that are initialised at the start of a thread, bool[count]."""
        initialised = np.zeros(count, bool)
        initialised[:HEADER_BYTES] = True
        for var in (*(item.var for item in self.program.inputs), *STATE.values()):
            if var.root[0] in self.allocation.offsets:
                at = self.allocation.offset(var)
                initialised[at : at + var.bytes] = True
        return initialised


def _diagnostic(fault: RuntimeFault) -> Diagnostic:
    notes = [(note, fault.position) for note in fault.notes] + ([fault.elsewhere] if fault.elsewhere else [])
    notes_of_fault = tuple(Diagnostic("note", text, where) for text, where in notes)
    return Diagnostic("error", fault.message, fault.position, notes_of_fault)
