"""Loop-invariant code motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from xegpu_py.passes.visa_optimize.facts import writes
from xegpu_py.target import Target
from xegpu_py.visa.accesses import Root, effects
from xegpu_py.visa.flow import Flow, flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.liveness import liveness_of
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Instruction, Program


class _Loop(Struct, frozen=True):
    """The blocks from a label to the last jump back to it. Control enters only from the preceding block."""

    first: int
    last: int


def hoist(program: Program, target: Target, budget: int) -> Program:
    """The program with invariant arithmetic moved out of loops, innermost loops first.

    This is correct for any number of iterations: a moved instruction has no side effect, its result is written nowhere
    else and is not live into the loop, and its operands are defined before the loop.

    Args:
        budget: bytes of registers that the moved values may occupy during their loops.
    """
    flow = flow_of(program)
    loops = _loops(flow)
    if not loops:
        return program
    return _Hoist(program, flow, target, budget).run(loops)


def has_loops(program: Program) -> bool:
    """Whether the program has a loop that `hoist` handles."""
    return bool(_loops(flow_of(program)))


def _loops(flow: Flow) -> list[_Loop]:
    """Loops that control enters only at the first block, from the preceding block; inner loops first."""
    last: dict[int, int] = {}
    for number, successors in enumerate(flow.successors):
        for successor in successors:
            # A back edge of divergent lanes forms no loop of the whole thread.
            if 0 < successor <= number and number in flow.spans and flow.blocks[number]:
                last[successor] = max(last.get(successor, 0), number)
    found = [_Loop(first, end) for first, end in last.items() if _is_closed(flow, first, end)]
    return sorted(found, key=lambda loop: (loop.last - loop.first, loop.first))


def _is_closed(flow: Flow, first: int, last: int) -> bool:
    if first - 1 not in flow.predecessors[first]:
        return False
    for number in range(first, last + 1):
        for predecessor in flow.predecessors[number]:
            inside = first <= predecessor <= last
            if not inside and (number != first or predecessor != first - 1):
                return False
    return True


class _Hoist:
    """Moves instructions; `before` has those to insert in front of each block."""

    def __init__(self, program: Program, flow: Flow, target: Target, budget: int) -> None:
        self.program, self.flow, self.target, self.budget = program, flow, target, budget
        self.liveness = liveness_of(program, target)
        self.blocks: list[list[Instruction]] = [list(program.instructions[b.start : b.stop]) for b in flow.blocks]
        self.before: dict[int, list[Instruction]] = {}
        self.sites: dict[Root, list[int]] = {}
        self.rewritten: set[Root] = {i.var.root[0] for i in program.inputs}
        written: dict[Root, int] = {}
        for number, block in enumerate(self.blocks):
            for inst in block:
                self._count(inst, number, written)

    def _count(self, inst: Instruction, number: int, written: dict[Root, int]) -> None:
        for root, first, end, certain in writes(inst, self.flow, self.target):
            self.sites.setdefault(root, []).append(number)
            places = (1 << end) - (1 << first)
            if not certain or written.get(root, 0) & places:
                self.rewritten.add(root)
            written[root] = written.get(root, 0) | places

    def run(self, loops: Sequence[_Loop]) -> Program:
        for loop in loops:
            self._empty(loop)
        if not any(self.before.values()):
            return self.program
        instructions: list[Instruction] = []
        for number, block in enumerate(self.blocks):
            instructions += [*self.before.get(number, ()), *block]
        return self.program.with_instructions(instructions)

    def _inside(self, loop: _Loop) -> Iterator[list[Instruction]]:
        """The lists of instructions of a loop, in order."""
        for number in range(loop.first, loop.last + 1):
            if number > loop.first and number in self.before:
                yield self.before[number]
            yield self.blocks[number]

    def _empty(self, loop: _Loop) -> None:
        changing: dict[Root, int] = {}
        for block in self._inside(loop):
            for inst in block:
                for root in effects(inst, self.target).written:
                    changing[root] = changing.get(root, 0) + 1
        out = self.before.setdefault(loop.first, [])
        for block in self._inside(loop):
            kept = []
            for inst in block:
                if self._is_invariant(inst, loop, changing):
                    out.append(inst)
                    self._leave(inst, changing)
                else:
                    kept.append(inst)
            block[:] = kept

    def _leave(self, inst: Instruction, changing: dict[Root, int]) -> None:
        known = effects(inst, self.target)
        for root in known.written:
            changing[root] -= 1
        self.budget -= sum(access.end - access.start for access in known.writes)

    def _is_invariant(self, inst: Instruction, loop: _Loop, changing: dict[Root, int]) -> bool:
        if INSTRUCTIONS[inst.name].category not in ("alu", "math") or not self.flow.certain(inst):
            return False
        known = effects(inst, self.target)
        if known.sets:
            # A longer live range of one of the few predicates costs more than it saves.
            return False
        results = [a.var for a in known.writes]
        if any(root in self.rewritten or self.liveness.enters(loop.first, root) for root in results):
            return False
        if sum(a.end - a.start for a in known.writes) > self.budget:
            return False
        return all(self._is_fixed(root, loop, changing) for root in known.read)

    def _is_fixed(self, root: Root, loop: _Loop, changing: dict[Root, int]) -> bool:
        """Whether a variable is defined before a loop and unchanged in it."""
        if changing.get(root, 0):
            return False
        sites = self.sites.get(root)
        if not sites:
            return isinstance(root, Variable)
        if root in self.rewritten:
            # The loop does not write it, so it needs a definition before the loop.
            return any(self.flow.dominates(n, loop.first - 1) for n in sites)
        # Definitions that were moved out of the loop precede it.
        return all(loop.first <= n <= loop.last or self.flow.dominates(n, loop.first - 1) for n in sites)
