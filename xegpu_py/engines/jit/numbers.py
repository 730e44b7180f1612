"""Conversions of numbers in native code, with results that are bit-identical to those of `numerics.convert`.

Native code computes df in f64 and other floats in f32. It computes integers in the narrowest sufficient width.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from xegpu_py.engines.execution import span
from xegpu_py.engines.jit.code import Code, Value, bits_of, vector
from xegpu_py.numerics.formats import Format
from xegpu_py.visa.spec import Span

ONE = {"f32": 0x3F800000, "f64": 0x3FF << 52}


def widen(code: Code, pattern: Value, fmt: Format) -> Value:
    """A float's bit patterns as numbers: f64 for df, otherwise f32. Exact."""
    if fmt.name == "bf":
        return code.cast("bitcast", code.shl(code.resize(pattern, 32, False), 16), "f32")
    if fmt.name == "hf":
        return code.cast("fpext", code.cast("bitcast", pattern, "f16"), "f32")
    return code.cast("bitcast", pattern, "f32" if fmt.name == "f" else "f64")


def narrow(code: Code, values: Value, fmt: Format, saturate: bool = False, any_nan: bool = False) -> Value:
    """Numbers, f32 or f64, rounded to a float type, as bit patterns with canonical NaNs.

    Args:
        saturate: whether the numbers are clamped to the range 0 to 1; NaN becomes 0.
        any_nan: whether a NaN of f or df may have any bits. For bf NaNs are always canonical, since rounding would
            convert some NaNs to other values.
    """
    if saturate:
        zero, one = code.const(0, values.type), code.const(ONE[values.element], values.type)
        values = code.select(code.fcmp("ogt", values, zero), values, zero)
        values = code.select(code.fcmp("ogt", values, one), one, values)
    nan = code.fcmp("uno", values, values)
    if fmt.name == "bf":
        bits = code.cast("bitcast", values, "i32")
        odd = code.mask(code.lshr(bits, 16), 1)
        moved = code.add(code.add(bits, odd), code.const(0x7FFF, bits.type))
        pattern = code.resize(code.lshr(moved, 16), 16, False)
    elif fmt.name == "hf":
        single = to_odd(code, values) if values.element == "f64" else values
        pattern = code.cast("bitcast", code.cast("fptrunc", single, "f16"), "i16")
    else:
        wanted = "f32" if fmt.name == "f" else "f64"
        way = "fptrunc" if bits_of(wanted) < bits_of(values.type) else "fpext"
        pattern = code.cast("bitcast", code.cast(way, values, wanted), f"i{fmt.bits}")
    if saturate or (any_nan and fmt.name in ("f", "df")):
        return pattern
    return code.select(nan, code.const(fmt.nan, pattern.type), pattern)


def to_odd(code: Code, values: Value) -> Value:
    """f64 numbers rounded to odd to f32 (toward zero, and the lowest bit set if inexact), to be rounded again."""
    nearest = code.cast("fptrunc", values, "f32")
    back = code.cast("fpext", nearest, "f64")
    bits = code.cast("bitcast", nearest, "i32")
    beyond = code.fcmp("ogt", code.intrinsic("fabs", back), code.intrinsic("fabs", values))
    toward_zero = code.select(beyond, code.sub(bits, code.const(1, bits.type)), bits)
    odd = code.or_(toward_zero, code.const(1, bits.type))
    return code.cast("bitcast", code.select(code.fcmp("one", back, values), odd, bits), "f32")


def two_sum(code: Code, a: Value, b: Value) -> tuple[Value, Value]:
    """The sum of floats, and its error, exactly (Knuth)."""
    total = code.bin("fadd", a, b)
    back = code.bin("fsub", total, a)
    return total, code.bin("fadd", code.bin("fsub", a, code.bin("fsub", total, back)), code.bin("fsub", b, back))


def odd_sum(code: Code, a: Value, b: Value) -> Value:
    """The sum of f64 numbers, rounded to odd (Boldo and Melquiond)."""
    total, error = two_sum(code, a, b)
    zero, bits = code.const(0, a.type), code.cast("bitcast", total, "i64")
    even = code.icmp("eq", code.mask(bits, 1), 0)
    # If the rounded sum is larger in magnitude than the exact sum, the previous number is the result. It is odd, since
    # the rounded sum is even.
    outward = code.icmp("slt", code.xor(bits, code.cast("bitcast", error, "i64")), 0)
    one = code.const(1, bits.type)
    moved = code.select(outward, code.sub(bits, one), code.add(bits, one))
    inexact = code.and_(code.fcmp("one", error, zero), even)
    return code.cast("bitcast", code.select(inexact, moved, bits), "f64")


