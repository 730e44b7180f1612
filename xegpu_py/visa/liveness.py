"""What instructions read and write, and for how long variables must keep their registers."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import BUILTINS, Address, Destination, Raw, Region, Variable, Vector, first_byte
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import Slot

JUMPS = ("jmp", "goto")


class Access(NamedTuple):
    """An instruction's access to a variable.

    Attributes:
        var: the variable that is no alias.
        writes: whether it is written, else read.
        start, end: the bytes of `var` in which the access lies.
        whole: whether the access covers all of these bytes, whatever lanes are enabled.
    """

    var: Variable
    writes: bool
    start: int
    end: int
    whole: bool


def accesses(inst: Instruction, target: Target) -> Iterator[Access]:
    """What an instruction reads, then what it writes."""
    slots = INSTRUCTIONS[inst.name].slots
    for use in ("read", "write"):
        for slot in slots:
            if slot.use == use:
                found = _access(slot, inst, target)
                if found:
                    yield found


def _access(slot: Slot, inst: Instruction, target: Target) -> Access | None:
    value = inst[slot.name]
    var = getattr(value, "var", None)
    if not isinstance(var, Variable):
        return None
    root, offset = var.root
    size = var.format.bytes
    packed = True
    if isinstance(value, (Region, Destination)):
        elements = value.elements(1 if slot.kind == "scalar" else inst.exec_size)
        start = offset + first_byte(value, target.grf_bytes)
        end = start + (max(elements) + 1) * size
        packed = elements == list(range(len(elements)))
    else:
        assert isinstance(value, (Raw, Vector, Address)) and slot.bytes
        start = offset + (first_byte(value, target.grf_bytes) if isinstance(value, Vector) else value.offset)
        end = start + slot.bytes(inst, target)
    whole = packed and inst.guard is None and (inst.no_mask or inst.name == "dpas" or slot.kind == "dst")
    if inst.name.startswith("lsc_") and inst.exec_size == 1:
        whole = inst.guard is None
    if "data" in inst.values and inst["data"].vector > 1 and not inst["data"].transpose:
        # Each element's lanes begin at a register, and may leave the rest of it alone.
        whole &= inst.exec_size * inst["data"].register_bytes % target.grf_bytes == 0
    return Access(root, slot.use == "write", start, end, whole)


def live_ranges(program: Program, target: Target) -> dict[Variable, tuple[int, int]]:
    """First and last instruction, by index, between which each variable that is no alias must keep its registers.

    A byte is live where it may hold what was written to it and where that may still be read, unless it is certain to be
    written in between. A variable's range spans all places at which one of its bytes is live, or accessed. Inputs are
    written before the first instruction.
    """
    flow = _flow(program)
    parts = any(i.name == "goto" for i in program.instructions)
    found = [list(_changes(program.instructions, target, block, parts)) for block in flow.blocks]
    ranges = _ranges_of_accesses(found)
    given = {item.var.root[0] for item in program.inputs}
    for var in given:
        ranges[var] = (0, ranges.get(var, (0, 0))[1])
    cuts = _Cuts(found)
    for var, summaries in _across_blocks([_summary(changes, cuts) for changes in found], given).items():
        first, last = ranges[var]
        for at in _Lives(flow, summaries).places(var in given):
            first, last = min(first, at), max(last, at)
        ranges[var] = (first, last)
    return ranges


# Control flow.


@dataclass(frozen=True)
class _Flow:
    """A program's basic blocks, and after which of them each may follow.

    Attributes:
        blocks: the instructions of each block; those without any stand for lanes that wait.
        follows: the blocks that may come after each.
        precedes: the blocks that may come before each.
    """

    blocks: Sequence[range]
    follows: Sequence[Sequence[int]]

    @cached_property
    def precedes(self) -> Sequence[Sequence[int]]:
        found: list[list[int]] = [[] for _ in self.blocks]
        for number, following in enumerate(self.follows):
            for to in following:
                found[to].append(number)
        return found


def _flow(program: Program) -> _Flow:
    """The flow of a thread, which is always where those of its lanes are that are farthest behind.

    Lanes that a `goto` parts from the others wait where they are, until the others come there, or leave for a place
    farther on: behind a jump forward or a `ret` comes the next place where lanes may wait.
    """
    instructions = program.instructions
    length = len(instructions)
    waits = sorted(_waiting_places(program))
    ends = {at + 1 for at, i in enumerate(instructions) if i.name in (*JUMPS, "ret")}
    starts = sorted({0, *program.labels.values(), *waits, *ends} - {length})
    blocks = [range(a, b) for a, b in zip(starts, [*starts[1:], length]) if a < b]
    number = {block.start: n for n, block in enumerate(blocks)}
    # One empty block for each place where lanes wait: it leads there, and to the next of them.
    waiting = {at: len(blocks) + n for n, at in enumerate(waits)}
    follows: list[list[int]] = []
    for block in blocks:
        at = block.stop - 1
        last = instructions[at]
        to = [number[program.labels[last["label"]]]] if last.name in JUMPS else []
        if last.name != "ret" and not (last.name == "jmp" and last.guard is None) and block.stop in number:
            to.append(number[block.stop])
        if last.name == "ret" or (last.name in JUMPS and program.labels[last["label"]] > at):
            behind = bisect.bisect_right(waits, at)
            to += [waiting[w] for w in waits[behind : behind + 1]]
        follows.append(to)
    for n, at in enumerate(waits):
        follows.append([number[at], *([len(blocks) + n + 1] if n + 1 < len(waits) else [])])
    return _Flow([*blocks, *(range(at, at) for at in waits)], follows)


def _waiting_places(program: Program) -> set[int]:
    """Where lanes that a `goto` parts from others wait for them."""
    found = set()
    for at, inst in enumerate(program.instructions):
        if inst.name == "goto":
            to = program.labels[inst["label"]]
            found.add(to if to > at else at + 1)
    return found - {len(program.instructions)}


# What a block does to the bytes of variables.


_Change = tuple[int, Access, bool]
"""The index of an instruction, its access, and whether that certainly writes all of its bytes."""


def _changes(instructions: Sequence[Instruction], target: Target, block: range, parts: bool) -> Iterator[_Change]:
    """What a block does. Where lanes may be parted, those that wait keep what a masked write would kill."""
    for at in block:
        inst = instructions[at]
        for access in accesses(inst, target):
            if BUILTINS.get(access.var.name) != access.var:
                yield at, access, access.whole and (inst.no_mask or not parts)


def _ranges_of_accesses(found: Sequence[Sequence[_Change]]) -> dict[Variable, tuple[int, int]]:
    ranges: dict[Variable, tuple[int, int]] = {}
    for changes in found:
        for at, access, _ in changes:
            first, _ = ranges.get(access.var, (at, at))
            ranges[access.var] = (first, at)
    return ranges


class _Cuts:
    """Variables' bytes cut into pieces of which each access has all or nothing. A set of pieces is bits of an int."""

    def __init__(self, found: Sequence[Sequence[_Change]]) -> None:
        places: dict[Variable, set[int]] = {}
        for changes in found:
            for _, access, _ in changes:
                places.setdefault(access.var, set()).update((access.start, access.end))
        self._index = {var: {at: n for n, at in enumerate(sorted(cut))} for var, cut in places.items()}

    def pieces(self, access: Access) -> int:
        """Those of an access."""
        index = self._index[access.var]
        return (1 << index[access.end]) - (1 << index[access.start])


