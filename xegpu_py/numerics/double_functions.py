"""Functions of float64 that are formulas of its arithmetic and of integers, written once for arrays and ops of the IR.

vISA has division and square root of f64 only. Each formula computes with `Number`s, as those of f32 do
(`numerics.expansions`), and with `Bits`, the 64-bit patterns of numbers. Each op rounds once, to f64. Coefficients are
minimax fits of the named functions. docs/numerics.md has the measured errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics import expansions
from xegpu_py.numerics.elementary import div, sqrt
from xegpu_py.numerics.expansions import Number
from xegpu_py.numerics.formats import DF, Array, canonical
from xegpu_py.numerics.rounding import fma, two_sum

Pair = tuple[Number, Number]
"""A number as the sum of two, of which the second is at most half a unit in the last place of the first."""


class Bits(Number):
    """A pattern of 64 bits, or an integer of so many, as values of the IR or an array of int64."""

    def __add__(self, other: Any) -> Bits:
        return self._integer("arith.addi", other)

    def __sub__(self, other: Any) -> Bits:
        return self._integer("arith.subi", other)

    def __mul__(self, other: Any) -> Bits:
        return self._integer("arith.muli", other)

    def __and__(self, other: Any) -> Bits:
        return self._integer("arith.andi", other)

    def __or__(self, other: Any) -> Bits:
        return self._integer("arith.ori", other)

    def __lshift__(self, count: Any) -> Bits:
        return self._integer("arith.shli", count)

    def __rshift__(self, count: Any) -> Bits:
        """The logical shift, which fills with zeros."""
        return self._integer("arith.shrui", count)

    def shift_signed(self, count: int) -> Bits:
        """The arithmetic shift to the right."""
        return self._integer("arith.shrsi", count)

    def below(self, other: Any) -> Number:
        """Whether this is less than another, both without sign."""
        return Number(self._integer("ult", other).value, self.apply)

    def is_set(self, bit: int) -> Number:
        """Whether a bit is set."""
        return Number((self & (1 << bit))._integer("ne", 0).value, self.apply)

    def number(self) -> Number:
        """The number of this pattern."""
        return Number(self.apply("number", self.value), self.apply)

    def choose_between(self, truth: Number, other: Any) -> Bits:
        """This where a truth value holds, else another."""
        return Bits(truth.of("arith.select", self, other).value, self.apply)

    def _integer(self, name: str, other: Any) -> Bits:
        value = other.value if isinstance(other, Number) else int(other)
        return Bits(self.apply(name, self.value, value), self.apply)


def _bits(x: Number) -> Bits:
    return Bits(x.apply("bits", x.value), x.apply)


# Whole numbers.

_WHOLE = 1.5 * 2.0**52
"""A number whose unit in the last place is 1; sums with it are rounded to whole numbers."""

_WHOLE_BITS = 0x4338000000000000

_UNSIGNED_BITS = 0x4330000000000000
"""The pattern of 2^52."""


def _nearest(x: Number) -> Number:
    """The nearest whole number of a number below 2^51."""
    return (x + _WHOLE) - _WHOLE


def _of_signed(n: Bits) -> Number:
    """The number of an integer from -2^51 to 2^51."""
    return (n + _WHOLE_BITS).number() - _WHOLE


def _of_unsigned(n: Bits) -> Number:
    """The number of an integer from 0 to 2^52."""
    return (n | _UNSIGNED_BITS).number() - 2.0**52


def _power_of_two(k: Number) -> Number:
    """2^k for a whole number k from -1022 to 1023."""
    return ((_bits(k + _WHOLE) + 1023) << 52).number()


def _scaled(x: Number, k: Number) -> Number:
    """x times 2^k for a whole number k up to 2000, rounded once if x is from 1/2 to 2: the first step is exact."""
    half = _nearest(k * 0.5)
    return (x * _power_of_two(half)) * _power_of_two(k - half)


# Sums and products of two numbers with their rounding errors.


def _sum(a: Number, b: Number) -> Pair:
    """The sum of a number and one that is not larger, and its error."""
    total = a + b
    return total, b - (total - a)


def product(a: Number, b: Number | float) -> Pair:
    """A product and its rounding error."""
    total = a * b
    return total, a.of("math.fma", b, 0.0 - total)


def times(x: Pair, high: float, low: float) -> Pair:
    """A pair times a constant that is given as a pair."""
    high_part, error = product(x[0], high)
    return high_part, error + x[0].of("math.fma", low, x[1] * high)


# Powers and logarithms.

_LN2 = (0.6931471805601177, -1.7239444525614835e-13)
"""ln(2) as a number of 40 bits, whose product with an exponent is exact, and the rest."""

_LOG10_2 = (0.3010299956640665, -8.532344317057107e-14)
_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)

_EXP = (
    1.608662795678037e-10, 2.0918137737642736e-09, 2.505207109429355e-08, 2.75572632790885e-07, 2.755731924721873e-06,
    2.4801587336442236e-05, 0.00019841269841263298, 0.0013888888888887919, 0.008333333333333333, 0.04166666666666668,
    0.16666666666666666, 0.5,
)  # fmt: skip
"""(exp(r) - 1 - r) / r^2 up to ln(2) / 2."""

_EXP2 = (
    1.3716962392737587e-12, 2.5733568308756892e-11, 4.4455303091051067e-10, 7.054894386348348e-09,
    1.0178086021185474e-07, 1.3215486815999978e-06, 1.5252733804051129e-05, 0.00015403530393362755,
    0.0013333558146428445, 0.009618129107628484, 0.05550410866482158, 0.24022650695910072, 0.6931471805599453,
)  # fmt: skip
"""(2^r - 1) / r up to 1/2."""

_LOG = (
    0.1310072138350349, 0.13267418596474884, 0.15386290534658992, 0.181817947008978, 0.2222222240054776,
    0.2857142857076445, 0.4000000000000094, 0.6666666666666666,
)  # fmt: skip
"""(ln((1 + s) / (1 - s)) - 2 s) / s^3 as a polynomial of s^2 for s up to (sqrt(2) - 1) / (sqrt(2) + 1)."""

_LOG_BEYOND = (
    0.11735818855512968, 0.11705021567538627, 0.13334850282547114, 0.1538459412012637, 0.18181818343316125,
    0.2222222222162076, 0.28571428571429425, 0.4,
)  # fmt: skip
"""The terms of `_LOG` behind the first, divided by s^2."""

_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD

_LEAST_NORMAL = 2.0**-1022


def _clamped(x: Number, bound: float) -> Number:
    return x.of("arith.minimumf", bound).of("arith.maximumf", -bound)


def _exp_parts(x: Number) -> Pair:
    """A whole number k, and exp(x - k ln(2)) - 1."""
    k = _nearest(x * _LOG2_E[0])
    r = k.of("math.fma", -_LN2[1], k.of("math.fma", -_LN2[0], x))
    return k, (r * r).of("math.fma", r.polynomial(_EXP), r)


def exp(x: Number) -> Number:
    """2^k exp(r) with r = x - k ln(2)."""
    return _exp_times(x, 0.0)


def _exp_times(x: Number, shift: float) -> Number:
    """exp(x) times 2^shift."""
    k, part = _exp_parts(_clamped(x, 800.0))
    return _scaled(part + 1.0, k + shift)


def exp2(x: Number) -> Number:
    """2^k 2^r with r = x - k."""
    bounded = _clamped(x, 1100.0)
    k = _nearest(bounded)
    return _exp2_of(k, bounded - k)


def _exp2_of(k: Number, r: Number) -> Number:
    return _scaled(r * r.polynomial(_EXP2) + 1.0, k)


def expm1(x: Number) -> Number:
    """2^k (exp(r) - 1) + (2^k - 1) with r = x - k ln(2); exp(x) where k is 60 or more."""
    k, part = _exp_parts(_clamped(x, 800.0))
    power = _power_of_two(_clamped(k, 64.0))
    found = k.same(0.0).choose(part, power.of("math.fma", part, power - 1.0))
    return (k < 60.0).choose(found, _scaled(part + 1.0, k)).signed(x)


def _split(x: Number) -> Pair:
    """k and f of x = 2^k (1 + f), with f from sqrt(1/2) - 1 to sqrt(2) - 1, for positive numbers."""
    tiny = x < _LEAST_NORMAL
    pattern = _bits(tiny.choose(x * 2.0**54, x))
    exponent = (pattern - _ROOT_HALF_BITS).shift_signed(52)
    k = _of_signed(exponent) - tiny.choose(54.0, 0.0)
    return k, (pattern - (exponent << 52)).number() - 1.0


def _of_positive(x: Number, found: Number) -> Number:
    """A logarithm of x, with that of zero, infinity, NaN and negative numbers."""
    found = x.same(0.0).choose(-math.inf, (x < math.inf).choose(found, x + x))
    return (x < 0.0).choose(math.nan, found)


def log(x: Number) -> Number:
    """k ln(2) + ln(1 + f), with ln(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + R)) and s = f / (2 + f)."""
    k, f = _split(x)
    s = f / (f + 2.0)
    square, half = s * s, (f * 0.5) * f
    rest = s * (half + square * square.polynomial(_LOG))
    found = k * _LN2[0] - ((half - (rest + k * _LN2[1])) - f)
    return _of_positive(x, found)


def log1p(x: Number) -> Number:
    """ln(u) + c / u with u = 1 + x and c what the sum lost."""
    u = x + 1.0
    found = log(u) + (x - (u - 1.0)) / u
    found = ((x > -1.0) & (x < math.inf)).choose(found, log(u))
    return x.same(0.0).choose(x, found)


def _log_parts(x: Number) -> tuple[Number, Pair]:
    """k, and ln(1 + f) with an error of 2^-64 of it: 2 s + 2/3 s^3 as pairs, and the terms behind them."""
    k, f = _split(x)
    divisor = f + 2.0
    s = f / divisor
    rest = (0.0 - s).of("math.fma", divisor, f) - s * (f - (divisor - 2.0))
    low = rest / divisor
    square, error = product(s, s)
    third = times((square, error + (s + s) * low), *_TWO_THIRDS)
    cube, error = product(s, third[0])
    error = error + (s * third[1] + low * third[0])
    beyond = (s * square) * (square * square.polynomial(_LOG_BEYOND))
    high, lost = _sum(s + s, cube)
    return k, _sum(high, ((lost + (low + low)) + error) + beyond)


def _log2_parts(x: Number) -> Pair:
    k, parts = _log_parts(x)
    fraction, error = times(parts, *_LOG2_E)
    high, lost = _sum(k, fraction)
    return high, lost + error


def log2(x: Number) -> Number:
    """k + ln(1 + f) log2(e), the second in two numbers."""
    high, low = _log2_parts(x)
    return _of_positive(x, high + low)


def log10(x: Number) -> Number:
    """k log10(2) + ln(1 + f) log10(e), both in two numbers."""
    k, parts = _log_parts(x)
    fraction, error = times(parts, *_LOG10_E)
    high, lost = _sum(k * _LOG10_2[0], fraction)
    return _of_positive(x, high + (k * _LOG10_2[1] + (lost + error)))


def powf(x: Number, y: Number) -> Number:
    """2 to the power y log2(|x|), both in two numbers, with the sign and the special values of C's pow."""
    size = abs(x)
    high, low = _log2_parts(size)
    exponent, error = product(y, high)
    bounded = _clamped(exponent, 1100.0)
    k = _nearest(bounded)
    fraction = (bounded - k) + (abs(exponent) < 1100.0).choose(error + y * low, 0.0)
    found = _exp2_of(k, fraction)
    found = size.same(0.0).choose((y < 0.0).choose(math.inf, 0.0), found)
    infinite = (y < 0.0).choose(0.0, math.inf)
    found = (size.same(math.inf) | (abs(y).same(math.inf) & (size > 1.0))).choose(infinite, found)
    found = (abs(y).same(math.inf) & (size < 1.0)).choose((y < 0.0).choose(math.inf, 0.0), found)
    found = x.same(x).choose(y.same(y).choose(found, y), x + x)
    return expansions.with_rules_of_powers(x, y, found)


