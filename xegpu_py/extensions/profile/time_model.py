"""A model of a kernel's time on a GPU: what each part of the GPU needs at least, and how these overlap.

A few workgroups of the launch are executed, and their counts stand for all. docs/model.md explains the model and shows
how good it is.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, structs

from xegpu_py.extensions.profile.caches import distinct, hits, new_lines
from xegpu_py.extensions.profile.counts import LINE
from xegpu_py.extensions.profile.gpus import Gpu, gpu
from xegpu_py.extensions.profile.launches import ProfiledLaunch, launched
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import Target
from xegpu_py.target import target as target_of
from xegpu_py.visa.dataflow import effects
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Destination, Flag, Immediate, Region
from xegpu_py.visa.program import Instruction, Program, analysis, extent


class Fitted(Struct, frozen=True):
    """The constants that are fitted to published times; all others have sources (`gpus`).

    Attributes:
        l1_latency: cycles from a message to its data.
        l2_latency, memory_latency: seconds that these levels add.
        gather_cycles: cycles of a core's cache for a line of which lanes access little.
        message_cycles: its cycles for any message, at least.
        overlap: the exponent of the norm that joins bounds: the greater, the better they overlap.
        issue: instructions that a vector engine issues in a cycle.
        atomic: seconds between two atomics of one line.
        dispatch: cycles of a core between the begins of two threads.
        exposed: the share of waiting for the L2 and the memory that other threads do not hide.
    """

    l1_latency: float = 45.0
    l2_latency: float = 160e-9
    memory_latency: float = 300e-9
    gather_cycles: float = 1.4
    message_cycles: float = 0.82
    overlap: float = 3.0
    issue: float = 1.5
    atomic: float = 40e-9
    dispatch: float = 62.5
    exposed: float = 0.8


FITTED = Fitted()
"""The constants as they were fitted; see `benchmarks/model/judge.py --fit`."""


class Prediction(Struct):
    """The predicted time of a launch: a model, and not a measurement.

    Attributes:
        gpu: the GPU's name.
        seconds: the time, the launch itself included.
        bound: the part of the GPU that binds: the name of the greatest of `bounds`.
        bounds: the seconds that each part needs at least.
        parts: the shares of parts in the time, whose sum is `seconds`. Parts that run together share the time of all of
            them; "launch" is the launch itself, "waiting" what other threads do not hide.
        threads: hardware threads of a vector engine that run together.
        groups: workgroups of a core that run together.
        sampled: workgroups that were executed.
        cycles: by the index of each instruction, the cycles that a thread spends there alone, for one execution.
        bytes: bytes that cross each level: "l1", "l2" and "memory".
        operations: operations of dpas.
    """

    gpu: str
    seconds: float
    bound: str
    bounds: dict[str, float]
    parts: dict[str, float]
    threads: float
    groups: int
    sampled: int
    cycles: list[float]
    bytes: dict[str, float]
    operations: float

    def __repr__(self) -> str:
        return f"<model of {self.gpu}: {self.seconds * 1e6:.4g} us = {self.sum_text()}; bound by {self.bound}>"

    def sum_text(self) -> str:
        """The parts of the time in microseconds as a sum, the greatest first."""
        shown = sorted((part for part in self.parts.items() if part[1] >= self.seconds / 1000), key=lambda p: -p[1])
        return " + ".join(f"{name} {seconds * 1e6:.3g}" for name, seconds in shown)


# Pipes of a vector engine.

PIPES = ("float", "int", "math", "dpas")


SHORT = "short"
"""Integers of 16 bits: the pipes of floats and of integers both execute them. OpenCL-Benchmark measures 2.7 times the
rate of 32-bit floats on a Max 1100 and on a B580, and one pipe would give at most twice that rate."""


def pipe_cycles(inst: Instruction, on: Gpu, forwarded: bool = False) -> tuple[str, float]:
    """The pipe that executes an instruction, or `SHORT`, and its cycles there; "" for those without.

    Args:
        forwarded: whether it reads the result of the instruction before it.
    """
    spec = INSTRUCTIONS[inst.name]
    if spec.category == "dpas":
        return "dpas", on.dpas_cycles * inst["RC"]
    if spec.category not in ("alu", "math"):
        return "", 0.0
    formats = [v.format for v in inst.values.values() if isinstance(v, (Region, Immediate))]
    formats += [v.var.format for v in inst.values.values() if isinstance(v, Destination)]
    bits = max((f.bits for f in formats), default=16)
    floating = any(f.is_float for f in formats)
    lanes = inst.exec_size
    if spec.category == "math":
        # IGC's table: 4 cycles for as many lanes as a vector engine has.
        return "math", max(1.0, lanes / on.lanes) * 4 * (2 if bits == 64 else 1)
    each: float = on.lanes
    if bits == 64:
        # Integers of 64 bits take two passes, since their operands have two registers (an assumption).
        each = on.double_lanes if floating else on.lanes / 2
    elif inst.name == "dp4a":
        each = on.lanes * on.dp4a_share
    elif all(f.bits == 16 for f in formats if f.is_float == floating) and inst.name != "mov":
        each = 2 * on.lanes
    elif not floating and inst.name in ("mul", "mad", "mulh"):
        # OpenCL-Benchmark: a multiplication and an addition of 32-bit integers at a third of the rate of floats.
        each = on.lanes / (3 if inst.name == "mad" else 2) if bits == 32 else on.lanes
    short = not floating and each == 2 * on.lanes
    if floating and inst.name == "mad":
        # Of two instructions in a row that each need the other's result, one finds it in an accumulator.
        each /= (1 + on.mad_cycles) / 2 if forwarded else on.mad_cycles
    # Instructions of 8 numbers of 64 bits are the halves of instructions of Xe-HPC.
    least = 0.5 if bits == 64 and lanes == 8 else 1.0
    return "float" if floating else SHORT if short else "int", max(least, lanes / each)


@analysis
def forwarded(program: Program) -> frozenset[int]:
    """The instructions that read the result of the instruction before them."""
    forwarded_positions = set()
    for at, (before, inst) in enumerate(itertools.pairwise(program.instructions), 1):
        dst = before.values.get("dst")
        if isinstance(dst, Destination) and any(
            isinstance(value, Region) and value.var == dst.var for value in inst.values.values()
        ):
            forwarded_positions.add(at)
    return frozenset(forwarded_positions)


@analysis
def taken_out(program: Program, target: Target) -> frozenset[int]:
    """The instructions that Intel's compiler takes out after vISA: copies, and the products of `_joined_products`.

    It propagates copies (IGC's `copyPropagation`) of a variable that one instruction writes to another such variable.
    """
    removed = set(_joined_products(program))
    writes = [effects(inst, target).written for inst in program.instructions]
    writers = Counter(itertools.chain.from_iterable(writes))
    for at, inst in enumerate(program.instructions):
        if inst.name != "mov" or inst.guard or inst.saturate:
            continue
        dst, src = inst["dst"], inst["src0"]
        if not (isinstance(dst, Destination) and isinstance(src, Region)) or src.modifier:
            continue
        a, b = dst.format, src.format
        same = a == b or (a.bits == b.bits and not a.is_float and not b.is_float)
        roots = (*writes[at], *effects(inst, target).read)
        if same and all(writers[root] <= 1 for root in roots):
            removed.add(at)
    return frozenset(removed)


def _joined_products(program: Program) -> frozenset[int]:
    """The multiplications of 16-bit integers that Intel's compiler joins with the addition of their result to `mad`."""
    writers: dict[object, list[int]] = {}
    readers: dict[object, list[int]] = {}
    for at, inst in enumerate(program.instructions):
        for value in inst.values.values():
            if isinstance(value, Destination):
                writers.setdefault(value.var, []).append(at)
            elif isinstance(value, Region):
                readers.setdefault(value.var, []).append(at)
    joined = set()
    for at, inst in enumerate(program.instructions):
        if inst.name != "mul" or inst.guard:
            continue
        var = inst["dst"].var
        uses = readers.get(var, [])
        if (
            var.format.bits == 16
            and not var.format.is_float
            and writers[var] == [at]
            and len(uses) == 1
            and uses[0] > at
        ):
            user = program.instructions[uses[0]]
            if user.name == "add" and user.exec_size == inst.exec_size:
                joined.add(at)
    return frozenset(joined)


def latency(inst: Instruction, on: Gpu) -> float:
    """Cycles until the result of an instruction that is no message can be read: IGC's LatencyTable."""
    spec = INSTRUCTIONS[inst.name]
    if spec.category == "dpas":
        return 21 + on.dpas_cycles * int(inst["RC"])
    extra = 0 if inst.exec_size <= 8 else 1 if inst.exec_size <= 16 else 3
    if spec.category == "math":
        return 17 + 4 * math.log2(max(inst.exec_size / 8, 1))
    if isinstance(inst.values.get("dst"), Flag):
        return 16 + extra
    # IGC keeps the intermediate results of chains in accumulators; scalars, such as addresses, are in registers.
    return (6 if inst.exec_size > 1 else 10) + extra


SLM_LATENCY, WIDE_SLM_LATENCY = 28, 45
"""Cycles of loads from shared local memory, of up to 16 lanes and of more. Source: IGC's LatencyTable."""

BARRIER, BRANCH = 30, 23
"""Cycles of a barrier, and of a jump. Source: IGC's LatencyTable."""


# The time of a thread that runs alone: each instruction waits for its operands.

WINDOW = 32
"""Instructions among which Intel's compiler is assumed to choose the next one, when it schedules a block."""


class _Scheduled(Struct):
    """An instruction in a block: what it reads and writes, by number, and the cycles of its pipe and until its result.

    A message's cycles are given when the thread is followed. If it is `taken_out`, its operand is its result.
    """

    at: int
    reads: frozenset[int]
    writes: frozenset[int]
    cycles: float
    wait: float
    message: bool
    product: bool
    out: bool


def scheduled(program: Program, on: Gpu) -> tuple[list[_Scheduled | None], dict[int, int]]:
    """The instructions as they are scheduled, None for labels; and the last instruction of each loop by its first."""
    target, labels = target_of(on.target), program.labels
    loops: dict[int, int] = {}
    steps: list[_Scheduled | None] = []
    out, last_writes = taken_out(program, target), dict[object, int]()

    def numbers(roots: Iterable[object]) -> frozenset[int]:
        return frozenset(last_writes.setdefault(root, len(last_writes)) for root in roots)

    for at, inst in enumerate(program.instructions):
        spec = INSTRUCTIONS[inst.name]
        if spec.is_label:
            steps.append(None)
            continue
        if spec.jumps and labels[inst["label"]] <= at:
            start = labels[inst["label"]]
            loops[start] = max(at, loops.get(start, at))
        pipe, cycles = pipe_cycles(inst, on, at in forwarded(program))
        if spec.is_message or at in out:
            cycles = wait = 0.0
        elif spec.barrier or spec.jumps:
            cycles, wait = (BARRIER if spec.barrier else BRANCH), 0.0
        else:
            cycles, wait = max(cycles, 1.0), latency(inst, on)
        accesses = effects(inst, target)
        reads, writes = numbers(accesses.read), numbers(accesses.written)
        steps.append(
            _Scheduled(at, reads, writes, float(cycles), float(wait), spec.is_message, pipe == "dpas", at in out)
        )
    return steps, loops


def thread_cycles(
    program: Program,
    plan: tuple[list[_Scheduled | None], dict[int, int]],
    message_latency: Sequence[float],
    message_cycles: Sequence[float],
    window: int = WINDOW,
) -> Array:
    """The cycles that a thread spends at each instruction, for one execution, float64[instructions].

    A block's instructions are issued one after the other; of the next `window` that may change places, the one is next
    that waits least. A loop's body is followed twice, and the second time counts, since it finds the operands of the
    first.

    Args:
        plan: the program, `scheduled`.
        message_latency: cycles from each message to its data, float64[instructions].
        message_cycles: cycles in which it is sent.
        window: see `WINDOW`; 1 if registers do not hold what would be loaded earlier.
    """
    steps, loops = plan
    instructions = program.instructions
    cost = np.zeros(len(instructions))
    ready: dict[int, float] = {}
    fixed = [spec.decides or spec.category == "sync" for spec in (INSTRUCTIONS[i.name] for i in instructions)]
    now = 0.0

    def begin(step: _Scheduled) -> float:
        first = now
        for root in () if step.out else step.reads:
            if (when := ready.get(root, 0.0)) > first:
                first = when
        return first

    def run(step: _Scheduled) -> None:
        nonlocal now
        if step.out:
            when = max((ready.get(root, 0.0) for root in step.reads), default=0.0)
            ready.update((root, when) for root in step.writes)
            return
        before, now = now, begin(step)
        cycles, wait = step.cycles, step.wait
        if step.message:
            cycles, wait = message_cycles[step.at], message_latency[step.at]
        for root in step.writes:
            # Products that add to one accumulator follow each other without a gap.
            shared = step.product and root in step.reads
            ready[root] = now + (cycles if shared else max(wait, cycles))
        now += cycles
        cost[step.at] = now - before

    def block(pending: list[_Scheduled]) -> None:
        """Issue instructions, each as early as its operands and the others allow."""
        while pending:
            best, when = 0, begin(pending[0])
            reads, writes = set(pending[0].reads), set(pending[0].writes)
            for position in range(1, min(window, len(pending)) if when > now else 0):
                step = pending[position]
                free = (
                    writes.isdisjoint(step.reads) and writes.isdisjoint(step.writes) and reads.isdisjoint(step.writes)
                )
                if free and (start_cycle := begin(step)) < when:
                    best, when = position, start_cycle
                    if start_cycle <= now:
                        break
                reads |= step.reads
                writes |= step.writes
            run(pending.pop(best))

    def follow(first: int, end: int, inside: int) -> None:
        at = first
        while at < end:
            last = loops.get(at, -1)
            if at != inside and at <= last < end:
                for _ in range(2):
                    follow(at, last + 1, at)
                at = last + 1
                continue
            stop = at + 1
            # Loops begin at labels, which have places of their own.
            while stop < end and not fixed[at] and not fixed[stop]:
                stop += 1
            block([step for step in steps[at:stop] if step])
            at = stop

    follow(0, len(instructions), -1)
    return cost


# Prediction.

_CHANGED = 1 << 50
"""Added to the number of a line that a message changes."""


def predict(
    kernel: Kernel,
    arguments: Sequence[Any],
    grid: int | Sequence[int],
    on: str | Gpu | None = None,
    *,
    block: int | Sequence[int] | None = None,
    warm: bool = False,
    fitted: Fitted = FITTED,
) -> Prediction:
    """The time that a launch of a kernel is expected to take on a GPU: a model, and not a measurement.

    A few workgroups run. Arrays do not change, and may be as large as on the GPU: only what
    these workgroups access is touched.

    Args:
        kernel: the kernel, lowered for the GPU's target.
        arguments: its arguments. If no address depends on their contents, `numpy.empty` arrays will do.
        grid, block: as in a call of the kernel.
        on: the GPU, or its name; by default the usual one of the kernel's target.
        warm: whether the caches hold what an earlier launch with the same arguments has left there.

    Raises:
        ValueError: if there is no such GPU.
        TypeError, ValueError, DiagnosticError: as a call of the kernel.
    """
    whole = extent(grid, "grid")
    launch = launched(kernel, arguments, whole, block, "sample")
    return predicted(launch, on, warm=warm, fitted=fitted)


def predicted(
    launch: ProfiledLaunch, on: str | Gpu | None = None, *, warm: bool = False, fitted: Fitted = FITTED
) -> Prediction:
    """The prediction for a launch of which workgroups have run; see `predict`."""
    kernel = launch.kernel
    on = on if isinstance(on, Gpu) else gpu(on or kernel.options.target)
    return _Model(launch, on, fitted).predict(warm)


class _Model:
    """The quantities from which the time of a launch follows, each for an average workgroup."""

    def __init__(self, launch: ProfiledLaunch, on: Gpu, fitted: Fitted) -> None:
        self.done, self.on, self.fitted = launch, on, fitted
        self.program, self.counts = launch.kernel.program, launch.counts
        self.allocation = launch.kernel.executor.allocation
        self.groups = math.prod(launch.grid)
        self.sampled = len(launch.groups)
        self.threads = launch.group_size
        self.runs = self.counts.tables["executions"] / (self.sampled * self.threads)
        self.resident = self._resident()
        categories = [INSTRUCTIONS[inst.name].category for inst in self.program.instructions]
        # Programs of IGC are written before it schedules them, which takes fewer registers.
        self._beyond = set() if self.program.modern else set(self.allocation.beyond)
        self._writes = np.isin(categories, ("store", "atomic"))

    def _resident(self) -> int:
        """Workgroups that run together on a core: by threads, shared local memory and barriers."""
        on = self.on
        # A vector engine has 1024 registers: 8 threads of 128, or 4 of 256. Source: oneDNN's device_info.cpp.
        each = min(8, 1024 // self.allocation.registers)
        workgroups = each * on.engines // self.threads
        if self.program.slm_bytes:
            workgroups = min(workgroups, on.slm_bytes // self.program.slm_bytes)
        if any(INSTRUCTIONS[i.name].barrier for i in self.program.instructions):
            # Source: the occupancy calculator of oneAPI-samples.
            workgroups = min(workgroups, 32)
        return max(1, min(workgroups, 64))

    def predict(self, warm: bool) -> Prediction:
        """The time."""
        on, fitted = self.on, self.fitted
        l2_lines, share = self._first_level()
        memory_bytes = self._memory_bytes(warm)
        l2_bytes = l2_lines * LINE * self.groups
        missing = min(1.0, memory_bytes / l2_bytes) if l2_bytes else 0.0
        cache, sends = self._cache_cycles()
        # The core with most workgroups, and of it the vector engine with most threads.
        most = -(-self.groups // on.cores)
        crowded = -(-most * self.threads // on.engines)
        bounds: dict[str, float] = {}
        for pipe, busy in self._pipes().items():
            clock = on.clock * (on.dpas_share if pipe == "dpas" else 1.0)
            bounds[pipe] = float(crowded * busy / clock)
        bounds["issue"] = crowded * self._issued() / fitted.issue / on.clock
        bounds["dispatch"] = most * self.threads * fitted.dispatch / on.clock
        bounds["L1"] = most * cache / on.clock
        bounds["SLM"] = most * self._per_group("slm_cycles") / on.clock
        bounds["L2"] = l2_bytes / on.l2_rate
        bounds["memory"] = memory_bytes / (on.memory_rate * on.memory_share)
        bounds["atomics"] = self._atomics()
        plan, delays = scheduled(self.program, on), self._latencies(share, missing)
        # IGC's scheduler hides latencies only while registers suffice.
        window = 1 if self._beyond else WINDOW
        cycles, ready = (
            thread_cycles(self.program, plan, waits.tolist(), sends.tolist(), window)
            for waits in (delays, np.minimum(delays, fitted.l1_latency))
        )
        for at, inst in enumerate(self.program.instructions[:-1]):
            # A branch that is not taken takes its issue only.
            if INSTRUCTIONS[inst.name].jumps and inst.guard and self.runs[at] and plan[0][at + 1]:
                saved = (BRANCH - 1) * min(1.0, self.runs[at + 1] / self.runs[at])
                cycles[at], ready[at] = cycles[at] - saved, ready[at] - saved
        # A workgroup's last thread begins when all others have.
        alone = float(cycles @ self.runs) + self.threads * fitted.dispatch
        rounds = max(1.0, most / self.resident) / on.clock
        bounds["latency"] = rounds * alone
        waits = rounds * max(0.0, float((cycles - ready) @ self.runs))
        # Instructions that keep a pipe busy are issued meanwhile, and a launch is prepared while the previous one runs.
        busiest = max(bounds[pipe] for pipe in PIPES)
        parts = {**bounds, "issue": max(bounds["issue"] - busiest, 0.0), "launch": on.launch}
        del parts["latency"]
        powers = np.array(list(parts.values())) ** fitted.overlap
        busy = float(np.sum(powers) ** (1 / fitted.overlap))
        # Threads of one kernel wait for the L2 at the same time: others hide only a part of it.
        seconds = max(busy + fitted.exposed * waits, bounds["latency"])
        shares = {**dict(zip(parts, busy * powers / np.sum(powers))), "waiting": fitted.exposed * waits}
        if bounds["latency"] >= busy + fitted.exposed * waits:
            shares = {"latency": bounds["latency"]}
        bound = max(bounds, key=lambda name: bounds[name])
        products = [
            2 * i["RC"] * i.exec_size * i["SD"] * ops_per_channel(i["W"], i["A"]) * float(n)
            for i, n in zip(self.program.instructions, self.runs)
            if "SD" in i.values
        ]
        return Prediction(
            on.name,
            seconds,
            bound,
            bounds,
            {name: float(share) for name, share in shares.items()},
            min(self.resident, most) * self.threads / on.engines,
            self.resident,
            self.sampled,
            [float(c) for c in cycles],
            {"l1": self._per_group("lines") * LINE * self.groups, "l2": l2_bytes, "memory": memory_bytes},
            sum(products) * self.threads * self.groups,
        )

    def _per_group(self, name: str) -> float:
        return float(self.counts.tables[name].sum()) / self.sampled

    def _pipes(self) -> dict[str, float]:
        """Cycles of a thread in each pipe."""
        found = dict.fromkeys((*PIPES, SHORT), 0.0)
        out = taken_out(self.program, target_of(self.on.target))
        for at, (inst, n) in enumerate(zip(self.program.instructions, self.runs)):
            pipe, cycles = pipe_cycles(inst, self.on, at in forwarded(self.program))
            if pipe and n and at not in out:
                found[pipe] += cycles * n
        both = found.pop(SHORT)
        # They go to the pipe that has less to do.
        level = max((found["float"] + found["int"] + both) / 2, found["float"], found["int"])
        part = min(both, level - found["float"])
        found["float"] += part
        found["int"] += both - part
        return found

    def _issued(self) -> float:
        """Instructions of a thread."""
        out = taken_out(self.program, target_of(self.on.target))
        specs = [INSTRUCTIONS[i.name] for i in self.program.instructions]
        return float(sum(n for at, n in enumerate(self.runs) if not specs[at].is_label and at not in out))

    def _messages(self) -> Iterator[tuple[int, Instruction]]:
        for at, inst in enumerate(self.program.instructions):
            if INSTRUCTIONS[inst.name].is_message and self.runs[at]:
                yield at, inst

    def _cache_cycles(self) -> tuple[float, Array]:
        """Cycles of a core's cache for a workgroup, and cycles in which a thread sends each message."""
        on, tables, total = self.on, self.counts.tables, 0.0
        sends = np.ones(len(self.program.instructions))
        for at, inst in self._messages():
            executions = tables["executions"][at]
            if inst.values.get("sfid") == "slm":
                sends[at] = max(1.0, tables["slm_cycles"][at] / executions)
                continue
            whole = "block" in inst.values or inst["data"].transpose
            lines = tables["lines"][at]
            cycles = lines * LINE / on.l1_rate
            if not whole:
                # Lanes of one line share it; lines of which little is accessed are looked up one after the other.
                cycles += max(0.0, lines - tables["bytes"][at] / LINE) * self.fitted.gather_cycles
            cycles = max(cycles, executions * self.fitted.message_cycles)
            total += cycles
            sends[at] = max(1.0, cycles / executions)
        # Variables that do not fit the registers are in memory.
        if beyond := self._beyond:
            target = target_of(on.target)
            for inst, n in zip(self.program.instructions, self.runs):
                accesses = effects(inst, target)
                spilled = sum(a.end - a.start for a in (*accesses.reads, *accesses.writes) if a.var in beyond)
                total += spilled / on.l1_rate * n * self.threads * self.sampled
        return total / self.sampled, sends

    def _first_level(self) -> tuple[float, Array]:
        """Lines of a workgroup that its core's cache does not have, and for each instruction the share of its accesses
        that do not wait for others."""
        trace, on = self.counts.trace, self.on
        owner = trace.threads // self.threads
        # One workgroup stands for all: the middle one.
        first_group = owner == self.done.groups[0]
        lines, instructions = trace.lines[first_group], trace.instructions[first_group]
        # Stores and atomics are made in the L2.
        stores = self._writes[instructions]
        # Lines that workgroups far away load too are there once for all workgroups of the core, and one of them misses.
        together = min(self.resident, -(-self.groups // on.cores))
        far = [group for group in self.done.groups if abs(group - self.done.groups[0]) >= on.cores]
        far = far[:: max(1, len(far) // 16)]
        shared = np.zeros(len(lines))
        if far:
            shared = np.mean([np.isin(lines, trace.lines[owner == group]) for group in far], axis=0) * ~stores
        weight = 1 - shared * (1 - 1 / together)
        order = np.argsort(lines, kind="stable")
        ordered, times = lines[order], trace.times[first_group][order]
        first = np.r_[True, ordered[1:] != ordered[:-1]][: len(lines)]
        room = max(0, on.l1_bytes - self.program.slm_bytes * self.resident) / LINE / together
        each = weight[order[first]].mean() if len(first) else 1.0
        hit = hits(lines, int(room / each))
        misses = np.where(stores, weight, weight * (1 - hit))
        # Threads that access a line at the same time all wait for it: only an earlier access has brought it.
        later = first | np.r_[True, times[1:] != times[:-1]][: len(lines)]
        waits = np.empty(len(lines))
        waits[order] = misses[order][np.maximum.accumulate(np.where(later, np.arange(len(lines)), 0))]
        count = len(self.program.instructions)
        total = np.bincount(instructions, minlength=count)
        found = np.bincount(instructions, weights=1 - waits, minlength=count)
        halves = self.counts.tables["halves"]
        whole = np.divide(halves, self.counts.tables["lines"], out=np.full(len(halves), 2.0), where=halves > 0) - 1
        parts = on.part_store + (1 - on.part_store) * whole
        missed = float((misses * parts[instructions]).sum())
        # The trace of the workgroup may end early.
        traced = max(len(trace.lines), 1) / max(int(self.counts.tables["lines"].sum()), 1)
        return missed / min(traced, 1.0), np.divide(found, total, out=np.ones(count), where=total > 0)

    def _latencies(self, share: Array, missing: float) -> Array:
        """Cycles from each message to its data."""
        on, fitted = self.on, self.fitted
        latencies = np.zeros(len(self.program.instructions))
        beyond = (fitted.l2_latency + missing * fitted.memory_latency) * on.clock
        for at, inst in self._messages():
            if inst.values.get("sfid") == "slm":
                latencies[at] = SLM_LATENCY if inst.exec_size <= 16 else WIDE_SLM_LATENCY
            else:
                latencies[at] = fitted.l1_latency + (1 - share[at]) * beyond
        return latencies

    def _memory_bytes(self, warm: bool) -> float:
        """Bytes that the memory moves in the whole launch."""
        trace = self.counts.trace
        owner = trace.threads // self.threads
        # A line that is loaded and changed crosses twice: changed lines count as others, in buffers of their own.
        lines = trace.lines + np.where(self._writes[trace.instructions], _CHANGED, 0)
        order = np.argsort(owner, kind="stable")
        ends = np.searchsorted(owner[order], self.done.groups, "right")
        begins = np.searchsorted(owner[order], self.done.groups, "left")
        each = {g: distinct(lines[order[b:e]]) for g, b, e in zip(self.done.groups, begins, ends)}
        buffers = list(self.counts.buffers)
        buffers += [structs.replace(b, address=b.address + LINE * _CHANGED) for b in buffers]
        wave = self.resident * self.on.cores
        capacity = self.on.l2_bytes / LINE
        return LINE * new_lines(each, self.done.grid, buffers, wave, capacity, warm)

    def _atomics(self) -> float:
        """Seconds of the line that has most atomics."""
        hottest, shared = self.counts.hottest_line
        return hottest * (self.groups / self.sampled if shared else 1) * self.fitted.atomic
