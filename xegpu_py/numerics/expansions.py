"""Functions that are short formulas of other functions, written once for arrays and for ops of the IR.

Each formula computes with `Number`s, whose operators call a function `apply` with the name of an MLIR op. `evaluate`
applies ops to float32 arrays; a pass applies them by making ops. Each op rounds once, to f32. docs/numerics.md states
the formulas and their measured errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics import functions
from xegpu_py.numerics.elementary import cos, div, exp, log, round_even, sin, sqrt
from xegpu_py.numerics.formats import Array

Apply = Callable[..., Any]
"""Applies an op of a name to values; floats are constants. "olt" and its likes are predicates of arith.cmpf."""

_ATAN = (-0.0607885, 0.10594273, -0.14243628, 0.19998479, -0.33333315)
"""(atan(t) / t - 1) / t^2 as a polynomial of t^2 for t below tan(pi/8): a minimax fit, with an error below 1e-9."""
_ASIN = (0.04221855, 0.02414761, 0.0454771, 0.07495242, 0.16666754)
"""(asin(t) / t - 1) / t^2 as a polynomial of t^2 for t up to 1/2: a minimax fit, with an error below 5e-9."""
_ERFC = (-0.0617736, 0.29812591, -0.51474502, 0.30800329, -0.04572103, 0.21001447, 0.2414523, 0.28257507, 0.28207649)
"""erfc(x) exp(x^2) / t as a polynomial of t = 1 / (1 + x / 2) for x from 1/2 to 10: a minimax fit, with an error below
1e-8."""
_LARGE = 22.0
"""From here on exp(-x) is below half a unit in the last place of exp(x) - exp(-x)."""
_HUGE = 4096.0
"""From here on 1 is below half a unit in the last place of x^2 + 1."""


class Number:
    """An f32 number, or a truth value, of an algorithm.

    Attributes:
        value: an array, or a value of the IR.
        apply: what applies ops.
    """

    def __init__(self, value: Any, apply: Apply) -> None:
        self.value, self.apply = value, apply

    def of(self, name: str, *others: Number | float) -> Number:
        """An op on this number and others."""
        values = (v.value if isinstance(v, Number) else v for v in others)
        return Number(self.apply(name, self.value, *values), self.apply)

    def _after(self, name: str, first: float) -> Number:
        return Number(self.apply(name, first, self.value), self.apply)

    def __add__(self, other: Number | float) -> Number:
        return self.of("arith.addf", other)

    def __sub__(self, other: Number | float) -> Number:
        return self.of("arith.subf", other)

    def __mul__(self, other: Number | float) -> Number:
        return self.of("arith.mulf", other)

    def __truediv__(self, other: Number | float) -> Number:
        return self.of("arith.divf", other)

    def __rsub__(self, other: float) -> Number:
        return self._after("arith.subf", other)

    def __rtruediv__(self, other: float) -> Number:
        return self._after("arith.divf", other)

    def __abs__(self) -> Number:
        return self.of("math.absf")

    def __lt__(self, other: Number | float) -> Number:
        return self.of("olt", other)

    def __gt__(self, other: Number | float) -> Number:
        return self.of("ogt", other)

    def same(self, other: Number | float) -> Number:
        """Whether two numbers are equal."""
        return self.of("oeq", other)

    def choose(self, a: Number | float, b: Number | float) -> Number:
        """`a` where this truth value holds, else `b`."""
        return self.of("arith.select", a, b)

    def signed(self, x: Number) -> Number:
        """This magnitude with the sign of x."""
        return self.of("math.copysign", x)

    def polynomial(self, coefficients: tuple[float, ...]) -> Number:
        """Horner's rule with fma, from the leading coefficient down."""
        total: Number | float = coefficients[0]
        for c in coefficients[1:]:
            total = total.of("math.fma", self, c) if isinstance(total, Number) else self.of("math.fma", total, c)
        assert isinstance(total, Number)
        return total

    def times_one_plus(self, series: Number) -> Number:
        """This number times (1 + series), with two roundings."""
        return series.of("math.fma", self, self)