# Functions of hyperbolas.


def tanh(x: Number) -> Number:
    """e / (e + 2) with e = expm1(2 |x|), or 1 - 2 / (e + 2) for |x| from 1/2 on, and the sign of x."""
    e = expm1(abs(x) * 2.0)
    return (abs(x) < 0.5).choose(e / (e + 2.0), 1.0 - 2.0 / (e + 2.0)).signed(x)


def _half_power(size: Number) -> Number:
    return _exp_times(size, -1.0)


# Circular functions.

_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)

_TWO_OVER_PI = (
    0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
"""2^64 zeros and the first 1,216 bits of 2 / pi."""

_SIN = (
    -7.586636882825159e-13, 1.6058530596645953e-10, -2.50521062259944e-08, 2.755731921932058e-06,
    -0.0001984126984126504, 0.008333333333333331, -0.16666666666666666,
)  # fmt: skip
"""(sin(r) / r - 1) / r^2 as a polynomial of r^2 up to pi/4."""

_COS = (
    4.745838412531023e-14, -1.1470460319209511e-11, 2.0876755787492604e-09, -2.755731922139249e-07,
    2.4801587301584632e-05, -0.0013888888888888887, 0.041666666666666664,
)  # fmt: skip
"""(cos(r) - 1 + r^2 / 2) / r^4 as a polynomial of r^2 up to pi/4."""

_LOW_HALF = 0xFFFFFFFF


def _high_product(m: Bits, n: Bits) -> Bits:
    """The bits from 64 on of the product of an integer below 2^53 and one of 64 bits."""
    low, high, other_low, other_high = m & _LOW_HALF, m >> 32, n & _LOW_HALF, n >> 32
    middle = high * other_low + ((low * other_low) >> 32)
    other = low * other_high + (middle & _LOW_HALF)
    return high * other_high + (middle >> 32) + (other >> 32)


def _window(start: Bits) -> list[Bits]:
    """192 bits of `_TWO_OVER_PI` from a bit on, as three integers from the highest on."""
    index, shift = start >> 6, start & 63
    words: list[Any] = [Bits(_as_signed(word), start.apply) for word in _TWO_OVER_PI]
    for bit, count in ((4, 19), (3, 11), (2, 7), (1, 5), (0, 4)):
        far, step = index.is_set(bit), 1 << bit
        words = [
            words[n + step].choose_between(far, words[n]) if n + step < len(words) else words[n] for n in range(count)
        ]
    return [(words[n] << shift) | ((words[n + 1] >> 1) >> (Bits(63, start.apply) - shift)) for n in range(3)]


def _as_signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _reduced(size: Number) -> tuple[Pair, Bits]:
    """The rest of a positive number by pi/2, at most pi/4, and the quotient's two lowest bits.

    The number is m 2^e with m below 2^53, and m is multiplied by those 192 bits of 2 / pi that change the quotient's
    two lowest bits and its fraction (Payne and Hanek).
    """
    is_large = size > math.pi / 4
    pattern = _bits((is_large & (size < math.inf)).choose(size, 1.0))
    m = (pattern & ((1 << 52) - 1)) | 1 << 52
    first, second, third = _window((pattern >> 52) - 1013)
    middle = m * second
    low = middle + _high_product(m, third)
    one = Bits(low.below(middle).of("arith.select", Bits(1, m.apply), Bits(0, m.apply)).value, m.apply)
    high = m * first + _high_product(m, second) + one
    quotient = (high + (1 << 61)) >> 62
    rest = high - (quotient << 62)
    # Four parts of the fraction of 32 bits each, the first with its sign.
    total, lost = _sum(_of_signed(rest.shift_signed(32)) * 2.0**-30, _of_unsigned(rest & _LOW_HALF) * 2.0**-62)
    total, more = two_sum(total, _of_unsigned(low >> 32) * 2.0**-94)
    fraction = _sum(total, (lost + more) + _of_unsigned(low & _LOW_HALF) * 2.0**-126)
    angle, error = times(fraction, *_HALF_PI)
    zero = Bits(0, m.apply)
    return (is_large.choose(angle, size), is_large.choose(error, 0.0)), quotient.choose_between(is_large, zero)


def sin_cos_of(angle: Pair) -> tuple[Number, Number]:
    """The sine and the cosine of an angle up to pi/4, in two numbers."""
    r, low = angle
    square = r * r
    half = square * 0.5
    sine = r + (r * square).of("math.fma", square.polynomial(_SIN), low * (1.0 - half))
    whole = 1.0 - half
    return sine, whole + (((1.0 - whole) - half) + ((square * square) * square.polynomial(_COS) - r * low))


def sin_cos(x: Number) -> tuple[Number, Number]:
    """Both functions."""
    size = abs(x)
    angle, quotient = _reduced(size)
    sin_of, cos_of = sin_cos_of(angle)
    swapped = quotient.is_set(0)
    sine, cosine = swapped.choose(cos_of, sin_of), swapped.choose(sin_of, cos_of)
    sine = sine * quotient.is_set(1).choose(-1.0, 1.0)
    cosine = cosine * (quotient + 1).is_set(1).choose(-1.0, 1.0)
    finite = size < math.inf
    return finite.choose(sine * x.after("math.copysign", 1.0), math.nan), finite.choose(cosine, math.nan)


def sin(x: Number) -> Number:
    """A polynomial of the rest by pi/2, or that of the cosine, by the quotient."""
    return sin_cos(x)[0]


def cos(x: Number) -> Number:
    """A polynomial of the rest by pi/2, or that of the sine, by the quotient."""
    return sin_cos(x)[1]


def tan(x: Number) -> Number:
    """sin(x) / cos(x)."""
    sine, cosine = sin_cos(x)
    return sine / cosine


_ATAN = (
    0.01195717675860064, -0.027272250764406647, 0.037233133200806595, -0.042942356540364414, 0.047546154403256914,
    -0.052624532717064215, 0.05882304580983546, -0.06666664341568992, 0.07692307616150786, -0.09090909089288615,
    0.11111111111090412, -0.14285714285714146, 0.19999999999999998, -0.3333333333333333,
)  # fmt: skip
"""(atan(t) / t - 1) / t^2 as a polynomial of t^2 for t below tan(pi/8)."""

_ASIN = (
    0.02963502626354855, -0.019277545928584557, 0.019579201619744684, 0.0030350071727267623, 0.009322101501082774,
    0.00962140274734483, 0.011566511821890942, 0.013963775787848137, 0.017352816768546473, 0.022372157435623815,
    0.030381944475693704, 0.04464285714255019, 0.07500000000000119, 0.16666666666666666,
)  # fmt: skip
"""(asin(t) / t - 1) / t^2 as a polynomial of t^2 for t up to 1/2."""


def atan(x: Number) -> Number:
    """A polynomial of t, plus pi/4 where |x| > tan(pi/8) and t = (|x| - 1) / (|x| + 1), or pi/2 where
    |x| > 1 / tan(pi/8) and t = -1 / |x|; the sign of x."""
    size = abs(x)
    far, near = size > 1 / math.tan(math.pi / 8), size > math.tan(math.pi / 8)
    t = far.choose(-1.0, near.choose(size - 1.0, size)) / far.choose(size, near.choose(size + 1.0, 1.0))
    square = t * t
    high, low = (far.choose(part, near.choose(part / 2, 0.0)) for part in _HALF_PI)
    return (high + (t + ((t * square) * square.polynomial(_ATAN) + low))).signed(x)


def atan2(y: Number, x: Number) -> Number:
    """atan(|y| / |x|), less than pi by that where x has the sign bit set; the sign of y."""
    return expansions.angle_of_point(y, x, atan, 2 * _HALF_PI[1])


def _asin(size: Number) -> Number:
    """asin of numbers from 0 to 1/2."""
    square = size * size
    return size + (size * square) * square.polynomial(_ASIN)


def asin(x: Number) -> Number:
    """A polynomial up to 1/2; above, pi/2 - 2 asin(sqrt((1 - |x|) / 2)); the sign of x."""
    large, angle = expansions.folded_angle(abs(x), _asin)
    high, low = _HALF_PI
    return large.choose(high - ((angle + angle) - low), angle).signed(x)


def acos(x: Number) -> Number:
    """pi/2 - asin(x) for |x| up to 1/2; above, 2 asin(sqrt((1 - |x|) / 2)), subtracted from pi where x is negative."""
    large, angle = expansions.folded_angle(abs(x), _asin)
    twice, (high, low) = angle + angle, _HALF_PI
    outer = (x < 0.0).choose(2 * high - (twice - 2 * low), twice)
    return large.choose(outer, high - (angle.signed(x) - low))


# The error function.

_ERF = (
    2.8067128195611264e-13, -6.1967364287877e-12, 9.323723518153027e-11, -1.2277734486795524e-09,
    1.4806027146128752e-08, -1.636576864883207e-07, 1.6462110782018636e-06, -1.4925650236967501e-05,
    0.00012055332978879483, -0.0008548327023403001, 0.005223977625441674, -0.026866170645131218, 0.11283791670955126,
    -0.37612638903183754, 1.1283791670955126,
)  # fmt: skip
"""erf(x) / x as a polynomial of x^2 up to 1."""

_ERFC = (
    -4.43519310131689e-09, -1.0598900834367918e-08, 3.4557563234277316e-08, 9.861056795646864e-08,
    -1.3474041666726082e-07, -6.144459853141044e-07, 3.5299873592634415e-07, 3.471495693065036e-06,
    -7.301949889736727e-07, -2.0100328847140068e-05, 4.949212902722556e-06, 0.00012509931602205424,
    -0.00010515976803066032, -0.0007798322697371908, 0.0018886903573540564, 0.0025293918161772644,
    -0.023770514918603526, 0.068308027343952, -0.11927366341530936, 0.12964515870276186, -0.047562294353450725,
    -0.1356211061245812, 1.2530080582697296,
)  # fmt: skip
"""erfc(x) exp(x^2) (1 + 2 x) as a polynomial of (x - 3) / (x + 3) from 1/2 to 27.5."""


def scaled_erfc(size: Number) -> Number:
    """erfc(x) exp(x^2) from 1/2 to 27.5."""
    return ((size - 3.0) / (size + 3.0)).polynomial(_ERFC) / (size + size + 1.0)


def _erfc_of(size: Number) -> Number:
    """erfc from 1/2 on."""
    bounded = size.of("arith.minimumf", 27.5)
    square, error = product(bounded, bounded)
    power = exp(0.0 - square)
    return (power - power * error) * scaled_erfc(bounded)


def _small_erf(x: Number) -> Number:
    return x * (x * x).polynomial(_ERF)


def erf(x: Number) -> Number:
    """A polynomial up to 1; above, 1 - erfc(|x|), and the sign of x."""
    size = abs(x)
    return (size < 1.0).choose(_small_erf(x), (1.0 - _erfc_of(size)).signed(x))


def erfc(x: Number) -> Number:
    """1 - erf(x) for |x| < 1/2; else exp(-x^2) times a polynomial, subtracted from 2 where x is negative."""
    tail = _erfc_of(abs(x))
    return (abs(x) < 0.5).choose(1.0 - _small_erf(x), (x < 0.0).choose(2.0 - tail, tail))


_FORMULAS: tuple[Callable[..., Number], ...] = (
    exp, exp2, expm1, log, log1p, log2, log10, powf, tanh, sin, cos, tan, atan, atan2, asin, acos, erf, erfc,
    expansions.atanh, expansions.cbrt,
)  # fmt: skip

DOUBLE_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{f"math.{f.__name__}": f for f in _FORMULAS},
    "math.sinh": partial(expansions.sinh, half_power=_half_power),
    "math.cosh": partial(expansions.cosh, half_power=_half_power),
    "math.asinh": partial(expansions.asinh, huge=2.0**28),
    "math.acosh": partial(expansions.acosh, huge=2.0**28),
}
"""The formulas of functions of f64."""


