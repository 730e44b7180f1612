"""Correctly rounded roots, powers, sines and quotients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from math import frexp, isqrt

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.formats import TYPES, Array, Format, as_format, bits_of, canonical
from xegpu_py.numerics.rounding import convert, narrow_bf, narrow_hf, two_product, widen_hf

# Reciprocals, roots, base-2 exponentials and logarithms, sines, quotients and integral values, correctly rounded.
#
# Sources: vISA's INV.md, SQRT.md, RSQRT.md, EXP.md, LOG.md, SIN.md, COS.md, DIV.md and RNDD.md to RNDZ.md name the
# functions, but do not define their rounding; IEEE 754-2019, 9.2 defines the special values.

_FLOATS = ("hf", "bf", "f", "df")

_NARROW = ("hf", "bf", "f")

# IEEE 754 defines these as correctly rounded in f32 and f64. Rounding their f64 results again to hf or bf equals
# rounding once, because no quotient or root of 11-bit numbers is that close to a midpoint of two hf or bf numbers.
_IEEE: dict[str, Callable[[Array], Array]] = {
    "inv": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "round_down": np.floor,
    "round_up": np.ceil,
    "round_even": np.rint,
    "round_zero": np.trunc,
}

# f64 estimates of the exact functions. Their relative error is below _BOUND wherever the exact value is in f32's range;
# that of the libraries that numpy uses is below a thirtieth of _BOUND.
_ESTIMATES: dict[str, Callable[[Array], Array]] = {
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "exp": np.exp2,
    "log": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigm": lambda x: 1.0 / (1.0 + np.exp(-x)),
}

_BOUND = 2.0**-45

_BLOCK = 1 << 13


def inv(x: npt.ArrayLike, fmt: str) -> Array:
    """Reciprocals `1 / x`, rounded to nearest even (INV.md).

    Zeros give infinities of their sign.

    Args:
        x: numbers of any shape in the storage type of `fmt`, or its unsigned bit patterns.
        fmt: vISA's name of their type: hf, bf, f or df.

    Returns:
        An array of the same shape in the storage type of `fmt`; NaNs are canonical.

    Raises:
        ValueError: if `fmt` is none of these.
        TypeError: if `x` has another type.
    """
    return _unary("inv", x, fmt, _FLOATS)


def sqrt(x: npt.ArrayLike, fmt: str) -> Array:
    """Square roots, rounded to nearest even (SQRT.md).

    Negative zero gives itself, negative numbers give NaN. Arguments, result and errors are those of `inv`.
    """
    return _unary("sqrt", x, fmt, _FLOATS)


def rsqrt(x: npt.ArrayLike, fmt: str) -> Array:
    """Reciprocal square roots `1 / sqrt(x)`, rounded once to nearest even (RSQRT.md).

    Zeros give infinities of their sign, negative numbers give NaN. Arguments, result and errors are those of `inv`.
    """
    return _unary("rsqrt", x, fmt, _FLOATS)


def exp(x: npt.ArrayLike, fmt: str) -> Array:
    """Powers of two `2 ** x`, rounded to nearest even (EXP.md: base 2).

    Subnormal results are kept; overflow gives infinity. Arguments, result and errors are those of `inv`, without df.
    """
    return _unary("exp", x, fmt, _NARROW)


def log(x: npt.ArrayLike, fmt: str) -> Array:
    """Base-2 logarithms, rounded to nearest even (LOG.md: base 2).

    Zeros give negative infinity, negative numbers NaN, and one gives positive zero. Arguments, result and errors are
    those of `inv`, without df.
    """
    return _unary("log", x, fmt, _NARROW)


def sin(x: npt.ArrayLike, fmt: str) -> Array:
    """Sines of angles in radians of any magnitude, rounded to nearest even (SIN.md).

    Zeros give themselves, infinities NaN. Arguments, result and errors are those of `inv`, without df.
    """
    return _unary("sin", x, fmt, _NARROW)


def cos(x: npt.ArrayLike, fmt: str) -> Array:
    """Cosines of angles in radians of any magnitude, rounded to nearest even (COS.md).

    Infinities give NaN. Arguments, result and errors are those of `inv`, without df.
    """
    return _unary("cos", x, fmt, _NARROW)


def tanh(x: npt.ArrayLike, fmt: str) -> Array:
    """Hyperbolic tangents, rounded to nearest even; no document of vISA states an accuracy.

    Zeros give themselves. Arguments, result and errors are those of `inv`, without df.
    """
    return _unary("tanh", x, fmt, _NARROW)


def sigm(x: npt.ArrayLike, fmt: str) -> Array:
    """The logistic function `1 / (1 + e ** -x)`, rounded to nearest even; no document of vISA states an accuracy.

    Arguments, result and errors are those of `inv`, without df.
    """
    return _unary("sigm", x, fmt, _NARROW)


def round_down(x: npt.ArrayLike, fmt: str) -> Array:
    """The greatest integral numbers not above `x` (RNDD.md).

    A zero result has the sign of `x`; infinities are unchanged. Arguments, result and errors are those of `inv`.
    """
    return _unary("round_down", x, fmt, _FLOATS)


def round_up(x: npt.ArrayLike, fmt: str) -> Array:
    """The least integral numbers not below `x` (RNDU.md). Otherwise as `round_down`."""
    return _unary("round_up", x, fmt, _FLOATS)


def round_even(x: npt.ArrayLike, fmt: str) -> Array:
    """The integral numbers nearest to `x`; ties go to even (RNDE.md). Otherwise as `round_down`."""
    return _unary("round_even", x, fmt, _FLOATS)


def round_zero(x: npt.ArrayLike, fmt: str) -> Array:
    """The numbers `x` rounded to integral numbers toward zero (RNDZ.md). Otherwise as `round_down`."""
    return _unary("round_zero", x, fmt, _FLOATS)


def div(a: npt.ArrayLike, b: npt.ArrayLike, fmt: str) -> Array:
    """Quotients `a / b`, rounded to nearest even, as DIVM defines them (DIV.md).

    Args:
        a: dividends in the storage type of `fmt`, or its unsigned bit patterns.
        b: divisors, likewise; the shapes are broadcast.
        fmt: vISA's name of their type: hf, bf, f or df.

    Returns:
        An array of the broadcast shape, in the storage type of `fmt`; NaNs are canonical.

    Raises:
        ValueError: if `fmt` is none of these, or the shapes do not broadcast.
        TypeError: if an operand has another type.
    """
    form = _form(fmt, _FLOATS)
    dividends, divisors = np.broadcast_arrays(as_format(a, form, "a"), as_format(b, form, "b"))
    x, y = dividends.reshape(-1), divisors.reshape(-1)
    with np.errstate(all="ignore"):
        if form.bits > 16:
            return canonical(x / y, form).reshape(dividends.shape)
        result = np.empty(x.shape, form.dtype)
        for start in range(0, x.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block] = _short_quotients(x[block], y[block], form)
    return result.reshape(dividends.shape)


def _short_quotients(x: Array, y: Array, form: Format) -> Array:
    # f32 has more than twice the bits of hf and bf, so rounding a quotient twice equals rounding once.
    if form.name == "hf":
        return narrow_hf(widen_hf(x) / widen_hf(y))
    return narrow_bf(x.astype(np.float32) / y.astype(np.float32))


def minimum_number(a: Array, b: Array) -> Array:
    """The lesser floats; a number is preferred to a NaN, and -0 is less than +0 (IEEE 754-2019, 9.6)."""
    return np.where((a < b) | ((a == b) & np.signbit(a)) | np.isnan(b), a, b)


def maximum_number(a: Array, b: Array) -> Array:
    """The greater floats; a number is preferred to a NaN, and -0 is less than +0 (IEEE 754-2019, 9.6)."""
    return np.where((a > b) | ((a == b) & ~np.signbit(a)) | np.isnan(b), a, b)


def _form(fmt: str, names: tuple[str, ...]) -> Format:
    if fmt not in names:
        raise ValueError(f"'fmt' must be one of {', '.join(names)}, but got {fmt!r}")
    return TYPES[fmt]


def _unary(name: str, x: npt.ArrayLike, fmt: str, names: tuple[str, ...]) -> Array:
    form = _form(fmt, names)
    values = as_format(x, form, "x")
    flat = values.reshape(-1)
    if form.bits == 16:
        result = table(name, fmt)[bits_of(flat)]
    else:
        with np.errstate(all="ignore"):
            result = _computed(name, flat, form)
    return result.reshape(values.shape)


@cache
def table(name: str, fmt: str) -> Array:
    """The function's values for all 65,536 patterns of a 16-bit format."""
    form = TYPES[fmt]
    patterns = np.arange(1 << 16, dtype=np.uint16).view(form.dtype)
    with np.errstate(all="ignore"):
        return _computed(name, patterns, form)


