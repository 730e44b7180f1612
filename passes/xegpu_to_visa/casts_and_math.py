"""Rules for conversions, math, remainders and dpas."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import DpasMxOp
from xegpu_py.dialects.xegpu.op_interfaces import MatrixProduct
from xegpu_py.dialects.xegpu.types import XeGPU
from xegpu_py.ir.builtin import bit_width
from xegpu_py.numerics.block_scaled import DEPTH, SCALE_GROUP
from xegpu_py.numerics.expansions import ALGORITHMS, Number
from xegpu_py.numerics.formats import BF8, FLOATS, HF, TYPES
from xegpu_py.numerics.narrow_floats import half_of, round_to, tf32_of
from xegpu_py.passes.analysis.ir_queries import INDEX, register_type, shape_and_element, unsigned
from xegpu_py.passes.analysis.target_messages import precision_of
from xegpu_py.passes.xegpu_to_visa.arith import SIGNS, apply_to_bits
from xegpu_py.passes.xegpu_to_visa.arith_expansion import assign, bf_as_f, divide, half_of_64_bits, with_sign
from xegpu_py.passes.xegpu_to_visa.emitter import Emitter
from xegpu_py.passes.xegpu_to_visa.lowering import Lowering, result_of, vc_lowering_rule
from xegpu_py.passes.xegpu_to_visa.register_values import (
    MASK_LANES,
    Const,
    KnownMask,
    Mask,
    Numbers,
    Reg,
    Value,
    const,
    is_whole_variable,
)
from xegpu_py.passes.xegpu_to_visa.vector import gather
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Guard, Raw, Vector
from xegpu_py.visa.program import Instruction

# `arith`: conversions between number types.


def _convert(low: Lowering, op: ir.Operation, source: Numbers) -> Value:
    count, _, name = result_of(low, op)
    return convert(low, source, name, count)


def convert(low: Lowering, source: Numbers, name: str, count: int) -> Reg:
    """Convert numbers to another type; conversions from and to bf go through f."""
    if isinstance(source, Const) and source.type == "bf":
        source = bf_as_f(source)
    if "bf" in (source.type, name) and "f" not in (source.type, name) and source.type != name:
        source = low.emit.apply("mov", "f", count, source)
    return low.emit.apply("mov", name, count, source)


@vc_lowering_rule("arith.extsi", "arith.trunci", "arith.index_cast", "index.casts", "arith.sitofp")
def convert_signed(low: Lowering, op: ir.Operation) -> Value | None:
    """Conversions from signed integers, and truncation."""
    count, element, name = result_of(low, op)
    source = low.value(op.operands[0])
    if isinstance(source, (Mask, KnownMask)):
        return _from_mask(low, op, -1)
    numbers = low.numbers(op.operands[0])
    if element == "i1":
        return _lowest_bit(low, numbers, count)
    if isinstance(numbers, Const) and not TYPES[name].is_float:
        return const(numbers.value, name, count)
    if numbers.type == name or element == "index":
        return numbers
    return _convert(low, op, numbers)


@vc_lowering_rule("arith.extui", "arith.index_castui", "index.castu", "arith.uitofp")
def convert_unsigned(low: Lowering, op: ir.Operation) -> Value | None:
    """Conversions from unsigned integers."""
    count, element, name = result_of(low, op)
    source = low.value(op.operands[0])
    if isinstance(source, (Mask, KnownMask)):
        return _from_mask(low, op, 1)
    numbers = low.numbers(op.operands[0])
    if element == "i1":
        return _lowest_bit(low, numbers, count)
    if shape_and_element(op.operands[0])[1] == "index" and TYPES[name].bits == 64:
        numbers = low.cast(numbers, INDEX)
    numbers = low.emit.as_unsigned(numbers)
    if isinstance(numbers, Const) and not TYPES[name].is_float:
        return const(numbers.bits, name, count)
    if numbers.format.bits == TYPES[name].bits and not TYPES[name].is_float:
        return low.emit.as_type(numbers, name)
    return _convert(low, op, numbers)


def _lowest_bit(low: Lowering, numbers: Numbers, count: int) -> Mask:
    bit = low.emit.apply("and", numbers.type, count, low.emit.in_registers(numbers), const(1, numbers.type))
    return low.emit.compare("ne", count, bit, const(0, numbers.type))


def _from_mask(low: Lowering, op: ir.Operation, true_value: int) -> Value:
    count, _, name = result_of(low, op)
    mask = low.value(op.operands[0])
    if isinstance(mask, KnownMask):
        return const(true_value if mask.value else 0, name, count)
    first = "f" if name == "bf" else name
    numbers = low.emit.select(low.mask(op.operands[0]), first, count, const(true_value, first), const(0, first))
    return low.emit.in_registers(numbers, name)


@vc_lowering_rule("arith.extf")
def extf(low: Lowering, op: ir.Operation) -> Value | None:
    """Widening of floats; floats of 8 bits go through f16."""
    count, _, name = result_of(low, op)
    numbers = low.numbers(op.operands[0])
    element = shape_and_element(op.operands[0])[1]
    if bit_width(element) == 8:
        half = f8_to_hf(low.emit, element, low.reg(op.operands[0]))
        return half if name == "hf" else convert(low, half, name, count)
    return _convert(low, op, numbers)


@vc_lowering_rule("arith.truncf")
def truncf(low: Lowering, op: ir.Operation) -> Value | None:
    """Narrowing of floats, rounded to nearest even: to f8E5M2 by fcvt, and to tf32 where fcvt supports it."""
    count, element, _ = result_of(low, op)
    numbers = low.numbers(op.operands[0])
    if bit_width(element) == 8:
        return hf_to_f8(low.emit, element, low.emit.broadcast(low.emit.in_registers(numbers), count))
    if element == "tf32":
        return _to_tf32(low, low.emit.broadcast(low.emit.in_registers(numbers), count))
    return _convert(low, op, numbers)


def f8_to_hf(emit: Emitter, element: str, numbers: Reg) -> Reg:
    """Convert floats of 8 bits to hf exactly; NaN becomes the canonical NaN."""
    count, fmt = numbers.count, FLOATS[element]
    if fmt is BF8 and "fcvt" not in emit.target.absent:
        return emit.apply("fcvt", "hf", count, numbers, most=16)

    ops = _ops_on_patterns(emit, count, "uw", "hf")
    return half_of(emit.in_registers(numbers, "uw"), fmt, ops)


def _ops_on_patterns(emit: Emitter, count: int, word: str, number: str) -> dict[str, Callable[..., Any]]:
    """The ops of `half_of` and `round_to` on patterns in registers of an unsigned type, and numbers of a type."""

    def of_words(instruction: str) -> Callable[[Reg, Reg | int], Reg]:
        return lambda a, b: emit.apply(instruction, word, count, a, const(b, word) if isinstance(b, int) else b)

    def of_numbers(instruction: str) -> Callable[[Reg, float], Reg]:
        return lambda a, b: emit.apply(instruction, number, count, a, const(b, number))

    def select(truth: Mask, a: Reg, b: Reg | int) -> Reg:
        return emit.select(truth, a.type, count, a, Const(b, a.type, count) if isinstance(b, int) else b)

    def compare(condition: str) -> Callable[[Reg, int], Mask]:
        return lambda a, b: emit.compare(condition, count, a, const(b, word))

    def is_number(bits: Reg) -> Mask:
        values = emit.as_type(bits, number)
        return emit.compare("eq", count, values, values)

    instructions = {"andi": "and", "ori": "or", "shli": "shl", "shrui": "shr", "addi": "add", "minui": "min"}
    return {
        **{f"arith.{name}": of_words(instruction) for name, instruction in instructions.items()},
        "arith.subi": lambda a, b: emit.apply("add", word, count, a, const(-b, word)),
        "arith.addf": of_numbers("add"),
        "arith.mulf": of_numbers("mul"),
        "number": lambda bits: emit.as_type(bits, number),
        "bits": lambda values: emit.as_type(values, word),
        "arith.select": select,
        "ule": compare("le"),
        "ult": compare("lt"),
        "ne": compare("ne"),
        "ord": is_number,
    }


def hf_to_f8(emit: Emitter, element: str, numbers: Reg) -> Reg:
    """Round hf to nearest even to f8E5M2 or f8E4M3FN; numbers beyond the greatest f8E4M3FN become NaN."""
    count, fmt = numbers.count, FLOATS[element]
    if fmt is BF8 and "fcvt" not in emit.target.absent:
        return emit.apply("fcvt", "ub", count, numbers, most=16)

    ops = _ops_on_patterns(emit, count, "uw", "hf")
    return emit.in_registers(round_to(emit.as_type(numbers, "uw"), HF, fmt, ops), "ub")


def _to_tf32(low: Lowering, numbers: Reg) -> Reg:
    """Round f to tf32 as fcvt does: to nearest even, and subnormal numbers to zeros of their sign."""
    emit, count = low.emit, numbers.count
    if low.target.tf32_conversion:
        return emit.as_type(emit.apply("fcvt", "ud", count, numbers, most=16), "f")

    patterns = tf32_of(emit.as_type(numbers, "ud"), _ops_on_patterns(emit, count, "ud", "f"))
    return emit.as_type(patterns, "f")


def _to_truth(low: Lowering, op: ir.Operation) -> Value:
    """Convert numbers to truth values: true is 1 unsigned and -1 signed."""
    numbers = low.numbers(op.operands[0])
    condition, limit = ("ge", 1.0) if op.name == "arith.fptoui" else ("le", -1.0)
    name = "f" if numbers.type in ("bf", "hf") else numbers.type
    values = low.emit.in_registers(numbers, name)
    return low.emit.compare(condition, result_of(low, op)[0], values, const(limit, name))


@vc_lowering_rule("arith.fptosi", "arith.fptoui")
def to_integer(low: Lowering, op: ir.Operation) -> Value | None:
    """Toward zero."""
    if result_of(low, op)[1] == "i1":
        return _to_truth(low, op)
    count, _, name = result_of(low, op)
    integers = convert(low, low.numbers(op.operands[0]), unsigned(name) if op.name == "arith.fptoui" else name, count)
    return low.emit.as_type(integers, name)


# `math`: functions with a vISA instruction, algorithms for the others, and counts of bits.


def _convert_result(low: Lowering, op: ir.Operation, numbers: Reg) -> Value:
    count, _, name = result_of(low, op)
    return low.emit.in_registers(low.emit.broadcast(numbers, count), name)


_MATH_INSTRUCTIONS = {
    "math.exp2": "exp", "math.log2": "log", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt", "math.sin": "sin",
    "math.cos": "cos",
}  # fmt: skip


@vc_lowering_rule(*_MATH_INSTRUCTIONS)
def single_instruction(low: Lowering, op: ir.Operation) -> Value | None:
    """Functions that are one instruction."""
    if op.name == "math.sqrt" and result_of(low, op)[2] == "df":
        return low.emit.double_math("sqrt", result_of(low, op)[0], low.numbers(op.operands[0]))
    source = low.emit.in_registers(low.numbers(op.operands[0]))
    return _convert_result(
        low, op, low.emit.apply(_MATH_INSTRUCTIONS[op.name], source.type, source.count, source, most=16)
    )


_ROUNDING_INSTRUCTIONS = {"math.floor": "rndd", "math.ceil": "rndu", "math.roundeven": "rnde", "math.trunc": "rndz"}


@vc_lowering_rule(*_ROUNDING_INSTRUCTIONS)
def rounding(low: Lowering, op: ir.Operation) -> Value:
    """Rounding to integral values, in f, the only type that vISA rounds."""
    source = low.emit.in_registers(low.numbers(op.operands[0]), "f")
    return _convert_result(low, op, low.emit.apply(_ROUNDING_INSTRUCTIONS[op.name], "f", source.count, source))


@vc_lowering_rule("math.absf")
def absf(low: Lowering, op: ir.Operation) -> Value:
    """Clear the sign, also of NaN."""
    count, _, name = result_of(low, op)
    if name in SIGNS:
        return apply_to_bits(low, "and", low.reg(op.operands[0]), SIGNS[name] - 1)
    return low.emit.apply("mov", name, count, low.numbers(op.operands[0]), modifiers=("abs",))


@vc_lowering_rule("math.copysign")
def copysign(low: Lowering, op: ir.Operation) -> Value:
    """The first operand's magnitude with the second one's sign, bit by bit."""
    count, _, name = result_of(low, op)
    bits = unsigned(name)
    a, b = (low.emit.as_type(low.reg(v), bits) for v in op.operands)
    size = low.emit.apply("and", bits, count, a, const((1 << TYPES[name].bits - 1) - 1, bits))
    return low.emit.as_type(with_sign(low.emit, size, b), name)


@vc_lowering_rule("math.absi")
def absi(low: Lowering, op: ir.Operation) -> Value:
    """The magnitude."""
    count, _, name = result_of(low, op)
    return low.emit.apply("mov", name, count, low.numbers(op.operands[0]), modifiers=("abs",))


_CONDITIONS = {"oeq": "eq", "une": "ne", "olt": "lt", "oge": "ge"}

_INSTRUCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{name: (instruction, ()) for name, instruction in (_MATH_INSTRUCTIONS | _ROUNDING_INSTRUCTIONS).items()},
    "arith.addf": ("add", ()),
    "arith.mulf": ("mul", ()),
    "arith.divf": ("div", ()),
    "math.absf": ("mov", ("abs",)),
    "math.fma": ("mad", ()),
    "fms": ("mad", ("", "", "-")),
}
"""The instruction of an op, and the modifiers of its operands."""


def _emit_formula_op(emit: Emitter, name: str, *arguments: Any) -> Any:
    """Emit the instruction of an op of a formula of `numerics.expansions`, in f."""
    values: list[Any] = [const(v, "f") if isinstance(v, float) else v for v in arguments]
    count = max(v.count for v in values)
    if name in _CONDITIONS:
        return emit.compare(_CONDITIONS[name], count, *values)
    if name == "signbit":
        return emit.compare("lt", count, emit.as_type(values[0], "d"), const(0, "d"))
    if name in ("arith.andi", "arith.ori", "not"):
        return emit.flags(name.removeprefix("arith.").removesuffix("i"), count, *values)
    if name == "arith.select":
        truth, yes, no = values
        return emit.select(truth, "f", count, yes, no)
    if name == "math.copysign":
        # The sign bit of the magnitude is clear.
        magnitude, sign = (emit.as_type(v, "ud") for v in values)
        sign = emit.apply("and", "ud", count, sign, const(0x80000000, "ud"))
        return emit.as_type(emit.apply("or", "ud", count, sign, magnitude), "f")
    if name == "arith.subf":
        return emit.apply("add", "f", count, emit.in_registers(values[1]), values[0], modifiers=("-",))
    if name == "arith.divf" and arguments[0] == 1.0:
        return emit.apply("inv", "f", count, values[1], most=16)
    instruction, modifiers = _INSTRUCTIONS[name]
    operands = map(emit.in_registers, values) if instruction == "mad" else values
    most = 16 if INSTRUCTIONS[instruction].category == "math" else 32
    return emit.apply(instruction, "f", count, *operands, modifiers=modifiers, most=most)


@vc_lowering_rule(*ALGORITHMS)
def algorithm(low: Lowering, op: ir.Operation) -> Value:
    """Functions that are formulas of instructions, computed in f."""
    values = [low.emit.in_registers(low.numbers(v), "f") for v in op.operands]
    if len({v.count for v in values}) > 1:
        values = [low.emit.broadcast(v, result_of(low, op)[0]) for v in values]
    apply = partial(_emit_formula_op, low.emit)
    return _convert_result(low, op, ALGORITHMS[op.name](*(Number(v, apply) for v in values)).value)


@vc_lowering_rule("math.ctpop", "math.ctlz", "math.cttz")
def count_bits(low: Lowering, op: ir.Operation) -> Value:
    """Set bits, or the zeros above or below them, by `cbit` and `lzd` of 32 bits each.

    The zeros below the lowest set bit are set in `~x & (x - 1)`, and no others.
    """
    count, element, name = result_of(low, op)
    if element == "i1":
        truth = low.mask(op.operands[0])
        return truth if op.name == "math.ctpop" else low.emit.flags("not", count, truth)
    emit, source = low.emit, low.numbers(op.operands[0])
    name = INDEX if element == "index" else name
    bits, kind = TYPES[name].bits, unsigned(name)
    numbers = emit.broadcast(emit.in_registers(low.emit.as_unsigned(low.cast(source, name))), count)
    if op.name == "math.cttz":
        below = emit.apply("add", kind, count, numbers, const(-1, name))
        numbers = emit.apply("and", kind, count, emit.apply("not", kind, count, numbers), below)
    parts = (
        [emit.in_registers(numbers, "ud")] if bits < 64 else [half_of_64_bits(emit, numbers, u) for u in (False, True)]
    )
    if op.name != "math.ctlz":
        counts = [emit.apply("cbit", "ud", count, part) for part in parts]
        total = counts[0] if len(counts) == 1 else emit.apply("add", "ud", count, *counts)
    else:
        total = _leading_zeros(low, parts, count)
        if bits < 32:
            total = emit.apply("add", "ud", count, total, const(bits - 32, "d"))
    return emit.in_registers(total, name)


def _leading_zeros(low: Lowering, parts: list[Reg], count: int) -> Reg:
    """Leading zeros of integers of 32 bits, or of 64 bits in two halves."""
    emit = low.emit
    zeros = [emit.apply("lzd", "ud", count, part) for part in parts]
    if len(parts) == 1:
        return zeros[0]
    lower_zeros = emit.apply("add", "ud", count, zeros[0], const(32, "ud"))
    return emit.select(emit.compare("eq", count, parts[1], const(0, "ud")), "ud", count, lower_zeros, zeros[1])


# `arith.remf`: the exact remainder of a quotient of floats that is rounded toward zero.


@vc_lowering_rule("arith.remf")
def remf(low: Lowering, op: ir.Operation) -> Value:
    """Computed with integers in f64 or f32; f16 and bf16 are computed in f32, which gives the same remainder."""
    count, _, name = result_of(low, op)
    emit, wide = low.emit, "df" if name == "df" else "f"
    x, y = (emit.broadcast(emit.in_registers(low.numbers(v), wide), count) for v in op.operands)
    result = emit.reg(wide, count)
    for start in range(0, count, MASK_LANES):
        lanes = min(count - start, MASK_LANES)
        a, b = (emit.apply("mov", wide, lanes, n.slice(start, lanes)) for n in (x, y))
        emit.apply("mov", wide, lanes, _remainder(emit, a, b), into=Reg(result.var, start, lanes))
    return emit.in_registers(result, name)


_FRACTION = {"f": 23, "df": 52}
"""Stored bits of the mantissa."""


class _FloatParts(Struct, frozen=True):
    """Magnitudes as integers times powers of two.

    Attributes:
        size: the magnitude's pattern.
        mantissa: the integer.
        exponent: the biased exponent, at least 1.
    """

    size: Reg
    mantissa: Reg
    exponent: Reg


def _float_parts(emit: Emitter, numbers: Reg) -> _FloatParts:
    form, count, kind = numbers.format, numbers.count, unsigned(numbers.type)
    fraction = _FRACTION[numbers.type]
    size = emit.apply("and", kind, count, emit.as_type(numbers, kind), const((1 << form.bits - 1) - 1, kind))
    exponent = emit.apply("shr", kind, count, size, const(fraction, "uw"))
    mantissa = emit.apply("and", kind, count, size, const((1 << fraction) - 1, kind))
    normal = emit.compare("ne", count, exponent, const(0, kind))
    whole = emit.apply("or", kind, count, mantissa, const(1 << fraction, kind))
    return _FloatParts(
        size,
        emit.select(normal, kind, count, whole, mantissa),
        emit.select(normal, kind, count, exponent, const(1, kind)),
    )


def _remainder(emit: Emitter, x: Reg, y: Reg) -> Reg:
    """Long division of at most 16 lanes, one quotient bit per iteration, while any lane has bits left.

    With `|x| = m 2^e` and `|y| = n 2^f` the remainder is `2^f` times that of `m 2^(e-f)` by `n`. If `e < f` it is `x`,
    because then `|x| < |y|`.
    """
    name, count, form = x.type, x.count, x.format
    kind, fraction, signed = unsigned(name), _FRACTION[name], {"f": "d", "df": "q"}[name]
    a, b = _float_parts(emit, x), _float_parts(emit, y)
    remainder = emit.reg(kind, count)
    emit.apply("mov", kind, count, divide(emit, a.mantissa, b.mantissa, count, "rem", False), into=remainder)
    steps_left = emit.reg("d", count)
    steps = emit.apply("add", signed, count, b.exponent, a.exponent, modifiers=("-",))
    emit.apply("mov", "d", count, steps, into=steps_left)
    below = emit.compare("lt", count, steps, const(0, signed))
    pending = emit.mask(count)
    begin, end = emit.label("Remainder"), emit.label("Divided")
    with emit.scope():
        emit.emit_label(begin)
        assign(emit, pending, emit.compare("gt", count, steps_left, const(0, "d")))
        emit.emit("jmp", guard=_none_set_guard(emit, pending), no_mask=False, label=end)
        double = emit.apply("add", kind, count, remainder, remainder)
        less = emit.apply("add", kind, count, b.mantissa, double, modifiers=("-",))
        double = emit.select(emit.compare("ge", count, double, b.mantissa), kind, count, less, double)
        emit.select(pending, kind, count, double, remainder, into=remainder)
        emit.apply("add", "d", count, steps_left, const(-1, "d"), into=steps_left)
        emit.jump(begin)
    emit.emit_label(end)
    # Both factors and the product are exact: the product is a multiple of the divisor's last bit.
    scaled = emit.apply("mul", name, count, emit.apply("mov", name, count, remainder), const(2.0**-fraction, name))
    power = emit.apply("shl", kind, count, b.exponent, const(fraction, "uw"))
    result = emit.as_type(emit.apply("mul", name, count, scaled, emit.as_type(power, name)), kind)
    result = emit.select(below, kind, count, a.size, result)
    result = with_sign(emit, result, x)
    infinity = (1 << form.bits - 1) - (1 << fraction)
    finite = emit.compare("lt", count, a.size, const(infinity, kind))
    divides = (emit.compare(c, count, b.size, const(n, kind)) for c, n in (("le", infinity), ("ne", 0)))
    valid = emit.flags("and", count, finite, emit.flags("and", count, *divides))
    return emit.as_type(emit.select(valid, kind, count, result, Const(TYPES[name].nan, kind)), name)


def _none_set_guard(emit: Emitter, mask: Mask) -> Guard:
    """Return whether no bit of a mask is set."""
    more = emit.any_or_all(mask, "any") if mask.count > 1 else mask
    return Guard(more.predicates[0], True)


# Products of matrices.


@vc_lowering_rule(*XeGPU.implementing(MatrixProduct))
def dpas(low: Lowering, op: ir.Operation) -> Value:
    """One dpas or bdpas."""
    view, emit = low.require_vc(op), low.emit
    scaled = isinstance(view, DpasMxOp)
    lhs_value, rhs_value = view.lhs, view.rhs
    (m, n), d_element = shape_and_element(op.results[0])
    w, a = (precision_of(shape_and_element(v)[1]) for v in (rhs_value, lhs_value))
    # Operands of dpas have d or df; those of bdpas have bf, hf, or ud for shorter elements.
    operand = (w if w in ("bf", "hf") else "ud") if scaled else "df" if w == "df" else "d"
    name = register_type(d_element)
    lhs, rhs = (emit.as_type(_align_to_register(low, _packed_operand(low, v)), operand) for v in (lhs_value, rhs_value))
    acc = _accumulator(low, view.acc)
    result = emit.grf_reg(name, m * n)
    if acc is not None and is_whole_variable(acc) and acc.var.count != result.var.count:
        result = Reg(emit.variable(name, acc.var.count), 0, m * n)
    depth = DEPTH if scaled else max(low.target.dpas_depths)
    operands: dict[str, Any] = {"W": w, "A": a, "SD": depth, "RC": m, "dst": emit.raw(result)}
    operands |= {"src0": Raw(None) if acc is None else emit.raw(acc), "src1": emit.raw(rhs)}
    if scaled:
        of_rows, of_columns = _scales(low, view.scale_a, by_rows=True), _scales(low, view.scale_b, by_rows=False)
        operands |= {"src2": emit.raw(lhs), "src3": of_columns, "src4": of_rows}
    else:
        operands["src2"] = emit.vector(lhs)
    emit.instructions.append(Instruction("bdpas" if scaled else "dpas", operands, n, where=emit.where))
    return result


def _scales(low: Lowering, value: ir.Value | None, by_rows: bool) -> Vector:
    """The scales of a factor, if it has any. Those of a second block follow half a register after those of the first.

    Args:
        by_rows: whether scales belong to rows of the matrix, instead of columns.
    """
    if value is None:
        return Vector(None)
    shape, _ = shape_and_element(value)
    positions = np.arange(math.prod(shape)).reshape(shape)
    blocks = positions.T if by_rows else positions
    source = low.reg(value)
    result = low.emit.grf_reg("ub", low.target.grf_bytes)
    for i, block in enumerate(blocks):
        gather(low, low.emit.as_type(source, "ub"), block, into=Reg(result.var, i * SCALE_GROUP, len(block)))
    return low.emit.vector(result)


def _accumulator(low: Lowering, value: ir.Value | None) -> Reg | None:
    """The registers of an accumulator; None if it is zero."""
    numbers = None if value is None else low.numbers(value)
    if numbers is None or (isinstance(numbers, Const) and numbers.bits == 0):
        return None
    return _align_to_register(low, low.reg(value) if isinstance(numbers, Const) else numbers)


def _packed_operand(low: Lowering, value: ir.Value) -> Reg:
    """An operand in registers; elements of less than 8 bits are packed in bytes."""
    if bit_width(shape_and_element(value)[1]) >= 8:
        return low.reg(value)
    return low.emit.in_registers(low.numbers(value))


def _align_to_register(low: Lowering, reg: Reg) -> Reg:
    """The same numbers, aligned to a register."""
    if low.emit.is_aligned(reg):
        return reg
    result = low.emit.grf_reg(reg.type, reg.count)
    return low.emit.apply("mov", reg.type, reg.count, reg, into=Reg(result.var, 0, reg.count))
