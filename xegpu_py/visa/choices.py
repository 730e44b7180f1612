"""Chosen rules in programs: which instructions each of them governs, and programs that follow alternatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xegpu_py.numerics.choices import CHOICES, FUNCTIONS
from xegpu_py.numerics.formats import PRECISIONS
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import flow_of
from xegpu_py.visa.fp_modes import with_modes
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Destination, Indirect, Region
from xegpu_py.visa.program import Instruction, Program, analysis

Governs = Callable[[Instruction], bool]


def _float_product(inst: Instruction) -> bool:
    return INSTRUCTIONS[inst.name].category == "dpas" and PRECISIONS[inst["W"]].is_float


def _is_float(operand: object) -> bool:
    return isinstance(operand, (Region, Destination, Indirect)) and operand.format.is_float


def _float_result(inst: Instruction) -> bool:
    return INSTRUCTIONS[inst.name].is_arithmetic and _is_float(inst.values.get("dst"))


def _computes_nan(inst: Instruction) -> bool:
    """Whether the NaNs of an instruction's result are made by it, rather than copied."""
    if not _float_result(inst):
        return _float_product(inst)
    spec, dst = INSTRUCTIONS[inst.name], inst["dst"]
    formats = {source.format for source in inst.sources if hasattr(source, "format")}
    return inst.name not in ("srnd", "fcvt") and not (spec.copies and formats == {dst.format} and not inst.saturate)


def _mixes_floats(inst: Instruction) -> bool:
    spec = INSTRUCTIONS[inst.name]
    if spec.copies or not _float_result(inst):
        return False
    formats = {o.format.name for o in (inst["dst"], *inst.sources) if _is_float(o)}
    return len(formats) > 1 or "bf" in formats


def _mixes_signs(inst: Instruction) -> bool:
    spec = INSTRUCTIONS[inst.name]
    kinds = {source.format.kind for source in inst.sources if isinstance(source, (Region, Indirect))}
    return spec.is_arithmetic and (spec.ordered or inst.saturate) and {"s", "u"} <= kinds


def _to_integer(inst: Instruction) -> bool:
    dst = inst.values.get("dst")
    spec = INSTRUCTIONS[inst.name]
    is_integer = isinstance(dst, (Destination, Indirect)) and not dst.format.is_float
    return spec.is_arithmetic and not spec.compares and is_integer and any(map(_is_float, inst.sources))


def _function(name: str) -> Governs:
    return lambda inst: inst.name == name


_GOVERNS: dict[str, Governs] = {
    "dpas-sums": _float_product,
    "dpas-tf32": lambda inst: inst.name == "dpas" and inst["W"] == "tf32",
    "dpas-repeat": lambda inst: inst.name == "dpas" and inst["SD"] != 8 and inst["RC"] > 1,
    "dpas-rows": lambda inst: (
        _float_product(inst) and any(v.var and v.var.format.bits == 16 for v in (inst["dst"], inst["src0"]))
    ),
    "dpas-df": lambda inst: inst.name == "dpas" and inst["W"] == "df",
    "bdpas-products": lambda inst: (
        inst.name == "bdpas" and any(inst[name].var is not None for name in ("src3", "src4"))
    ),
    **{f"{name}-accuracy": _function(name) for name in FUNCTIONS},
    "division": lambda inst: inst.name == "div" and _float_result(inst),
    "math-special": lambda inst: inst.name in ("div", *FUNCTIONS) and _float_result(inst),
    "nan-bits": _computes_nan,
    "alu-denormals": lambda inst: bool(inst.flushed) and INSTRUCTIONS[inst.name].is_arithmetic,
    "float-to-integer": _to_integer,
    "srnd-subnormal": lambda inst: inst.name == "srnd" and inst["dst"].var.type == "hf",
    "execution-type": _mixes_floats,
    "minimum": lambda inst: inst.name in ("min", "max") and _float_result(inst),
    "saturation": lambda inst: inst.saturate and _float_result(inst),
    "integer-types": _mixes_signs,
    "atomic-minimum": lambda inst: INSTRUCTIONS[inst.name].atomic in ("fmin", "fmax"),
    "atomic-order": lambda inst: (
        INSTRUCTIONS[inst.name].atomic in ("fadd", "fsub") and inst.values.get("sfid", "ugm") == "ugm"
    ),
    "switchjmp": _function("switchjmp"),
}
"""Whether a choice governs an instruction, by the choice's name, where the instruction alone tells."""


@analysis
def governed(program: Program, target: Target) -> Mapping[str, tuple[int, ...]]:
    """The instructions that each visible choice governs, by their indices in the program.

    Args:
        program: the program as it was read, without the modes that `%cr0` sets.
    """
    default, flushing = (with_modes(program, target, flush).instructions for flush in (False, True))
    positions = {
        name: tuple(at for at, inst in enumerate(default) if governs(inst)) for name, governs in _GOVERNS.items()
    }
    positions["dpas-denormals"] = tuple(at for at, inst in enumerate(default) if inst != flushing[at])
    products = [at for at, inst in enumerate(default) if INSTRUCTIONS[inst.name].category == "dpas"]
    is_divergent = flow_of(program).divergent
    positions["dpas-mask"] = tuple(at for at in products if is_divergent and not default[at].no_mask)
    return {name: positions[name] for name, choice in CHOICES.items() if choice.is_visible}


@analysis
def with_choices(program: Program, target: Target, selected: tuple[tuple[str, str], ...]) -> Program:
    """The program, whose instructions say which alternatives they follow.

    Args:
        program: the program with its modes; see `fp_modes.with_modes`.
        selected: names of choices of the option `choices`, and of an alternative of each.
    """
    if not selected:
        return program
    is_divergent = flow_of(program).divergent

    def follow(inst: Instruction) -> Instruction:
        alternatives: dict[str, str] = {}
        for name, value in selected:
            if not CHOICES[name].is_visible:
                # A rule of the lowering.
                continue
            if name == "dpas-mask":
                is_masked = is_divergent and INSTRUCTIONS[inst.name].category == "dpas" and not inst.no_mask
                inst = inst.replaced(mask=f"{inst.mask}_NM") if is_masked else inst
            elif _GOVERNS[name](inst):
                if name == "alu-denormals":
                    inst = inst.replaced(flushed=())
                else:
                    alternatives[name] = value
        return inst.replaced(alternatives=tuple(alternatives.items())) if alternatives else inst

    return program.with_instructions([follow(inst) for inst in program.instructions])
