"""Scheduling of loads before their use: a load starts as soon as its address is known.

Messages keep their order, so that memory sees the same accesses. No instruction moves across a jump, a label, a
barrier, a fence, or `fence_sw` (the lowering of `xegpu.compile_hint`). Arithmetic that no load depends on follows the
loads, in its original order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from msgspec import Struct, field

from xegpu_py.target import Target
from xegpu_py.visa.accesses import Root, effects
from xegpu_py.visa.flow import flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.liveness import Liveness, liveness_of
from xegpu_py.visa.operands import Predicate
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import MESSAGES

_CHUNK = 64
"""Bytes of a variable that form one unit of dependences."""

_FENCES = ("control", "sync")


def schedule_loads(program: Program, target: Target, budget: int) -> Program:
    """The program with loads moved up.

    Args:
        budget: bytes of registers that may be live at once; a load that would exceed it is not moved.
    """
    flow = flow_of(program)
    liveness = liveness_of(program, target)
    instructions: list[Instruction] = []
    for number, block in enumerate(flow.blocks):
        inside = program.instructions[block.start : block.stop]
        if not any(_is_load(i) for i in inside):
            instructions += inside
            continue
        instructions += _schedule_block(inside, _Live(liveness, number), target, budget)
    return program.with_instructions(instructions)


def _is_load(inst: Instruction) -> bool:
    return INSTRUCTIONS[inst.name].category == "load"


def _schedule_block(instructions: Sequence[Instruction], live: _Live, target: Target, budget: int) -> list[Instruction]:
    """Schedule each piece of a block between its fences."""
    pieces: list[tuple[list[Instruction], Instruction | None]] = []
    inside: list[Instruction] = []
    for inst in instructions:
        if INSTRUCTIONS[inst.name].category in _FENCES:
            pieces.append((inside, inst))
            inside = []
        else:
            inside.append(inst)
    found: list[Instruction] = []
    # Liveness is known at the end of the block, so pieces are scheduled from the last one.
    for piece, fence in reversed([*pieces, (inside, None)]):
        if fence:
            found.append(fence)
            live.add(_read(fence, target))
        order = _Piece(piece, live, target, budget).order() if any(map(_is_load, piece)) else piece
        found += reversed(order)
        for inst in piece:
            live.add(_read(inst, target))
    return found[::-1]


class _Live:
    """The live variables at a point of a backward walk over a block, and their total bytes."""

    def __init__(self, liveness: Liveness, block: int) -> None:
        self._liveness, self._block = liveness, block
        self._read: set[Root] = set()
        self.bytes = liveness.bytes_after(block)

    def __contains__(self, root: Root) -> bool:
        return root in self._read or self._liveness.leaves(self._block, root)

    def add(self, roots: set[Root]) -> None:
        """Add variables to the live set."""
        for root in roots:
            if root not in self:
                self._read.add(root)
                self.bytes += _size(root)


def _read(inst: Instruction, target: Target) -> set[Root]:
    return set(effects(inst, target).read)


class _Places(Struct):
    """The last writer of a location, and its readers since."""

    writer: int = -1
    readers: list[int] = field(default_factory=list)


class _Piece:
    """Consecutive instructions without a fence."""

    def __init__(self, instructions: Sequence[Instruction], after: _Live, target: Target, budget: int) -> None:
        self.instructions, self.after, self.target, self.budget = instructions, after, target, budget
        # Instructions after the last load are not moved.
        self.count = max(at + 1 for at, inst in enumerate(instructions) if _is_load(inst))
        self.next: list[set[int]] = [set() for _ in range(self.count)]
        self.waits = [0] * self.count
        self._depend()

    def _depend(self) -> None:
        places: dict[tuple[Root, int], _Places] = {}
        message = -1
        for at, inst in enumerate(self.instructions[: self.count]):
            known = effects(inst, self.target)
            reads: list[tuple[Root, int]] = [(a.var, c) for a in known.reads for c in _chunks(a.start, a.end)]
            writes: list[tuple[Root, int]] = [(a.var, c) for a in known.writes for c in _chunks(a.start, a.end)]
            reads += [(p, 0) for p in known.tests]
            writes += [(known.sets, 0)] if known.sets else []
            for key in (*reads, *writes):
                if key not in places:
                    places[key] = _Places()
            for key in reads:
                place = places[key]
                self._edge(place.writer, at)
                place.readers.append(at)
            for key in writes:
                place = places[key]
                self._edge(place.writer, at)
                for reader in place.readers:
                    self._edge(reader, at)
                places[key] = _Places(at)
            if INSTRUCTIONS[inst.name].category in MESSAGES:
                self._edge(message, at)
                message = at

    def _edge(self, before: int, after: int) -> None:
        if before >= 0 and before != after and after not in self.next[before]:
            self.next[before].add(after)
            self.waits[after] += 1

    def _urgency(self) -> list[int]:
        """For each instruction the first load that depends on it; the number of instructions if none does."""
        none = self.count
        found = [none] * none
        for at in reversed(range(none)):
            own = at if _is_load(self.instructions[at]) else none
            found[at] = min([own, *(found[n] for n in self.next[at])])
        return found

    def order(self) -> list[Instruction]:
        """The order with loads, and the instructions they depend on, as early as the registers allow."""
        urgency = self._urgency()
        count = self.count
        early: list[tuple[int, int]] = []
        plain: list[int] = []
        waits = list(self.waits)
        done = [False] * count
        ahead = _Ahead(self.instructions, _profile(self.instructions, self.after, self.target), self.target)

        def ready(at: int) -> None:
            heapq.heappush(plain, at)
            if urgency[at] < count:
                heapq.heappush(early, (urgency[at], at))

        for at, waiting in enumerate(waits):
            if not waiting:
                ready(at)
        found: list[Instruction] = []
        while len(found) < count:
            while early and done[early[0][1]]:
                heapq.heappop(early)
            while done[plain[0]]:
                heapq.heappop(plain)
            at = plain[0]
            if early and ahead.with_early(early[0][1]) <= self.budget:
                at = early[0][1]
            done[at] = True
            found.append(self.instructions[at])
            ahead.run(at)
            for successor in self.next[at]:
                waits[successor] -= 1
                if not waits[successor]:
                    ready(successor)
        return [*found, *self.instructions[count:]]


def _profile(instructions: Sequence[Instruction], after: _Live, target: Target) -> list[int]:
    """The live bytes at each instruction in the original order. A variable is live as a whole."""
    first: dict[Root, int] = {}
    last: dict[Root, int] = {}
    for at, inst in enumerate(instructions):
        reads = _read(inst, target)
        for root in reads:
            # A variable that is read before it is written is live into the piece.
            first.setdefault(root, 0)
            last[root] = at
        for access in effects(inst, target).writes:
            first.setdefault(access.var, at)
            last[access.var] = at
    change = [0] * (len(instructions) + 1)
    through = after.bytes
    for root, begin in first.items():
        size = _size(root)
        change[begin] += size
        if root in after:
            through -= size
        else:
            change[last[root] + 1] -= size
    return [through + live for live in accumulate(change[:-1])]


class _Ahead:
    """The registers that instructions moved ahead of their original position occupy."""

    def __init__(self, instructions: Sequence[Instruction], profile: Sequence[int], target: Target) -> None:
        self._writes = [[a.var for a in effects(inst, target).writes] for inst in instructions]
        self._done = [False] * len(instructions)
        self._next = 0
        self._held: dict[Root, int] = {}
        self._bytes = 0
        # Row n holds, for each instruction, the maximum over the 2^n instructions that start with it.
        self._most = [np.array(profile)]
        while len(self._most[-1]) > 1 << (len(self._most) - 1):
            step, row = 1 << (len(self._most) - 1), self._most[-1]
            self._most.append(np.maximum(row[:-step], row[step:]))

    def with_early(self, at: int) -> int:
        """The most live bytes between the current position and instruction `at`, if it is moved here."""
        span = at - self._next + 1
        row = self._most[span.bit_length() - 1]
        most = max(row[self._next], row[at + 1 - (1 << (span.bit_length() - 1))])
        return int(most) + self._bytes + sum(_size(r) for r in set(self._writes[at]) if r not in self._held)

    def run(self, at: int) -> None:
        """Schedule instruction `at` next."""
        self._done[at] = True
        if at > self._next:
            for root in self._writes[at]:
                if root not in self._held:
                    self._bytes += _size(root)
                self._held[root] = self._held.get(root, 0) + 1
            return
        self._next += 1
        while self._next < len(self._done) and self._done[self._next]:
            for root in self._writes[self._next]:
                self._held[root] -= 1
                if not self._held[root]:
                    del self._held[root]
                    self._bytes -= _size(root)
            self._next += 1


def _chunks(start: int, end: int) -> range:
    return range(start // _CHUNK, (end - 1) // _CHUNK + 1)


def _size(root: Root) -> int:
    return 0 if isinstance(root, Predicate) else root.bytes
