"""Numbers as exact rationals, from nothing but the definition of binary floating-point formats."""

from fractions import Fraction
from functools import lru_cache
from math import inf, nan

FORMATS = {
    # name: exponent bits, mantissa bits, has infinities; None for a format that has no NaN either
    "f": (8, 23, True),
    "hf": (5, 10, True),
    "bf": (8, 7, True),
    "bf8": (5, 2, True),
    "hf8": (4, 3, False),
    "e2m1": (2, 1, None),
    "tf32": (8, 10, True),
    "df": (11, 52, True),
}


@lru_cache(maxsize=1 << 17)
def value(bits: int, name: str) -> Fraction | float:
    """The number of a bit pattern; -0.0 for negative zero."""
    exponent_bits, mantissa_bits, infinities = FORMATS[name]
    sign = -1 if bits >> (exponent_bits + mantissa_bits) else 1
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if infinities and exponent == (1 << exponent_bits) - 1:
        return nan if mantissa else sign * inf
    if infinities is False and exponent == (1 << exponent_bits) - 1 and mantissa == (1 << mantissa_bits) - 1:
        return nan
    if exponent == 0 and mantissa == 0:
        return -0.0 if sign < 0 else Fraction(0)
    if exponent == 0:
        return _scaled(sign * mantissa, 1 - bias - mantissa_bits)
    return _scaled(sign * (mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits)


def nearest(number: Fraction, name: str) -> int:
    """The bit pattern nearest to a number, ties to even; a number of exactly zero is positive.

    Beyond the greatest number it is infinity, or where there is none the one NaN.
    """
    exponent_bits, mantissa_bits, infinities = FORMATS[name]
    bias = (1 << (exponent_bits - 1)) - 1
    sign = int(number < 0) << (exponent_bits + mantissa_bits)
    number = abs(number)
    if number == 0:
        return sign
    exponent = max(_floor_log2(number), 1 - bias)
    # Integers, since Fraction looks for common divisors at each operation.
    shift = mantissa_bits - exponent
    quantum = number.denominator << max(-shift, 0)
    steps, rest = divmod(number.numerator << max(shift, 0), quantum)
    if rest * 2 > quantum or (rest * 2 == quantum and steps % 2):
        steps += 1
    # Steps of the quantum count up through the exponents, as patterns do.
    pattern = steps + ((exponent + bias - 1) << mantissa_bits)
    last = (1 << exponent_bits + mantissa_bits) - 1
    if infinities is False:
        return sign | pattern if pattern < last else last
    return sign | min(pattern, last + 1 - (1 << mantissa_bits))


def truncated(number: Fraction, name: str) -> int:
    """The pattern of a non-negative number rounded toward zero; infinity from twice the greatest power of two on."""
    exponent_bits, mantissa_bits, _ = FORMATS[name]
    bias = (1 << (exponent_bits - 1)) - 1
    if number == 0:
        return 0
    exponent = max(_floor_log2(number), 1 - bias)
    if exponent > bias:
        return ((1 << exponent_bits) - 1) << mantissa_bits
    return int(number / Fraction(2) ** (exponent - mantissa_bits)) + ((exponent + bias - 1) << mantissa_bits)


def _floor_log2(number: Fraction) -> int:
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if number.denominator << max(guess, 0) <= number.numerator << max(-guess, 0) else guess - 1


def _scaled(whole: int, exponent: int) -> Fraction:
    """The number times a power of two."""
    return Fraction(whole << exponent) if exponent >= 0 else Fraction(whole, 1 << -exponent)
