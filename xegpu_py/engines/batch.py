"""The state of hardware threads that run together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from xegpu_py.engines.memory import LocalMemory, Memory
from xegpu_py.numerics.formats import TYPES, Array
from xegpu_py.visa.spec import LANES

if TYPE_CHECKING:
    from xegpu_py.engines.races import Races

Rows = Any
"""The threads of a batch: a slice for all, or an array of their indices."""

ENDED = 1 << 30
"""The program counter of a lane that has ended."""


def count_of(batch: Batch, rows: Rows) -> int:
    """The number of threads that `rows` selects."""
    return batch.threads if isinstance(rows, slice) else len(rows)


class Barriers(Struct):
    """The barriers of workgroups: number 0 is that of the whole workgroup, followed by the named barriers.

    A signal counts towards the barrier's current phase. A phase is complete when all have signalled, and each thread
    can then pass one wait.

    Attributes:
        arrived: int64[workgroups, barriers], signals towards the current phase.
        phases: int64[workgroups, barriers], phases that are complete.
        passed: int64[threads, barriers], phases that each thread has waited for.
    """

    arrived: Array
    phases: Array
    passed: Array

    def signal(self, groups: Array, barrier: Array, expected: Array) -> bool:
        """Count one signal of each thread, in the workgroups `groups`; return whether a phase became complete."""
        complete = False
        np.add.at(self.arrived, (groups, barrier), 1)
        for group, number, wanted in {(int(g), int(b), int(e)) for g, b, e in zip(groups, barrier, expected)}:
            while wanted and self.arrived[group, number] >= wanted:
                self.arrived[group, number] -= wanted
                self.phases[group, number] += 1
                complete = True
        return complete

    def ready(self, rows: Array, groups: Array, barrier: Array) -> Array:
        """The threads whose waits are satisfied; their phases are advanced."""
        free = np.asarray(self.phases[groups, barrier] > self.passed[rows, barrier])
        self.passed[rows[free], barrier[free]] += 1
        return free


class Batch(Struct):
    """Hardware threads that run together, of whole workgroups.

    Attributes:
        regs: uint8[threads, bytes], the register files.
        flags: bool[threads, predicates, 32].
        groups: int64[threads], index of each thread's workgroup within the batch.
        numbers: int64[threads], each thread's number within its workgroup.
        group_size: threads of a workgroup.
        memory: global memory.
        slm: shared local memory of the batch's workgroups.
        barriers: their barriers.
        pc: int64[threads], index of each thread's next instruction.
        lane_pc: int64[threads, 32], the same for each lane if lanes can diverge; otherwise None.
        waiting: bool[threads], whether each thread waits at a barrier.
        signalled: bool[threads], whether each thread has signalled the barrier at which it is.
        written: bool[threads, bytes], the bytes of registers that have been written; None if this is not recorded.
        races: the race detector; None if races are not looked for.
        traffic: bytes that messages moved, by memory ("ugm", "slm") and category ("load", "store", "atomic").
    """

    regs: Array
    flags: Array
    groups: Array
    numbers: Array
    group_size: int
    memory: Memory
    slm: LocalMemory
    barriers: Barriers
    pc: Array
    lane_pc: Array | None
    waiting: Array
    signalled: Array
    written: Array | None = None
    races: Races | None = None
    traffic: Counter[tuple[str, str]] = field(default_factory=Counter)
    views: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.views = {name: self.regs.view(fmt.dtype) for name, fmt in TYPES.items()}

    @property
    def threads(self) -> int:
        """Number of threads."""
        return len(self.regs)


def new_batch(
    workgroups: int,
    group_size: int,
    register_bytes: int,
    predicates: int,
    named_barriers: int,
    slm_bytes: int,
    memory: Memory,
    *,
    divergent: bool,
    watch: bool,
) -> Batch:
    """The state of workgroups before their first instruction; registers are zero.

    Args:
        register_bytes: bytes of a register file, a multiple of 8.
        divergent: whether the program has a `goto`.
        watch: whether reads of unwritten registers are looked for.
    """
    threads = workgroups * group_size
    barriers = 1 + named_barriers
    return Batch(
        regs=np.zeros((threads, register_bytes), np.uint8),
        flags=np.zeros((threads, max(predicates, 1), LANES), bool),
        groups=np.repeat(np.arange(workgroups), group_size),
        numbers=np.tile(np.arange(group_size), workgroups),
        group_size=group_size,
        memory=memory,
        slm=LocalMemory(np.zeros(workgroups * slm_bytes, np.uint8), slm_bytes),
        barriers=Barriers(
            np.zeros((workgroups, barriers), np.int64),
            np.zeros((workgroups, barriers), np.int64),
            np.zeros((threads, barriers), np.int64),
        ),
        pc=np.zeros(threads, np.int64),
        lane_pc=np.zeros((threads, LANES), np.int64) if divergent else None,
        waiting=np.zeros(threads, bool),
        signalled=np.zeros(threads, bool),
        written=np.zeros((threads, register_bytes), bool) if watch else None,
    )
