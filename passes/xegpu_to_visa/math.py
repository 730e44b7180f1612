"""`math`: functions with a vISA instruction, algorithms for the others, and counts of bits."""

from __future__ import annotations

import math

import numpy as np
from mlir import ir
from xegpu_py.passes.common.registers import INDEX, unsigned
from xegpu_py.passes.xegpu_to_visa.arith import SIGNS, on_pattern, result_of
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Const, Numbers, Reg
from xegpu_py.passes.xegpu_to_visa.wide import half, with_sign

from xegpu_py.numerics.formats import TYPES

_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471805599453


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


@pattern("math.round")
def round_away(low: Lowering, op: ir.Operation) -> None:
    """Round to nearest, halves away from zero: floor of the magnitude, plus one from a fraction of a half on."""
    count, _, name = result_of(low, op)
    emit = low.emit
    source = emit.spread(_single(low, op), count)
    whole = emit.apply("rndz", "f", count, source)
    rest = emit.apply("add", "f", count, whole, source, modifiers=("-",))
    size = emit.apply("mov", "f", count, rest, modifiers=("abs",))
    up = emit.compare("ge", count, size, const(0.5, "f"))
    bits = emit.apply("and", "ud", count, emit.as_type(source, "ud"), const(0x80000000, "ud"))
    one = emit.as_type(emit.apply("or", "ud", count, bits, const(0x3F800000, "ud")), "f")
    found = emit.choose(up, "f", count, emit.apply("add", "f", count, whole, one), whole)
    low.set(op, emit.in_registers(found, name))


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


def exp(low: Lowering, source: Reg) -> Reg:
    """e to a power: 2 to the power times log2(e), whose rounding error is carried into the result."""
    emit, count = low.emit, source.count
    high, rest = _split(_LOG2_E)
    scaled = emit.apply("mul", "f", count, source, const(high, "f"))
    # The rounding errors of the product and of the constant are corrected to first order.
    lost = emit.apply("mad", "f", count, source, emit.in_registers(const(high, "f")), scaled, modifiers=("", "", "-"))
    lost = emit.apply("mad", "f", count, source, emit.in_registers(const(rest, "f")), lost)
    power = emit.apply("exp", "f", count, scaled, most=16)
    slope = emit.apply("mul", "f", count, power, const(_LN_2, "f"))
    corrected = emit.apply("mad", "f", count, slope, lost, power)
    # For infinities and overflow the correction would be NaN or infinite, and is skipped.
    return emit.choose(emit.compare("eq", count, corrected, corrected), "f", count, corrected, power)


def _split(value: float) -> tuple[float, float]:
    """A constant as an f32 and the remainder."""
    high = float(np.float32(value))
    return high, value - high


@pattern("math.exp")
def exp_(low: Lowering, op: ir.Operation) -> None:
    """e to a power, computed in f."""
    _finish(low, op, exp(low, _single(low, op)))


@pattern("math.log", "math.log10", "math.log1p")
def log(low: Lowering, op: ir.Operation) -> None:
    """Logarithms: log2 times a constant; log1p corrects for the rounding error of 1 + x."""
    emit = low.emit
    source = _single(low, op)
    count = source.count
    if op.name == "math.log1p":
        _finish(low, op, _log1p(low, source))
        return
    factor = _LN_2 if op.name == "math.log" else math.log10(2)
    _finish(low, op, emit.apply("mul", "f", count, emit.apply("log", "f", count, source, most=16), const(factor, "f")))


def _log1p(low: Lowering, source: Reg) -> Reg:
    """log(u) x / (u - 1) with u = 1 + x rounded; x itself where u is 1 or infinite."""
    emit, count = low.emit, source.count
    u = emit.apply("add", "f", count, source, const(1.0, "f"))
    base = emit.apply("mul", "f", count, emit.apply("log", "f", count, u, most=16), const(_LN_2, "f"))
    step = emit.apply("add", "f", count, u, const(-1.0, "f"))
    ratio = emit.apply("div", "f", count, source, step, most=16)
    found = emit.apply("mul", "f", count, base, ratio)
    usual = emit.flags("and", count, *(emit.compare("ne", count, step, const(x, "f")) for x in (0.0, math.inf)))
    return emit.choose(usual, "f", count, found, source)


@pattern("math.expm1")
def expm1(low: Lowering, op: ir.Operation) -> None:
    """(y - 1) x / log(y) with y = exp(x) rounded; x itself where y is 1."""
    emit = low.emit
    source = _single(low, op)
    count = source.count
    y = exp(low, source)
    step = emit.apply("add", "f", count, y, const(-1.0, "f"))
    log_y = emit.apply("mul", "f", count, emit.apply("log", "f", count, y, most=16), const(_LN_2, "f"))
    found = emit.apply("div", "f", count, emit.apply("mul", "f", count, step, source), log_y, most=16)
    size = emit.apply("mov", "f", count, source, modifiers=("abs",))
    near = emit.compare("lt", count, size, const(1.0, "f"))
    found = emit.choose(near, "f", count, found, step)
    moved = emit.compare("ne", count, step, const(0.0, "f"))
    _finish(low, op, emit.choose(moved, "f", count, found, source))


