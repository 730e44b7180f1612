"""The arguments of a launch of native code, and its outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from xegpu_py.engines.faults import GlobalMemory
from xegpu_py.numerics.formats import Array

if TYPE_CHECKING:
    from xegpu_py.engines.jit.checks import Log, Shadow


class NativeLaunch(Struct, dict=True):
    """The arguments of a launch.

    Attributes:
        grid: workgroups in x, y, z.
        block: work items of a workgroup in x and y.
        group_size: hardware threads of a workgroup.
        items: work items of a hardware thread.
        registers: the register file with which threads start, uint8[bytes].
        memory: global memory.
        name_thread: names a thread in messages, from its number among all threads.
        written: bool[bytes], which bytes of the registers are written before a thread starts; used only if reads of
            unwritten registers are looked for.
        shadow: the history of accesses of global memory; used only if races are looked for.
        log: the log of messages, or None; with a log one thread of the operating system runs all workgroups.
        across, down: the numbers of adjacent workgroups in x and in y that run together as one workgroup.
        chosen: the numbers of the workgroups that run; None for all.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int]
    group_size: int
    items: int
    registers: Array
    memory: GlobalMemory
    name_thread: Callable[[int], str]
    written: Array | None = None
    shadow: Shadow | None = None
    log: Log | None = None
    across: int = 1
    down: int = 1
    chosen: range | None = None

    @cached_property
    def table(self) -> Array:
        """The allocations of global memory, i64[buffers, 3]: see `GlobalMemory.ranges`."""
        return np.array(self.memory.ranges(), np.int64).reshape(-1, 3)

    @property
    def first(self) -> int:
        """The number of the first workgroup that runs."""
        return self.chosen.start if self.chosen else 0

    @property
    def groups(self) -> int:
        """The number of workgroups that run; workgroups that run together count as one."""
        x, y, z = self.grid
        return x * y * z // (self.across * self.down) if self.chosen is None else len(self.chosen)

    @property
    def threads(self) -> int:
        """Hardware threads of the workgroups that run together."""
        return self.group_size * self.across * self.down

    def name(self, group: int, thread: int) -> str:
        """The name of a thread among those that run together."""
        member, thread_in_group = divmod(thread, self.group_size)
        row, column = divmod(member, self.across)
        line, x = divmod(group, self.grid[0] // self.across)
        z, y = divmod(line, self.grid[1] // self.down)
        y, x = y * self.down + row, x * self.across + column
        return self.name_thread(((z * self.grid[1] + y) * self.grid[0] + x) * self.group_size + thread_in_group)


class Outcome(Struct):
    """Counts of a launch: executions of each instruction, and bytes moved by memory and category.

    Attributes:
        misplaced: the number of the first message that `RegisterPositions.watches_columns` notes.
    """

    executed: Array
    traffic: Counter[tuple[str, str]]
    misplaced: int | None = None
