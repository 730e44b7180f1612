"""Control flow and barriers: the next program counters of threads and lanes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xegpu_py.engines.faults import AccessFault
from xegpu_py.engines.golden import Table
from xegpu_py.engines.operands import ENDED, Batch, Layout, masker, reader
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.program import Immediate, Instruction, Program
from xegpu_py.visa.spec import LANES

Next = Callable[[Batch, Array, int, "Array | None"], Array]
"""Takes the batch, the indices of threads, the index of the instruction and the enabled lanes. Returns the next program
counter of each thread [threads], or of each lane [threads, 32]. `STAY` means that the thread waits."""

STAY = -1

CONTROL = Table()
"""Functions that build the `Next` of an instruction."""


@CONTROL.of("label")
def label(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Continue with the next instruction."""
    return lambda batch, rows, at, active: np.full(len(rows), at + 1)


@CONTROL.of("jmp")
def jmp(inst: Instruction, program: Program, layout: Layout) -> Next:
    """All enabled lanes jump to the label if the predicate is set."""
    target = program.labels[inst["label"]]
    if inst.guard is None:
        return lambda batch, rows, at, active: np.full(len(rows), target)
    mask = masker(inst, layout)

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        chosen = mask(batch, rows, None)
        assert chosen is not None
        return np.where(chosen[:, 0], target, at + 1)

    return step


@CONTROL.of("goto")
def goto(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Enabled lanes whose predicate bit is set jump to the label; of execution size 1 all or none."""
    if inst.exec_size == 1:
        together: Next = jmp(inst, program, layout)
        return together
    target = program.labels[inst["label"]]
    mask, first, count = masker(inst, layout), inst.first_lane, inst.exec_size

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        lanes = np.full((len(rows), LANES), at + 1)
        chosen = mask(batch, rows, active)
        lanes[:, first : first + count] = target if chosen is None else np.where(chosen, target, at + 1)
        return lanes

    return step


@CONTROL.of("ret")
def ret(inst: Instruction, program: Program, layout: Layout) -> Next:
    """End the enabled lanes."""
    return lambda batch, rows, at, active: np.full(len(rows), ENDED)


def _signal(batch: Batch, rows: Array, barrier: Array, expected: Array) -> None:
    if batch.barriers.signal(batch.groups[rows], barrier, expected):
        batch.waiting[:] = False
    if batch.races:
        batch.races.signalled(rows, barrier, batch.barriers.phases)


def _wait(batch: Batch, rows: Array, barrier: Array, at: int) -> Array:
    ready = batch.barriers.ready(rows, batch.groups[rows], barrier)
    if batch.races:
        batch.races.passed(rows[ready], barrier[ready])
    return np.where(ready, at + 1, STAY)


def _barrier_of(inst: Instruction, layout: Layout) -> Callable[[Batch, Array], tuple[Array, Array]]:
    """The barrier of threads, as an index among those of the batch, and the number of signals that it expects."""
    if "id" not in inst.values:
        return lambda batch, rows: (np.zeros(len(rows), np.int64), np.full(len(rows), batch.group_size))
    # Waits have no number of expected signals.
    read, count = (reader(o, 1, layout) for o in (inst["id"], inst.values.get("count", Immediate(0, "ub"))))

    def named(batch: Batch, rows: Array) -> tuple[Array, Array]:
        numbers, expected = (np.broadcast_to(r(batch, rows)[:, 0], len(rows)).astype(np.int64) for r in (read, count))
        known = batch.barriers.arrived.shape[1] - 1
        if (numbers >= known).any():
            i = int(np.argmax(numbers >= known))
            raise AccessFault(i, f"uses named barrier {numbers[i]}, but the kernel allocates {known}")
        return numbers + 1, expected

    return named


@CONTROL.of("sbarrier.signal", "nbarrier.signal")
def signal(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Signal the barrier."""
    barrier = _barrier_of(inst, layout)

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        _signal(batch, rows, *barrier(batch, rows))
        return np.full(len(rows), at + 1)

    return step


@CONTROL.of("sbarrier.wait", "nbarrier.wait")
def wait(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Wait for the next phase of the barrier."""
    barrier = _barrier_of(inst, layout)
    return lambda batch, rows, at, active: _wait(batch, rows, barrier(batch, rows)[0], at)


@CONTROL.of("barrier")
def signal_and_wait(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Signal, and wait."""
    barrier = _barrier_of(inst, layout)

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        fresh = rows[~batch.signalled[rows]]
        batch.signalled[fresh] = True
        if len(fresh):
            _signal(batch, fresh, *barrier(batch, fresh))
        to = _wait(batch, rows, barrier(batch, rows)[0], at)
        batch.signalled[rows[to != STAY]] = False
        return to

    return step
