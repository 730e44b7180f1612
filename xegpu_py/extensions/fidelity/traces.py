"""The accesses and branches of a launch, as sums of hashes: two launches that differ there have other sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from xegpu_py.engines.jit.checks import Log, Records
from xegpu_py.engines.jit.thread_function import block_starts
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.launch import Statistics
from xegpu_py.visa.dataflow import flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Program

PATH = 1 << 20
"""The number of entries of blocks whose order is compared; of all of them it is compared how many there are."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)

_WORD = (1 << 64) - 1


def _hashes(columns: Array) -> Array:
    """A hash of each row, uint64."""
    hashes = np.full(len(columns), _FACTOR)
    for column in np.ascontiguousarray(columns.T).view(np.uint64):
        hashes = (hashes ^ column) * _FACTOR
        hashes ^= hashes >> np.uint64(29)
    return hashes


class SumTrace:
    """The sums of a launch, which do not depend on the order of its threads.

    Attributes:
        log: takes the records of the launch.
        stats: the launch's statistics; set when it has ended.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.log = Log(program, self._receive, PATH)
        self.stats: Statistics
        self._messages: Counter[int] = Counter()
        self._blocks: Counter[int] = Counter()
        self._path = 0

    @property
    def executed(self) -> Array:
        """How many threads executed each instruction."""
        return self.stats.executed

    def _receive(self, records: Mapping[int, Records]) -> None:
        for at, entries in records.items():
            threads = np.column_stack([entries.workgroups, entries.threads])
            if at == len(self.program.instructions):
                by_block = _hashes(threads)
                for start in np.unique(entries.values).tolist():
                    self._blocks[start] += int(by_block[entries.values == start].sum())
                self._path += int(_hashes(np.column_stack([threads, entries.clocks, entries.values])).sum())
            else:
                rows = np.column_stack([threads, entries.values, self._operands(at, entries)])
                self._messages[at] += int(_hashes(rows).sum())

    def _operands(self, at: int, records: Records) -> Array:
        """The addresses of the lanes that act, zeros for other lanes; or the surface and place of a block."""
        operands, lanes = records.operands, self.program.instructions[at].exec_size
        if operands.shape[1] == lanes:
            acting = records.values[:, None] >> np.arange(lanes) & 1
            return np.where(acting == 1, operands, 0)
        return np.where(records.values[:, None] != 0, operands, 0)

    def addresses(self, other: SumTrace) -> list[int]:
        """The messages and barriers whose addresses, lanes or numbers differ, by their indices."""
        ats = {*self._messages, *other._messages}
        return sorted(at for at in ats if (self._messages[at] - other._messages[at]) & _WORD)

    def branches(self, other: SumTrace) -> list[int]:
        """The jumps that lead other threads, or threads more often, to one of their ends, by their indices."""
        starts, count = block_starts(self.program), len(self.program.instructions)
        is_divergent = flow_of(self.program).divergent
        lanes = self.log.lanes != other.log.lanes

        def differs(start: int) -> bool:
            if start >= count:
                return False
            end = next((s for s in starts if s > start), count)
            if (self._blocks[start] - other._blocks[start]) & _WORD or self.executed[start] != other.executed[start]:
                return True
            unguarded = [at for at in range(start, end) if self.program.instructions[at].guard is None]
            return is_divergent and bool(lanes[unguarded].any())

        jumps: list[int] = []
        differing: list[int] = []
        for at, inst in enumerate(self.program.instructions):
            spec = INSTRUCTIONS[inst.name]
            if spec.jumps and (inst.guard is not None or "labels" in inst.values) and self.executed[at]:
                jumps.append(at)
                ends = [self.program.labels[label] for label in spec.targets(inst)]
                if any(map(differs, [*ends, at + 1])):
                    differing.append(at)
        is_other_path = (self._path - other._path) & _WORD
        return differing or (jumps if is_other_path else [])