@pattern("math.tanh")
def tanh(low: Lowering, op: ir.Operation) -> None:
    """sign(x) (1 - 2 / (exp(2 |x|) + 1)), and for |x| < 0.25 an odd polynomial."""
    emit = low.emit
    source = _single(low, op)
    count = source.count
    size = emit.apply("mov", "f", count, source, modifiers=("abs",))
    power = exp(low, emit.apply("add", "f", count, size, size))
    below = emit.apply("inv", "f", count, emit.apply("add", "f", count, power, const(1.0, "f")), most=16)
    large = emit.apply(
        "mad", "f", count, below, emit.in_registers(const(-2.0, "f")), emit.in_registers(const(1.0, "f"))
    )
    large = with_sign(emit, large, source)
    square = emit.apply("mul", "f", count, source, source)
    series = polynomial(low, square, [-17 / 315, 2 / 15, -1 / 3], leading=62 / 2835)
    small = emit.apply("mad", "f", count, emit.apply("mul", "f", count, series, square), source, source)
    near = emit.compare("lt", count, size, const(0.25, "f"))
    _finish(low, op, emit.choose(near, "f", count, small, large))


def polynomial(low: Lowering, x: Reg, coefficients: list[float], leading: float) -> Reg:
    """Horner's rule, from the leading coefficient down."""
    emit = low.emit
    total: Numbers = const(leading, "f")
    for c in coefficients:
        total = emit.apply("mad", "f", x.count, emit.in_registers(total), x, emit.in_registers(const(c, "f")))
    return emit.in_registers(total)


_ERF_P = 0.3275911
_ERF_LARGE = [-1.453152027, 1.421413741, -0.284496736, 0.254829592]


@pattern("math.erf")
def erf(low: Lowering, op: ir.Operation) -> None:
    """Abramowitz and Stegun 7.1.26 from 0.5 on (error below 1.5e-7), Maclaurin's series below."""
    emit = low.emit
    source = _single(low, op)
    count = source.count
    size = emit.apply("mov", "f", count, source, modifiers=("abs",))
    square = emit.apply("mul", "f", count, source, source)
    p, one = (emit.in_registers(const(c, "f")) for c in (_ERF_P, 1.0))
    scaled = emit.apply("mad", "f", count, size, p, one)
    t = emit.apply("inv", "f", count, scaled, most=16)
    series = emit.apply("mul", "f", count, polynomial(low, t, _ERF_LARGE, 1.061405429), t)
    negative = emit.apply("mul", "f", count, square, const(-_LOG2_E, "f"))
    tail = emit.apply("mul", "f", count, series, emit.apply("exp", "f", count, negative, most=16))
    large = emit.apply("add", "f", count, tail, one, modifiers=("-",))
    large = with_sign(emit, large, source)
    c = 2 / math.sqrt(math.pi)
    terms = [c * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(7)]
    low_series = polynomial(low, square, list(reversed(terms[:-1])), terms[-1])
    small = emit.apply("mul", "f", count, low_series, source)
    near = emit.compare("lt", count, size, const(0.5, "f"))
    _finish(low, op, emit.choose(near, "f", count, small, large))


@pattern("math.powf")
def powf(low: Lowering, op: ir.Operation) -> None:
    """2 to the power y log2(|x|), with the sign and the special values of C's pow (docs/numerics.md)."""
    emit = low.emit
    count = result_of(low, op)[0]
    x, y = (emit.spread(emit.in_registers(low.numbers(v), "f"), count) for v in op.operands)
    size, y_size = (emit.apply("mov", "f", count, v, modifiers=("abs",)) for v in (x, y))
    one, infinity = const(1.0, "f"), const(math.inf, "f")
    scaled = emit.apply("mul", "f", count, y, emit.apply("log", "f", count, size, most=16))
    found = emit.apply("exp", "f", count, scaled, most=16)
    # pow(1, y) and pow(x, 0) are 1, also for NaN; pow(-1, inf) is 1.
    certain = emit.flags("or", count, emit.compare("eq", count, y, const(0.0, "f")), emit.compare("eq", count, x, one))
    endless = emit.flags(
        "and", count, emit.compare("eq", count, size, one), emit.compare("eq", count, y_size, infinity)
    )
    found = emit.choose(emit.flags("or", count, certain, endless), "f", count, one, found)
    half = emit.apply("mul", "f", count, y, const(0.5, "f"))
    whole, whole_half = (emit.apply("rndz", "f", count, v) for v in (y, half))
    integral = emit.compare("eq", count, whole, y)
    odd = emit.flags("and", count, integral, emit.compare("ne", count, whole_half, half))
    negative = emit.compare("lt", count, emit.as_type(x, "d"), const(0, "d"))
    sign = emit.choose(emit.flags("and", count, odd, negative), "f", count, const(-1.0, "f"), one)
    found = emit.apply("mul", "f", count, found, sign)
    # A negative base with a fractional exponent is NaN, except for -0 and negative infinity.
    finite = emit.compare("lt", count, size, infinity)
    below = emit.flags("and", count, emit.compare("lt", count, x, const(0.0, "f")), finite)
    undefined = emit.flags("and", count, below, emit.flags("not", count, integral))
    _finish(low, op, emit.choose(undefined, "f", count, Const(TYPES["f"].nan, "f"), found))


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
