"""Functions that are short formulas of other functions, written once for arrays, ops of the IR and instructions.

Each formula computes with `Number`s, whose operators call a function `apply` with the name of an MLIR op. `evaluate`
applies ops to float32 arrays; a pass applies them by making ops or instructions. Each op rounds once, to f32.
docs/numerics.md states the formulas and their measured errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics import elementary
from xegpu_py.numerics.elementary import div, round_even, round_zero, sqrt
from xegpu_py.numerics.formats import Array, F, canonical
from xegpu_py.numerics.rounding import fma

Apply = Callable[..., Any]
"""Applies an op of a name to values; floats are constants. "olt" and its likes are predicates of arith.cmpf.

Only formulas of `ALGORITHMS` also use "fms" (a product less a number, rounded once), "signbit", and "not".
"""

LOG2_E = 1.4426950408889634

LN_2 = 0.6931471805599453

_ERF_SLOPE = 0.3275911

_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Abramowitz and Stegun 7.1.26, from the leading coefficient down."""

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

    def after(self, name: str, first: float) -> Number:
        """An op on a constant and this number."""
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
        return self.after("arith.subf", other)

    def __rtruediv__(self, other: float) -> Number:
        return self.after("arith.divf", other)

    def __abs__(self) -> Number:
        return self.of("math.absf")

    def __lt__(self, other: Number | float) -> Number:
        return self.of("olt", other)

    def __gt__(self, other: Number | float) -> Number:
        return self.of("ogt", other)

    def __ge__(self, other: Number | float) -> Number:
        return self.of("oge", other)

    def __and__(self, other: Number) -> Number:
        return self.of("arith.andi", other)

    def __or__(self, other: Number) -> Number:
        return self.of("arith.ori", other)

    def __invert__(self) -> Number:
        return self.of("not")

    def same(self, other: Number | float) -> Number:
        """Whether two numbers are equal."""
        return self.of("oeq", other)

    def differs(self, other: Number | float) -> Number:
        """Whether two numbers are not equal."""
        return self.of("une", other)

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


def exp(x: Number) -> Number:
    """2 to the power x log2(e), corrected to first order by the rounding errors of that product and of the constant."""
    high = float(np.float32(LOG2_E))
    scaled = x * high
    lost = x.of("math.fma", LOG2_E - high, x.of("fms", high, scaled))
    power = scaled.of("math.exp2")
    corrected = (power * LN_2).of("math.fma", lost, power)
    # Infinities, overflow and underflow have no correction.
    return corrected.same(corrected).choose(corrected, power)


def log(x: Number) -> Number:
    """log2(x) times ln(2)."""
    return x.of("math.log2") * LN_2


def log10(x: Number) -> Number:
    """log2(x) times log10(2)."""
    return x.of("math.log2") * math.log10(2)


def log1p(x: Number) -> Number:
    """ln(u) (x / (u - 1)) with u = 1 + x; x itself where u is 1 or infinite."""
    u = x + 1.0
    base = log(u)
    step = u + -1.0
    found = base * (x / step)
    return (step.differs(0.0) & step.differs(math.inf)).choose(found, x)


def expm1(x: Number) -> Number:
    """(y - 1) x / ln(y) with y = exp(x); y - 1 where |x| is not below 1, and x itself where y is 1."""
    y = exp(x)
    step = y + -1.0
    divisor = log(y)
    found = (abs(x) < 1.0).choose((step * x) / divisor, step)
    return step.differs(0.0).choose(found, x)


def tanh(x: Number) -> Number:
    """sign(x) (1 - 2 / (exp(2 |x|) + 1)); for |x| < 0.25 the first five terms of Taylor's series."""
    size = abs(x)
    below = 1.0 / (exp(size + size) + 1.0)
    large = below.of("math.fma", -2.0, 1.0)
    square = x * x
    series = square.polynomial((62 / 2835, -17 / 315, 2 / 15, -1 / 3))
    return (size < 0.25).choose((series * square).of("math.fma", size, size), large).signed(x)


