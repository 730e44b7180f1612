"""Facts about registers and predicates at a point of a program: constants, copies and sums.

A fact whose locations are all written once holds wherever its definition dominates. Any other fact holds to the end of
its basic block, or until one of its locations is written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from xegpu_py.target import Target
from xegpu_py.visa.accesses import Root, effects
from xegpu_py.visa.flow import Flow, writes_all
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Guard
from xegpu_py.visa.program import Instruction, Program

F = TypeVar("F")

_CHUNK = 64
"""Bytes that share a count of their writes."""

_WIDEST = 8
"""Bytes of the widest element."""


class Source(NamedTuple):
    """An element's value is that of another one plus a constant, modulo its width.

    Attributes:
        root, at: the variable and first byte of the other element.
        stamp: the number of writes to it so far.
        plus: the constant; 0 for a copy.
    """

    root: Root
    at: int
    stamp: int
    plus: int = 0


class _Table(Struct, Generic[F]):
    """Facts about elements, by root and first byte; each has the element's width."""

    here: dict[Root, dict[int, tuple[int, F]]] = field(default_factory=dict)
    lasting: dict[Root, dict[int, tuple[int, F, int]]] = field(default_factory=dict)

    def forget(self, root: Root, first: int, end: int) -> None:
        """Drop the facts about elements that overlap these bytes."""
        known = self.here.get(root)
        if not known:
            return
        near = range(first - _WIDEST + 1, end)
        for at in near if len(near) < len(known) else list(known):
            found = known.get(at)
            if found and at < end and first < at + found[0]:
                del known[at]


