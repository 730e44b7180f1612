"""Numbers of floating-point formats, worked out one by one in rationals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, isqrt, nan

from numerics.exact import nearest, value

Number = Fraction | float
"""A rational, or a number that is not a rational: -0.0, infinities, NaN."""

CANONICAL = {"hf": 0x7E00, "bf": 0x7FC0, "f": 0x7FC00000, "df": 0x7FF8 << 48, "bf8": 0x7E, "tf32": 0x3FE00}
BITS = {"hf": 16, "bf": 16, "f": 32, "df": 64, "bf8": 8, "tf32": 19}


def isnan(x: Number) -> bool:
    """As `math.isnan`, which would convert rationals to floats and fail if one is too large."""
    return isinstance(x, float) and x != x


def isinf(x: Number) -> bool:
    """As `math.isinf`, for rationals of any size."""
    return isinstance(x, float) and abs(x) == inf


def negative(x: Number) -> bool:
    return x < 0 or (isinstance(x, float) and str(x) == "-0.0")


def signed_zero(sign: bool) -> Number:
    return -0.0 if sign else Fraction(0)


def negated(x: Number) -> Number:
    return signed_zero(not negative(x)) if x == 0 else -x


def encode(x: Number, name: str) -> int:
    """The pattern of a number rounded to nearest even."""
    if isinstance(x, float):
        if isnan(x):
            return CANONICAL[name]
        sign = int(negative(x)) << (BITS[name] - 1)
        return sign | (nearest(Fraction(1 << 20000), name) if isinf(x) else 0)
    return nearest(x, name)


def rounded(x: Number, name: str) -> Number:
    return value(encode(x, name), name)


def plus(a: Number, b: Number) -> Number:
    if isnan(a) or isnan(b) or (isinf(a) and isinf(b) and a != b):
        return nan
    if isinf(a) or isinf(b):
        return a if isinf(a) else b
    if a == 0 and b == 0:
        return signed_zero(negative(a) and negative(b))
    return Fraction(a) + Fraction(b)


def times(a: Number, b: Number) -> Number:
    if isnan(a) or isnan(b) or (isinf(a) and b == 0) or (isinf(b) and a == 0):
        return nan
    sign = negative(a) != negative(b)
    if isinf(a) or isinf(b):
        return -inf if sign else inf
    return signed_zero(sign) if a == 0 or b == 0 else Fraction(a) * Fraction(b)


def inverse(a: Number) -> Number:
    if isnan(a):
        return nan
    if isinf(a):
        return signed_zero(negative(a))
    if a == 0:
        return -inf if negative(a) else inf
    return 1 / Fraction(a)


def over(a: Number, b: Number) -> Number:
    return nan if isinf(a) and isinf(b) else times(a, inverse(b))


def root(a: Number) -> Number:
    """The square root, or a number between the same two with 200 bits."""
    if isnan(a) or a == 0 or a == inf:
        return a
    if a < 0:
        return nan
    scale = 1 << (2 * (1300 + 200))
    whole = isqrt(int(a * scale))
    exact = Fraction(whole) ** 2 == a * scale
    return (Fraction(whole) if exact else Fraction(2 * whole + 1, 2)) / (1 << 1500)


def integral(a: Number, how: Callable[[Fraction], int]) -> Number:
    if isnan(a) or isinf(a) or a == 0:
        return a
    found = how(Fraction(a))
    return Fraction(found) if found else signed_zero(negative(a))


def chosen(a: Number, b: Number, smaller: bool) -> Number:
    if isnan(a) or isnan(b):
        return b if isnan(a) else a
    if a == b:
        return a if negative(a) == smaller else b
    return a if (a < b) == smaller else b
