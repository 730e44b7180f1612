"""Arithmetic, logic and math: rules on vectors of numbers."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from xegpu_py.engines.jit.code import Code, Value
from xegpu_py.engines.jit.emitter import Emitter
from xegpu_py.engines.jit.numbers import ONE, Width, odd_sum, to_odd
from xegpu_py.engines.table import Table

_CONDITIONS = {"eq": "oeq", "ne": "une", "gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole"}


class Alu(Struct):
    """Properties of an instruction that its arithmetic rule may use.

    Attributes:
        code: the function to which the rule appends code.
        emitter: the emitter of this function.
        name: the instruction's name.
        format: execution type of floats, "hf", "f" or "df"; "" for integers. hf is computed in f32.
        bits: the execution width of shifts.
        condition: the condition of `cmp`.
        width: the integer type of the computation.
        doubtful: lanes whose result may be wrong, i1; the golden function then executes the instruction. None if all
            results are correct.
    """

    code: Code
    emitter: Emitter
    name: str
    format: str
    bits: int
    condition: str
    width: Width = field(default_factory=lambda: Width(32, True))
    doubtful: Value | None = None


def _binary(name: str) -> Callable[[Alu, Value, Value], Value]:
    """The rule that emits one instruction of LLVM, whose name for floats differs."""
    return lambda op, a, b: op.code.bin(f"{'f' if op.format else ''}{name}", a, b)


def _intrinsic(name: str) -> Callable[[Alu, Value], Value]:
    return lambda op, a: op.code.intrinsic(name, a)


ARITHMETIC = Table(
    {
        "add": _binary("add"),
        "mul": _binary("mul"),
        "mulh": lambda op, a, b: op.code.lshr(op.code.mul(a, b), 32),
        # For hf, rounding the f32 quotient again is correct: f32 has more than twice as many bits.
        "div": lambda op, a, b: op.code.bin("fdiv", a, b),
        "inv": lambda op, a: op.code.bin("fdiv", op.code.const(ONE[a.element], a.type), a),
        "sqrt": _intrinsic("sqrt"),
        "rndd": _intrinsic("floor"),
        "rndu": _intrinsic("ceil"),
        "rnde": _intrinsic("roundeven"),
        "rndz": _intrinsic("trunc"),
        "and": lambda op, a, b: op.code.and_(a, b),
        "or": lambda op, a, b: op.code.or_(a, b),
        "xor": lambda op, a, b: op.code.xor(a, b),
        "not": lambda op, a: op.code.not_(a),
        "cbit": _intrinsic("ctpop"),
        "shl": lambda op, a, count: op.code.shl(a, op.code.mask(count, op.bits - 1)),
    }
)
"""The rule of each instruction."""


@ARITHMETIC.of("mad")
def mad(op: Alu, a: Value, b: Value, c: Value) -> Value:
    """Product and sum; for floats with one rounding."""
    code = op.code
    if not op.format:
        return code.add(code.mul(a, b), c)
    if op.format != "hf":
        return code.intrinsic("fma", a, b, c)
    # The product is exact in f64. The sum is rounded to odd in f64, so that rounding it again equals rounding once.
    x, y, z = (code.cast("fpext", v, "f64") for v in (a, b, c))
    product = code.bin("fmul", x, y)
    return to_odd(code, odd_sum(code, product, z))


@ARITHMETIC.of("min")
def min_(op: Alu, a: Value, b: Value) -> Value:
    """The smaller; -0 is smaller than +0, and a number is chosen over a NaN."""
    if not op.format:
        return op.code.intrinsic("smin" if op.width.signed else "umin", a, b)
    return _choice(op, a, b, "olt", "or")


@ARITHMETIC.of("max")
def max_(op: Alu, a: Value, b: Value) -> Value:
    """The greater; +0 is greater than -0, and a number is chosen over a NaN."""
    if not op.format:
        return op.code.intrinsic("smax" if op.width.signed else "umax", a, b)
    return _choice(op, a, b, "ogt", "and")


def _choice(op: Alu, a: Value, b: Value, better: str, join: str) -> Value:
    """The better number. Equal numbers differ only in the signs of zeros, which `join` combines."""
    code, bits = op.code, f"i{a.element[1:]}"
    first = code.select(code.fcmp(better, a, b), a, b)
    if op.emitter.host.has_masks:
        number = code.select(code.fcmp("uno", b, b), a, first)
        same = code.bin(join, code.cast("bitcast", a, bits), code.cast("bitcast", b, bits))
        return code.select(code.fcmp("oeq", a, b), code.cast("bitcast", same, a.element), number)
    # Hosts with vector selections execute logic faster. The second comparison prefers a number to a NaN.
    both = [code.cast("bitcast", v, bits) for v in (first, code.select(code.fcmp(better, b, a), b, a))]
    nans = [code.cast("sext", code.fcmp("uno", v, v), bits) for v in (b, a)]
    if join == "and":
        found = code.and_(*(code.or_(value, nan) for value, nan in zip(both, nans)))
    else:
        numbers = [code.and_(value, code.not_(nan)) for value, nan in zip(both, nans)]
        found = code.or_(code.or_(*numbers), code.and_(*nans))
    return code.cast("bitcast", found, a.element)


@ARITHMETIC.of("lzd")
def lzd(op: Alu, a: Value) -> Value:
    """The number of zeros above the highest set bit of 32, for numbers of any width."""
    zeros = op.code.intrinsic("ctlz", a, Value("false", "i1"))
    return op.code.sub(zeros, op.code.const(op.width.bits - 32, a.type))


@ARITHMETIC.of("shr")
def shr(op: Alu, a: Value, count: Value) -> Value:
    """The bit pattern, as wide as the execution width, shifted right, zeros shifted in."""
    pattern = op.code.mask(a, (1 << op.bits) - 1) if op.bits < op.width.bits else a
    return op.code.lshr(pattern, op.code.mask(count, op.bits - 1))


@ARITHMETIC.of("asr")
def asr(op: Alu, a: Value, count: Value) -> Value:
    """The number divided by a power of two and rounded down."""
    by = op.code.mask(count, op.bits - 1)
    return op.code.ashr(a, by) if op.width.signed else op.code.lshr(a, by)


@ARITHMETIC.of("cmp")
def cmp(op: Alu, a: Value, b: Value) -> Value:
    """The truth of the comparison; a NaN is unequal to all, and neither smaller nor greater."""
    if op.format:
        return op.code.fcmp(_CONDITIONS[op.condition], a, b)
    how = op.condition if op.condition in ("eq", "ne") else f"{'s' if op.width.signed else 'u'}{op.condition}"
    return op.code.icmp(how, a, b)
