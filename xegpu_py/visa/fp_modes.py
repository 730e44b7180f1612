"""The modes that `%cr0` sets: how each instruction of a program rounds, and which subnormal numbers are zeros to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from msgspec import Struct

from xegpu_py.numerics.dpas import FLUSHED, NARROW
from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import flow_of
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import STATE, Destination, Immediate, Indirect, Region
from xegpu_py.visa.program import Instruction, Program, analysis

# Sources: the vISA documentation (4_visa_header: bits 4 to 7 and 10; 2_datatypes: the floating-point modes) and the
# constants and code of IGC, which also has bit 30 and changes the rounding mode by a xor with a constant.

ROUNDINGS: tuple[Literal["even", "up", "down", "zero"], ...] = ("even", "up", "down", "zero")
"""The rounding modes by bits 4 and 5."""

_FIRST = 4

KEEPS = {"df": 1 << 6, "f": 1 << 7, "hf": 1 << 10}
"""The bits that keep the subnormal numbers of each format, without which these are zeros."""

SYSTOLIC = 1 << 30
"""The bit that keeps those of bf, tf32 and narrower formats in dpas, on targets that have it."""

_CONTROL = STATE["%cr0"]

_CHANGES = {"or": int.__or__, "and": int.__and__, "xor": int.__xor__}

READ_WHOLE = ("divm", "sqrtm")
"""Instructions that IGC expands to code that keeps subnormal numbers up to its last step."""


_NUMBERS = (Region, Destination, Immediate, Indirect)
"""The operands that are numbers of a type."""


class Unknown(Exception):
    """`%cr0` is not known before an instruction, whose index is the argument."""


class _Modes(Struct, frozen=True):
    """The modes in `%cr0`: rounding, and the formats whose subnormal numbers are zeros to arithmetic and to dpas."""

    rounding: Literal["even", "up", "down", "zero"]
    flushed: frozenset[str]
    systolic: tuple[str, ...]


def keep_subnormals(target: Target) -> Instruction:
    """The instruction with which kernels begin, as those that IGC compiles do."""
    bits = sum(KEEPS.values()) | (SYSTOLIC if target.systolic_denormals else 0)
    control = Region(_CONTROL, 0, 0, 0, 1, 0)
    values = {"dst": Destination(_CONTROL), "src0": control, "src1": Immediate(bits, "ud")}
    return Instruction("or", values, mask="M1_NM")


def leading_modes(program: Program) -> int | None:
    """The number of instructions that set `%cr0` at the beginning of a program; None if others set it too."""
    setting = [at for at, inst in enumerate(program.instructions) if _writes(inst)]
    return len(setting) if setting == list(range(len(setting))) else None


def dependence(setting: Sequence[Instruction], target: Target) -> Callable[[Instruction], bool]:
    """Whether an instruction gives other results after these, which set `%cr0`, than if subnormal numbers are kept and
    results are rounded to even. All do if what they set is not known.
    """
    control = 0
    try:
        for at, inst in enumerate(setting):
            control = _after(inst, control, at)
    except Unknown:
        return lambda inst: True
    modes = _modes(control, target, systolic_flush=True)
    return lambda inst: _with(inst, modes) != inst


@analysis
def with_modes(program: Program, target: Target, systolic_flush: bool = False) -> Program:
    """The program, whose instructions say how they round, and which subnormal numbers are zeros to them.

    Args:
        systolic_flush: whether dpas takes subnormal numbers for zeros where no source decides: those of bf and tf32 on
            a target without a bit in `%cr0`, and those of eight-bit floats and e2m1 where no bit keeps them.

    Raises:
        Unknown: if it writes something to `%cr0` that depends on numbers of the run, or on the path.
    """
    if not program.instructions:
        return program
    modes_of = partial(_modes, target=target, systolic_flush=systolic_flush)
    setting = {at for at, inst in enumerate(program.instructions) if _writes(inst)}
    flow = flow_of(program)
    reaching: list[set[int]] = [set() for _ in flow.blocks]
    reaching[0], todo = {0}, [0]
    modes_at: dict[int, set[int]] = {}
    while todo:
        number = todo.pop()
        controls = reaching[number]
        for at in flow.blocks[number]:
            modes_at[at] = controls
            if at in setting:
                controls = {_after(program.instructions[at], control, at) for control in controls}
        for successor in flow.successors[number]:
            if not controls <= reaching[successor]:
                reaching[successor] = reaching[successor] | controls
                todo.append(successor)
    modes = {control: modes_of(control) for control in {0}.union(*modes_at.values())}
    instructions = []
    for at, inst in enumerate(program.instructions):
        variants = [_with(inst, modes[control]) for control in modes_at.get(at, {0})]
        if any(variant != variants[0] for variant in variants[1:]):
            raise Unknown(at)
        instructions.append(variants[0])
    return program.with_instructions(instructions)


def _modes(control: int, target: Target, systolic_flush: bool) -> _Modes:
    kept_denormals = {name for name, bit in KEEPS.items() if control & bit}
    systolic: tuple[str, ...] = ()
    if not (target.systolic_denormals and control & SYSTOLIC):
        systolic += FLUSHED if target.systolic_denormals or systolic_flush else ()
        systolic += NARROW if systolic_flush else ()
    return _Modes(ROUNDINGS[control >> _FIRST & 3], frozenset(KEEPS) - kept_denormals, systolic)


def _with(inst: Instruction, modes: _Modes) -> Instruction:
    """The instruction in some modes, of which only those are noted on which its result can depend."""
    flushed, dst = _flushed(inst, modes), inst.values.get("dst")
    floats = INSTRUCTIONS[inst.name].is_arithmetic and isinstance(dst, _NUMBERS) and dst.format.is_float
    rounding = modes.rounding if floats else "even"
    if inst.rounding == rounding and inst.flushed == flushed:
        return inst
    return inst.replaced(rounding=rounding, flushed=flushed)


def _flushed(inst: Instruction, modes: _Modes) -> tuple[str, ...]:
    """The formats whose subnormal numbers are zeros to an instruction, of those that it has."""
    spec = INSTRUCTIONS[inst.name]
    if spec.category == "dpas":
        accumulators = [inst[slot].var.type for slot in ("dst", "src0") if inst[slot].var]
        return tuple(name for name in modes.systolic if name in (inst["W"], inst["A"], *accumulators))
    if not modes.flushed or not spec.is_arithmetic or spec.on_bits:
        return ()
    dst = inst.values.get("dst")
    operands = [value for value in (dst, *inst.sources) if isinstance(value, _NUMBERS)]
    types = {operand.format.name for operand in operands}
    if spec.copies and ((len(types) == 1 and not inst.saturate) or not all(TYPES[name].is_float for name in types)):
        return ()
    # bf has the exponents of f, and is computed in it.
    float_formats = {"f" if name == "bf" else name for name in types if TYPES[name].is_float} & modes.flushed
    return tuple(sorted(float_formats))


def _writes(inst: Instruction) -> bool:
    """Whether an instruction writes the first element of `%cr0`."""
    for slot in INSTRUCTIONS[inst.name].slots:
        value = inst.values.get(slot.name) if slot.use == "write" else None
        if type(value) is Destination and value.var.root[0] is _CONTROL:
            return value.var.root[1] + value.row + value.col == 0 or inst.exec_size > 1
    return False


def _after(inst: Instruction, control: int, at: int) -> int:
    """`%cr0` after an instruction that writes it."""
    reads = [isinstance(source, Region) and source.var is _CONTROL and not source.modifier for source in inst.sources]
    constant = inst.sources[-1]
    if inst.guard is None and inst.no_mask and inst.exec_size == 1 and isinstance(constant, Immediate):
        if inst.name in _CHANGES and reads == [True, False] and inst.sources[0].col == inst.sources[0].row == 0:
            return _CHANGES[inst.name](control, constant.bits)
        if inst.name == "mov":
            return constant.bits
    raise Unknown(at)
