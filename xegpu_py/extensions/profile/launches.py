"""Launches that are counted: all workgroups of a grid, or a sample of them."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct, structs

from xegpu_py.engines.jit.checks import Log, Records
from xegpu_py.engines.jit.thread_function import block_starts
from xegpu_py.extensions.profile.counts import KINDS, STEPS, Counts
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Prepared
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import Root, effects, flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Indirect, Raw, Variable, variables
from xegpu_py.visa.program import Dim, Instruction, Program, analysis


class ProfiledLaunch(Struct):
    """Workgroups of a launch that ran, and what they did.

    Attributes:
        kernel: the version of the kernel that ran.
        grid: workgroups of the launch in x, y, z.
        group_size: hardware threads of a workgroup.
        groups: the numbers of the workgroups that ran.
        counts: their counts.
        pitches: bytes from one row of each array to the next, by the names of their buffers.
    """

    kernel: Kernel
    grid: Dim
    group_size: int
    groups: Sequence[int]
    counts: Counts
    pitches: dict[str, int] = {}


_PLACES = ("address", "base", "width", "height", "pitch", "x", "y")
"""The operands of messages that say which memory they access."""


def _placing(inst: Instruction) -> set[Variable]:
    """The variables that say which memory a message accesses."""
    return {var.root[0] for var in variables(inst.values.get(name) for name in _PLACES)}


@analysis
def without_effect(program: Program, target: Target, counted: Collection[str] = KINDS) -> frozenset[int]:
    """The instructions on whose results neither control flow, nor the lanes that act, nor addresses depend.

    Args:
        counted: the categories of the messages whose addresses these are.
    """
    instruction_effects = [effects(inst, target) for inst in program.instructions]
    needed: set[Root | None] = set()
    live: set[int] = set()
    for at, inst in enumerate(program.instructions):
        spec = INSTRUCTIONS[inst.name]
        # Places of registers that are not known are looked at before they are accessed.
        indirect = any(isinstance(value, Indirect) for value in inst.values.values())
        if spec.decides or spec.category == "sync" or indirect:
            needed.update(instruction_effects[at].read)
            live.add(at)
        elif spec.is_message and spec.category in counted:
            needed.update(_placing(inst))
        if inst.guard is not None and not spec.selects and not (spec.is_message and spec.category not in counted):
            needed.update(instruction_effects[at].tests)
    changed = True
    while changed:
        changed = False
        memories = {
            inst.values.get("sfid", "ugm")
            for at, inst in enumerate(program.instructions)
            if at in live and INSTRUCTIONS[inst.name].is_message
        }
        for at, inst in enumerate(program.instructions):
            spec = INSTRUCTIONS[inst.name]
            stores = spec.category in ("store", "atomic") and inst.values.get("sfid", "ugm") in memories
            if at not in live and (stores or not needed.isdisjoint(instruction_effects[at].written)):
                live.add(at)
                needed.update(instruction_effects[at].read)
                changed = True
    return frozenset(range(len(program.instructions))) - live


@analysis
def reduced(program: Program, target: Target, counted: Collection[str] = KINDS) -> Program:
    """The program without what has no effect on control flow, the lanes that act, and addresses.

    Instructions have the same indices. Messages whose results are not needed are loads without a destination.
    Arithmetic remains where lanes are counted, and computes with registers that are not written.

    Args:
        counted: see `without_effect`.
    """
    skipped = without_effect(program, target, counted)
    divergent, nothing, instructions = flow_of(program).divergent, Instruction("fence_sw"), list(program.instructions)
    for at in skipped:
        inst, spec = instructions[at], INSTRUCTIONS[instructions[at].name]
        if spec.is_message and spec.category in counted:
            name = "lsc_load_block2d" if "block" in inst.values else "lsc_load"
            instructions[at] = inst.replaced(name=name, values={**inst.values, "dst": Raw(None)})
        elif spec.is_message or not (divergent or (inst.guard and not spec.selects)):
            instructions[at] = nothing
    return structs.replace(program, instructions=tuple(instructions))


class Logged(Struct):
    """A launch whose messages are recorded as it runs; memory does not change.

    Attributes:
        kernel: the kernel that runs; its program is `reduced`, unless it prints.
        prepared: its arguments.
    """

    kernel: Kernel
    prepared: Prepared

    @classmethod
    def of(cls, kernel: Kernel, prepared: Prepared, counted: Collection[str] = KINDS) -> Logged:
        """The launch of a kernel; see `Kernel.prepared` and `without_effect`."""
        logged_kernel = kernel.with_engine("jit", threads=1)
        program, memory = logged_kernel.executor.runnable, prepared.memory
        if not program.prints:
            program = logged_kernel.executor.runnable = reduced(program, logged_kernel.target, counted)
        logged_kernel.executor.layout = structs.replace(logged_kernel.executor.layout, logs=True)
        if any(INSTRUCTIONS[inst.name].category in ("store", "atomic") for inst in program.instructions):
            memory = memory.copy()
        return cls(logged_kernel, structs.replace(prepared, staged=None, memory=memory))

    def run(
        self, receive: Callable[[Mapping[int, Records]], None], groups: Iterable[range], path: int = 0
    ) -> tuple[Array, Array]:
        """Run workgroups, and take their records; what they print is dropped.

        Args:
            receive, path: see `engines.jit.checks.Log`.
            groups: ranges of the numbers of workgroups, which run one after the other.

        Returns:
            By how many threads each instruction was executed, and the lanes in which it acted (`Log.lanes`).

        Raises:
            DiagnosticError: if the kernel fails.
        """
        kernel = self.kernel
        kernel.executor.log = log = Log(kernel.executor.runnable, receive, path)
        executed = np.zeros(len(kernel.program.instructions), np.int64)
        with contextlib.redirect_stdout(io.StringIO()):
            for kernel.executor.groups in groups:
                executed += kernel.executor.run(self.prepared).executed
        return executed, log.lanes


RUN, RUN_LINES = 32, 1 << 13
"""The most workgroups of a sample that follow each other, and the lines that more than two access at most."""


def sample_of(grid: Dim, lines: int, most: int = 6) -> list[int]:
    """Workgroups of a grid that stand for all: one in the middle, its neighbours in x, y and z, some far away, and
    those that follow it if they access few lines.

    Args:
        lines: how many lines a workgroup accesses.
    """
    x, y, z = grid
    middle = [max(0, n // 2 - (n > 1)) for n in grid]
    steps = (1, x, x * y)
    first = middle[0] + middle[1] * x + middle[2] * x * y
    sample = [first, *(first + step for step, n in zip(steps, grid) if n > 1)]
    count = x * y * z
    for share in (0.93, 0.13, 0.31, 0.71):
        if len(sample) >= most:
            break
        sample.append(int(share * count))
    following = range(first, first + min(x - middle[0], 1 + RUN_LINES // max(lines, 1), RUN))
    return list(dict.fromkeys([*sample, *following]))


Groups = Sequence[int] | Literal["sample"] | None
"""The numbers of workgroups that run, or "sample" for some that stand for all; None for all."""


def counted(kernel: Kernel, prepared: Prepared, groups: Groups = None, trace_limit: int = 1 << 22) -> ProfiledLaunch:
    """Count what a launch does.

    Args:
        kernel, prepared: see `Kernel.prepared`.
        groups: the workgroups that run. If these are not all, distinct bytes are not counted.
        trace_limit: the number of lines after which the trace ends.
    """
    size = prepared.size
    logged = Logged.of(kernel, prepared)
    memory, starts = logged.prepared.memory, block_starts(logged.kernel.executor.runnable)
    counts = Counts(kernel.program, kernel.target, memory, size, starts, trace_limit, sample=groups is not None)
    if groups is None:
        workgroups: Sequence[int] = range(math.prod(size.grid))
        counts.end(*logged.run(counts.receive, [range(len(workgroups))], STEPS))
        return ProfiledLaunch(kernel, size.grid, size.threads(kernel.program), workgroups, counts)
    workgroups = sample_of(size.grid, RUN_LINES)[:1] if groups == "sample" else groups
    counts.end(*logged.run(counts.receive, [range(group, group + 1) for group in workgroups]))
    if groups == "sample":
        workgroups = sample_of(size.grid, int(counts.tables["lines"].sum()))
        counts.end(*logged.run(counts.receive, [range(group, group + 1) for group in workgroups[1:]]))
    return ProfiledLaunch(kernel, size.grid, size.threads(kernel.program), workgroups, counts)


def launched(
    kernel: Kernel,
    arguments: Sequence[Any],
    grid: int | Sequence[int],
    block: int | Sequence[int] | None = None,
    groups: Groups = None,
    trace_limit: int = 1 << 22,
) -> ProfiledLaunch:
    """Count what workgroups do; see `counted`. Arrays do not change.

    Raises:
        TypeError, ValueError, DiagnosticError: as a call of the kernel.
    """
    counted_launch = counted(*kernel.prepared(arguments, grid, block), groups, trace_limit)
    arrays = [a for a in arguments if isinstance(a, np.ndarray) and a.ndim]
    counted_launch.pitches = {b.name: a.strides[0] for b, a in zip(counted_launch.counts.buffers, arrays) if a.ndim > 1}
    return counted_launch
