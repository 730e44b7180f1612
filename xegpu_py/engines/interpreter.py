"""The interpreter: the golden model of how a program runs.

All threads of a batch that are at the same instruction run it at once. Divergent threads and lanes are grouped by
program counter, and the group with the lowest program counter runs first, so that it converges with the others again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from msgspec import Struct

from xegpu_py.engines.access import Layout
from xegpu_py.engines.arithmetic import Step
from xegpu_py.engines.batch import ENDED, Batch, Rows
from xegpu_py.engines.golden import memory
from xegpu_py.engines.golden.control import CONTROL, STAY, Next
from xegpu_py.engines.golden.registers import register_step
from xegpu_py.engines.memory import AccessFault, RuntimeFault
from xegpu_py.engines.races import RaceFault
from xegpu_py.engines.watch import UnwrittenFault, watched_next, watched_step
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.formats import Array
from xegpu_py.visa.assembly import write_statement
from xegpu_py.visa.flow import divergent_lanes
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import LANES

_PATIENCE = 256
"""The number of runs of the threads farthest behind after which others run once; it is halved each time."""


class Observer(Protocol):
    """Is called after each instruction."""

    def ran(self, index: int, batch: Batch, rows: Array) -> None:
        """Instruction `index` ran for the threads `rows`."""


class Interpreter(Struct, dict=True):
    """A program that is prepared to run.

    Attributes:
        program: the program, which must be valid.
        layout: the positions of its variables.
        model: the rounding model of dpas.
        observer: an object that is called after each instruction, or None.
    """

    program: Program
    layout: Layout
    model: Model = "fma"
    observer: Observer | None = None

    def __post_init__(self) -> None:
        self._prepared: dict[int, tuple[Step | None, Next | None]] = {}

    @cached_property
    def _divergent(self) -> slice:
        """The number of lanes that can diverge. Other lanes run with the thread."""
        lanes = divergent_lanes(self.program)
        return slice(lanes.start, lanes.stop)

    def _prepare(self, at: int) -> tuple[Step | None, Next | None]:
        """The step of an instruction, or for control flow its `Next`, built on demand: native code needs few."""
        found = self._prepared.get(at)
        if found is None:
            inst = self.program.instructions[at]
            decide = CONTROL[inst.name](inst, self.program, self.layout) if inst.name in CONTROL else None
            step = None if decide else self._step(inst)
            if self.layout.watch:
                decide = decide and watched_next(decide, inst, self.layout)
                step = step and watched_step(step, inst, self.layout)
            found = self._prepared[at] = (step, decide)
        return found

    @cached_property
    def _steps(self) -> list[Step | None]:
        return [self._prepare(at)[0] for at in range(len(self.program.instructions))]

    def _step(self, inst: Instruction) -> Step:
        if inst.name in memory.STEPS:
            step: Step = memory.STEPS[inst.name](inst, self.layout, self.model)
            return step
        return register_step(inst, self.layout, self.model)

    def run(self, batch: Batch, name_thread: Callable[[int], str] = str) -> None:
        """Run a batch's threads until they end.

        Args:
            name_thread: names a thread in messages, from its index in the batch.

        Raises:
            RuntimeFault: if an access is refused, or in a deadlock.
        """
        runs, patience, favours = 0, _PATIENCE, 0
        with np.errstate(all="ignore"):
            while True:
                runnable = (batch.pc < ENDED) & ~batch.waiting
                if not runnable.any():
                    if (batch.pc < ENDED).any():
                        raise self.deadlock(batch, name_thread)
                    return
                places = batch.pc[runnable]
                at = int(places.min())
                runs = runs + 1 if (places != at).any() else 0
                if runs > patience:
                    # The threads farthest behind may poll memory that others write.
                    each = np.unique(places)
                    at = int(each[favours % len(each)])
                    runs, patience, favours = 0, max(patience // 2, 1), favours + 1
                self._run_group(batch, runnable, at, name_thread)

    def _run_group(self, batch: Batch, runnable: Array, at: int, name_thread: Callable[[int], str]) -> None:
        """Run the threads that are at an instruction until they diverge, or converge with others."""
        chosen = runnable & (batch.pc == at)
        rows = np.nonzero(chosen)[0]
        whole: Rows = slice(None) if len(rows) == batch.threads else rows
        stop = int(batch.pc[runnable & (batch.pc > at)].min(initial=ENDED))
        active = None
        if batch.lane_pc is not None:
            lanes = batch.lane_pc[rows, self._divergent]
            here = lanes == at
            stop = min(stop, int(lanes[~here].min(initial=ENDED)))
            if not here.all():
                active = np.ones((len(rows), LANES), bool)
                active[:, self._divergent] = here
        steps, observer = self._steps, self.observer
        while at != stop:
            step = steps[at]
            try:
                if step is None:
                    to = self._decide(batch, rows, at, active)
                else:
                    step(batch, whole, active)
            except AccessFault as fault:
                raise self.access_fault(fault, at, rows, name_thread) from None
            except UnwrittenFault as fault:
                raise self.unwritten_fault(fault, at, rows, name_thread) from None
            except RaceFault as fault:
                raise self._race_fault(fault, at, batch) from None
            if observer:
                observer.ran(at, batch, rows)
            if step is not None:
                at += 1
                continue
            if isinstance(to, int):
                if not at <= to <= stop:
                    # Threads that are ahead of other threads wait for them.
                    self._move(batch, rows, active, to)
                    return
                at = to
                continue
            self._diverge(batch, rows, active, to, at)
            return
        self._move(batch, rows, active, at)

    def run_one(self, at: int, batch: Batch, active: Array | None) -> None:
        """Run one instruction for all threads of a batch; program counters do not change.

        Args:
            active: their enabled lanes, bool[threads, 32]; None for all.

        Raises:
            AccessFault: if an access is refused.
        """
        step, decide = self._prepare(at)
        if step:
            step(batch, slice(None), active)
        elif decide:
            decide(batch, np.arange(batch.threads), at, active)

    def _decide(self, batch: Batch, rows: Array, at: int, active: Array | None) -> int | Array:
        """The next program counter: one for all threads, one for each thread, or one for each lane."""
        _, function = self._prepare(at)
        assert function
        to = function(batch, rows, at, active)
        decisive = to if to.ndim == 1 else to[:, self._divergent]
        first = int(decisive.flat[0])
        return first if first not in (STAY, ENDED) and (decisive == first).all() else to

    def _move(self, batch: Batch, rows: Array, active: Array | None, at: int) -> None:
        if batch.lane_pc is None:
            batch.pc[rows] = at
        else:
            self._diverge(batch, rows, active, np.full(len(rows), at), at)

    def _diverge(self, batch: Batch, rows: Array, active: Array | None, to: Array, at: int) -> None:
        """Set the program counters of threads, or of their enabled lanes."""
        stays = to == STAY
        if batch.lane_pc is None:
            batch.waiting[rows] = stays
            batch.pc[rows] = np.where(stays, at, to)
            return
        lanes = batch.lane_pc[rows]
        wide = np.broadcast_to(
            np.where(stays, at, to) if to.ndim == 2 else np.where(stays, at, to)[:, None], lanes.shape
        )
        lanes = wide if active is None else np.where(active, wide, lanes)
        batch.lane_pc[rows] = lanes
        batch.pc[rows] = lanes[:, self._divergent].min(axis=1)
        batch.waiting[rows] = stays.any(axis=1) if to.ndim == 2 else stays

    def _fault(self, message: str, at: int, notes: list[str]) -> RuntimeFault:
        inst = self.program.instructions[at]
        return RuntimeFault(
            f"'{inst.name}' {message}",
            [*notes, f"instruction {at} of kernel '{self.program.name}': {write_statement(inst)}"],
            inst.where,
        )

    def access_fault(self, fault: AccessFault, at: int, rows: Array, name_thread: Callable[[int], str]) -> RuntimeFault:
        """The failure of an access of instruction `at` that threads `rows` made."""
        inst = self.program.instructions[at]
        lanes = inst.exec_size if "address" in inst.values else 1
        thread, lane = divmod(fault.index, lanes)
        name = name_thread(int(rows[thread]))
        where = f"in {name}"
        if lanes > 1:
            where += f", lane {inst.first_lane + lane}"
        found = self._fault(fault.reason, at, [where])
        found.thread = name
        return found

    def unwritten_fault(
        self, fault: UnwrittenFault, at: int, rows: Array, name_thread: Callable[[int], str]
    ) -> RuntimeFault:
        """The error for a read of an unwritten register by instruction `at` in threads `rows`."""
        message = f"reads byte {fault.byte} of '{fault.var.name}', which was never written"
        return self._fault(message, at, [f"in {name_thread(int(rows[fault.thread]))}"])

    def _race_fault(self, fault: RaceFault, at: int, batch: Batch) -> RuntimeFault:
        assert batch.races
        mine, other = (batch.races.name_thread(thread) for thread in (fault.thread, fault.other))
        place = batch.memory.place(fault.place)
        if fault.slm:
            place = f"byte {fault.place % batch.slm.bytes} of the shared local memory"
        verb, past = (
            {"load": verbs[0], "store": verbs[1], "atomic": verbs[2]}[INSTRUCTIONS[inst.name].category]
            for inst, verbs in (
                (self.program.instructions[at], ("reads", "writes", "changes")),
                (fault.earlier, ("read", "written", "changed")),
            )
        )
        found = self._fault(f"{verb} {place}, which another thread has {past}, and nothing orders the two", at, [])
        found.notes = [f"in {mine}", *found.notes]
        if fault.unfenced:
            memory = "slm" if fault.slm else "ugm"
            found.notes.append(
                f"a barrier orders writes of {memory} only behind a fence (lsc_fence.{memory}, xegpu.fence)"
            )
        text = f"'{fault.earlier.name}' in {other}: {write_statement(fault.earlier)}"
        found.elsewhere = (text, fault.earlier.where)
        return found

    def deadlock(self, batch: Batch, name_thread: Callable[[int], str]) -> RuntimeFault:
        """The error for a batch whose threads all wait or have ended."""
        stuck = np.nonzero(batch.pc < ENDED)[0]
        notes = []
        for at in np.unique(batch.pc[stuck]):
            threads = stuck[batch.pc[stuck] == at]
            more = f" and {len(threads) - 1} more" if len(threads) > 1 else ""
            text = write_statement(self.program.instructions[at])
            notes.append(f"{name_thread(int(threads[0]))}{more} wait{'s' * (not more)} at instruction {at}: {text}")
        ended = int(((batch.pc >= ENDED) & np.isin(batch.groups, batch.groups[stuck])).sum())
        if ended:
            notes.append(f"{ended} threads of these workgroups have ended")
        at = int(batch.pc[stuck].min())
        return RuntimeFault(
            f"deadlock: {len(stuck)} threads of kernel '{self.program.name}' wait for signals that never come",
            notes,
            self.program.instructions[at].where,
        )
