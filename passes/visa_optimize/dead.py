"""Dead code elimination: unread results, jumps to the next instruction, unused labels and unreachable code."""

from __future__ import annotations

from dataclasses import replace

from xegpu_py.target import Target
from xegpu_py.visa.accesses import Access, Root, effects, named_by, span_bits
from xegpu_py.visa.flow import Flow, flow_of, writes_all
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.liveness import Liveness, liveness_of
from xegpu_py.visa.operands import Predicate, Raw, Variable
from xegpu_py.visa.program import Instruction, Program

_CHUNK = 64
"""Bytes of a variable whose readers are tracked together."""


def remove_dead_code(program: Program, target: Target) -> Program:
    """The program without instructions, jumps and labels that have no effect."""
    program = _remove_idle_jumps(_remove_unreachable(program))
    if len(flow_of(program).blocks) > 1:
        # In a single block the backward walk finds all unread results.
        program = _remove_unread(program, target)
    return _remove_overwritten(program, target)


def is_removable(inst: Instruction) -> bool:
    """Whether an instruction has no effect besides writing registers: arithmetic, dpas, and loads."""
    category = INSTRUCTIONS[inst.name].category
    if category == "load":
        # A load with a null destination is a prefetch.
        dst = inst["dst"]
        return isinstance(dst, Raw) and dst.var is not None
    return category in ("alu", "math", "dpas")


def _remove_unreachable(program: Program) -> Program:
    flow = flow_of(program)
    reached = set(flow.order)
    kept = [program.instructions[b.start : b.stop] for n, b in enumerate(flow.blocks) if n in reached]
    return program.with_instructions([i for block in kept for i in block])


def _remove_idle_jumps(program: Program) -> Program:
    """Remove jumps to the next instruction, and labels that no jump names."""
    instructions = program.instructions
    kept = []
    for at, inst in enumerate(instructions):
        if not INSTRUCTIONS[inst.name].uniform or not _is_next(instructions, at, inst["label"]):
            kept.append(inst)
    named = {i["label"] for i in kept if INSTRUCTIONS[i.name].jumps}
    kept = [i for i in kept if i.name != "label" or i["label"] in named]
    return program.with_instructions(kept)


def _is_next(instructions: tuple[Instruction, ...], at: int, label: str) -> bool:
    for inst in instructions[at + 1 :]:
        if inst.name != "label":
            return False
        if inst["label"] == label:
            return True
    return False


def _remove_unread(program: Program, target: Target) -> Program:
    """Remove instructions whose results no instruction with an effect depends on, in any order of execution."""
    # By variable and chunk; a predicate has one chunk.
    writers: dict[Root, dict[int, list[int]]] = {}
    instructions = program.instructions
    needed = []
    for at, inst in enumerate(instructions):
        if is_removable(inst):
            known = effects(inst, target)
            for access in known.writes:
                chunks = writers.setdefault(access.var, {})
                for chunk in _chunks(access):
                    chunks.setdefault(chunk, []).append(at)
            if known.sets:
                writers.setdefault(known.sets, {}).setdefault(0, []).append(at)
        else:
            needed.append(at)
    live = set(needed)
    while needed:
        known = effects(instructions[needed.pop()], target)
        read = [by.pop(c) for a in known.reads if (by := writers.get(a.var)) for c in _chunks(a) if c in by]
        read += [by.pop(0) for p in known.tests if (by := writers.get(p))]
        # All writers of a needed location are needed.
        new = {at for found in read for at in found} - live
        live |= new
        needed += new
    return program.with_instructions([i for at, i in enumerate(instructions) if at in live])


def _chunks(access: Access) -> range:
    return range(access.start // _CHUNK, (access.end - 1) // _CHUNK + 1)


def _remove_overwritten(program: Program, target: Target) -> Program:
    """Remove writes that are overwritten before they are read."""
    flow = flow_of(program)
    liveness = liveness_of(program, target)
    kept: list[Instruction] = []
    for number in reversed(range(len(flow.blocks))):
        block = flow.blocks[number]
        live = _Live(liveness, number)
        for inst in reversed(program.instructions[block.start : block.stop]):
            if _step_back(inst, live, flow, target):
                kept.append(inst)
    return program.with_instructions(kept[::-1])


class _Live:
    """The live bytes of variables and live bits of predicates at a point of a block, as masks."""

    def __init__(self, liveness: Liveness, block: int) -> None:
        self._liveness, self._block = liveness, block
        self._masks: dict[Variable | Predicate, int] = {}

    def __getitem__(self, var: Variable | Predicate) -> int:
        found = self._masks.get(var)
        if found is None:
            # At the end of a block a variable is live as a whole or not at all.
            found = _every(var) if self._liveness.leaves(self._block, var) else 0
            self._masks[var] = found
        return found

    def __setitem__(self, var: Variable | Predicate, mask: int) -> None:
        self._masks[var] = mask


def _every(var: Variable | Predicate) -> int:
    return (1 << (var.count if isinstance(var, Predicate) else var.bytes)) - 1


def _step_back(inst: Instruction, live: _Live, flow: Flow, target: Target) -> bool:
    """Update the live set from after an instruction to before it; False if the instruction is dead."""
    known = effects(inst, target)
    if is_removable(inst):
        needed = any(live[a.var] & span_bits(a) for a in known.writes)
        if not needed and not (known.sets and live[known.sets]):
            return False
    for access in known.writes:
        if writes_all(inst, access, flow) and live[access.var]:
            live[access.var] &= ~span_bits(access)
    if known.sets and known.lanes and flow.certain(inst):
        first, end = known.lanes
        live[known.sets] &= ~((1 << end) - (1 << first))
    for access in known.reads:
        live[access.var] |= span_bits(access)
    for predicate in known.tests:
        live[predicate] = _every(predicate)
    return True


def without_unused_declarations(program: Program) -> Program:
    """The program without variables and predicates that no instruction names. Inputs are kept."""
    used = named_by(program.instructions) | {i.var for i in program.inputs}
    variables = tuple(v for v in program.variables if v in used)
    predicates = tuple(p for p in program.predicates if p in used)
    if len(variables) == len(program.variables) and len(predicates) == len(program.predicates):
        return program
    return replace(program, variables=variables, predicates=predicates)
