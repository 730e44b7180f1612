"""Result forwarding: a value that is only moved elsewhere is computed at the move's destination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xegpu_py.passes.visa_optimize.copies import is_copy
from xegpu_py.passes.visa_optimize.places import Places, bytes_of

from xegpu_py.target import Target
from xegpu_py.visa.accesses import effects
from xegpu_py.visa.flow import Flow, flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Destination, Region, Variable
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.verify import instruction_problem


def forward_results(program: Program, target: Target) -> Program:
    """The program without moves of values that are defined in the same block and read by that move only."""
    flow = flow_of(program)
    walk = _Forward(program, target, flow)
    if not walk.only_moved:
        return program
    instructions: list[Instruction] = []
    for block in flow.blocks:
        instructions += walk.block(program.instructions[block.start : block.stop])
    if walk.places.added:
        program = replace(program, variables=(*program.variables, *walk.places.added))
    return program.with_instructions(instructions)


@dataclass(frozen=True)
class _Result:
    """The position in its block of the instruction that computes a value, and the first bytes of its elements."""

    at: int
    places: list[int]


class _Forward:
    def __init__(self, program: Program, target: Target, flow: Flow) -> None:
        self.target, self.flow = target, flow
        self.places = Places(program, target)
        inputs = {i.var.root[0] for i in program.inputs}
        reads: dict[Variable, int] = dict.fromkeys(inputs, 2)
        writes: dict[Variable, int] = {}
        for inst in program.instructions:
            known = effects(inst, target)
            for access in known.reads:
                reads[access.var] = reads.get(access.var, 0) + 1
            for access in known.writes:
                writes[access.var] = writes.get(access.var, 0) + 1
        copied = {inst["src0"].var.root[0] for inst in program.instructions if is_copy(inst)}
        self.only_moved = {v for v in copied if writes.get(v) == 1 and reads.get(v) == 1}

    def block(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        """A block's instructions, with results written to the destinations of moves."""
        kept: list[Instruction | None] = []
        results: dict[Variable, _Result] = {}
        accessed: dict[Variable, int] = {}
        for at, inst in enumerate(instructions):
            moved = self._moved(inst, results, accessed, kept)
            if moved:
                result, new = moved
                kept[result] = new
                kept.append(None)
                at, inst = result, new
            else:
                kept.append(inst)
            known = effects(inst, self.target)
            for access in (*known.reads, *known.writes):
                accessed[access.var] = max(at, accessed.get(access.var, -1))
            dst = inst.values.get("dst")
            if isinstance(dst, Destination) and self._is_plain(inst) and dst.var.root[0] in self.only_moved:
                results[dst.var.root[0]] = _Result(at, bytes_of(dst, inst.exec_size, self.target)[1])
        return [inst for inst in kept if inst]

    def _is_plain(self, inst: Instruction) -> bool:
        return INSTRUCTIONS[inst.name].category in ("alu", "math") and self.flow.certain(inst)

    def _moved(
        self,
        inst: Instruction,
        results: dict[Variable, _Result],
        accessed: dict[Variable, int],
        kept: Sequence[Instruction | None],
    ) -> tuple[int, Instruction] | None:
        """For a move of a result: the position of its definition, and the definition with the move's destination."""
        if not is_copy(inst) or not self.flow.certain(inst):
            return None
        root, places = bytes_of(inst["src0"], inst.exec_size, self.target)
        result = results.get(root)
        if result is None or places != result.places:
            return None
        maker = kept[result.at]
        to, there = bytes_of(inst["dst"], inst.exec_size, self.target)
        if maker is None or maker.exec_size != inst.exec_size or accessed.get(to, -1) > result.at:
            return None
        if accessed.get(to) == result.at and not self._reads_in_place(maker, to, there):
            return None
        size = maker["dst"].var.format.bytes
        var = self.places.variable(to, maker["dst"].var.type, there[0], there[-1] + size)
        if var is None:
            return None
        row, rest = divmod(there[0] - var.root[1], self.target.grf_bytes)
        new = replace(maker, values={**maker.values, "dst": Destination(var, row, rest // size, inst["dst"].stride)})
        return None if instruction_problem(new, self.target) else (result.at, new)

    def _reads_in_place(self, inst: Instruction, root: Variable, places: list[int]) -> bool:
        """Whether each lane of an instruction reads a variable only at the bytes that it would write."""
        for value in inst.values.values():
            if isinstance(value, Region) and value.var.root[0] == root:
                if bytes_of(value, inst.exec_size, self.target)[1] != places:
                    return False
                if value.var.format.bytes != inst["dst"].var.format.bytes:
                    return False
        return True