def erf(x: Number) -> Number:
    """Abramowitz and Stegun 7.1.26 from |x| = 0.5 on; below, the first seven terms of Maclaurin's series."""
    size, square = abs(x), x * x
    t = 1.0 / size.of("math.fma", _ERF_SLOPE, 1.0)
    tail = (t.polynomial(_ERF) * t) * (square * -LOG2_E).of("math.exp2")
    large = (1.0 - tail).signed(x)
    c = 2 / math.sqrt(math.pi)
    terms = tuple(c * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(7))
    return (size < 0.5).choose(square.polynomial(terms[::-1]) * x, large)


def powf(x: Number, y: Number) -> Number:
    """2 to the power y log2(|x|), with the sign and the special values of C's pow."""
    return with_rules_of_powers(x, y, (y * abs(x).of("math.log2")).of("math.exp2"))


def with_rules_of_powers(x: Number, y: Number, found: Number) -> Number:
    """|x| to the power y with the sign and the special values of C's pow."""
    size = abs(x)
    # pow(1, y) and pow(x, 0) are 1, also for NaN; pow(-1, inf) is 1.
    certain = (y.same(0.0) | x.same(1.0)) | (size.same(1.0) & abs(y).same(math.inf))
    found = certain.choose(1.0, found)
    half = y * 0.5
    integral = y.of("math.trunc").same(y)
    odd = integral & half.of("math.trunc").differs(half)
    found = found * (odd & x.of("signbit")).choose(-1.0, 1.0)
    # A negative base with a fractional exponent is NaN, except for -0 and negative infinity.
    undefined = ((x < 0.0) & (size < math.inf)) & ~integral
    return undefined.choose(math.nan, found)


def round_away(x: Number) -> Number:
    """The nearest integral number; ties go away from zero."""
    whole = x.of("math.trunc")
    return (abs(x - whole) >= 0.5).choose(whole + x.after("math.copysign", 1.0), whole)


ALGORITHMS: dict[str, Callable[..., Number]] = {
    **{f"math.{f.__name__}": f for f in (exp, log, log10, log1p, expm1, tanh, erf, powf)},
    "math.round": round_away,
}
"""The formulas of the functions that are lowered to instructions as they are."""


def tan(x: Number) -> Number:
    """sin(x) / cos(x)."""
    return x.of("math.sin") / x.of("math.cos")


def _half_power(size: Number) -> Number:
    """exp(x) / 2 without overflow before the result does: (exp(x / 2) / 2) exp(x / 2)."""
    root = (size * 0.5).of("math.exp")
    return (root * 0.5) * root


def sinh(x: Number, half_power: Callable[[Number], Number] = _half_power) -> Number:
    """(e + e / (e + 1)) / 2 with e = expm1(|x|), and the sign of x."""
    size = abs(x)
    e = size.of("math.expm1")
    small = (e + e / (e + 1.0)) * 0.5
    return (size < _LARGE).choose(small, half_power(size)).signed(x)


def cosh(x: Number, half_power: Callable[[Number], Number] = _half_power) -> Number:
    """(e + 1 / e) / 2 with e = exp(|x|)."""
    size = abs(x)
    e = size.of("math.exp")
    return (size < _LARGE).choose((e + 1.0 / e) * 0.5, half_power(size))


def asinh(x: Number, huge: float = _HUGE) -> Number:
    """log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))), and the sign of x; log(|x|) + log(2) from 4096 on."""
    size = abs(x)
    square = x * x
    small = (size + square / ((square + 1.0).of("math.sqrt") + 1.0)).of("math.log1p")
    return (size < huge).choose(small, size.of("math.log") + math.log(2)).signed(x)


def acosh(x: Number, huge: float = _HUGE) -> Number:
    """log1p(t + sqrt(t (t + 2))) with t = x - 1; log(x) + log(2) from 4096 on. NaN below 1."""
    t = x - 1.0
    small = (t + (t * (t + 2.0)).of("math.sqrt")).of("math.log1p")
    found = (x < huge).choose(small, x.of("math.log") + math.log(2))
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
    return angle_of_point(y, x, atan, 0.0)


