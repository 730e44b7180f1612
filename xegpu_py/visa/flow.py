"""Basic blocks of a program, with their successors, predecessors and dominators."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from functools import cached_property

from xegpu_py.visa.accesses import Access
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction, Program, analysis
from xegpu_py.visa.spec import LANES


class Flow:
    """The control-flow graph of a program, as a hardware thread sees it.

    A thread always executes its lanes that are at the earliest instruction of the program. Lanes that diverge at a
    `goto` wait, after the `goto` or at its label, until the other lanes arrive there or move beyond that place. After
    a forward jump or a `ret`, the thread continues at the next place where lanes may wait.

    Attributes:
        blocks: the instructions of each block, by their indices. Blocks without any come last: each leads to a place
            where lanes may wait, and to the next of them.
        successors: for each block those that may run next.
        divergent: whether lanes may diverge, so that an instruction without NoMask may leave lanes of its result.
    """

    def __init__(self, program: Program) -> None:
        """The flow of a program's instructions."""
        instructions, labels = program.instructions, program.labels
        count = len(instructions)
        self.divergent = any(INSTRUCTIONS[i.name].diverges for i in instructions)
        waits = sorted(_waiting_places(instructions, labels)) if self.divergent else []
        specs = [INSTRUCTIONS[i.name] for i in instructions]
        ends = {at + 1 for at, spec in enumerate(specs) if spec.jumps or spec.ends}
        starts = sorted({0, *labels.values(), *waits, *ends} - {count})
        self.blocks = [range(a, b) for a, b in zip(starts, [*starts[1:], count])]
        number = {block.start: n for n, block in enumerate(self.blocks)}
        waiting = {at: len(self.blocks) + n for n, at in enumerate(waits)}
        self.successors: list[list[int]] = []
        for block in self.blocks:
            at = block.stop - 1
            last, spec = instructions[at], specs[at]
            found = [number[labels[last["label"]]]] if spec.jumps else []
            if not spec.ends and (not spec.uniform or last.guard) and block.stop in number:
                found.append(number[block.stop])
            if spec.ends or (spec.jumps and labels[last["label"]] > at):
                behind = bisect.bisect_right(waits, at)
                found += [waiting[w] for w in waits[behind : behind + 1]]
            self.successors.append(found)
        for n, at in enumerate(waits):
            self.successors.append([number[at], *(waiting[w] for w in waits[n + 1 : n + 2])])
        self.blocks += [range(at, at) for at in waits]

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """The predecessors of each block."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for number, successors in enumerate(self.successors):
            for successor in successors:
                found[successor].append(number)
        return found

    @cached_property
    def order(self) -> list[int]:
        """The blocks that can be reached, in reverse postorder."""
        done: list[int] = []
        seen = {0}
        stack = [(0, iter(self.successors[0]))]
        while stack:
            number, rest = stack[-1]
            for successor in rest:
                if successor not in seen:
                    seen.add(successor)
                    stack.append((successor, iter(self.successors[successor])))
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
                for predecessor in self.predecessors[number]:
                    if predecessor in found:
                        best = predecessor if best < 0 else _meet(best, predecessor, found, rank)
                if found.get(number) != best:
                    found[number] = best
                    changed = True
        return found

    @cached_property
    def spans(self) -> dict[int, tuple[int, int]]:
        """The entry and exit numbers of each reachable block in a walk of the dominator tree."""
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
        """Whether block `a` dominates block `b`: each path to `b` leads through `a`."""
        if a not in self.spans or b not in self.spans:
            return False
        start, end = self.spans[a]
        return start <= self.spans[b][0] < end

    def certain(self, inst: Instruction) -> bool:
        """Whether an instruction writes its result for all its lanes."""
        guarded = inst.guard is not None and not INSTRUCTIONS[inst.name].selects
        return not guarded and (inst.no_mask or not self.divergent)


def divergent_lanes(program: Program) -> range:
    """The lanes in which threads can diverge, those of the instructions at which they do; all if there are none."""
    own = [i for i in program.instructions if INSTRUCTIONS[i.name].diverges]
    if not own:
        return range(LANES)
    return range(min(i.first_lane for i in own), max(i.first_lane + i.exec_size for i in own))


@analysis
def flow_of(program: Program) -> Flow:
    """The control-flow graph of a program, computed once."""
    return Flow(program)


def _meet(a: int, b: int, dominators: dict[int, int], rank: dict[int, int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = dominators[a]
        while rank[b] > rank[a]:
            b = dominators[b]
    return a


def _waiting_places(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> set[int]:
    """Where lanes that diverged at a `goto` may wait for the others."""
    found = set()
    for at, inst in enumerate(instructions):
        spec = INSTRUCTIONS[inst.name]
        if spec.jumps:
            to = labels[inst["label"]]
            if to > at:
                found.add(to)
            elif spec.diverges:
                # Lanes that jump back are behind those that do not jump.
                found.add(at + 1)
    return found - {len(instructions)}


def writes_all(inst: Instruction, access: Access, flow: Flow) -> bool:
    """Whether an access certainly writes all of its bytes."""
    return access.whole and flow.certain(inst)