def _computed(name: str, x: Array, form: Format) -> Array:
    if name in _IEEE:
        values = x if form.bits > 16 else x.astype(np.float64)
        return canonical(_narrowed(_IEEE[name](values), form), form)
    step = _rsqrt_df if form.name == "df" else _near
    result = np.empty(x.shape, form.dtype)
    for start in range(0, x.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        result[block] = canonical(step(name, x[block], form), form)
    return result


def _narrowed(values: Array, form: Format) -> Array:
    """Numbers rounded to the format, unless they are in it."""
    if values.dtype == form.dtype:
        return values
    return values.astype(form.dtype) if form.name == "f" else convert(values, "df", form.name)


def _near(name: str, x: Array, form: Format) -> Array:
    """One of the estimated functions, correctly rounded."""
    estimate = _ESTIMATES[name](x.astype(np.float64))
    result = _narrowed(estimate * (1 - _BOUND), form)
    other = _narrowed(estimate * (1 + _BOUND), form)
    return _decided(name, x, result, bits_of(result) != bits_of(other), form)


def _rsqrt_df(name: str, x: Array, form: Format) -> Array:
    """Reciprocal square roots in f64, rounded from values of twice its precision."""
    special = ~((x > 0) & (x < np.inf))
    fraction, exponent = np.frexp(np.where(special, 1.0, x))
    odd = exponent & 1
    scaled = np.ldexp(fraction, odd)
    root = 1.0 / np.sqrt(scaled)
    # One step of Newton's method. Its correction, of about 2**-52, is accurate to 2**-103.
    square, square_error = two_product(root, root)
    product, product_error = two_product(scaled, square)
    step = root * (((1.0 - product) - product_error) - scaled * square_error) / 2
    low, high = root + (step - 2.0**-95), root + (step + 2.0**-95)
    result = np.where(special, 1.0 / np.sqrt(x), np.ldexp(low, -((exponent - odd) >> 1)))
    return _decided(name, x, result, ~special & (low != high), form)


def _decided(name: str, x: Array, result: Array, doubtful: Array, form: Format) -> Array:
    """The results; the doubtful ones are computed with more precision."""
    at = np.flatnonzero(doubtful)
    if at.size:
        numbers, where = np.unique(x[at].astype(np.float64), return_inverse=True)
        patterns = [decide(name, number, form) for number in numbers.tolist()]
        bits_of(result)[at] = np.array(patterns, bits_of(result).dtype)[where]
    return result


# Correct rounding of results that f64 cannot decide, by integers of sufficient width (Ziv's strategy).
#
# A function's value is enclosed between two integers times a power of two. If both round to the same number, so does
# the value; otherwise the enclosure is narrowed. This terminates, because representable values and midpoints of two
# numbers are enclosed exactly, and all other values have a distance from these.
#
# Source: A. Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", ACM TOMS
# 17(3).

Enclosure = tuple[int, int, int]
"""Low, high and exponent: the value is between low * 2**exponent and high * 2**exponent, inclusive."""

_FIRST = 128

_GUARD = 32

# Each of the fewer than 2**12 terms of a series adds an error of a few units of the last place, and so do its factors.
_ERROR = 1 << 16


def decide(name: str, x: float, fmt: Format) -> int:
    """The bit pattern in `fmt`, nearest to even, of one function of one number.

    Args:
        name: "exp" and "log", which are base 2, "sin", "cos", "rsqrt", "tanh" or "sigm".
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


def _natural_power(x: float, bits: int) -> tuple[int, int]:
    """The power `e**x` as a number from 1 to 2, times 2**bits, and an exponent of 2."""
    numerator, denominator = x.as_integer_ratio()
    # The error of ln 2 is multiplied by the exponent.
    wide = bits + max(frexp(x)[1], 0) + 2
    exponent, rest = divmod((numerator << wide) // denominator, _ln2(wide))
    return _exp_series(rest >> (wide - bits), bits), exponent


def _tanh(x: float, precision: int) -> Enclosure:
    bits = precision + _GUARD
    if abs(x) > bits:
        ends = (1 << bits) - 1, 1 << bits
    else:
        power, exponent = _natural_power(2 * abs(x), bits)
        power <<= exponent
        value = ((power - (1 << bits)) << bits) // (power + (1 << bits))
        ends = value - _ERROR, value + _ERROR
    return (*(ends if x > 0 else (-ends[1], -ends[0])), -bits)


def _sigm(x: float, precision: int) -> Enclosure:
    bits = precision + _GUARD
    if x > bits:
        return (1 << bits) - 1, 1 << bits, -bits
    if x < -2000:
        return 0, 1, -2000
    power, exponent = _natural_power(x, bits)
    one, shift = 1 << bits, min(exponent, 0)
    value = (power << (bits + exponent - shift)) // (one + (power << exponent if exponent > 0 else power >> -exponent))
    return value - _ERROR, value + _ERROR, shift - bits


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


ENCLOSURES: dict[str, Callable[[float, int], Enclosure]] = {
    "exp": _exp,
    "log": _log,
    "sin": partial(_circular, quarters=0),
    "cos": partial(_circular, quarters=1),
    "rsqrt": _rsqrt,
    "tanh": _tanh,
    "sigm": _sigm,
}
"""Enclosures of each function of a number, to about so many bits of the value or after its binary point."""
