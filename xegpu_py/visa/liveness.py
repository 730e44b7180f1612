"""What instructions read and write, and for how long variables must keep their registers."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import BUILTINS, Address, Destination, Raw, Region, Variable, Vector, first_byte
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import Slot

JUMPS = ("jmp", "goto")


@dataclass(frozen=True)
class Access:
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
    given = dict.fromkeys((item.var.root[0] for item in program.inputs), 0)
    for var in given:
        ranges[var] = (0, ranges.get(var, (0, 0))[1])
    cuts = _Cuts(found, given)
    summaries = [_summary(changes, cuts) for changes in found]
    bits = _Bits(_across_blocks(summaries, given), cuts)
    in_order = sorted(range(len(flow.blocks)), key=lambda n: (flow.blocks[n].start, flow.blocks[n].stop))
    reached, wanted = _solve(flow, in_order, summaries, bits, given)
    seen = 0
    for number in in_order:
        live = reached[number][0] & wanted[number][0]
        for var in bits.variables(live & ~seen):
            first, last = ranges[var]
            ranges[var] = (min(first, flow.blocks[number].start), last)
        seen |= live
    seen = 0
    for number in reversed(in_order):
        live = reached[number][1] & wanted[number][1]
        for var in bits.variables(live & ~seen):
            first, last = ranges[var]
            ranges[var] = (first, max(last, flow.blocks[number].stop - 1))
        seen |= live
    return ranges


# Control flow.


@dataclass(frozen=True)
class _Flow:
    """A program's basic blocks, and after which of them each may follow.

    Attributes:
        blocks: the instructions of each block; those without any stand for lanes that wait.
        follows: the blocks that may come after each.
    """

    blocks: Sequence[range]
    follows: Sequence[Sequence[int]]


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

    def __init__(self, found: Sequence[Sequence[_Change]], given: Mapping[Variable, int]) -> None:
        places: dict[Variable, set[int]] = {var: {0, var.bytes} for var in given}
        for changes in found:
            for _, access, _ in changes:
                places.setdefault(access.var, {0, access.var.bytes}).update((access.start, access.end))
        self._index = {var: {at: n for n, at in enumerate(sorted(cut))} for var, cut in places.items()}

    def pieces(self, access: Access) -> int:
        """Those of an access."""
        index = self._index[access.var]
        return (1 << index[access.end]) - (1 << index[access.start])

    def count(self, var: Variable) -> int:
        """How many pieces a variable has."""
        return len(self._index[var]) - 1


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


def _across_blocks(summaries: Sequence[Mapping[Variable, _Summary]], given: Mapping[Variable, int]) -> list[Variable]:
    """The variables that may hold something from one block to another, or from one turn of a block to its next."""
    where = dict(given)
    across = []
    for number, summary in enumerate(summaries):
        for var, what in summary.items():
            first = where.setdefault(var, number)
            if first >= 0 and (first != number or what.read):
                across.append(var)
                where[var] = -1
    return across


@dataclass
class _Bits:
    """Pieces of several variables as one set. Each variable begins at a byte of the int, so that sets are fast to make.

    Attributes:
        owners: the variables.
    """

    owners: Sequence[Variable]
    cuts: _Cuts
    _starts: dict[Variable, int] = field(init=False)
    _bytes: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._starts = {}
        for var in self.owners:
            self._starts[var] = self._bytes
            self._bytes += -(-self.cuts.count(var) // 8)
        self._ends = np.cumsum([-(-self.cuts.count(var) // 8) for var in self.owners], dtype=np.int64)

    def joined(self, pieces: Mapping[Variable, int]) -> int:
        """The set of pieces of variables, of which those that are no owners are left out."""
        data = bytearray(self._bytes)
        for var, own in pieces.items():
            start = self._starts.get(var)
            if start is not None and own:
                size = -(-own.bit_length() // 8)
                data[start : start + size] = own.to_bytes(size, "little")
        return int.from_bytes(data, "little")

    def variables(self, pieces: int) -> list[Variable]:
        """The variables that a set has pieces of."""
        if not pieces:
            return []
        data = np.frombuffer(pieces.to_bytes(self._bytes, "little"), np.uint8)
        numbers = np.unique(np.searchsorted(self._ends, np.nonzero(data)[0], "right"))
        return [self.owners[n] for n in numbers]


_Sides = list[tuple[int, int]]
"""A set where each block begins, and where it ends."""


def _solve(
    flow: _Flow,
    order: Sequence[int],
    summaries: Sequence[Mapping[Variable, _Summary]],
    bits: _Bits,
    given: Mapping[Variable, int],
) -> tuple[_Sides, _Sides]:
    """What may have been written, and what may still be read."""
    count = len(flow.blocks)
    comes_after: list[list[int]] = [[] for _ in range(count)]
    for number, following in enumerate(flow.follows):
        for to in following:
            comes_after[to].append(number)
    read = [bits.joined({v: s.read for v, s in summary.items()}) for summary in summaries]
    written = [bits.joined({v: s.written for v, s in summary.items()}) for summary in summaries]
    killed = [bits.joined({v: s.killed for v, s in summary.items()}) for summary in summaries]
    entry = {0: bits.joined({v: (1 << bits.cuts.count(v)) - 1 for v in given})}
    reached = _fixed_point(order, comes_after, flow.follows, lambda n, s: s | written[n], entry)
    wanted = _fixed_point(order[::-1], flow.follows, comes_after, lambda n, s: read[n] | (s & ~killed[n]), {})
    return reached, [(begin, end) for end, begin in wanted]


def _fixed_point(
    order: Sequence[int],
    sources: Sequence[Sequence[int]],
    users: Sequence[Sequence[int]],
    through: Callable[[int, int], int],
    entry: Mapping[int, int],
) -> _Sides:
    """The least sets with which each block has what its sources give, and gives what it makes of it.

    Args:
        order: the blocks, as far as can be each after its sources.
        sources, users: where each block's set comes from, and goes to.
        through: what a block makes of a set.
        entry: sets that blocks have beside.
    """
    taken, gives = [0] * len(order), [0] * len(order)
    place = {number: n for n, number in enumerate(order)}
    queue = list(range(len(order)))
    queued = [True] * len(order)
    while queue:
        number = order[heapq.heappop(queue)]
        queued[number] = False
        found = entry.get(number, 0)
        for source in sources[number]:
            found |= gives[source]
        taken[number] = found
        result = through(number, found)
        if result == gives[number]:
            continue
        gives[number] = result
        for user in users[number]:
            if not queued[user]:
                queued[user] = True
                heapq.heappush(queue, place[user])
    return list(zip(taken, gives))
