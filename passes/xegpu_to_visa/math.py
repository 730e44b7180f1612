"""`math`: functions with a vISA instruction, algorithms for the others, and counts of bits."""

from __future__ import annotations

from functools import partial
from typing import Any

from mlir import ir

from xegpu_py.numerics.expansions import ALGORITHMS, Number
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.common.registers import INDEX, unsigned
from xegpu_py.passes.xegpu_to_visa.arith import SIGNS, on_pattern, result_of
from xegpu_py.passes.xegpu_to_visa.emit import Emitter, const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Reg
from xegpu_py.passes.xegpu_to_visa.wide import half, with_sign
from xegpu_py.visa.instructions import INSTRUCTIONS


def _finish(low: Lowering, op: ir.Operation, found: Reg) -> None:
    count, _, name = result_of(low, op)
    low.set(op, low.emit.in_registers(low.emit.spread(found, count), name))


def _single(low: Lowering, op: ir.Operation) -> Reg:
    """The first operand in f."""
    return low.emit.in_registers(low.numbers(op.operands[0]), "f")


_DIRECT = {
    "math.exp2": "exp", "math.log2": "log", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt", "math.sin": "sin",
    "math.cos": "cos",
}  # fmt: skip


@pattern(*_DIRECT)
def direct(low: Lowering, op: ir.Operation) -> None:
    """Functions that are one instruction."""
    if op.name == "math.sqrt" and result_of(low, op)[2] == "df":
        low.set(op, low.emit.double_math("sqrt", result_of(low, op)[0], low.numbers(op.operands[0])))
        return
    source = low.emit.in_registers(low.numbers(op.operands[0]))
    _finish(low, op, low.emit.apply(_DIRECT[op.name], source.type, source.count, source, most=16))


_ROUNDINGS = {"math.floor": "rndd", "math.ceil": "rndu", "math.roundeven": "rnde", "math.trunc": "rndz"}


@pattern(*_ROUNDINGS)
def rounding(low: Lowering, op: ir.Operation) -> None:
    """Rounding to integral values, in f, the only type that vISA rounds."""
    count, _, name = result_of(low, op)
    source = _single(low, op)
    found = low.emit.apply(_ROUNDINGS[op.name], "f", source.count, source)
    low.set(op, low.emit.in_registers(low.emit.spread(found, count), name))


@pattern("math.absf")
def absf(low: Lowering, op: ir.Operation) -> None:
    """Clear the sign, also of NaN."""
    count, _, name = result_of(low, op)
    if name in SIGNS:
        low.set(op, on_pattern(low, "and", low.reg(op.operands[0]), SIGNS[name] - 1))
        return
    low.set(op, low.emit.apply("mov", name, count, low.numbers(op.operands[0]), modifiers=("abs",)))


@pattern("math.copysign")
def copysign(low: Lowering, op: ir.Operation) -> None:
    """The first operand's magnitude with the second one's sign, bit by bit."""
    count, _, name = result_of(low, op)
    bits = unsigned(name)
    a, b = (low.emit.as_type(low.reg(v), bits) for v in op.operands)
    size = low.emit.apply("and", bits, count, a, const((1 << TYPES[name].bits - 1) - 1, bits))
    low.set(op, low.emit.as_type(with_sign(low.emit, size, b), name))


@pattern("math.absi")
def absi(low: Lowering, op: ir.Operation) -> None:
    """The magnitude."""
    count, _, name = result_of(low, op)
    low.set(op, low.emit.apply("mov", name, count, low.numbers(op.operands[0]), modifiers=("abs",)))


_CONDITIONS = {"oeq": "eq", "une": "ne", "olt": "lt", "oge": "ge"}
_INSTRUCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{name: (instruction, ()) for name, instruction in (_DIRECT | _ROUNDINGS).items()},
    "arith.addf": ("add", ()),
    "arith.mulf": ("mul", ()),
    "arith.divf": ("div", ()),
    "math.absf": ("mov", ("abs",)),
    "math.fma": ("mad", ()),
    "fms": ("mad", ("", "", "-")),
}
"""The instruction of an op, and the modifiers of its operands."""