@dataclass
class _Summary:
    """What a block does to the pieces of a variable: it may read what came in, may write, certainly writes."""

    read: int = 0
    written: int = 0
    killed: int = 0


def _summary(changes: Sequence[_Change], cuts: _Cuts) -> dict[Variable, _Summary]:
    found: dict[Variable, _Summary] = {}
    for _, access, certain in changes:
        pieces = cuts.pieces(access)
        summary = found.setdefault(access.var, _Summary())
        if not access.writes:
            summary.read |= pieces & ~summary.killed
            continue
        summary.written |= pieces
        if certain:
            summary.killed |= pieces
    return found


_Summaries = Mapping[int, _Summary]
"""What blocks, by their numbers, do to a variable."""


def _across_blocks(
    found: Sequence[Mapping[Variable, _Summary]], given: Collection[Variable]
) -> dict[Variable, _Summaries]:
    """The variables that may hold something from one block to another, or from one turn of a block to its next."""
    each: dict[Variable, dict[int, _Summary]] = {}
    for number, summaries in enumerate(found):
        for var, summary in summaries.items():
            each.setdefault(var, {})[number] = summary
    return {v: s for v, s in each.items() if len(s) > 1 or v in given or any(what.read for what in s.values())}


class _Lives:
    """Where a variable is live at the begin and at the end of blocks."""

    def __init__(self, flow: _Flow, summaries: _Summaries) -> None:
        self._flow, self._summaries = flow, summaries
        # The pieces that may still be read, where each block begins, and ends.
        self._wanted_first: dict[int, int] = {}
        self._wanted_last: dict[int, int] = {}
        self._want()

    def _want(self) -> None:
        wanted_first, wanted_last = self._wanted_first, self._wanted_last
        todo = [(number, summary.read) for number, summary in self._summaries.items()]
        while todo:
            number, pieces = todo.pop()
            new = pieces & ~wanted_first.get(number, 0)
            if not new:
                continue
            wanted_first[number] = wanted_first.get(number, 0) | new
            for before in self._flow.precedes[number]:
                wanted_last[before] = wanted_last.get(before, 0) | new
                summary = self._summaries.get(before)
                todo.append((before, new & ~summary.killed if summary else new))

    def places(self, given: bool) -> Iterator[int]:
        """First and last instructions of blocks where pieces are wanted that may have been written.

        Args:
            given: whether the variable is written before the first block.
        """
        reached_first: dict[int, int] = {}
        reached_last: dict[int, int] = {}
        todo = [(number, summary.written) for number, summary in self._summaries.items()]
        if given:
            reached_first[0] = self._wanted_first.get(0, 0)
            todo.append((0, reached_first[0]))
        while todo:
            number, pieces = todo.pop()
            new = pieces & self._wanted_last.get(number, 0) & ~reached_last.get(number, 0)
            if not new:
                continue
            reached_last[number] = reached_last.get(number, 0) | new
            yield self._flow.blocks[number].stop - 1
            for after in self._flow.follows[number]:
                came = new & self._wanted_first.get(after, 0) & ~reached_first.get(after, 0)
                if came:
                    reached_first[after] = reached_first.get(after, 0) | came
                    yield self._flow.blocks[after].start
                    # What the block kills it has written itself.
                    todo.append((after, came))
