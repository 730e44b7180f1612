"""Arithmetic, logic and math: functions of numbers.

Integers come as what they are worth, in an array type wide enough for the exact result or for one that is right in its
lowest 64 bits. Floats come in the execution type, and the result is rounded once to it (docs/numerics.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from xegpu_py import numerics
from xegpu_py.engines.golden import golden
from xegpu_py.numerics.formats import Array


@dataclass(frozen=True)
class AluOp:
    """What an arithmetic function may ask of its instruction.

    Attributes:
        format: execution type of floats, "hf", "f" or "df"; "" for integers.
        bits: execution width of shifts: 64 if the destination or the first source has it, else 32.
        condition: of `cmp`.
    """

    format: str
    bits: int
    condition: str = ""


@golden("add")
def add(op: AluOp, a: Array, b: Array) -> Array:
    """The sum."""
    return a + b


@golden("mul")
def mul(op: AluOp, a: Array, b: Array) -> Array:
    """The product."""
    return a * b


@golden("mulh")
def mulh(op: AluOp, a: Array, b: Array) -> Array:
    """The product's upper 32 bits."""
    shifted: Array = np.right_shift(a * b, 32)
    return shifted


@golden("mad")
def mad(op: AluOp, a: Array, b: Array, c: Array) -> Array:
    """Product and sum; of floats rounded once."""
    if op.format:
        return numerics.fma(a, b, c, op.format)
    return a * b + c


@golden("div")
def div(op: AluOp, a: Array, b: Array) -> Array:
    """The quotient, correctly rounded."""
    return numerics.div(a, b, op.format)


@golden("inv")
def inv(op: AluOp, a: Array) -> Array:
    """The reciprocal, correctly rounded."""
    return numerics.inv(a, op.format)


@golden("sqrt")
def sqrt(op: AluOp, a: Array) -> Array:
    """The square root, correctly rounded."""
    return numerics.sqrt(a, op.format)


@golden("rsqrt")
def rsqrt(op: AluOp, a: Array) -> Array:
    """The reciprocal square root, correctly rounded."""
    return numerics.rsqrt(a, op.format)


@golden("exp")
def exp(op: AluOp, a: Array) -> Array:
    """2 to a power, correctly rounded."""
    return numerics.exp(a, op.format)


@golden("log")
def log(op: AluOp, a: Array) -> Array:
    """The binary logarithm, correctly rounded."""
    return numerics.log(a, op.format)


@golden("sin")
def sin(op: AluOp, a: Array) -> Array:
    """The sine, correctly rounded."""
    return numerics.sin(a, op.format)


@golden("cos")
def cos(op: AluOp, a: Array) -> Array:
    """The cosine, correctly rounded."""
    return numerics.cos(a, op.format)


@golden("rndd")
def rndd(op: AluOp, a: Array) -> Array:
    """Rounded down."""
    return numerics.round_down(a, op.format)


@golden("rndu")
def rndu(op: AluOp, a: Array) -> Array:
    """Rounded up."""
    return numerics.round_up(a, op.format)


@golden("rnde")
def rnde(op: AluOp, a: Array) -> Array:
    """Rounded to nearest even."""
    return numerics.round_even(a, op.format)


@golden("rndz")
def rndz(op: AluOp, a: Array) -> Array:
    """Rounded toward zero."""
    return numerics.round_zero(a, op.format)


@golden("min")
def min_(op: AluOp, a: Array, b: Array) -> Array:
    """The smaller; -0 is smaller than +0, and a number is chosen over a NaN."""
    if not op.format:
        return np.minimum(a, b)
    return np.where((a < b) | np.isnan(b) | ((a == b) & np.signbit(a)), a, b)


@golden("max")
def max_(op: AluOp, a: Array, b: Array) -> Array:
    """The greater; +0 is greater than -0, and a number is chosen over a NaN."""
    if not op.format:
        return np.maximum(a, b)
    return np.where((a > b) | np.isnan(b) | ((a == b) & ~np.signbit(a)), a, b)


@golden("and")
def and_(op: AluOp, a: Array, b: Array) -> Array:
    """Bitwise and."""
    return a & b


@golden("or")
def or_(op: AluOp, a: Array, b: Array) -> Array:
    """Bitwise or."""
    return a | b


@golden("xor")
def xor(op: AluOp, a: Array, b: Array) -> Array:
    """Bitwise exclusive or."""
    return a ^ b


@golden("not")
def not_(op: AluOp, a: Array) -> Array:
    """Bitwise complement."""
    return ~a


@golden("cbit")
def cbit(op: AluOp, a: Array) -> Array:
    """How many bits are set."""
    found: Array = np.unpackbits(a.astype(np.uint32)[..., None].view(np.uint8), axis=-1).sum(axis=-1, dtype=a.dtype)
    return found


@golden("lzd")
def lzd(op: AluOp, a: Array) -> Array:
    """How many zeros are above the highest bit of 32 that is set: f64 has it as the exponent."""
    return (32 - np.frexp(a.astype(np.uint32).astype(np.float64))[1]).astype(a.dtype)


@golden("shl")
def shl(op: AluOp, a: Array, count: Array) -> Array:
    """Shifted left by the count's lowest bits: 6 in the execution width of 64, else 5."""
    shifted: Array = np.left_shift(a, (count & (op.bits - 1)).astype(a.dtype))
    return shifted


@golden("shr")
def shr(op: AluOp, a: Array, count: Array) -> Array:
    """The bit pattern, as wide as the execution width, shifted right, zeros shifted in."""
    pattern = a.astype(np.uint64) & np.uint64((1 << op.bits) - 1)
    shifted: Array = np.right_shift(pattern, (count & (op.bits - 1)).astype(np.uint64))
    return shifted


@golden("asr")
def asr(op: AluOp, a: Array, count: Array) -> Array:
    """The number divided by a power of two and rounded down: its sign is shifted in."""
    shifted: Array = np.right_shift(a, (count & (op.bits - 1)).astype(a.dtype))
    return shifted


@golden("cmp")
def cmp(op: AluOp, a: Array, b: Array) -> Array:
    """The truth of the comparison; a NaN is unequal to all, and neither smaller nor greater."""
    return _COMPARISONS[op.condition](a, b)


_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
