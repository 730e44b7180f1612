"""The elementary functions without a vISA instruction. The algorithms here define their bits.

Each is a fixed sequence of f32 operations, each rounded once to nearest even; docs/numerics.md lists them.
Arguments and results are float32 arrays of any shape; NaN results are canonical, and those of `erf` and `tanh` have the
argument's sign.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.elementary import div, exp, inv, log, round_zero
from xegpu_py.numerics.fma import fma
from xegpu_py.numerics.formats import Array, F, canonical

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
LOG10_2 = math.log10(2)

ERF_SLOPE = 0.3275911
ERF_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Abramowitz and Stegun 7.1.26, from the leading coefficient down."""

_SIGN = np.uint32(0x80000000)


def _f32(x: npt.ArrayLike) -> Array:
    return np.asarray(x, np.float32)


def multiply(a: Array, b: Array | float) -> Array:
    """A product, rounded once."""
    with np.errstate(all="ignore"):
        return canonical(np.array(a * _f32(b)), F)


def add(a: Array, b: Array | float) -> Array:
    """A sum, rounded once."""
    with np.errstate(all="ignore"):
        return canonical(np.array(a + _f32(b)), F)


def multiply_add(a: Array | float, b: Array | float, c: Array | float) -> Array:
    """A product and a sum, rounded once."""
    return fma(_f32(a), _f32(b), _f32(c), "f")


def with_sign(magnitude: Array, x: Array) -> Array:
    """A non-negative number with the sign of another."""
    return np.asarray(magnitude.view(np.uint32) | (x.view(np.uint32) & _SIGN)).view(np.float32)


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Horner's rule with one rounding a step. Coefficients begin with the leading one."""
    total = np.full(x.shape, coefficients[0], np.float32)
    for c in coefficients[1:]:
        total = multiply_add(total, x, c)
    return total


def natural_exp(x: npt.ArrayLike) -> Array:
    """e to the power x: 2 to the power x log2(e), corrected to first order by the rounding error of that product."""
    x = _f32(x)
    high = np.float32(LOG2_E)
    scaled = multiply(x, high)
    lost = multiply_add(x, LOG2_E - float(high), multiply_add(x, high, -scaled))
    power = exp(scaled, "f")
    corrected = multiply_add(multiply(power, LN_2), lost, power)
    # Infinities, overflow and underflow have no correction.
    return np.where(np.isnan(corrected), power, corrected)


def natural_log(x: npt.ArrayLike) -> Array:
    """The natural logarithm: log2(x) times ln(2)."""
    return multiply(log(_f32(x), "f"), LN_2)


def log10(x: npt.ArrayLike) -> Array:
    """The decimal logarithm: log2(x) times log10(2)."""
    return multiply(log(_f32(x), "f"), LOG10_2)


def log1p(x: npt.ArrayLike) -> Array:
    """ln(u) (x / (u - 1)) with u = 1 + x; x itself where u is 1 or infinite."""
    x = _f32(x)
    u = add(x, 1.0)
    step = add(u, -1.0)
    found = multiply(natural_log(u), div(x, step, "f"))
    return np.where((step != 0) & (step != np.inf), found, x)


def expm1(x: npt.ArrayLike) -> Array:
    """(y - 1) x / ln(y) with y = exp(x); y - 1 where |x| is not below 1, and x itself where y is 1."""
    x = _f32(x)
    y = natural_exp(x)
    step = add(y, -1.0)
    near = div(multiply(step, x), natural_log(y), "f")
    found = np.where(np.abs(x) < 1.0, near, step)
    return np.where(step != 0, found, x)


def tanh(x: npt.ArrayLike) -> Array:
    """sign(x) (1 - 2 / (exp(2 |x|) + 1)); for |x| < 0.25 the first five terms of Taylor's series."""
    x = _f32(x)
    size = np.abs(x)
    below = inv(add(natural_exp(add(size, size)), 1.0), "f")
    large = with_sign(multiply_add(below, -2.0, 1.0), x)
    square = multiply(x, x)
    series = _polynomial(square, (62 / 2835, -17 / 315, 2 / 15, -1 / 3))
    small = multiply_add(multiply(series, square), x, x)
    return np.where(size < 0.25, small, large)


def erf(x: npt.ArrayLike) -> Array:
    """Abramowitz and Stegun 7.1.26 from |x| = 0.5 on; below, the first seven terms of Maclaurin's series."""
    x = _f32(x)
    size, square = np.abs(x), multiply(x, x)
    t = inv(multiply_add(size, ERF_SLOPE, 1.0), "f")
    series = multiply(_polynomial(t, ERF_COEFFICIENTS), t)
    tail = multiply(series, exp(multiply(square, -LOG2_E), "f"))
    large = with_sign(add(-tail, 1.0), x)
    c = 2 / math.sqrt(math.pi)
    terms = tuple(c * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(7))
    small = multiply(_polynomial(square, terms[::-1]), x)
    return np.where(size < 0.5, small, large)


def power(x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """x to the power y: 2 to the power y log2(|x|), with the sign and the special values of C's pow."""
    x, y = np.broadcast_arrays(_f32(x), _f32(y))
    found = exp(multiply(y, log(np.abs(x), "f")), "f")
    found = np.where((y == 0) | (x == 1) | ((x == -1) & np.isinf(y)), np.float32(1.0), found)
    integral = round_zero(y, "f") == y
    half = multiply(y, 0.5)
    odd = integral & (round_zero(half, "f") != half)
    found = multiply(found, np.where(odd & np.signbit(x), np.float32(-1.0), np.float32(1.0)))
    undefined = (x < 0) & (x > -np.inf) & ~integral
    return np.where(undefined, np.float32(np.nan), found)


def round_away(x: npt.ArrayLike) -> Array:
    """The nearest integral number; ties go away from zero."""
    x = _f32(x)
    whole = round_zero(x, "f")
    one = with_sign(np.ones(x.shape, np.float32), x)
    return np.where(np.abs(add(x, -whole)) >= 0.5, add(whole, one), whole)
