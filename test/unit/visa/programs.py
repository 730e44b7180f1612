"""Random instructions and programs that our verifier accepts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from xegpu_py.numerics.formats import PRECISIONS, TYPES
from xegpu_py.target import TARGETS, Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.messages import ATOMICS
from xegpu_py.visa.operands import (
    Address,
    Destination,
    Flag,
    Guard,
    Immediate,
    Predicate,
    Raw,
    Region,
    Variable,
    Vector,
)
from xegpu_py.visa.program import Input, Instruction, Program
from xegpu_py.visa.spec import (
    BlockShape,
    BlockShapeAttribute,
    ByteAttribute,
    CacheAttribute,
    DataShape,
    DataShapeAttribute,
    InstructionSpec,
    IntegerAttribute,
    KeywordAttribute,
    LabelAttribute,
    OperandSpec,
    SuffixAttribute,
    SurfaceAttribute,
)
from xegpu_py.visa.verify import instruction_problem


@lru_cache
def general(target: Target) -> tuple[Variable, ...]:
    """Variables of every type that together leave some registers free, so that nothing is spilled."""
    return tuple(
        Variable(f"{t.upper()}{n}", t, (8 if t in ("d", "ud", "f") else 4) * target.grf_bytes // f.bytes, "GRF")
        for t, f in TYPES.items()
        for n in range(2 if t in ("d", "ud", "f") else 1)
    )


BASES = tuple(Variable(f"A{n}", "uq", 1, "qword") for n in range(3))
PREDICATES = tuple(Predicate(f"P{n}", n) for n in (1, 8, 16, 32))
INPUTS = tuple(Input(b, 64 + 8 * i, 8) for i, b in enumerate(BASES))
KERNEL_ATTRIBUTES = {"Target": "cm", "SimdSize": 16, "SLMSize": 4}
STRAIGHT = tuple(n for n, s in INSTRUCTIONS.items() if s.category not in ("control", "address"))


def random_instruction(name: str, rng: random.Random, target: Target, tries: int = 4000) -> Instruction:
    """An instruction of a name that is legal on a target."""
    spec = INSTRUCTIONS[name]
    for _ in range(tries):
        inst = _attempt(spec, rng, target)
        if instruction_problem(inst, target) is None:
            return inst
    raise AssertionError(f"no legal {name} found for {target.name}")


def _attempt(spec: InstructionSpec, rng: random.Random, target: Target) -> Instruction:
    sizes = [s for s in spec.exec_sizes if s <= 16] or [1]
    exec_size = target.dpas_exec_size if spec.name == "dpas" else rng.choice(sizes)
    values: dict[str, Any] = {n: _attribute(kind, rng, spec, target) for n, kind in spec.attributes.items()}
    if spec.name == "dpas":
        values["A"] = values["W"] if PRECISIONS[values["W"]].is_float else rng.choice(["s8", "u8", "s4", "u2"])
    if spec.name == "bdpas":
        values["A"] = rng.choice(("bf8", "hf8")) if values["W"] in ("bf8", "hf8") else values["W"]
    if "data" in values and values["data"].transpose:
        exec_size = 1
    if "sfid" in values and "address_size" in values:
        values["address_size"] = "a64" if values["sfid"] == "ugm" else "a32"
    types = _types(spec, rng)
    for slot in spec.slots:
        values[slot.name] = _operand(slot, types, values, exec_size, rng, target)
    if spec.name == "dpas":
        # Intel's finalizer fails on some sequences of dpas that overwrite what they read.
        for name in ("src1", "src2"):
            if values[name].var == values["dst"].var:
                values[name] = replace(values[name], var=_other(values["dst"].var, target))
    if spec.name.startswith("lsc_atomic"):
        for i in range(ATOMICS[spec.name.removeprefix("lsc_atomic_")][0], 2):
            values[f"src{i}"] = Raw(None)
    masks = [f"M{1 + 2 * i}" for i in range(4) if 8 * i + exec_size <= 32]
    mask = rng.choice(masks[:1] if exec_size < 8 else masks)
    if spec.exec_sizes and rng.random() < 0.4:
        mask += "_NM"
    guard = None
    if (
        spec.guard
        and (spec.name == "sel" or rng.random() < 0.3)
        and not any(isinstance(v, Flag) for v in values.values())
    ):
        fitting = [p for p in PREDICATES if p.count >= exec_size and (exec_size == 1) == (p.count == 1)]
        guard = Guard(rng.choice(fitting or PREDICATES[-1:]), rng.random() < 0.5)
    return Instruction(spec.name, values, exec_size, mask, guard, spec.saturates and rng.random() < 0.2)


def _other(var: Variable, target: Target) -> Variable:
    return next(v for v in general(target) if v.type == ("ud" if var.type == "d" else "d"))


def _types(spec: InstructionSpec, rng: random.Random) -> dict[str, str]:
    """Types that are likely to go together."""
    common = rng.choice(list(TYPES))
    found = {}
    for slot in spec.slots:
        legal = slot.types or tuple(TYPES)
        near = [t for t in legal if t == common or (rng.random() < 0.3 and TYPES[t].kind == TYPES[common].kind)]
        found[slot.name] = rng.choice(near or list(legal))
    return found


def _attribute(kind: object, rng: random.Random, spec: InstructionSpec, target: Target) -> object:
    if isinstance(kind, KeywordAttribute):
        words = kind.words
        if words == tuple(PRECISIONS):
            words = tuple(w for w in words if w in target.dpas_precisions)
        return rng.choice(words)
    if isinstance(kind, IntegerAttribute):
        return 8 if 8 in kind.values and rng.random() < 0.7 else rng.choice(kind.values)
    if isinstance(kind, ByteAttribute):
        return rng.getrandbits(8)
    if isinstance(kind, SuffixAttribute):
        return rng.choice(("", *kind.words))
    if isinstance(kind, SurfaceAttribute):
        return "%slm"
    if isinstance(kind, CacheAttribute):
        return rng.choice(("", *kind.pairs))
    if isinstance(kind, DataShapeAttribute):
        size = rng.choice(["d8", "d16", "d32", "d64", "d8c32", "d16c32"])
        return DataShape(size, rng.choice([1, 1, 2, 3, 4, 8, 16]), rng.random() < 0.3)
    if isinstance(kind, BlockShapeAttribute):
        size = rng.choice([8, 16, 32, 64])
        return BlockShape(
            size,
            rng.choice([1, 1, 2, 4]),
            rng.choice([1, 2, 4, 8, 16, 32, 64]),
            rng.choice([1, 2, 4, 8, 16, 32, 5, 7]),
            rng.random() < 0.3,
            rng.random() < 0.3,
        )
    assert isinstance(kind, LabelAttribute)
    return "L1"


def _operand(
    slot: OperandSpec,
    types: dict[str, str],
    values: dict[str, object],
    exec_size: int,
    rng: random.Random,
    target: Target,
) -> object:
    grf, names = target.grf_bytes, types.keys()
    var = rng.choice([v for v in general(target) if v.type == types[slot.name]])
    size = var.format.bytes
    if slot.flags and (isinstance(values.get("dst"), Flag) or (slot.name == "dst" and rng.random() < 0.3)):
        return Flag(rng.choice([p for p in PREDICATES if p.count >= exec_size]))
    if slot.kind == "flag":
        return Flag(rng.choice([p for p in PREDICATES if p.count >= exec_size]))
    if slot.kind == "dst":
        stride = rng.choice([1, 1, 1, 2, 4]) if exec_size * size * 4 <= 2 * grf else 1
        return Destination(var, rng.randrange(4), 0, stride)
    if slot.kind == "src":
        if slot.name in ("id", "count"):
            return Immediate(rng.randrange(4), "ub")
        if slot.immediate and rng.random() < 0.2:
            return Immediate(rng.getrandbits(TYPES[types[slot.name]].bits), types[slot.name])
        modifier = rng.choice(("", "", "", *slot.modifiers))
        vstride, width, hstride = rng.choice(
            [(1, 1, 0), (1, 1, 0), (0, 1, 0), (2, 1, 0), (8, 8, 1), (16, 8, 2), (4, 4, 1)]
        )
        width = min(width, exec_size)
        row = rng.randrange(4) if exec_size * size * 2 <= 2 * grf else 0
        return Region(
            var, row, rng.randrange(4) if vstride == 0 else 0, vstride, width, hstride if width > 1 else 0, modifier
        )
    if slot.kind == "raw":
        if slot.null and rng.random() < 0.3:
            return Raw(None)
        if not slot.types:
            var = rng.choice(general(target))
        return Raw(var, 0 if "src3" in names else grf * rng.randrange(3))
    if slot.kind == "vector":
        if slot.null and rng.random() < 0.2:
            return Raw(None)
        if slot.types == ("ub",):
            return Vector(var, rng.randrange(4), rng.choice((0, 0, 16, 24)))
        return Vector(var, rng.randrange(3), 0)
    if slot.kind == "scalar":
        if slot.immediate and rng.random() < 0.5:
            return Immediate(rng.choice([63, 127, 255, 1023]), "ud")
        return Region(rng.choice(BASES) if slot.name == "base" else var, 0, 0, 0, 1, 0)
    assert slot.kind == "address"
    wanted = ("uq",) if values["address_size"] == "a64" else ("ud", "d")
    return Address(rng.choice([v for v in general(target) if v.type in wanted]), 0, rng.choice([0, 0, 64, -64]))


def random_program(names: Sequence[str], rng: random.Random, target: Target) -> Program:
    """A program of instructions of these names."""
    body = [random_instruction(name, rng, target) for name in names if name not in target.absent]
    return program_of(body, target)


def program_of(body: Sequence[Instruction], target: Target = TARGETS["pvcxt"]) -> Program:
    """A program that runs these instructions over the variables of this module."""
    barriers = {"NBarrierCnt": 4} if target.named_barriers else {}
    return Program(
        "random",
        (*general(target), *BASES),
        PREDICATES,
        INPUTS,
        KERNEL_ATTRIBUTES | barriers,
        (*body, Instruction("label", {"label": "L1"}), Instruction("ret")),
    )