def apply_formula(formula: Callable[..., Number], apply: expansions.Apply, *operands: Any) -> Any:
    """The value of a formula of f64; NaN results are canonical.

    Args:
        apply: applies ops of arith and math to f64 values and to integers of 64 bits, which it makes of Python's floats
            and ints. "bits" and "number" convert between the two; "ult" and "ne" compare integers. Functions with
            formulas of their own need not be known to it.
        operands: the values of the numbers.
    """

    def nested(op: str, *values: Any) -> Any:
        if op not in DOUBLE_FUNCTIONS:
            return apply(op, *values)
        return DOUBLE_FUNCTIONS[op](*(Number(v, nested) for v in values)).value

    result = formula(*(Number(v, nested) for v in operands))
    return result.same(result).choose(result, math.nan).value


_SIGN = np.uint64(1 << 63)

_OPS: dict[str, Callable[..., Array]] = {
    "arith.addf": lambda a, b: canonical(np.array(a + b), DF),
    "arith.subf": lambda a, b: canonical(np.array(a - b), DF),
    "arith.mulf": lambda a, b: canonical(np.array(a * b), DF),
    "arith.divf": lambda a, b: div(a, b, "df"),
    "arith.minimumf": np.minimum,
    "arith.maximumf": np.maximum,
    "arith.select": np.where,
    "math.fma": lambda a, b, c: fma(a, b, c, "df"),
    "math.absf": np.abs,
    "math.copysign": lambda a, b: ((_unsigned(a) & ~_SIGN) | (_unsigned(b) & _SIGN)).view(np.float64),
    "math.sqrt": lambda a: sqrt(a, "df"),
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "signbit": np.signbit,
    "oeq": np.equal,
    "une": np.not_equal,
    "olt": np.less,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "not": np.logical_not,
    "bits": lambda a: a.view(np.int64),
    "number": lambda a: a.view(np.float64),
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": lambda a, b: (_unsigned(a) >> _unsigned(b)).view(np.int64),
    "ult": lambda a, b: _unsigned(a) < _unsigned(b),
    "ne": np.not_equal,
}


def _unsigned(a: Array) -> Array:
    return a.view(np.uint64)


def _on_arrays(name: str, *operands: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(_OPS[name](*(_array(v) for v in operands)))


def _array(value: Any) -> Array:
    return np.asarray(value, np.int64 if type(value) is int else None)


def evaluate(name: str, *operands: npt.ArrayLike) -> Array:
    """A function of `DOUBLE_FUNCTIONS` of float64 arrays of one shape; NaN results are canonical.

    Args:
        name: the MLIR op, such as "math.sinh".
    """
    return evaluate_formula(DOUBLE_FUNCTIONS[name], *operands)


def evaluate_formula(formula: Callable[..., Number], *operands: npt.ArrayLike) -> Array:
    """A formula of float64 arrays of one shape; NaN results are canonical."""
    return np.asarray(apply_formula(formula, _on_arrays, *(np.asarray(v, np.float64) for v in operands)))
