"""Register allocation by linear scan, and the resulting register pressure."""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Mapping

import numpy as np
from msgspec import Struct, structs

from xegpu_py.ir.diagnostics import Position
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import liveness_of
from xegpu_py.visa.operands import Variable, align_bytes
from xegpu_py.visa.program import NOWHERE, Program, pickled_analysis

HEADER_BYTES = 32
"""Bytes of a thread's header in r0."""

_APART = 128
"""A multiple of all alignments of variables, in bytes."""


class Allocation(Struct, frozen=True):
    """Where variables lie in a thread's register file.

    Attributes:
        offsets: byte offset of each variable that is not an alias.
        bytes: size of the register file that they need.
        grf_bytes: bytes of a register.
        registers: registers that the kernel is given.
        pressure: the maximum number of bytes live at once, in registers.
        peak: index of an instruction at which the maximum occurs.
        where: the source location of that instruction.
        beyond: variables that lie beyond the last register.
    """

    offsets: Mapping[Variable, int]
    bytes: int
    grf_bytes: int
    registers: int
    pressure: int
    peak: int
    beyond: tuple[Variable, ...]
    where: Position = NOWHERE

    def offset(self, var: Variable) -> int:
        """Byte offset of a variable in the register file."""
        root, alias_offset = var.root
        return self.offsets[root] + alias_offset

    def report(self) -> str:
        """One sentence on the pressure."""
        text = f"register pressure {self.pressure} of {self.registers} GRFs"
        if self.beyond:
            names = ", ".join(v.name for v in self.beyond[:4]) + (", ..." if len(self.beyond) > 4 else "")
            text += f"; {len(self.beyond)} variables do not fit: {names}"
        return text


@pickled_analysis
def allocate(program: Program, target: Target, registers: int | None = None) -> Allocation:
    """Place the variables of a program by linear scan over their live ranges.

    Inputs lie where the thread's payload has them; the others at the first place that is free during their live range.

    Args:
        registers: registers that the thread has; by default the target's usual number.
    """
    count = registers or target.grf_counts[0]
    ranges = liveness_of(program, target).ranges
    offsets: dict[Variable, int] = {}
    gaps = _Gaps()
    gaps.take(0, HEADER_BYTES)
    live_ends: list[tuple[int, int, int]] = []
    for item in program.inputs:
        root, alias_offset = item.var.root
        if root not in offsets:
            offsets[root] = at = item.offset - alias_offset
            gaps.take(at, root.bytes)
            live_ends.append((ranges[root][1], at, root.bytes))
    heapq.heapify(live_ends)
    for var in sorted((v for v in ranges if v not in offsets), key=lambda v: ranges[v]):
        live_from, live_to = ranges[var]
        while live_ends and live_ends[0][0] < live_from:
            gaps.free(*heapq.heappop(live_ends)[1:])
        offsets[var] = at = gaps.fit(var.bytes, max(align_bytes(var.align, target.grf_bytes), var.format.bytes))
        heapq.heappush(live_ends, (live_to, at, var.bytes))
    limit = count * target.grf_bytes
    spilled = tuple(v for v, at in offsets.items() if at + v.bytes > limit)
    file_bytes = max([HEADER_BYTES, *(at + v.bytes for v, at in offsets.items())])
    pressure, peak = _pressure(ranges, len(program.instructions), target)
    # Whole registers, and as many as a view of the widest elements needs.
    size = -(-file_bytes // target.grf_bytes) * target.grf_bytes
    where = program.instructions[peak].where if program.instructions else NOWHERE
    return Allocation(offsets, size, target.grf_bytes, count, pressure, peak, spilled, where)


@pickled_analysis
def engine_allocation(program: Program, target: Target, registers: int | None = None) -> Allocation:
    """The allocation of engines: variables that may be read unwritten have registers of their own, behind all others.

    These registers are zero at first and no other variable changes them. So unwritten bytes read as zero in every
    engine, and each byte's writer is known. The pressure and `beyond` are those of `allocate`.
    """
    allocation = allocate(program, target, registers)
    offsets, at = dict(allocation.offsets), allocation.bytes
    for var in liveness_of(program, target).unwritten:
        offsets[var] = at = -(-at // _APART) * _APART
        at += var.bytes
    return structs.replace(allocation, offsets=offsets, bytes=-(-at // target.grf_bytes) * target.grf_bytes)


class _Gaps:
    """The free bytes of a register file of unlimited size."""

    def __init__(self) -> None:
        # Gap n is from _starts[n] to _ends[n], and none touches the next.
        self._starts, self._ends = [0], [math.inf]
        # No gap that begins before fits a size and alignment.
        self._full_before: dict[tuple[int, int], float] = {}

    def take(self, at: int, size: int) -> None:
        """Take bytes that are free."""
        n = bisect.bisect_right(self._starts, at) - 1
        self._cut(n, at, at + size)

    def fit(self, size: int, alignment: int) -> int:
        """Take the first bytes of a size and alignment that are free; where they begin."""
        n = max(bisect.bisect_right(self._starts, self._full_before.get((size, alignment), 0)) - 1, 0)
        while (at := -(-self._starts[n] // alignment) * alignment) + size > self._ends[n]:
            n += 1
        self._full_before[size, alignment] = self._starts[n]
        self._cut(n, at, at + size)
        return at

    def free(self, at: int, size: int) -> None:
        """Give bytes back."""
        start: int = at
        gap_end: float = at + size
        n = bisect.bisect_right(self._starts, at)
        if n < len(self._starts) and self._starts[n] == gap_end:
            gap_end = self._ends.pop(n)
            self._starts.pop(n)
        if n and self._ends[n - 1] == at:
            n -= 1
            start = self._starts.pop(n)
            self._ends.pop(n)
        self._starts.insert(n, start)
        self._ends.insert(n, gap_end)
        for shape, lower_bound in self._full_before.items():
            if lower_bound > start:
                self._full_before[shape] = start

    def _cut(self, n: int, start: int, cut_end: int) -> None:
        remainders = [(self._starts[n], start), (cut_end, self._ends[n])]
        gaps = [(a, b) for a, b in remainders if a < b]
        self._starts[n : n + 1] = [a for a, _ in gaps]
        self._ends[n : n + 1] = [b for _, b in gaps]


def _pressure(ranges: Mapping[Variable, tuple[int, int]], length: int, target: Target) -> tuple[int, int]:
    change = np.zeros(length + 2, np.int64)
    for var, (live_from, live_to) in ranges.items():
        change[live_from] += var.bytes
        change[live_to + 1] -= var.bytes
    live = np.cumsum(change)
    peak = int(np.argmax(live))
    return -(-(int(live[peak]) + HEADER_BYTES) // target.grf_bytes), peak
