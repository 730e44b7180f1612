"""Control flow and barriers: where threads, and their lanes, go on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xegpu_py.engines.access import Layout, masker, reader
from xegpu_py.engines.batch import ENDED, Batch
from xegpu_py.engines.memory import AccessFault
from xegpu_py.engines.table import Table
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import LANES

Next = Callable[[Batch, Array, int, "Array | None"], Array]
"""Takes the threads' indices, the index of the instruction and the enabled lanes; gives where each thread [threads], or
each of its lanes [threads, 32], goes on. `STAY` means that it waits."""

STAY = -1

CONTROL = Table()
"""Functions that build the `Next` of an instruction."""


@CONTROL.of("label")
def label(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Go on."""
    return lambda batch, rows, at, active: np.full(len(rows), at + 1)


@CONTROL.of("jmp")
def jmp(inst: Instruction, program: Program, layout: Layout) -> Next:
    """All enabled lanes go to the label, if the predicate says so."""
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
    """Enabled lanes whose predicate bit is set jump to the label."""
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


def _group(batch: Batch, rows: Array) -> tuple[Array, Array]:
    return np.zeros(len(rows), np.int64), np.full(len(rows), batch.group_size)


def _wait(batch: Batch, rows: Array, barrier: Array, at: int) -> Array:
    ready = batch.barriers.ready(rows, batch.groups[rows], barrier)
    if batch.races:
        batch.races.passed(rows[ready], barrier[ready])
    return np.where(ready, at + 1, STAY)


@CONTROL.of("sbarrier.signal")
def sbarrier_signal(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Count at the workgroup's barrier."""

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        _signal(batch, rows, *_group(batch, rows))
        return np.full(len(rows), at + 1)

    return step


@CONTROL.of("sbarrier.wait")
def sbarrier_wait(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Wait for the phase of the workgroup's barrier that the thread has not yet waited for."""
    return lambda batch, rows, at, active: _wait(batch, rows, _group(batch, rows)[0], at)


@CONTROL.of("barrier")
def barrier(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Signal, and wait."""

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        fresh = rows[~batch.signalled[rows]]
        batch.signalled[fresh] = True
        if len(fresh):
            _signal(batch, fresh, *_group(batch, fresh))
        to = _wait(batch, rows, _group(batch, rows)[0], at)
        batch.signalled[rows[to != STAY]] = False
        return to

    return step


@CONTROL.of("nbarrier.signal")
def nbarrier_signal(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Count at a named barrier."""
    number, count = reader(inst["id"], 1, layout), reader(inst["count"], 1, layout)

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        _signal(batch, rows, _named(number(batch, rows), batch, rows), _numbers(count(batch, rows), rows))
        return np.full(len(rows), at + 1)

    return step


@CONTROL.of("nbarrier.wait")
def nbarrier_wait(inst: Instruction, program: Program, layout: Layout) -> Next:
    """Wait at a named barrier."""
    number = reader(inst["id"], 1, layout)

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        return _wait(batch, rows, _named(number(batch, rows), batch, rows), at)

    return step


def _numbers(values: Array, rows: Array) -> Array:
    return np.broadcast_to(values[:, 0], len(rows)).astype(np.int64)


def _named(values: Array, batch: Batch, rows: Array) -> Array:
    """Indices of named barriers among a batch's barriers."""
    numbers = _numbers(values, rows)
    count = batch.barriers.arrived.shape[1] - 1
    if (numbers >= count).any():
        i = int(np.argmax(numbers >= count))
        raise AccessFault(i, f"names barrier {numbers[i]}, but the kernel has {count}")
    return numbers + 1