def angle_of_point(y: Number, x: Number, atan: Callable[[Number], Number], rest_of_pi: float) -> Number:
    """atan2 by a function atan; `rest_of_pi` is pi less its nearest number."""
    above, below = abs(y), abs(x)
    alike = above.same(0.0).choose(0.0, 1.0)
    angle = atan(above.same(below).choose(alike, above / below))
    # The reciprocal tells -0 from 0.
    left = (below.same(0.0).choose(1.0 / x, x)) < 0.0
    return left.choose(math.pi - (angle - rest_of_pi if rest_of_pi else angle), angle).signed(y)


def _asin(size: Number) -> Number:
    """asin of numbers from 0 to 1/2."""
    square = size * size
    return size.times_one_plus(square.polynomial(_ASIN) * square)


def folded_angle(size: Number, asin: Callable[[Number], Number]) -> tuple[Number, Number]:
    """Whether a number exceeds 1/2, and asin of it, or of sqrt((1 - x) / 2) if it does, by asin up to 1/2."""
    large = size > 0.5
    return large, asin(large.choose(((1.0 - size) * 0.5).of("math.sqrt"), size))


def asin(x: Number) -> Number:
    """A polynomial up to 1/2; above, pi/2 - 2 asin(sqrt((1 - |x|) / 2)); the sign of x."""
    large, angle = folded_angle(abs(x), _asin)
    return large.choose(math.pi / 2 - (angle + angle), angle).signed(x)


def acos(x: Number) -> Number:
    """pi/2 - asin(x) for |x| up to 1/2; above, 2 asin(sqrt((1 - |x|) / 2)), subtracted from pi where x is negative."""
    large, angle = folded_angle(abs(x), _asin)
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
"""The formulas of the functions that `xegpu-legalize` expands to other ops."""

_SIGN = np.uint32(0x80000000)

_OPS: dict[str, Callable[..., Array]] = {
    "arith.addf": lambda a, b: canonical(np.array(a + b), F),
    "arith.subf": lambda a, b: canonical(np.array(a - b), F),
    "arith.mulf": lambda a, b: canonical(np.array(a * b), F),
    "arith.divf": lambda a, b: div(a, b, "f"),
    "arith.minimumf": np.minimum,
    "arith.select": np.where,
    "math.fma": lambda a, b, c: fma(a, b, c, "f"),
    "math.absf": np.abs,
    "math.copysign": lambda a, b: ((a.view(np.uint32) & ~_SIGN) | (b.view(np.uint32) & _SIGN)).view(np.float32),
    "math.sqrt": lambda a: sqrt(a, "f"),
    "math.sin": lambda a: elementary.sin(a, "f"),
    "math.cos": lambda a: elementary.cos(a, "f"),
    "math.exp2": lambda a: elementary.exp(a, "f"),
    "math.log2": lambda a: elementary.log(a, "f"),
    "math.roundeven": lambda a: round_even(a, "f"),
    "math.trunc": lambda a: round_zero(a, "f"),
    "fms": lambda a, b, c: fma(a, b, -c, "f"),
    "signbit": np.signbit,
    "oeq": np.equal,
    "une": np.not_equal,
    "olt": np.less,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "arith.andi": np.logical_and,
    "arith.ori": np.logical_or,
    "not": np.logical_not,
}


def _on_arrays(name: str, *operands: Any) -> Array:
    if name in ALGORITHMS:
        return evaluate(name, *operands)
    with np.errstate(all="ignore"):
        return np.asarray(_OPS[name](*(np.float32(v) if isinstance(v, float) else v for v in operands)))


def evaluate(name: str, *operands: npt.ArrayLike) -> Array:
    """A function of `EXPANSIONS` or `ALGORITHMS` of float32 arrays of one shape; NaN results are canonical.

    Those of `erf` and `tanh` have the argument's sign.

    Args:
        name: the MLIR op, such as "math.sinh".
    """
    numbers = [Number(np.asarray(v, np.float32), _on_arrays) for v in operands]
    return (EXPANSIONS.get(name) or ALGORITHMS[name])(*numbers).value