def modified(code: Code, values: Value, modifier: str, signed: bool = True) -> Value:
    """Apply a source modifier to numbers: floats, or integers that are wide enough."""
    if values.element[0] == "f":
        if "abs" in modifier:
            values = code.intrinsic("fabs", values)
        return code.op(f"fneg {values}", values.type) if modifier.startswith("-") else values
    if modifier == "~":
        return code.not_(values)
    zero = code.const(0, values.type)
    if "abs" in modifier and signed:
        values = code.select(code.icmp("slt", values, 0), code.sub(zero, values), values)
    return code.sub(zero, values) if modifier.startswith("-") else values


def modified_bits(code: Code, pattern: Value, fmt: Format, modifier: str) -> Value:
    """Apply a source modifier to a float's patterns; only the sign bit changes."""
    sign = 1 << (fmt.bits - 1)
    if "abs" in modifier:
        pattern = code.mask(pattern, sign - 1)
    return code.xor(pattern, code.const(sign, pattern.type)) if modifier.startswith("-") else pattern


def float_to_integer(code: Code, values: Value, fmt: Format) -> Value:
    """Numbers truncated and saturated to an integer type; NaN becomes 0."""
    kind = vector(values.lanes, f"i{fmt.bits}")
    name = "fptoui.sat" if fmt.kind == "u" else "fptosi.sat"
    return code.intrinsic(name, values, kind=kind, overloads=[kind, values.type])


def integer_to_float(code: Code, pattern: Value, fmt: Format, modifier: str, target: Format) -> Value:
    """Integers as numbers that `narrow` rounds to the target: f32 for f, f64 for df and hf."""
    work = "f32" if target.name == "f" else "f64"
    signed = fmt.kind == "s"
    if fmt.bits < 64:
        values = modified(code, code.resize(pattern, 64, signed), modifier)
        if fmt.bits < 32 or (signed and not modifier):
            values = code.resize(values, 32, True)
        return code.cast("sitofp", values, work)
    if "abs" in modifier and signed:
        pattern, signed = modified(code, pattern, "abs"), False
    if target.name == "hf":
        # Far beyond the range of hf, and still exact in f64.
        most = code.const(1 << 20, pattern.type)
        pattern = code.intrinsic("smin" if signed else "umin", pattern, most)
        if signed:
            pattern = code.intrinsic("smax", pattern, code.const(-(1 << 20), pattern.type))
    values = code.cast("sitofp" if signed else "uitofp", pattern, work)
    # Not a change of the sign bit: integers have no negative zero.
    return code.bin("fsub", code.const(0, values.type), values) if modifier.startswith("-") else values


class Width(Struct, frozen=True):
    """An integer type: the number of bits, and whether the highest is a sign."""

    bits: int
    signed: bool


def width_of(spans: Sequence[Span]) -> Width:
    """The smallest integer type that holds all of these numbers."""
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    for bits in (8, 16, 32, 64):
        if -(1 << (bits - 1)) <= low and high < 1 << (bits - 1):
            return Width(bits, True)
        if low >= 0 and high < 1 << bits:
            return Width(bits, False)
    return Width(128, True)


def clamped(code: Code, values: Value, width: Width, target: Format) -> Value:
    """Integers saturated to the target type. The source type holds all numbers of the target."""
    low, high = span(target.name)
    if width.signed:
        values = code.intrinsic("smax", values, code.const(low, values.type))
        values = code.intrinsic("smin", values, code.const(high, values.type))
    else:
        values = code.intrinsic("umin", values, code.const(high, values.type))
    return code.resize(values, target.bits, width.signed)


def converted(
    code: Code, pattern: Value, fmt: Format, modifier: str, target: Format, saturate: bool, any_nan: bool
) -> Value:
    """A source's elements converted as mov does; patterns in, patterns out; see `narrow` for `any_nan`."""
    if not fmt.is_float and not target.is_float:
        if not saturate:
            signed = fmt.kind == "s"
            # A magnitude depends on all bits of its source.
            bits = max(fmt.bits, target.bits) if "abs" in modifier else target.bits
            values = modified(code, code.resize(pattern, bits, signed), modifier, signed)
            return code.resize(values, target.bits, signed)
        width = width_of([span(fmt.name, modifier), span(fmt.name), span(target.name)])
        values = modified(code, code.resize(pattern, width.bits, fmt.kind == "s"), modifier, fmt.kind == "s")
        return clamped(code, values, width, target)
    if not fmt.is_float:
        return narrow(code, integer_to_float(code, pattern, fmt, modifier, target), target, saturate)
    pattern = modified_bits(code, pattern, fmt, modifier)
    if not target.is_float:
        return float_to_integer(code, widen(code, pattern, fmt), target)
    if fmt.name == target.name and not saturate:
        return pattern
    return narrow(code, widen(code, pattern, fmt), target, saturate, any_nan)
