"""The modes that `%cr0` sets: how each instruction of a program rounds."""

from __future__ import annotations

from typing import Literal

from xegpu_py.visa.dataflow import Flow, flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import STATE, Destination, Immediate, Instruction, Program, Region, analysis

# Source: the vISA documentation and IGC's constants: bits 4 and 5 of `%cr0.0` are the rounding mode, bits 6, 7 and 10
# keep denormals of f64, f32 and f16. IGC 2.40 changes the mode by a xor with a constant.

ROUNDINGS: tuple[Literal["even", "up", "down", "zero"], ...] = ("even", "up", "down", "zero")
"""The rounding modes by their bits."""

_FIRST = 4

_CONTROL = STATE["%cr0"]

_CHANGES = {"or": int.__or__, "and": int.__and__, "xor": int.__xor__}


class Unknown(Exception):
    """`%cr0` is not known before an instruction, whose index is the argument."""


@analysis
def with_modes(program: Program) -> Program:
    """The program, whose instructions say how they round.

    Raises:
        Unknown: if it writes something to `%cr0` that depends on numbers of the run, or on the path.
    """
    if not any(_writes(inst) for inst in program.instructions):
        return program
    flow = flow_of(program)
    known: list[int | None] = [None] * len(flow.blocks)
    known[0], todo = 0, [0]
    found: dict[int, int] = {}
    while todo:
        number = todo.pop()
        control = known[number]
        assert control is not None
        for at in flow.blocks[number]:
            found[at] = control
            control = _after(program.instructions[at], control, at)
        for successor in flow.successors[number]:
            before = known[successor]
            if before is None:
                known[successor] = control
                todo.append(successor)
            elif _rounding(before) != _rounding(control):
                raise Unknown(_place(flow, successor))
    instructions = [
        inst if _rounding(found.get(at, 0)) == inst.rounding else inst.replaced(rounding=_rounding(found.get(at, 0)))
        for at, inst in enumerate(program.instructions)
    ]
    return program.with_instructions(instructions)


def _place(flow: Flow, block: int) -> int:
    return flow.blocks[block].start


def _rounding(control: int) -> Literal["even", "up", "down", "zero"]:
    return ROUNDINGS[control >> _FIRST & 3]


def _writes(inst: Instruction) -> bool:
    """Whether an instruction writes the first element of `%cr0`."""
    for slot in INSTRUCTIONS[inst.name].slots:
        value = inst.values.get(slot.name)
        if slot.use == "write" and isinstance(value, Destination) and value.var.root[0] is _CONTROL:
            return value.var.root[1] + value.row + value.col == 0 or inst.exec_size > 1
    return False


def _after(inst: Instruction, control: int, at: int) -> int:
    """`%cr0` after an instruction."""
    if not _writes(inst):
        return control
    reads = [isinstance(source, Region) and source.var is _CONTROL and not source.modifier for source in inst.sources]
    constant = inst.sources[-1]
    if inst.guard is None and inst.no_mask and inst.exec_size == 1 and isinstance(constant, Immediate):
        if inst.name in _CHANGES and reads == [True, False] and inst.sources[0].col == inst.sources[0].row == 0:
            return _CHANGES[inst.name](control, constant.bits)
        if inst.name == "mov":
            return constant.bits
    raise Unknown(at)