class Facts:
    """The facts that hold at the current instruction of a walk over a program's dominator tree."""

    def __init__(self, program: Program, flow: Flow, target: Target) -> None:
        """Begin without facts."""
        self.flow = flow
        self._target = target
        self._total: dict[Root, int] = {}
        self._done: dict[Root, int] = {}
        self._versions: dict[Root, dict[int, int]] = {}
        self._written: dict[Root, int] = {}
        self._rewritten: set[Root] = {i.var.root[0] for i in program.inputs}
        self._constants: _Table[int] = _Table()
        self._copies: _Table[Source] = _Table()
        self._sums: _Table[Source] = _Table()
        self._path: list[tuple[int, dict[Root, int]]] = []
        self._count_writes(program)

    def _count_writes(self, program: Program) -> None:
        written: dict[Root, int] = {}
        for inst in program.instructions:
            for root, first, end, certain in writes(inst, self.flow, self._target):
                self._total[root] = self._total.get(root, 0) + 1
                bits = (1 << end) - (1 << first)
                if not certain or written.get(root, 0) & bits:
                    self._rewritten.add(root)
                written[root] = written.get(root, 0) | bits

    def enter(self, block: int) -> None:
        """Enter a block: restore the facts that hold at its beginning."""
        while self._path and not self.flow.dominates(self._path[-1][0], block):
            for root, count in self._path.pop()[1].items():
                self._done[root] -= count
        self._path.append((block, {}))
        for table in (self._constants, self._copies, self._sums):
            table.here = {}

    def leave(self) -> None:
        """Leave a block: keep the facts that hold in all blocks that it dominates."""
        block = self._path[-1][0]
        self._keep(self._constants, block)
        self._keep(self._copies, block)
        self._keep(self._sums, block)

    def _keep(self, table: _Table[F], block: int) -> None:
        for root, known in table.here.items():
            if not known or not self.is_settled(root):
                continue
            lasting = table.lasting.setdefault(root, {})
            for at, (size, fact) in known.items():
                if not isinstance(fact, Source) or self._is_kept(fact.root, fact.at, fact.at + size, fact.stamp):
                    lasting[at] = (size, fact, block)

    def _is_kept(self, root: Root, first: int, end: int, stamp: int) -> bool:
        return self.is_settled(root) and stamp == self.stamp(root, first, end)

    def is_settled(self, root: Root) -> bool:
        """Whether all writes to a variable have been executed at this point, and none can be executed again."""
        total = self._total.get(root, 0)
        return not total or (root not in self._rewritten and self._done.get(root, 0) == total)

    def stamp(self, root: Root, first: int, end: int) -> int:
        """The number of writes to some bytes so far; every write to one of them increases it."""
        if root not in self._rewritten:
            # Bytes that are written once need only a flag.
            return (self._written.get(root, 0) >> first & ((1 << (end - first)) - 1)).bit_count()
        versions = self._versions.get(root)
        if not versions:
            return 0
        return sum(versions.get(c, 0) for c in range(first // _CHUNK, (end - 1) // _CHUNK + 1))

    def write(self, inst: Instruction) -> None:
        """Drop the facts about everything that an instruction may write."""
        done = self._path[-1][1]
        for root, first, end, _ in writes(inst, self.flow, self._target):
            for table in (self._constants, self._copies, self._sums):
                table.forget(root, first, end)
            if root not in self._rewritten:
                self._written[root] = self._written.get(root, 0) | ((1 << end) - (1 << first))
            else:
                versions = self._versions.setdefault(root, {})
                for chunk in range(first // _CHUNK, (end - 1) // _CHUNK + 1):
                    versions[chunk] = versions.get(chunk, 0) + 1
            self._done[root] = self._done.get(root, 0) + 1
            done[root] = done.get(root, 0) + 1

    def constant(self, root: Root, at: int, size: int) -> int | None:
        """The bits of an element; None if they are unknown."""
        return self._find(self._constants, root, at, size)

    def constants(self, root: Root, places: Sequence[int], size: int) -> tuple[int, ...] | None:
        """The bits of elements; None if any are unknown."""
        if not self._constants.here.get(root) and not self._constants.lasting.get(root):
            return None
        found = []
        for at in places:
            bits = self.constant(root, at, size)
            if bits is None:
                return None
            found.append(bits)
        return tuple(found)

    def copied(self, root: Root, at: int, size: int) -> Source | None:
        """The element that an element is a copy of."""
        return self._current(self._copies, root, at, size)

    def sum_of(self, root: Root, at: int, size: int) -> Source | None:
        """The element and constant that an element is the sum of."""
        return self._current(self._sums, root, at, size)

    def has_copies(self, root: Root) -> bool:
        """Whether a variable has elements that are known copies."""
        return bool(self._copies.here.get(root) or self._copies.lasting.get(root))

    def copy_size(self, root: Root, at: int) -> int:
        """The width of the copied element that begins at a byte; 0 if none does."""
        for known in (self._copies.here.get(root), self._copies.lasting.get(root)):
            if known and at in known:
                return known[at][0]
        return 0

    def _find(self, table: _Table[F], root: Root, at: int, size: int) -> F | None:
        known = table.here.get(root)
        if known:
            found = known.get(at)
            if found:
                return found[1] if found[0] == size else None
        lasting = table.lasting.get(root)
        if lasting:
            kept = lasting.get(at)
            if kept and kept[0] == size and self.flow.dominates(kept[2], self._path[-1][0]):
                return kept[1]
        return None

    def _current(self, table: _Table[Source], root: Root, at: int, size: int) -> Source | None:
        found = self._find(table, root, at, size)
        return found if found and self.stamp(found.root, found.at, found.at + size) == found.stamp else None

    def note_constant(self, root: Root, at: int, size: int, bits: int) -> None:
        """Record that an element has these bits."""
        self._constants.here.setdefault(root, {})[at] = (size, bits)

    def note_copy(self, root: Root, at: int, size: int, source: Source) -> None:
        """Record that an element is a copy of another one."""
        self._copies.here.setdefault(root, {})[at] = (size, source)

    def note_sum(self, root: Root, at: int, size: int, source: Source) -> None:
        """Record that an element is another one plus a constant."""
        self._sums.here.setdefault(root, {})[at] = (size, source)


def writes(inst: Instruction, flow: Flow, target: Target) -> Iterator[tuple[Root, int, int, bool]]:
    """The writes of an instruction: variable or predicate, first byte, end, and whether all of the range is written."""
    known = effects(inst, target)
    for access in known.writes:
        yield access.var, access.start, access.end, writes_all(inst, access, flow)
    if known.sets:
        first, end = known.lanes or (0, known.sets.count)
        yield known.sets, first, end, known.lanes is not None and flow.certain(inst)


def tested_bits(inst: Instruction, guard: Guard) -> range:
    """The bits of its predicate that an instruction tests."""
    if guard.control:
        return range(guard.var.count)
    return range(1) if INSTRUCTIONS[inst.name].uniform else range(inst.first_lane, inst.first_lane + inst.exec_size)
