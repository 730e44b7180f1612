"""Basic blocks of a program, which follows which, which dominates which, and what lives where they begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from xegpu_py.target import Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.liveness import Access, accesses
from xegpu_py.visa.operands import Flag, Predicate, Variable
from xegpu_py.visa.program import Instruction, Program

_ENDS = ("jmp", "goto", "ret")


Root = Variable | Predicate
"""What holds something: a variable that is no alias, whose places are its bytes; or a predicate, and its bits."""


@dataclass(frozen=True)
class Effects:
    """What an instruction does to a thread's state.

    Attributes:
        reads, writes: accesses to general variables.
        tests: predicates that it reads, its guard among them.
        sets: the predicate that it writes, or None.
        lanes: lanes of that predicate that it writes for certain, as (first, end); None where it may leave some.
    """

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    tests: tuple[Predicate, ...]
    sets: Predicate | None
    lanes: tuple[int, int] | None

    @property
    def read(self) -> list[Root]:
        """Everything that it reads."""
        return [*(access.var for access in self.reads), *self.tests]

    @property
    def written(self) -> list[Root]:
        """Everything that it writes."""
        return [*(access.var for access in self.writes), *([self.sets] if self.sets else [])]


def effects(inst: Instruction, target: Target) -> Effects:
    """What an instruction reads and writes, on its own: whether its lanes are enabled is not asked."""
    found = tuple(accesses(inst, target))
    tests = [inst.guard.var] if inst.guard else []
    sets = None
    for slot in INSTRUCTIONS[inst.name].slots:
        value = inst[slot.name]
        if isinstance(value, Flag):
            if slot.use == "write":
                sets = value.var
            else:
                tests.append(value.var)
    lanes = None
    if sets and inst.guard is None:
        lanes = (inst.first_lane, inst.first_lane + inst.exec_size)
    return Effects(
        tuple(a for a in found if not a.writes), tuple(a for a in found if a.writes), tuple(tests), sets, lanes
    )


class EffectsOf:
    """The effects of instructions, each looked at once."""

    def __init__(self, target: Target) -> None:
        """For instructions on a target."""
        self.target = target
        self._known: dict[int, tuple[Instruction, Effects]] = {}

    def __call__(self, inst: Instruction) -> Effects:
        """The effects of an instruction."""
        known = self._known.get(id(inst))
        if known is None:
            # The instruction is kept, so that its identity is not given to another.
            known = self._known[id(inst)] = (inst, effects(inst, self.target))
        return known[1]


@dataclass(frozen=True)
class Block:
    """Instructions that run one after the other: those with index `start` to `end - 1`."""

    start: int
    end: int


class Flow:
    """How control passes through a program, as a hardware thread sees it.

    Lanes that a `goto` parts go on in turns, those that are farthest behind first, so that a thread may come from any
    block to any other once lanes have parted. In programs with `goto` a block without instructions stands last, which
    follows on every block that can run then, and on which all blocks follow.

    Attributes:
        blocks: the blocks, in order.
        followers: for each block those that may run next.
        parts: whether lanes can part, so that an instruction without NoMask may leave lanes of its result as they are.
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        """The flow of a program's instructions."""
        count = len(instructions)
        labels = {i["label"]: at for at, i in enumerate(instructions) if i.name == "label"}
        leaders = {0, *labels.values(), *(at + 1 for at, i in enumerate(instructions) if i.name in _ENDS)}
        starts = sorted(s for s in leaders if s < count)
        self.blocks = [Block(s, e) for s, e in zip(starts, [*starts[1:], count])]
        number = {b.start: n for n, b in enumerate(self.blocks)}
        self.parts = any(i.name == "goto" for i in instructions)
        self.followers: list[list[int]] = []
        for block in self.blocks:
            last = instructions[block.end - 1]
            found = [number[labels[last["label"]]]] if last.name in ("jmp", "goto") else []
            if last.name != "ret" and (last.name != "jmp" or last.guard) and block.end in number:
                found.append(number[block.end])
            self.followers.append(found)
        if self.parts:
            self._let_lanes_wait([n for n, b in enumerate(self.blocks) if instructions[b.end - 1].name == "goto"])

    def _let_lanes_wait(self, parting: list[int]) -> None:
        hub = len(self.blocks)
        for number in self._reached(parting):
            self.followers[number].append(hub)
        end = self.blocks[-1].end
        self.blocks.append(Block(end, end))
        self.followers.append(list(range(hub)))

    def _reached(self, start: Iterable[int]) -> set[int]:
        found, stack = set(start), list(start)
        while stack:
            for follower in self.followers[stack.pop()]:
                if follower not in found:
                    found.add(follower)
                    stack.append(follower)
        return found

    @cached_property
    def leaders(self) -> list[list[int]]:
        """For each block those on which it may follow."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for number, followers in enumerate(self.followers):
            for follower in followers:
                found[follower].append(number)
        return found

    @cached_property
    def order(self) -> list[int]:
        """The blocks that can be reached, in reverse postorder."""
        done: list[int] = []
        seen = {0}
        stack = [(0, iter(self.followers[0]))]
        while stack:
            number, rest = stack[-1]
            for follower in rest:
                if follower not in seen:
                    seen.add(follower)
                    stack.append((follower, iter(self.followers[follower])))
                    break
            else:
                done.append(number)
                stack.pop()
        return done[::-1]

    @cached_property
    def dominators(self) -> dict[int, int]:
        """The immediate dominator of each block that can be reached; the first block's is itself."""
        rank = {number: i for i, number in enumerate(self.order)}
        found = {0: 0}
        changed = True
        while changed:
            changed = False
            for number in self.order[1:]:
                best = -1
                for leader in self.leaders[number]:
                    if leader in found:
                        best = leader if best < 0 else _meet(best, leader, found, rank)
                if found.get(number) != best:
                    found[number] = best
                    changed = True
        return found

    @cached_property
    def spans(self) -> dict[int, tuple[int, int]]:
        """For each block that can be reached where a walk of the dominator tree enters and leaves it."""
        children: dict[int, list[int]] = {}
        for number in self.order[1:]:
            children.setdefault(self.dominators[number], []).append(number)
        found: dict[int, tuple[int, int]] = {}
        entered: dict[int, int] = {}
        clock, stack = 0, [0]
        while stack:
            number = stack.pop()
            if number < 0:
                found[~number] = (entered[~number], clock)
                continue
            entered[number] = clock
            clock += 1
            stack += [~number, *reversed(children.get(number, []))]
        return found

    def dominates(self, a: int, b: int) -> bool:
        """Whether each way to block `b` leads through block `a`."""
        if a not in self.spans or b not in self.spans:
            return False
        start, end = self.spans[a]
        return start <= self.spans[b][0] < end

    def certain(self, inst: Instruction) -> bool:
        """Whether an instruction writes its result for all its lanes."""
        guarded = inst.guard is not None and inst.name != "sel"
        return not guarded and (inst.no_mask or not self.parts or inst.name == "dpas")


