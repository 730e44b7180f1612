"""The walk over a program that simplifies instructions by the known facts about their operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xegpu_py.passes.visa_optimize import VisaOptimize
from xegpu_py.passes.visa_optimize.addresses import Addresses
from xegpu_py.passes.visa_optimize.constants import Constants
from xegpu_py.passes.visa_optimize.copies import Copies, copied_elements, is_copy
from xegpu_py.passes.visa_optimize.facts import Facts
from xegpu_py.passes.visa_optimize.places import Places, bytes_of
from xegpu_py.target import Target
from xegpu_py.visa.accesses import Root, effects
from xegpu_py.visa.flow import Flow, flow_of
from xegpu_py.visa.operands import Destination, Flag
from xegpu_py.visa.program import Instruction, Program


def rewrite_values(program: Program, target: Target, steps: VisaOptimize) -> Program:
    """The program after folding, copy propagation and address rewriting."""
    flow = flow_of(program)
    walk = _Walk(program, target, flow, steps)
    rewritten: dict[int, list[Instruction]] = {}
    for number in sorted(flow.spans, key=lambda n: flow.spans[n]):
        block = flow.blocks[number]
        rewritten[number] = walk.block(number, program.instructions[block.start : block.stop])
    instructions: list[Instruction] = []
    for number, block in enumerate(flow.blocks):
        instructions += rewritten.get(number, program.instructions[block.start : block.stop])
    if walk.places.added:
        program = replace(program, variables=(*program.variables, *walk.places.added))
    return program.with_instructions(instructions)


class _Walk:
    """One walk over a program."""

    def __init__(self, program: Program, target: Target, flow: Flow, steps: VisaOptimize) -> None:
        self.flow, self.steps = flow, steps
        self.facts = Facts(program, flow, target)
        self.places = Places(program, target)
        reads: dict[Root, int] = {}
        for inst in program.instructions:
            for access in effects(inst, target).reads:
                reads[access.var] = reads.get(access.var, 0) + 1
        self.copies = Copies(self.facts, self.places, target)
        self.constants = Constants(self.facts, target)
        self.addresses = Addresses(self.facts, self.places, target, reads)
        self.target = target

    def block(self, number: int, instructions: Sequence[Instruction]) -> list[Instruction]:
        """A block's instructions, rewritten."""
        self.facts.enter(number)
        found = []
        for inst in instructions:
            new = self._rewrite(inst)
            if new is not None and self._note(new):
                found.append(new)
        self.facts.leave()
        return found

    def _rewrite(self, inst: Instruction) -> Instruction | None:
        if self.steps.copies:
            inst = self.copies.rewrite(inst)
        if self.steps.fold:
            folded = self.constants.rewrite(inst)
            if folded is None:
                return None
            inst = folded
        return self.addresses.rewrite(inst) if self.steps.addresses else inst

    def _note(self, inst: Instruction) -> bool:
        """Record the facts that hold after an instruction; False if all of them held before it."""
        dst = inst.values.get("dst")
        if not isinstance(dst, (Destination, Flag)) or not self.flow.certain(inst):
            self.facts.write(inst)
            return True
        root, places, size = self._result(inst)
        constants = self.constants.results(inst) if self.steps.fold else None
        copies = copied_elements(inst, self.facts, self.target) if is_copy(inst) and self.steps.copies else []
        sums = self.addresses.sums(inst) if self.steps.addresses else []
        if copies and all((s.root, s.at) == (root, place) for place, s in copies):
            return False
        self.facts.write(inst)
        for place, bits in zip(places, constants or ()):
            self.facts.note_constant(root, place, size, bits)
        for place, source in copies:
            self.facts.note_copy(root, place, size, source)
        for place, source in sums:
            self.facts.note_sum(root, place, size, source)
        return True

    def _result(self, inst: Instruction) -> tuple[Root, list[int], int]:
        """The variable that an arithmetic instruction writes, the first byte of each lane's element, and its width."""
        dst = inst["dst"]
        if isinstance(dst, Flag):
            return dst.var, list(range(inst.first_lane, inst.first_lane + inst.exec_size)), 1
        root, places = bytes_of(dst, inst.exec_size, self.target)
        return root, places, dst.var.format.bytes
