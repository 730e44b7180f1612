"""Rounding: conversions of one format to another, and sums of exact terms rounded once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from xegpu_py.numerics.formats import Array, Format, canonical

_LIMB = 32
_MASK = np.int64(0xFFFFFFFF)


def narrow_bits(magnitude: Array, source: tuple[int, int], target: tuple[int, int], nearest: bool) -> Array:
    """Round non-negative numbers to a format with no more exponent bits and fewer mantissa bits; returns bit patterns.

    Args:
        magnitude: patterns without sign, as unsigned integers. Patterns from infinity on mean infinity.
        source: exponent and mantissa bits of the patterns.
        target: exponent and mantissa bits of the result, which has infinities.
        nearest: round to nearest even; otherwise toward zero. In both cases numbers from twice the greatest power of
            two on give infinity.
    """
    (source_exponent, source_mantissa), (exponent, mantissa) = source, target
    wide = magnitude.astype(np.uint64)
    rebias = (1 << (source_exponent - 1)) - (1 << (exponent - 1))
    drop = source_mantissa - mantissa
    field = (wide >> np.uint64(source_mantissa)).astype(np.int64)
    biased = np.maximum(field, 1) - rebias
    # Make the hidden bit explicit, and shift right by one more place for each power of two below the normal numbers.
    hidden = np.where(field > 0, np.uint64(1 << source_mantissa), np.uint64(0))
    explicit = (wide & np.uint64((1 << source_mantissa) - 1)) | hidden
    shift = np.clip(drop + np.maximum(1 - biased, 0), 0, 63).astype(np.uint64)
    kept = explicit >> shift
    if nearest:
        rest = explicit & ((np.uint64(1) << shift) - np.uint64(1))
        half = np.uint64(1) << (shift - np.uint64(1))
        kept = kept + ((rest > half) | ((rest == half) & (kept & np.uint64(1) == 1)))
    # Added to the first pattern of its exponent, an explicit hidden bit increments the exponent.
    steps = (np.maximum(biased, 1) - 1).astype(np.uint64) << np.uint64(mantissa)
    infinity = np.uint64(((1 << exponent) - 1) << mantissa)
    return np.where(biased >= (1 << exponent) - 1, infinity, np.minimum(kept + steps, infinity))


class ExactSum:
    """Sums of many terms without any rounding, element by element of an array, rounded once at the end.

    Each sum is held as an integer in limbs of 32 bits, wide enough for products of any two numbers of the formats.

    Attributes:
        shape: shape of the array of sums.
    """

    def __init__(self, shape: tuple[int, ...], lowest: int, highest: int) -> None:
        """Start empty sums.

        Args:
            lowest: exponent of the least significant bit of all terms.
            highest: exponent above the most significant bit of all sums.
        """
        self.shape = shape
        self._lowest = lowest
        limbs = -(-(highest - lowest) // _LIMB) + 4
        self._limbs = np.zeros((limbs, int(np.prod(shape))), np.int64)
        self._columns = np.arange(self._limbs.shape[1])
        self._special = np.zeros(self._limbs.shape[1])
        self._all_negative_zero = np.ones(self._limbs.shape[1], bool)

    def add(self, values: Array) -> None:
        """Add a term to each sum.

        Args:
            values: f64, broadcast to the shape.
        """
        self.add_product(values, None)

    def add_product(self, a: Array, b: Array | None) -> None:
        """Add a product `a * b` of f64 numbers to each sum, or `a` alone."""
        a = np.broadcast_to(a, self.shape).ravel()
        b = None if b is None else np.broadcast_to(b, self.shape).ravel()
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            special = ~(np.isfinite(a) if b is None else np.isfinite(a) & np.isfinite(b))
            self._special += np.where(special, a if b is None else a * b, 0.0)
            negative = np.signbit(a) if b is None else np.signbit(a) ^ np.signbit(b)
            zero = (a == 0) if b is None else (a == 0) | (b == 0)
        self._all_negative_zero &= negative & zero & ~special
        for mantissa, exponent in _integer_terms(
            np.where(special, 0.0, a), b if b is None else np.where(special, 0.0, b)
        ):
            self._add_integer(mantissa, exponent)

    def _add_integer(self, mantissa: Array, exponent: Array) -> None:
        # A term of at most 54 bits is added in two pieces, each of which fits 64 bits when shifted within a limb.
        for piece, offset in ((mantissa & _MASK, 0), (mantissa >> _LIMB, _LIMB)):
            at = exponent - self._lowest + offset
            at = np.where(piece == 0, 0, at)
            limb, shift = at // _LIMB, at % _LIMB
            low = (piece & ((np.int64(1) << (_LIMB - shift)) - 1)) << shift
            high = piece >> (_LIMB - shift)
            self._limbs[limb, self._columns] += low
            self._limbs[limb + 1, self._columns] += high

    def rounded(self, fmt: Format) -> Array:
        """The sums rounded to nearest even in `fmt`, F or DF. An exact zero is positive, unless all terms were -0.

        A sum with infinite terms or NaNs is the sum of only these.
        """
        least = 2 - (1 << (fmt.exponent - 1)) - fmt.mantissa
        limbs = self._limbs.copy()
        _carry(limbs)
        negative = limbs[-1] < 0
        limbs[:, negative] = -limbs[:, negative]
        _carry(limbs)
        values = _round_limbs(limbs, self._lowest, fmt.mantissa + 1, least)
        values = np.where(negative, -values, values)
        values = np.where(self._all_negative_zero, -0.0, values)
        values = np.where(self._special != 0, self._special, values)
        with np.errstate(over="ignore", invalid="ignore"):
            result = values.astype(fmt.dtype)
        return canonical(result, fmt).reshape(self.shape)


def _integer_terms(a: Array, b: Array | None) -> Iterable[tuple[Array, Array]]:
    """Numbers, or products, as integers of at most 54 bits times powers of two."""
    mantissa, exponent = _as_integer(a)
    if b is None:
        yield mantissa, exponent
        return
    other, other_exponent = _as_integer(b)
    total = exponent + other_exponent
    half = np.int64((1 << 27) - 1)
    for x, x_shift in ((mantissa & half, 0), (mantissa >> 27, 27)):
        for y, y_shift in ((other & half, 0), (other >> 27, 27)):
            yield x * y, total + (x_shift + y_shift)


def _as_integer(values: Array) -> tuple[Array, Array]:
    fraction, exponent = np.frexp(values)
    return np.ldexp(fraction, 53).astype(np.int64), exponent.astype(np.int64) - 53


def _carry(limbs: Array) -> None:
    for i in range(len(limbs) - 1):
        limbs[i + 1] += limbs[i] >> _LIMB
        limbs[i] &= _MASK


def _round_limbs(limbs: Array, lowest: int, precision: int, least: int) -> Array:
    """Non-negative sums in limbs, as f64 rounded to `precision` bits above the exponent `least`."""
    occupied = limbs != 0
    top = len(limbs) - 1 - np.argmax(occupied[::-1], axis=0)
    top = np.maximum(top, 2)
    columns = np.arange(limbs.shape[1])
    high, middle, low = (limbs[top - i, columns].astype(np.uint64) for i in range(3))
    below = np.cumsum(occupied, axis=0)
    sticky = np.where(top >= 3, below[np.maximum(top - 3, 0), columns], 0) > 0
    # The topmost 64 bits with the leading one in bit 63, and whether any bit below them is set.
    lead = np.uint64(_LIMB) - np.frexp(high.astype(np.float64))[1].astype(np.uint64)
    lead = np.where(high == 0, np.uint64(_LIMB), lead)
    shifted = np.where(lead == _LIMB, (middle << np.uint64(32)) | low, ((high << np.uint64(32)) | middle) << lead)
    fill = np.where(lead == _LIMB, np.uint64(0), low >> (np.uint64(_LIMB) - np.minimum(lead, np.uint64(31))))
    fill = np.where(lead == 0, np.uint64(0), fill)
    word = shifted | fill
    rest = np.where(lead == _LIMB, np.uint64(0), (low << lead) & np.uint64(0xFFFFFFFF))
    sticky |= rest != 0
    exponent = lowest + _LIMB * (top - 1).astype(np.int64) - lead.astype(np.int64)
    second = np.uint64(64) - np.where(word == 0, 64, _bit_length(word)).astype(np.uint64)
    word, exponent = word << np.minimum(second, np.uint64(63)), exponent - second.astype(np.int64)
    drop = np.maximum(64 - precision, least - exponent)
    lost = np.clip(drop, 0, 63).astype(np.uint64)
    kept = np.where(drop >= 64, np.uint64(0), word >> lost)
    half = np.uint64(1) << (lost - np.uint64(1))
    remainder = np.where(
        drop > 64,
        np.uint64(1),
        np.where(drop == 64, word >> np.uint64(1), word & ((np.uint64(1) << lost) - np.uint64(1))),
    )
    half = np.where(drop >= 64, np.uint64(1) << np.uint64(62), half)
    sticky |= (drop == 64) & (word & np.uint64(1) != 0)
    up = (remainder > half) | ((remainder == half) & (sticky | (kept & np.uint64(1) != 0)))
    with np.errstate(over="ignore"):
        return np.ldexp((kept + up).astype(np.float64), exponent + drop)


def _bit_length(word: Array) -> Array:
    high = np.frexp((word >> np.uint64(32)).astype(np.float64))[1]
    low = np.frexp((word & np.uint64(0xFFFFFFFF)).astype(np.float64))[1]
    return np.where(high > 0, high + 32, low)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The f64 sum and its error (Knuth's two-sum). They are exact unless the sum overflows."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def round_to_odd(total: Array, error: Array) -> Array:
    """An f64 sum rounded to odd, computed from the nearest value and its error. It can be rounded again correctly.

    The error of an infinity or NaN may be any number.
    """
    bits = total.view(np.int64)
    inexact = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    outward = np.signbit(total) == np.signbit(error)
    return (bits + np.where(inexact, np.where(outward, 1, -1), 0)).view(np.float64)


def fma_f32(product: Array, addend: Array) -> Array:
    """`product + addend` rounded once to f32.

    Args:
        product: f64; exact.
        addend: f32.
    """
    wide = addend.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        total, error = two_sum(product, wide)
        # Most sums are exact in f64, and are then rounded only once.
        if np.any(error != 0):
            total = round_to_odd(total, error)
        return total.astype(np.float32)


def round_float(values: Array, fmt: Format) -> Array:
    """Round numbers to nearest even in another floating-point format; infinity on overflow, canonical NaNs."""
    with np.errstate(over="ignore", invalid="ignore"):
        return canonical(np.array(values).astype(fmt.dtype), fmt)


__all__ = ["ExactSum", "fma_f32", "narrow_bits", "round_float", "round_to_odd", "two_sum"]
