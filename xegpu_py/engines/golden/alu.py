"""Arithmetic, logic and math: functions of numbers.

Integers are passed as numbers, in an array type that holds the exact result or at least its lowest 64 bits. Floats are
passed in the execution type, to which the result is rounded once (docs/numerics.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from xegpu_py import numerics
from xegpu_py.engines.table import Table
from xegpu_py.numerics.formats import Array


class AluOp(Struct, frozen=True):
    """Properties of an instruction that its arithmetic function may use.

    Attributes:
        format: execution type of floats, "hf", "f" or "df"; "" for integers.
        bits: execution width of shifts: 64 if the destination or the first source has 64 bits, otherwise 32.
        condition: the condition of `cmp`.
    """

    format: str
    bits: int
    condition: str = ""


def _rounded(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of `numerics`, which takes the format and rounds correctly."""
    return lambda op, *sources: function(*sources, op.format)


ARITHMETIC = Table(
    {
        "add": lambda op, a, b: a + b,
        "mul": lambda op, a, b: a * b,
        "mulh": lambda op, a, b: np.right_shift(a * b, 32),
        "div": _rounded(numerics.div),
        "inv": _rounded(numerics.inv),
        "sqrt": _rounded(numerics.sqrt),
        "rsqrt": _rounded(numerics.rsqrt),
        "exp": _rounded(numerics.exp),
        "log": _rounded(numerics.log),
        "sin": _rounded(numerics.sin),
        "cos": _rounded(numerics.cos),
        "rndd": _rounded(numerics.round_down),
        "rndu": _rounded(numerics.round_up),
        "rnde": _rounded(numerics.round_even),
        "rndz": _rounded(numerics.round_zero),
        "and": lambda op, a, b: a & b,
        "or": lambda op, a, b: a | b,
        "xor": lambda op, a, b: a ^ b,
        "not": lambda op, a: ~a,
    }
)
"""The function of numbers that each instruction computes."""

_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


@ARITHMETIC.of("mad")
def mad(op: AluOp, a: Array, b: Array, c: Array) -> Array:
    """Product and sum; for floats with one rounding."""
    return numerics.fma(a, b, c, op.format) if op.format else a * b + c


@ARITHMETIC.of("min")
def min_(op: AluOp, a: Array, b: Array) -> Array:
    """The minimum; -0 is less than +0, and a number is preferred to a NaN."""
    return numerics.minimum_number(a, b) if op.format else np.minimum(a, b)


@ARITHMETIC.of("max")
def max_(op: AluOp, a: Array, b: Array) -> Array:
    """The maximum; +0 is greater than -0, and a number is preferred to a NaN."""
    return numerics.maximum_number(a, b) if op.format else np.maximum(a, b)


@ARITHMETIC.of("cbit")
def cbit(op: AluOp, a: Array) -> Array:
    """The number of bits that are set."""
    found: Array = np.unpackbits(a.astype(np.uint32)[..., None].view(np.uint8), axis=-1).sum(axis=-1, dtype=a.dtype)
    return found


@ARITHMETIC.of("lzd")
def lzd(op: AluOp, a: Array) -> Array:
    """The number of leading zeros of 32 bits, from the exponent in f64."""
    return (32 - np.frexp(a.astype(np.uint32).astype(np.float64))[1]).astype(a.dtype)


@ARITHMETIC.of("shl")
def shl(op: AluOp, a: Array, count: Array) -> Array:
    """Shift left by the lowest bits of the count: 6 with an execution width of 64, otherwise 5."""
    shifted: Array = np.left_shift(a, (count & (op.bits - 1)).astype(a.dtype))
    return shifted


@ARITHMETIC.of("shr")
def shr(op: AluOp, a: Array, count: Array) -> Array:
    """Logical shift right of the bit pattern in the execution width."""
    pattern = a.astype(np.uint64) & np.uint64((1 << op.bits) - 1)
    shifted: Array = np.right_shift(pattern, (count & (op.bits - 1)).astype(np.uint64))
    return shifted


@ARITHMETIC.of("asr")
def asr(op: AluOp, a: Array, count: Array) -> Array:
    """Arithmetic shift right: the number divided by a power of two, rounded down."""
    shifted: Array = np.right_shift(a, (count & (op.bits - 1)).astype(a.dtype))
    return shifted


@ARITHMETIC.of("cmp")
def cmp(op: AluOp, a: Array, b: Array) -> Array:
    """The result of the comparison; a NaN is unequal to all numbers, and neither less nor greater."""
    return _COMPARISONS[op.condition](a, b)
