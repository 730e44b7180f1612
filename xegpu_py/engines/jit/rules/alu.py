"""Arithmetic, logic and math: rules on vectors of numbers."""

from __future__ import annotations

from xegpu_py.engines.jit.arithmetic import Alu
from xegpu_py.engines.jit.code import Value
from xegpu_py.engines.jit.numbers import odd_sum, to_odd
from xegpu_py.engines.jit.rules import rule

_CONDITIONS = {"eq": "oeq", "ne": "une", "gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole"}
_ONE = {"f32": 0x3F800000, "f64": 0x3FF << 52}


@rule("add")
def add(op: Alu, a: Value, b: Value) -> Value:
    """The sum."""
    return op.code.bin("fadd" if op.format else "add", a, b)


@rule("mul")
def mul(op: Alu, a: Value, b: Value) -> Value:
    """The product."""
    return op.code.bin("fmul" if op.format else "mul", a, b)


@rule("mulh")
def mulh(op: Alu, a: Value, b: Value) -> Value:
    """The product's upper 32 bits."""
    return op.code.lshr(op.code.mul(a, b), 32)


@rule("mad")
def mad(op: Alu, a: Value, b: Value, c: Value) -> Value:
    """Product and sum; of floats rounded once."""
    code = op.code
    if not op.format:
        return code.add(code.mul(a, b), c)
    if op.format != "hf":
        return code.intrinsic("fma", a, b, c)
    # The product is exact in f64. The sum rounded to odd there, and so on, is rounded as if once.
    x, y, z = (code.cast("fpext", v, "f64") for v in (a, b, c))
    product = code.bin("fmul", x, y)
    return to_odd(code, odd_sum(code, product, z))


@rule("div")
def div(op: Alu, a: Value, b: Value) -> Value:
    """The quotient. Of hf, the f32 quotient can be rounded again: f32 has more than twice the bits."""
    return op.code.bin("fdiv", a, b)


@rule("inv")
def inv(op: Alu, a: Value) -> Value:
    """The reciprocal."""
    return op.code.bin("fdiv", op.code.const(_ONE[a.element], a.type), a)


@rule("sqrt")
def sqrt(op: Alu, a: Value) -> Value:
    """The square root."""
    return op.code.intrinsic("sqrt", a)


@rule("rndd")
def rndd(op: Alu, a: Value) -> Value:
    """Rounded down."""
    return op.code.intrinsic("floor", a)


@rule("rndu")
def rndu(op: Alu, a: Value) -> Value:
    """Rounded up."""
    return op.code.intrinsic("ceil", a)


@rule("rnde")
def rnde(op: Alu, a: Value) -> Value:
    """Rounded to nearest even."""
    return op.code.intrinsic("roundeven", a)


@rule("rndz")
def rndz(op: Alu, a: Value) -> Value:
    """Rounded toward zero."""
    return op.code.intrinsic("trunc", a)


@rule("min")
def min_(op: Alu, a: Value, b: Value) -> Value:
    """The smaller; -0 is smaller than +0, and a number is chosen over a NaN."""
    if not op.format:
        return op.code.intrinsic("smin" if op.width.signed else "umin", a, b)
    return _choice(op, a, b, "olt", False)


@rule("max")
def max_(op: Alu, a: Value, b: Value) -> Value:
    """The greater; +0 is greater than -0, and a number is chosen over a NaN."""
    if not op.format:
        return op.code.intrinsic("smax" if op.width.signed else "umax", a, b)
    return _choice(op, a, b, "ogt", True)


def _choice(op: Alu, a: Value, b: Value, better: str, positive: bool) -> Value:
    code = op.code
    sign = code.icmp("sge" if positive else "slt", code.cast("bitcast", a, f"i{a.element[1:]}"), 0)
    tie = code.and_(code.fcmp("oeq", a, b), sign)
    first = code.or_(code.or_(code.fcmp(better, a, b), code.fcmp("uno", b, b)), tie)
    return code.select(first, a, b)


@rule("and")
def and_(op: Alu, a: Value, b: Value) -> Value:
    """Bitwise and."""
    return op.code.and_(a, b)


@rule("or")
def or_(op: Alu, a: Value, b: Value) -> Value:
    """Bitwise or."""
    return op.code.or_(a, b)


@rule("xor")
def xor(op: Alu, a: Value, b: Value) -> Value:
    """Bitwise exclusive or."""
    return op.code.xor(a, b)


@rule("not")
def not_(op: Alu, a: Value) -> Value:
    """Bitwise complement."""
    return op.code.not_(a)


@rule("cbit")
def cbit(op: Alu, a: Value) -> Value:
    """How many bits are set."""
    return op.code.intrinsic("ctpop", a)


@rule("lzd")
def lzd(op: Alu, a: Value) -> Value:
    """How many zeros are above the highest bit of 32 that is set, in whatever width the number comes."""
    zeros = op.code.intrinsic("ctlz", a, Value("false", "i1"))
    return op.code.sub(zeros, op.code.const(op.width.bits - 32, a.type))


@rule("shl")
def shl(op: Alu, a: Value, count: Value) -> Value:
    """Shifted left by the count's lowest bits."""
    return op.code.shl(a, op.code.mask(count, op.bits - 1))


@rule("shr")
def shr(op: Alu, a: Value, count: Value) -> Value:
    """The bit pattern, as wide as the execution width, shifted right, zeros shifted in."""
    pattern = op.code.mask(a, (1 << op.bits) - 1) if op.bits < op.width.bits else a
    return op.code.lshr(pattern, op.code.mask(count, op.bits - 1))


@rule("asr")
def asr(op: Alu, a: Value, count: Value) -> Value:
    """The number divided by a power of two and rounded down."""
    by = op.code.mask(count, op.bits - 1)
    return op.code.ashr(a, by) if op.width.signed else op.code.lshr(a, by)


@rule("cmp")
def cmp(op: Alu, a: Value, b: Value) -> Value:
    """The truth of the comparison; a NaN is unequal to all, and neither smaller nor greater."""
    if op.format:
        return op.code.fcmp(_CONDITIONS[op.condition], a, b)
    how = op.condition if op.condition in ("eq", "ne") else f"{'s' if op.width.signed else 'u'}{op.condition}"
    return op.code.icmp(how, a, b)