def tan(x: Number) -> Number:
    """sin(x) / cos(x)."""
    return x.of("math.sin") / x.of("math.cos")


def _half_power(size: Number) -> Number:
    """exp(x) / 2 without overflow before the result does: (exp(x / 2) / 2) exp(x / 2)."""
    root = (size * 0.5).of("math.exp")
    return (root * 0.5) * root


def sinh(x: Number) -> Number:
    """(e + e / (e + 1)) / 2 with e = expm1(|x|), and the sign of x."""
    size = abs(x)
    e = size.of("math.expm1")
    small = (e + e / (e + 1.0)) * 0.5
    return (size < _LARGE).choose(small, _half_power(size)).signed(x)


def cosh(x: Number) -> Number:
    """(e + 1 / e) / 2 with e = exp(|x|)."""
    size = abs(x)
    e = size.of("math.exp")
    return (size < _LARGE).choose((e + 1.0 / e) * 0.5, _half_power(size))


def asinh(x: Number) -> Number:
    """log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))), and the sign of x; log(|x|) + log(2) from 4096 on."""
    size = abs(x)
    square = x * x
    small = (size + square / ((square + 1.0).of("math.sqrt") + 1.0)).of("math.log1p")
    return (size < _HUGE).choose(small, size.of("math.log") + math.log(2)).signed(x)


def acosh(x: Number) -> Number:
    """log1p(t + sqrt(t (t + 2))) with t = x - 1; log(x) + log(2) from 4096 on. NaN below 1."""
    t = x - 1.0
    small = (t + (t * (t + 2.0)).of("math.sqrt")).of("math.log1p")
    found = (x < _HUGE).choose(small, x.of("math.log") + math.log(2))
    return (x < 1.0).choose(math.nan, found)


def atanh(x: Number) -> Number:
    """log1p(2 |x| / (1 - |x|)) / 2, and the sign of x."""
    size = abs(x)
    return (((size + size) / (1.0 - size)).of("math.log1p") * 0.5).signed(x)


def cbrt(x: Number) -> Number:
    """y = exp2(log2(|x|) / 3), a step of Newton's method, y + (|x| / y^2 - y) / 3, and the sign of x."""
    size = abs(x)
    y = (size.of("math.log2") * (1 / 3)).of("math.exp2")
    found = (size / (y * y) - y).of("math.fma", 1 / 3, y).signed(x)
    # 0, infinity and NaN are their own roots.
    return (size > 0.0).choose((size < math.inf).choose(found, x + x), x + x)


def atan(x: Number) -> Number:
    """A polynomial of t, plus pi/4 where |x| > tan(pi/8) and t = (|x| - 1) / (|x| + 1), or pi/2 where
    |x| > 1 / tan(pi/8) and t = -1 / |x|; the sign of x."""
    size = abs(x)
    far, near = size > 1 / math.tan(math.pi / 8), size > math.tan(math.pi / 8)
    above = far.choose(-1.0, near.choose(size - 1.0, size))
    below = far.choose(size, near.choose(size + 1.0, 1.0))
    t = above / below
    square = t * t
    found = t.times_one_plus(square.polynomial(_ATAN) * square)
    return (found + far.choose(math.pi / 2, near.choose(math.pi / 4, 0.0))).signed(x)


def atan2(y: Number, x: Number) -> Number:
    """atan(|y| / |x|), less than pi by that where x has the sign bit set; the sign of y."""
    above, below = abs(y), abs(x)
    alike = above.same(0.0).choose(0.0, 1.0)
    angle = atan(above.same(below).choose(alike, above / below))
    # The reciprocal tells -0 from 0.
    left = (below.same(0.0).choose(1.0 / x, x)) < 0.0
    return left.choose(math.pi - angle, angle).signed(y)


