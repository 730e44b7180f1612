"""Correctly rounded roots, powers, sines and quotients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.formats import TYPES, Array, Format, as_format, bits_of, broadcast, canonical
from xegpu_py.numerics.rounding import convert, narrow_bf, narrow_hf, two_product, widen_hf

# Reciprocals, roots, base-2 exponentials and logarithms, sines, quotients and integral values, correctly rounded.
#
# Sources: vISA's INV.md, SQRT.md, RSQRT.md, EXP.md, LOG.md, SIN.md, COS.md, DIV.md and RNDD.md to RNDZ.md name the
# functions, but do not define their rounding; IEEE 754-2019, 9.2 defines the special values.

_FLOATS = ("hf", "bf", "f", "df")

_NARROW = ("hf", "bf", "f")

_FLOAT_TYPES = {f.storage for f in TYPES.values() if f.is_float}

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


def _function(name: str, formats: tuple[str, ...], about: str) -> Callable[[npt.ArrayLike, str], Array]:
    def apply(x: npt.ArrayLike, fmt: str) -> Array:
        return _unary(name, x, fmt, formats)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"""{about}

    Args:
        x: numbers of any shape in the storage type of `fmt`, or its unsigned bit patterns.
        fmt: vISA's name of their type: {", ".join(formats)}.

    Returns:
        An array of the same shape in the storage type of `fmt`; NaNs are canonical.

    Raises:
        ValueError: if `fmt` is none of these.
        TypeError: if `x` has another type.
    """
    return apply


inv = _function("inv", _FLOATS, "`1 / x`, rounded to nearest even (INV.md). Zeros give infinities of their sign.")

sqrt = _function("sqrt", _FLOATS, "Square roots, rounded to nearest even (SQRT.md). Negative zero gives itself.")

rsqrt = _function("rsqrt", _FLOATS, "`1 / sqrt(x)`, rounded once to nearest even (RSQRT.md). Zeros give infinities.")

exp = _function(
    "exp", _NARROW, "Powers of two `2 ** x`, rounded to nearest even (EXP.md: base 2). Subnormals are kept."
)

log = _function("log", _NARROW, "Base-2 logarithms, rounded to nearest even (LOG.md: base 2). One gives positive zero.")

sin = _function("sin", _NARROW, "Sines of angles in radians of any magnitude, rounded to nearest even (SIN.md).")

cos = _function("cos", _NARROW, "Cosines of angles in radians of any magnitude, rounded to nearest even (COS.md).")

_NO_SOURCE = "rounded to nearest even; no document of vISA states an accuracy."

tanh = _function("tanh", _NARROW, f"Hyperbolic tangents, {_NO_SOURCE}")

sigm = _function("sigm", _NARROW, f"The logistic function `1 / (1 + e ** -x)`, {_NO_SOURCE}")

round_down = _function("round_down", _FLOATS, "The greatest integral numbers not above `x`, with its sign (RNDD.md).")

round_up = _function("round_up", _FLOATS, "The least integral numbers not below `x`, with its sign (RNDU.md).")

round_even = _function("round_even", _FLOATS, "The integral numbers nearest to `x`; ties go to even (RNDE.md).")

round_zero = _function("round_zero", _FLOATS, "The numbers `x` rounded to integral numbers toward zero (RNDZ.md).")


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
    dividends, divisors = broadcast(as_format(a, form, "a"), as_format(b, form, "b"))
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


def minimum_number(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """The lesser floats; a number is preferred to a NaN, and -0 is less than +0 (IEEE 754-2019, 9.6)."""
    x, y = _floats(a, b)
    return _chosen((x < y) | ((x == y) & np.signbit(x)), x, y)


def maximum_number(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """The greater floats; a number is preferred to a NaN, and -0 is less than +0 (IEEE 754-2019, 9.6)."""
    x, y = _floats(a, b)
    return _chosen((x > y) | ((x == y) & ~np.signbit(x)), x, y)


def _floats(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Array, ...]:
    arrays = np.asarray(a), np.asarray(b)
    for name, array in zip("ab", arrays):
        if array.dtype.name not in _FLOAT_TYPES:
            raise TypeError(f"'{name}' must be floats, but got an array of {array.dtype}")
    return broadcast(*arrays)


def _chosen(first: Array, a: Array, b: Array) -> Array:
    """One of two numbers; the canonical NaN for two NaNs."""
    found = np.where(first | np.isnan(b), a, b)
    return np.where(np.isnan(a) & np.isnan(b), found.dtype.type(np.nan), found)


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


# Correct rounding of results that f64 cannot decide, by wider numbers (Ziv's strategy).
#
# A function's value is enclosed between two integers times a power of two. If both round to the same number, so does
# the value; otherwise the enclosure is narrowed. This terminates, because powers of two, the only values that are
# midpoints of two numbers, are enclosed exactly, and all other values have a distance from midpoints.
#
# Source: A. Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", ACM TOMS
# 17(3).

_FIRST = 128

_GUARD = 8
"""Bits beyond those that are needed. Less than one of them is wrong in a function of mpmath."""

_WIDE: dict[str, Callable[[Any, Any, int], Any]] = {
    "exp": lambda m, x, bits: m.mpf_pow(m.ftwo, x, bits),
    "log": lambda m, x, bits: m.mpf_div(m.mpf_log(x, bits), m.mpf_ln2(bits), bits),
    "sin": lambda m, x, bits: m.mpf_sin(x, bits),
    "cos": lambda m, x, bits: m.mpf_cos(x, bits),
    "rsqrt": lambda m, x, bits: m.mpf_div(m.fone, m.mpf_sqrt(x, bits), bits),
    "tanh": lambda m, x, bits: m.mpf_tanh(x, bits),
    "sigm": lambda m, x, bits: m.mpf_div(m.fone, m.mpf_add(m.fone, m.mpf_exp(m.mpf_neg(x), bits), bits), bits),
}
"""The functions of numbers of `mpmath.libmp`, to so many bits."""


def decide(name: str, x: float, fmt: Format) -> int:
    """The bit pattern in `fmt`, nearest to even, of one function of one number.

    Args:
        name: "exp" and "log", which are base 2, "sin", "cos", "rsqrt", "tanh" or "sigm".
        x: a finite number other than zero at which the function is finite.
    """
    precision = _FIRST
    while True:
        low, high, exponent = enclosure(name, x, precision)
        pattern = nearest(low, exponent, fmt)
        if pattern == nearest(high, exponent, fmt):
            return pattern
        precision *= 2


def enclosure(name: str, x: float, precision: int) -> tuple[int, int, int]:
    """Low, high and exponent: the value is between low * 2**exponent and high * 2**exponent, inclusive.

    Args:
        name, x: see `decide`.
        precision: bits of the value that are certain.
    """
    if name == "exp" and x.is_integer():
        return 1, 1, int(x)
    # Few numbers need it, and the import takes 0.1 s.
    from mpmath import libmp

    is_negative, mantissa, exponent, _ = _WIDE[name](libmp, libmp.from_float(x), precision + _GUARD)
    value = int(mantissa) << precision + _GUARD
    error = value >> precision + 2
    value = -value if is_negative else value
    return value - error, value + error, exponent - precision - _GUARD


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
