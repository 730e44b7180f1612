"""Live intervals of variables, and live variables at the begin and end of blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from xegpu_py.target import Target
from xegpu_py.visa.accesses import Access, Root, accesses, effects, span_bits
from xegpu_py.visa.flow import Flow, flow_of, writes_all
from xegpu_py.visa.operands import BUILTINS, Predicate, Variable
from xegpu_py.visa.program import Instruction, Program, analysis


def live_ranges(program: Program, target: Target) -> dict[Variable, tuple[int, int]]:
    """The first and last instruction, by index, between which each variable that is not an alias needs its registers.

    A byte is live where a value may have been written to it and may still be read before the byte is certainly
    overwritten. A variable's range spans all places at which one of its bytes is live, or accessed. Inputs are
    written before the first instruction.
    """
    return _intervals(program, target)[0]


def maybe_unwritten(program: Program, target: Target) -> list[Variable]:
    """The variables, none of them an alias or an input, of which a byte may be read before it is written."""
    return _intervals(program, target)[1]


@analysis
def _intervals(program: Program, target: Target) -> tuple[dict[Variable, tuple[int, int]], list[Variable]]:
    flow = flow_of(program)
    found = [list(_changes(program.instructions, target, block, flow.divergent)) for block in flow.blocks]
    ranges = _ranges_of_accesses(found)
    given = {item.var.root[0] for item in program.inputs}
    for var in given:
        ranges[var] = (0, ranges.get(var, (0, 0))[1])
    cuts = _Cuts(found)
    unwritten = []
    for var, summaries in _across_blocks([_summary(changes, cuts) for changes in found], given).items():
        first, last = ranges[var]
        lives = _Lives(flow, summaries)
        for at in lives.places(var in given):
            first, last = min(first, at), max(last, at)
        ranges[var] = (first, last)
        if lives.enter and var not in given:
            unwritten.append(var)
    return ranges, unwritten


# What a block does to the bytes of variables.


_BUILTINS = frozenset(BUILTINS.values())

_Change = tuple[int, Access, bool]
"""The index of an instruction, its access, and whether that certainly writes all of its bytes."""


def _changes(instructions: Sequence[Instruction], target: Target, block: range, divergent: bool) -> Iterator[_Change]:
    """The accesses of a block. Where lanes may have diverged, a masked write kills nothing."""
    for at in block:
        inst = instructions[at]
        for access in accesses(inst, target):
            if access.var not in _BUILTINS:
                yield at, access, access.whole and (inst.no_mask or not divergent)


def _ranges_of_accesses(found: Sequence[Sequence[_Change]]) -> dict[Variable, tuple[int, int]]:
    ranges: dict[Variable, tuple[int, int]] = {}
    for changes in found:
        for at, access, _ in changes:
            first, _ = ranges.get(access.var, (at, at))
            ranges[access.var] = (first, at)
    return ranges


class _Cuts:
    """Variables' bytes cut into pieces, such that each access covers a piece wholly or not at all. A set of pieces is
    the bits of an int."""

    def __init__(self, found: Sequence[Sequence[_Change]]) -> None:
        places: dict[Variable, set[int]] = {}
        for changes in found:
            for _, access, _ in changes:
                places.setdefault(access.var, set()).update((access.start, access.end))
        self._index = {var: {at: n for n, at in enumerate(sorted(cut))} for var, cut in places.items()}

    def pieces(self, access: Access) -> int:
        """The pieces of an access."""
        index = self._index[access.var]
        return (1 << index[access.end]) - (1 << index[access.start])


class _Summary(Struct):
    """Uses and defs of a variable in a block, by pieces: read before a def, possibly written, and killed."""

    read: int = 0
    written: int = 0
    killed: int = 0


def _summary(changes: Sequence[_Change], cuts: _Cuts) -> dict[Variable, _Summary]:
    found: dict[Variable, _Summary] = {}
    for _, access, certain in changes:
        pieces = cuts.pieces(access)
        summary = found.get(access.var)
        if summary is None:
            summary = found[access.var] = _Summary()
        if not access.writes:
            summary.read |= pieces & ~summary.killed
            continue
        summary.written |= pieces
        if certain:
            summary.killed |= pieces
    return found


_Summaries = Mapping[int, _Summary]
"""The uses and defs of a variable, by the number of the block."""


def _across_blocks(
    found: Sequence[Mapping[Variable, _Summary]], given: Collection[Variable]
) -> dict[Variable, _Summaries]:
    """The variables that may hold a value across blocks, or across executions of one block."""
    each: dict[Variable, dict[int, _Summary]] = {}
    for number, summaries in enumerate(found):
        for var, summary in summaries.items():
            each.setdefault(var, {})[number] = summary
    return {v: s for v, s in each.items() if len(s) > 1 or v in given or any(what.read for what in s.values())}


class _Lives:
    """Where a variable is live at the beginning and at the end of blocks."""

    def __init__(self, flow: Flow, summaries: _Summaries) -> None:
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
            for before in self._flow.predecessors[number]:
                wanted_last[before] = wanted_last.get(before, 0) | new
                summary = self._summaries.get(before)
                todo.append((before, new & ~summary.killed if summary else new))

    @property
    def enter(self) -> bool:
        """Whether a piece may be read before the program has written it."""
        return bool(self._wanted_first.get(0))

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
            for after in self._flow.successors[number]:
                came = new & self._wanted_first.get(after, 0) & ~reached_first.get(after, 0)
                if came:
                    reached_first[after] = reached_first.get(after, 0) | came
                    yield self._flow.blocks[after].start
                    # Pieces that the block kills hold values that the block itself has written.
                    todo.append((after, came))


# The variables that may be read after each block, whether or not they were written.


class Liveness:
    """Live variables at the begin and end of blocks. A variable is live as a whole."""

    def __init__(self, program: Program, target: Target) -> None:
        """Compute the liveness of variables that are no aliases, and of predicates."""
        flow = flow_of(program)
        found = [self._block(program.instructions[b.start : b.stop], flow, target) for b in flow.blocks]
        self._variables = list(dict.fromkeys(var for reads, _ in found for var in reads))
        self._numbers = {var: number for number, var in enumerate(self._variables)}
        uses = [self._bits(reads) for reads, _ in found]
        defs = [self._bits(kills) for _, kills in found]
        self._in = [0] * len(flow.blocks)
        self._successors = flow.successors
        # Backwards, so that few rounds are needed: one for each level of loops, and two more.
        order = [*reversed(flow.order), *(set(range(len(flow.blocks))) - set(flow.order))]
        changed = True
        while changed:
            changed = False
            for number in order:
                live = uses[number] | (self._out(number) & ~defs[number])
                if live != self._in[number]:
                    self._in[number] = live
                    changed = True
        self._sizes = np.array([0 if isinstance(v, Predicate) else v.bytes for v in self._variables], np.int64)

    def _bits(self, variables: Iterable[Root]) -> int:
        numbers = (self._numbers.get(var) for var in variables)
        return sum(1 << number for number in set(numbers) if number is not None)

    @staticmethod
    def _block(instructions: Sequence[Instruction], flow: Flow, target: Target) -> tuple[set[Root], set[Root]]:
        """The upward-exposed uses of a block, and the variables that it defines as a whole."""
        written: dict[Root, int] = {}
        uses: set[Root] = set()
        whole: set[Root] = set()
        for inst in instructions:
            known = effects(inst, target)
            for access in known.reads:
                decided = access.var in uses or access.var in whole
                if not decided and span_bits(access) & ~written.get(access.var, 0):
                    uses.add(access.var)
            for predicate in known.tests:
                if written.get(predicate, 0) != (1 << predicate.count) - 1:
                    uses.add(predicate)
            for access in known.writes:
                # A write after a use, or a second write, has no effect here.
                if access.var not in uses and access.var not in whole and writes_all(inst, access, flow):
                    bits = written[access.var] = written.get(access.var, 0) | span_bits(access)
                    if not ~bits & _all(access.var):
                        whole.add(access.var)
            if known.sets and known.lanes and flow.certain(inst):
                first, end = known.lanes
                written[known.sets] = written.get(known.sets, 0) | ((1 << end) - (1 << first))
        return uses, whole | {v for v, bits in written.items() if not ~bits & _all(v)}

    def _out(self, block: int) -> int:
        live = 0
        for successor in self._successors[block]:
            live |= self._in[successor]
        return live

    def entering(self, block: int) -> list[Root]:
        """The variables that are no aliases, and predicates, that are live at the begin of a block."""
        return [var for number, var in enumerate(self._variables) if self._in[block] >> number & 1]

    def enters(self, block: int, var: Root) -> bool:
        """Whether a variable that is not an alias is live at the begin of a block."""
        number = self._numbers.get(var)
        return number is not None and bool(self._in[block] >> number & 1)

    def leaves(self, block: int, var: Root) -> bool:
        """Whether a variable that is not an alias is live at the end of a block."""
        number = self._numbers.get(var)
        return number is not None and any(self._in[f] >> number & 1 for f in self._successors[block])

    def bytes_after(self, block: int) -> int:
        """Bytes of the general variables that are live at the end of a block."""
        live = self._out(block).to_bytes(len(self._sizes) // 8 + 1, "little")
        bits = np.unpackbits(np.frombuffer(live, np.uint8), bitorder="little")[: len(self._sizes)]
        return int(bits @ self._sizes)


@analysis
def liveness_of(program: Program, target: Target) -> Liveness:
    """The live variables of a program, computed once."""
    return Liveness(program, target)


def _all(var: Root) -> int:
    return (1 << (var.count if isinstance(var, Predicate) else var.bytes)) - 1
