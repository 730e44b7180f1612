"""Control flow and barriers: the next program counters of threads and lanes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xegpu_py.engines.faults import AccessFault
from xegpu_py.engines.operands import ENDED, MAX_CALLS, RETURNED, Batch, RegisterPositions, masker, reader
from xegpu_py.engines.semantics import Table
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.dataflow import divergent_lanes, has_calls
from xegpu_py.visa.operands import STATE, Immediate
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import LANES

Next = Callable[[Batch, Array, int, "Array | None"], Array]
"""Takes the batch, the indices of threads, their program counter and the enabled lanes. Returns the next one of each
thread [threads], or of each lane [threads, 32]. `STAY` means that the thread waits.

In functions a program counter is the index of an instruction minus `2**program.frame_bits` for each call that has not
returned."""

STAY = -ENDED


def _frames(program: Program) -> Callable[[int], int]:
    if not has_calls(program):
        return lambda at: 0
    return lambda at: at >> program.frame_bits << program.frame_bits


CONTROL = Table()
"""Functions that build the `Next` of an instruction."""


@CONTROL.of("label")
def label(inst: Instruction, program: Program, layout: RegisterPositions) -> Next:
    """Continue with the next instruction."""
    return lambda batch, rows, at, active: np.full(len(rows), at + 1)


@CONTROL.of("jmp")
def jmp(inst: Instruction, program: Program, layout: RegisterPositions) -> Next:
    """All enabled lanes jump to the label if the predicate is set."""
    target, frame = program.labels[inst["label"]], _frames(program)
    if inst.guard is None:
        return lambda batch, rows, at, active: np.full(len(rows), target + frame(at))
    mask = masker(inst, layout)

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        predicate = mask(batch, rows, None)
        assert predicate is not None
        return np.where(predicate[:, 0], target + frame(at), at + 1)

    return step


@CONTROL.of("goto")
def goto(inst: Instruction, program: Program, layout: RegisterPositions) -> Next:
    """Enabled lanes whose predicate bit is set jump to the label; of execution size 1 all or none."""
    if inst.exec_size == 1:
        return jmp(inst, program, layout)
    target, frame = program.labels[inst["label"]], _frames(program)
    mask, first_lane, lane_count = masker(inst, layout), inst.first_lane, inst.exec_size

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        lane_pcs = np.full((len(rows), LANES), at + 1)
        predicate, target_pc = mask(batch, rows, active), target + frame(at)
        lane_pcs[:, first_lane : first_lane + lane_count] = (
            target_pc if predicate is None else np.where(predicate, target_pc, at + 1)
        )
        return lane_pcs

    return step


@CONTROL.of("call", "fcall", "ifcall")
def call(inst: Instruction, program: Program, layout: RegisterPositions) -> Next:
    """Enabled lanes continue in a function. One with variables of its own keeps the registers of its caller."""
    mask, first_lane, lane_count, bits = masker(inst, layout), inst.first_lane, inst.exec_size, program.frame_bits
    own_lanes = divergent_lanes(program)
    target = _targets(inst, program, layout)

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        depth, predicate = -(at >> bits), mask(batch, rows, active)
        calling_lanes = np.zeros((len(rows), LANES), bool)
        if lane_count == 1:
            calling_lanes[:] = True if predicate is None or inst.guard is None else predicate
        else:
            calling_lanes[:, first_lane : first_lane + lane_count] = True if predicate is None else predicate
        if active is not None:
            calling_lanes &= active
        calling_threads = calling_lanes[:, own_lanes.start : own_lanes.stop].any(axis=1)
        if depth >= MAX_CALLS and calling_threads.any():
            raise AccessFault(int(np.argmax(calling_threads)), f"calls more than {MAX_CALLS} functions in each other")
        assert batch.stack is not None
        batch.stack[rows, depth] = np.where(calling_lanes, at + 1, batch.stack[rows, depth])
        if inst.name != "call":
            for row in rows[calling_threads]:
                batch.frames[row].append((batch.regs[row].copy(), batch.flags[row].copy()))
        callee_pc = target(batch, rows, calling_lanes) + _frames(program)(at) - (1 << bits)
        return np.where(calling_lanes, callee_pc, at + 1)

    return step


def _targets(inst: Instruction, program: Program, layout: RegisterPositions) -> Callable[[Batch, Array, Array], Array]:
    """The index of the instruction at which the function that each lane calls begins, [threads, 32] or one number."""
    if inst.name != "ifcall":
        index = program.labels[inst.values.get("label") or inst["callee"]]
        return lambda batch, rows, calling_lanes: np.array(index)
    read = reader(inst["src0"], inst.exec_size, layout)
    entry_points = {program.function_address(name): program.labels[name] for name in program.functions[1:]}

    def found(batch: Batch, rows: Array, calling_lanes: Array) -> Array:
        addresses = np.zeros((len(rows), LANES), np.int64)
        span = slice(inst.first_lane, inst.first_lane + inst.exec_size) if inst.exec_size > 1 else slice(None)
        addresses[:, span] = read(batch, rows).astype(np.int64)
        invalid_lanes = calling_lanes & ~np.isin(addresses, list(entry_points))
        if invalid_lanes.any():
            thread, lane = (int(n) for n in np.argwhere(invalid_lanes)[0])
            raise AccessFault(thread, f"calls address {addresses[thread, lane]:#x}, at which no function begins")
        return np.vectorize(lambda address: entry_points.get(address, 0), otypes=[np.int64])(addresses)

    return found


@CONTROL.of("ret", "fret")
def ret(inst: Instruction, program: Program, layout: RegisterPositions) -> Next:
    """End the enabled lanes; in a function they return to the caller."""
    if not has_calls(program):
        return lambda batch, rows, at, active: np.full(len(rows), ENDED)
    own_lanes, bits = divergent_lanes(program), program.frame_bits
    saved_variables = [STATE[name] for name in RETURNED if STATE[name] in layout.allocation.offsets]
    returned = [slice(layout.offset(var), layout.offset(var) + var.bytes) for var in saved_variables]

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        if at >= 0:
            return np.full(len(rows), ENDED)
        assert batch.stack is not None
        assert batch.lane_pc is not None
        if inst.name == "fret":
            deep = batch.lane_pc[rows, own_lanes.start : own_lanes.stop] < _frames(program)(at) + (1 << bits)
            waiting_threads = (
                np.zeros(len(rows), bool)
                if active is None
                else (deep & ~active[:, own_lanes.start : own_lanes.stop]).any(axis=1)
            )
            for row in rows[~waiting_threads]:
                regs, batch.flags[row] = batch.frames[row].pop()
                for span in returned:
                    regs[span] = batch.regs[row, span]
                batch.regs[row] = regs
        return batch.stack[rows, -(at >> bits) - 1]

    return step


def _signal(batch: Batch, rows: Array, barrier: Array, expected: Array) -> None:
    if batch.barriers.signal(batch.groups[rows], barrier, expected):
        batch.waiting[:] = False
    if batch.races:
        batch.races.signalled(rows, barrier, batch.barriers.phases)


def _wait(batch: Batch, rows: Array, barrier: Array, at: int) -> Array:
    released_threads = batch.barriers.ready(rows, batch.groups[rows], barrier)
    if batch.races:
        batch.races.passed(rows[released_threads], barrier[released_threads])
    return np.where(released_threads, at + 1, STAY)


def _barrier_of(inst: Instruction, layout: RegisterPositions) -> Callable[[Batch, Array], tuple[Array, Array]]:
    """The barrier of threads, as an index among those of the batch, and the number of signals that it expects."""
    if "id" not in inst.values:
        return lambda batch, rows: (np.zeros(len(rows), np.int64), np.full(len(rows), batch.group_size))
    # Waits have no number of expected signals.
    read, count = (reader(o, 1, layout) for o in (inst["id"], inst.values.get("count", Immediate(0, "ub"))))

    def named(batch: Batch, rows: Array) -> tuple[Array, Array]:
        numbers, expected = (np.broadcast_to(r(batch, rows)[:, 0], len(rows)).astype(np.int64) for r in (read, count))
        last_barrier = batch.barriers.arrived.shape[1] - 1
        if (numbers >= last_barrier).any():
            i = int(np.argmax(numbers >= last_barrier))
            raise AccessFault(i, f"uses named barrier {numbers[i]}, but the kernel allocates {last_barrier}")
        return numbers + 1, expected

    return named


@CONTROL.of("sbarrier.signal", "nbarrier.signal")
def signal(inst: Instruction, program: Program, layout: RegisterPositions) -> Next:
    """Signal the barrier."""
    barrier = _barrier_of(inst, layout)

    def step(batch: Batch, rows: Array, at: int, active: Array | None) -> Array:
        _signal(batch, rows, *barrier(batch, rows))
        return np.full(len(rows), at + 1)

    return step


@CONTROL.of("sbarrier.wait", "nbarrier.wait")
def wait(inst: Instruction, program: Program, layout: RegisterPositions) -> Next:
    """Wait for the next phase of the barrier."""
    barrier = _barrier_of(inst, layout)
    return lambda batch, rows, at, active: _wait(batch, rows, barrier(batch, rows)[0], at)


@CONTROL.of("barrier")
def signal_and_wait(inst: Instruction, program: Program, layout: RegisterPositions) -> Next:
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