def _apply(emit: Emitter, name: str, *given: Any) -> Any:
    """Emit the instruction of an op of a formula of `numerics.expansions`, in f."""
    values: list[Any] = [const(v, "f") if isinstance(v, float) else v for v in given]
    count = max(v.count for v in values)
    if name in _CONDITIONS:
        return emit.compare(_CONDITIONS[name], count, *values)
    if name == "signbit":
        return emit.compare("lt", count, emit.as_type(values[0], "d"), const(0, "d"))
    if name in ("arith.andi", "arith.ori", "not"):
        return emit.flags(name.removeprefix("arith.").removesuffix("i"), count, *values)
    if name == "arith.select":
        truth, yes, no = values
        return emit.choose(truth, "f", count, yes, no)
    if name == "math.copysign":
        # The sign bit of the magnitude is clear.
        magnitude, sign = (emit.as_type(v, "ud") for v in values)
        sign = emit.apply("and", "ud", count, sign, const(0x80000000, "ud"))
        return emit.as_type(emit.apply("or", "ud", count, sign, magnitude), "f")
    if name == "arith.subf":
        return emit.apply("add", "f", count, emit.in_registers(values[1]), values[0], modifiers=("-",))
    if name == "arith.divf" and given[0] == 1.0:
        return emit.apply("inv", "f", count, values[1], most=16)
    instruction, modifiers = _INSTRUCTIONS[name]
    operands = map(emit.in_registers, values) if instruction == "mad" else values
    most = 16 if INSTRUCTIONS[instruction].category == "math" else 32
    return emit.apply(instruction, "f", count, *operands, modifiers=modifiers, most=most)


@pattern(*ALGORITHMS)
def algorithm(low: Lowering, op: ir.Operation) -> None:
    """Functions that are formulas of instructions, computed in f."""
    values = [low.emit.in_registers(low.numbers(v), "f") for v in op.operands]
    if len({v.count for v in values}) > 1:
        values = [low.emit.spread(v, result_of(low, op)[0]) for v in values]
    apply = partial(_apply, low.emit)
    _finish(low, op, ALGORITHMS[op.name](*(Number(v, apply) for v in values)).value)


@pattern("math.ctpop", "math.ctlz", "math.cttz")
def count_bits(low: Lowering, op: ir.Operation) -> None:
    """Set bits, or the zeros above or below them, by `cbit` and `lzd` of 32 bits each.

    The zeros below the lowest set bit are set in `~x & (x - 1)`, and no others.
    """
    count, element, name = result_of(low, op)
    if element == "i1":
        truth = low.mask(op.operands[0])
        low.set(op, truth if op.name == "math.ctpop" else low.emit.flags("not", count, truth))
        return
    emit, source = low.emit, low.numbers(op.operands[0])
    name = INDEX if element == "index" else name
    bits, kind = TYPES[name].bits, unsigned(name)
    numbers = emit.spread(emit.in_registers(low.emit.as_unsigned(low.typed(source, name))), count)
    if op.name == "math.cttz":
        below = emit.apply("add", kind, count, numbers, const(-1, name))
        numbers = emit.apply("and", kind, count, emit.apply("not", kind, count, numbers), below)
    parts = [emit.in_registers(numbers, "ud")] if bits < 64 else [half(emit, numbers, u) for u in (False, True)]
    if op.name != "math.ctlz":
        counts = [emit.apply("cbit", "ud", count, part) for part in parts]
        found = counts[0] if len(counts) == 1 else emit.apply("add", "ud", count, *counts)
    else:
        found = _leading(low, parts, count)
        if bits < 32:
            found = emit.apply("add", "ud", count, found, const(bits - 32, "d"))
    low.set(op, emit.in_registers(found, name))


def _leading(low: Lowering, parts: list[Reg], count: int) -> Reg:
    """Leading zeros of integers of 32 bits, or of 64 bits in two halves."""
    emit = low.emit
    zeros = [emit.apply("lzd", "ud", count, part) for part in parts]
    if len(parts) == 1:
        return zeros[0]
    more = emit.apply("add", "ud", count, zeros[0], const(32, "ud"))
    return emit.choose(emit.compare("eq", count, parts[1], const(0, "ud")), "ud", count, more, zeros[1])
