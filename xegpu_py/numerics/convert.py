"""The conversions that vISA's mov makes between register types."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.formats import DF, TYPES, Array, Format, as_format, bits_of, canonical
from xegpu_py.numerics.rounding import narrow_bits, round_to_odd


def convert(values: npt.ArrayLike, src: str, dst: str, *, saturate: bool = False) -> Array:
    """Convert numbers of one register type to another as mov does, element by element.

    - The same type: the bits are unchanged, those of NaNs too.
    - Integer to integer: the lowest bits; with `saturate` the nearest number of the destination type.
    - Integer to float: rounded once to nearest even; infinity on overflow.
    - Float to integer: rounded toward zero. Numbers out of range give the nearest number of the destination type, and
      NaN gives 0, with or without `saturate`.
    - Float to float: rounded once to nearest even, subnormals kept, infinity from overflow, canonical NaN. With
      `saturate` (of a float destination, from any source) the result is clamped to 0 to 1, and NaN gives 0.

    Args:
        values: numbers of any shape in the storage type of `src`, or their unsigned bit patterns.
        src: vISA's name of their type: ub, b, uw, w, ud, d, uq, q, hf, bf, f or df.
        dst: the type of the result.
        saturate: whether the instruction saturates.

    Returns:
        An array of the storage type of `dst`.

    Raises:
        ValueError: if a type is none of these.
        TypeError: if the type of `values` does not match `src`.
    """
    for name, given in (("src", src), ("dst", dst)):
        if given not in TYPES:
            raise ValueError(f"'{name}' must be one of {', '.join(TYPES)}, but got {given!r}")
    source, target = TYPES[src], TYPES[dst]
    numbers = as_format(values, source, "values")
    if target.is_float:
        if source is target and not saturate:
            return np.array(numbers)
        result = _float_to_float(numbers, source, target) if source.is_float else _int_to_float(numbers, target)
        return _clamp_unit(result, target) if saturate else result
    if source.is_float:
        return _float_to_int(numbers, target)
    return narrow_integers(numbers, target, saturate)


def _limits(fmt: Format) -> tuple[int, int]:
    info = np.iinfo(fmt.dtype)
    return int(info.min), int(info.max)


def narrow_integers(numbers: Array, target: Format, saturate: bool) -> Array:
    """Integers, of numpy's types or Python's, in another type: saturated to its range, or their lowest bits."""
    if saturate:
        low, high = _limits(target)
        if numbers.dtype != object:
            own = np.iinfo(numbers.dtype)
            low, high = max(low, own.min), min(high, own.max)
        numbers = np.clip(numbers, low, high)
    elif numbers.dtype == object:
        numbers = (numbers & ((1 << target.bits) - 1)).astype(np.uint64)
    return numbers.astype(target.dtype)


def _float_to_int(numbers: Array, target: Format) -> Array:
    low, high = _limits(target)
    with np.errstate(invalid="ignore"):
        wide = np.trunc(numbers.astype(np.float64))
        # Compare with high + 1: f64 represents it exactly, but not the greatest 64-bit integers.
        inside = np.where((wide >= float(low)) & (wide < float(high + 1)), wide, 0.0).astype(target.dtype)
        result = np.where(wide >= float(high + 1), target.dtype.type(high), inside)
        return np.where(wide < float(low), target.dtype.type(low), result).astype(target.dtype)


def _int_to_float(numbers: Array, target: Format) -> Array:
    nearest = numbers.astype(np.float64)
    if target.name == "df" or numbers.dtype.itemsize < 8:
        return _float_to_float(nearest, TYPES["df"], target)
    # f64 cannot represent all 64-bit integers. They are rounded to odd, so that rounding again is correct.
    limit = float(np.iinfo(numbers.dtype).max) if nearest.size else 0.0
    inside = nearest < limit
    back = np.where(inside, nearest, 0.0).astype(numbers.dtype)
    error = np.where(inside, np.where(numbers > back, 1.0, np.where(numbers < back, -1.0, 0.0)), -1.0)
    return _float_to_float(round_to_odd(nearest, error), TYPES["df"], target)


def _float_to_float(numbers: Array, source: Format, target: Format) -> Array:
    if source is target:
        return canonical(np.array(numbers), target)
    if source.bits < target.bits:
        with np.errstate(invalid="ignore"):
            return canonical(numbers.astype(target.dtype), target)
    with np.errstate(invalid="ignore"):
        wide = numbers.astype(np.float64)
    bits = bits_of(wide)
    magnitude = narrow_bits(
        bits & np.uint64((1 << 63) - 1), (DF.exponent, DF.mantissa), (target.exponent, target.mantissa), nearest=True
    )
    signed = magnitude | (bits >> np.uint64(63)) << np.uint64(target.bits - 1)
    pattern = np.where(np.isnan(wide), np.uint64(target.nan), signed)
    return pattern.astype(f"u{target.bytes}").view(target.dtype)


def _clamp_unit(numbers: Array, target: Format) -> Array:
    zero, one = np.zeros((), target.dtype), np.ones((), target.dtype)
    with np.errstate(invalid="ignore"):
        positive = np.where(numbers > zero, numbers, zero)
        return np.where(positive > one, one, positive).astype(target.dtype)
