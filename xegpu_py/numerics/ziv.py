"""Correct rounding of results that f64 cannot decide, by integers of sufficient width (Ziv's strategy).

A function's value is enclosed between two integers times a power of two. If both round to the same number, so does the
value; otherwise the enclosure is narrowed. This terminates, because representable values and midpoints of two numbers
are enclosed exactly, and all other values have a distance from these.

Source: A. Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", ACM TOMS 17(3).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import frexp, isqrt

from xegpu_py.numerics.formats import Format

Enclosure = tuple[int, int, int]
"""Low, high and exponent: the value is between low * 2**exponent and high * 2**exponent, inclusive."""

_FIRST = 128
_GUARD = 32
# Each of the fewer than 2**12 terms of a series adds an error of a few units of the last place, and so do its factors.
_ERROR = 1 << 16


def decide(name: str, x: float, fmt: Format) -> int:
    """The bit pattern in `fmt`, nearest to even, of one function of one number.

    Args:
        name: "exp" and "log", which are base 2, "sin", "cos" or "rsqrt".
        x: a finite number other than zero at which the function is finite.
    """
    enclosure = ENCLOSURES[name]
    precision = _FIRST
    while True:
        low, high, exponent = enclosure(x, precision)
        pattern = nearest(low, exponent, fmt)
        if pattern == nearest(high, exponent, fmt):
            return pattern
        precision *= 2


def nearest(mantissa: int, exponent: int, fmt: Format) -> int:
    """The bit pattern in `fmt` nearest to `mantissa * 2**exponent`, ties to even; infinity on overflow."""
    fraction = fmt.mantissa
    bias = (1 << (fmt.exponent - 1)) - 1
    sign = int(mantissa < 0) << (fmt.bits - 1)
    magnitude = abs(mantissa)
    lead = magnitude.bit_length() - 1 + exponent
    if magnitude == 0 or lead < -bias - fraction:
        return sign
    if lead > bias:
        return sign | fmt.infinity
    lead = max(lead, 1 - bias)
    drop = lead - fraction - exponent
    if drop <= 0:
        steps = magnitude << -drop
    else:
        steps, rest = magnitude >> drop, magnitude & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        steps += rest > half or (rest == half and steps & 1)
    # Steps count on through the exponents as patterns do, from the hidden bit on.
    return sign | min(steps + ((lead + bias - 1) << fraction), fmt.infinity)


def _exp(x: float, precision: int) -> Enclosure:
    numerator, denominator = x.as_integer_ratio()
    whole, rest = divmod(numerator, denominator)
    if rest == 0:
        return 1, 1, whole
    bits = precision + _GUARD
    power = _exp_series(rest * _ln2(bits) // denominator, bits)
    return power - _ERROR, power + _ERROR, whole - bits


def _log(x: float, precision: int) -> Enclosure:
    fraction, exponent = frexp(x)
    if fraction == 0.5:
        return exponent - 1, exponent - 1, 0
    if fraction < 0.7:
        fraction, exponent = 2 * fraction, exponent - 1
    bits = precision + _GUARD
    numerator, denominator = fraction.as_integer_ratio()
    natural = 2 * _odd_series(((numerator - denominator) << bits) // (numerator + denominator), bits)
    value = (exponent << bits) + (natural << bits) // _ln2(bits)
    return value - _ERROR, value + _ERROR, -bits


def _circular(x: float, precision: int, quarters: int) -> Enclosure:
    """The sine of `x` and some multiples of pi/2."""
    bits = precision + _GUARD
    # The error of pi is multiplied by the number of subtractions of pi.
    wide = bits + max(frexp(x)[1], 0)
    numerator, denominator = x.as_integer_ratio()
    quarter, rest = divmod((numerator << wide) // denominator, _pi(wide + 1) >> 2)
    quarter += quarters
    value = _circular_series(rest >> (wide - bits), bits, odd=quarter % 2 == 0)
    value = -value if quarter % 4 >= 2 else value
    return value - _ERROR, value + _ERROR, -bits


def _rsqrt(x: float, precision: int) -> Enclosure:
    numerator, denominator = x.as_integer_ratio()
    # One of the two factors is a power of two, so this is an integer times an even power of two.
    exponent = 1 - denominator.bit_length()
    if exponent % 2:
        numerator, exponent = 2 * numerator, exponent - 1
    bits = precision + numerator.bit_length()
    root = isqrt((1 << 2 * bits) // numerator)
    exact = root * root * numerator == 1 << 2 * bits
    return root, root if exact else root + 1, -bits - exponent // 2


ENCLOSURES: dict[str, Callable[[float, int], Enclosure]] = {
    "exp": _exp,
    "log": _log,
    "sin": partial(_circular, quarters=0),
    "cos": partial(_circular, quarters=1),
    "rsqrt": _rsqrt,
}
"""Enclosures of each function of a number, to about so many bits of the value or after its binary point."""


def _exp_series(x: int, bits: int) -> int:
    term = total = 1 << bits
    i = 0
    while term:
        i += 1
        term = (term * x >> bits) // i
        total += term
    return total


def _circular_series(x: int, bits: int, odd: bool) -> int:
    """The sine if odd, else the cosine, of x * 2**-bits from 0 to pi / 2."""
    square = x * x >> bits
    i = int(odd)
    term = total = x if odd else 1 << bits
    while term:
        term = (term * square >> bits) // ((i + 1) * (i + 2))
        i += 2
        total += -term if i & 2 else term
    return total


def _odd_series(x: int, bits: int) -> int:
    """The inverse hyperbolic tangent."""
    square = x * x >> bits
    sign = -1 if x < 0 else 1
    power = total = abs(x)
    i = 1
    while power:
        power = power * square >> bits
        i += 2
        total += power // i
    return sign * total


@lru_cache(maxsize=8)
def _ln2(bits: int) -> int:
    wide = bits + _GUARD
    return 2 * _odd_series((1 << wide) // 3, wide) >> _GUARD


@lru_cache(maxsize=512)
def _pi(bits: int) -> int:
    """Pi by Machin's formula."""
    wide = bits + _GUARD
    return 4 * (4 * _inverse_tangent(5, wide) - _inverse_tangent(239, wide)) >> _GUARD


def _inverse_tangent(divisor: int, bits: int) -> int:
    """The inverse tangent of 1 / divisor."""
    power = total = (1 << bits) // divisor
    i = 1
    while power:
        power //= divisor * divisor
        i += 2
        total += -(power // i) if i & 2 else power // i
    return total