def _meet(a: int, b: int, dominators: dict[int, int], rank: dict[int, int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = dominators[a]
        while rank[b] > rank[a]:
            b = dominators[b]
    return a


def span_bits(access: Access) -> int:
    """The bytes of an access as a mask of those of its variable."""
    return ((1 << (access.end - access.start)) - 1) << access.start


def fills(inst: Instruction, access: Access, flow: Flow) -> bool:
    """Whether all bytes of an access are written for certain."""
    if access.whole:
        return flow.certain(inst)
    # `accesses` takes sel's predicate for one that keeps lanes.
    return inst.name == "sel" and flow.certain(inst) and inst["dst"].stride == 1


class Liveness:
    """What is still read where blocks begin and end. A variable lives as a whole."""

    def __init__(self, program: Program, flow: Flow, effects_of: EffectsOf) -> None:
        """Of a program's variables that are no aliases, and its predicates."""
        found = [self._block(program.instructions[b.start : b.end], flow, effects_of) for b in flow.blocks]
        self._variables = list(dict.fromkeys(var for reads, _ in found for var in reads))
        self._numbers = {var: number for number, var in enumerate(self._variables)}
        exposed = [self._bits(reads) for reads, _ in found]
        filled = [self._bits(kills) for _, kills in found]
        self._in = [0] * len(flow.blocks)
        self._followers = flow.followers
        # Backwards, so that few rounds are needed: one for each level of loops, and two more.
        order = [*reversed(flow.order), *(set(range(len(flow.blocks))) - set(flow.order))]
        changed = True
        while changed:
            changed = False
            for number in order:
                live = exposed[number] | (self._out(number) & ~filled[number])
                if live != self._in[number]:
                    self._in[number] = live
                    changed = True
        self._sizes = np.array([0 if isinstance(v, Predicate) else v.bytes for v in self._variables], np.int64)

    def _bits(self, variables: Iterable[Root]) -> int:
        numbers = (self._numbers.get(var) for var in variables)
        return sum(1 << number for number in set(numbers) if number is not None)

    @staticmethod
    def _block(instructions: Sequence[Instruction], flow: Flow, effects_of: EffectsOf) -> tuple[set[Root], set[Root]]:
        """What a block reads before it writes it, and what it writes as a whole."""
        written: dict[Root, int] = {}
        exposed: set[Root] = set()
        for inst in instructions:
            known = effects_of(inst)
            for access in known.reads:
                if access.var not in exposed and span_bits(access) & ~written.get(access.var, 0):
                    exposed.add(access.var)
            for predicate in known.tests:
                if written.get(predicate, 0) != (1 << predicate.count) - 1:
                    exposed.add(predicate)
            for access in known.writes:
                if fills(inst, access, flow):
                    written[access.var] = written.get(access.var, 0) | span_bits(access)
            if known.sets and known.lanes and flow.certain(inst):
                first, end = known.lanes
                written[known.sets] = written.get(known.sets, 0) | ((1 << end) - (1 << first))
        whole = {v for v, bits in written.items() if not ~bits & _all(v)}
        return exposed, whole

    def _out(self, block: int) -> int:
        live = 0
        for follower in self._followers[block]:
            live |= self._in[follower]
        return live

    def enters(self, block: int, var: Root) -> bool:
        """Whether a variable that is no alias is still read where a block begins."""
        number = self._numbers.get(var)
        return number is not None and bool(self._in[block] >> number & 1)

    def leaves(self, block: int, var: Root) -> bool:
        """Whether a variable that is no alias is still read where a block ends."""
        number = self._numbers.get(var)
        return number is not None and any(self._in[f] >> number & 1 for f in self._followers[block])

    def bytes_after(self, block: int) -> int:
        """Bytes of the general variables that are still read where a block ends."""
        live = self._out(block).to_bytes(len(self._sizes) // 8 + 1, "little")
        bits = np.unpackbits(np.frombuffer(live, np.uint8), bitorder="little")[: len(self._sizes)]
        return int(bits @ self._sizes)


def _all(var: Root) -> int:
    return (1 << (var.count if isinstance(var, Predicate) else var.bytes)) - 1