def _asin(size: Number) -> Number:
    """asin of numbers from 0 to 1/2."""
    square = size * size
    return size.times_one_plus(square.polynomial(_ASIN) * square)


def _folded(size: Number) -> tuple[Number, Number]:
    """Whether a number exceeds 1/2, and asin of it, or of sqrt((1 - x) / 2) if it does."""
    large = size > 0.5
    return large, _asin(large.choose(((1.0 - size) * 0.5).of("math.sqrt"), size))


def asin(x: Number) -> Number:
    """A polynomial up to 1/2; above, pi/2 - 2 asin(sqrt((1 - |x|) / 2)); the sign of x."""
    large, angle = _folded(abs(x))
    return large.choose(math.pi / 2 - (angle + angle), angle).signed(x)


def acos(x: Number) -> Number:
    """pi/2 - asin(x) for |x| up to 1/2; above, 2 asin(sqrt((1 - |x|) / 2)), subtracted from pi where x is negative."""
    large, angle = _folded(abs(x))
    twice, negative = angle + angle, x < 0.0
    return large.choose(negative.choose(math.pi - twice, twice), math.pi / 2 - angle.signed(x))


def erfc(x: Number) -> Number:
    """1 - erf(x) for |x| < 1/2; else t P(t) exp(-h^2) exp((h - s) (h + s)) with s = min(|x|, 11), t = 1 / (1 + s / 2)
    and s rounded to a multiple of 1/16 as h, subtracted from 2 where x is negative."""
    size = abs(x).of("arith.minimumf", 11.0)
    h = (size * 16.0).of("math.roundeven") * 0.0625
    t = 1.0 / (size * 0.5 + 1.0)
    power = (0.0 - h * h).of("math.exp") * ((h - size) * (h + size)).of("math.exp")
    tail = (t * t.polynomial(_ERFC)) * power
    outer = (x < 0.0).choose(2.0 - tail, tail)
    return (size < 0.5).choose(1.0 - x.of("math.erf"), outer)


EXPANSIONS: dict[str, Callable[..., Number]] = {
    f"math.{f.__name__}": f for f in (tan, sinh, cosh, asinh, acosh, atanh, cbrt, atan, atan2, asin, acos, erfc)
}
"""The formula of each op."""

_OPS: dict[str, Callable[..., Array]] = {
    "arith.addf": functions.add,
    "arith.subf": lambda a, b: functions.add(a, -b),
    "arith.mulf": functions.multiply,
    "arith.divf": lambda a, b: div(a, b, "f"),
    "arith.minimumf": np.minimum,
    "arith.select": np.where,
    "math.fma": functions.multiply_add,
    "math.absf": np.abs,
    "math.copysign": lambda a, b: functions.with_sign(np.abs(a), b),
    "math.sqrt": lambda a: sqrt(a, "f"),
    "math.sin": lambda a: sin(a, "f"),
    "math.cos": lambda a: cos(a, "f"),
    "math.exp2": lambda a: exp(a, "f"),
    "math.log2": lambda a: log(a, "f"),
    "math.roundeven": lambda a: round_even(a, "f"),
    "math.exp": functions.natural_exp,
    "math.expm1": functions.expm1,
    "math.log": functions.natural_log,
    "math.log1p": functions.log1p,
    "math.erf": functions.erf,
    "oeq": np.equal,
    "olt": np.less,
    "ogt": np.greater,
}


def _on_arrays(name: str, *operands: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(_OPS[name](*(np.float32(v) if isinstance(v, float) else v for v in operands)))


def evaluate(name: str, *operands: npt.ArrayLike) -> Array:
    """A function of `EXPANSIONS` of float32 arrays of one shape.

    Args:
        name: the MLIR op, such as "math.sinh".
    """
    numbers = [Number(np.asarray(v, np.float32), _on_arrays) for v in operands]
    found: Array = EXPANSIONS[name](*numbers).value
    return found
