"""Operations that round once: conversions, mov, fcvt, srnd and fma."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.formats import (
    BF,
    BF8,
    DF,
    HF,
    TF32,
    TYPES,
    Array,
    F,
    Format,
    as_format,
    bits_of,
    broadcast,
    canonical,
)

# Rounding: conversions of one format to another, and sums of exact terms rounded once.


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


_LEAST_BIT = -2252
"""The exponent of the last bit of the product of two least f64 numbers, as integers of 53 bits."""


def exact_sum(terms: Iterable[tuple[Array, Array | None]], fmt: Format) -> Array:
    """Sums of f64 numbers and of products of two, element by element, rounded once to nearest even.

    An exact zero is positive, unless all terms are -0. A sum with infinite terms or NaNs is the sum of only these.

    Args:
        terms: numbers of one or more dimensions, each with the factor that it is multiplied by, or None; they are
            broadcast against each other.
        fmt: the format of the sums, F or DF.
    """
    total, special, is_negative_zero = np.zeros((), object), np.zeros(()), np.ones((), bool)
    with np.errstate(all="ignore"):
        for a, b in terms:
            factors = (a,) if b is None else (a, b)
            product = a if b is None else a * b
            finite = np.isfinite(a) if b is None else np.isfinite(a) & np.isfinite(b)
            whole, exponent = np.ones((), object), np.zeros((), np.int64)
            for factor in factors:
                fraction, places = np.frexp(np.where(finite, factor, 0.0))
                whole = whole * np.ldexp(fraction, 53).astype(np.int64)
                exponent = exponent + places - 53
            total = total + (whole << exponent - _LEAST_BIT)
            special = special + np.where(finite, 0.0, product)
            is_negative_zero = is_negative_zero & finite & (whole == 0) & np.signbit(product)
        found = round_integers(np.abs(total), np.int64(_LEAST_BIT), fmt)
        found = np.where((total < 0) | is_negative_zero, -found, found)
        return canonical(np.where(special != 0, special, found).astype(fmt.dtype), fmt)


def round_integers(size: Array, base: Array, fmt: Format, nearest: bool = True) -> Array:
    """Non-negative integers times powers of two, rounded to the precision of a format, but not to its range: f64.

    Args:
        size: the integers, Python's in an array of objects, or int64 below 2^52.
        base: the exponents of the powers.
        fmt: the format, F or DF.
        nearest: round to nearest even; otherwise toward zero.
    """
    is_wide = size.dtype == object
    bits = (
        np.asarray(np.frompyfunc(int.bit_length, 1, 1)(size), np.int64) if is_wide else np.frexp(size.astype(float))[1]
    )
    least = 2 - (1 << fmt.exponent - 1) - fmt.mantissa
    drop = np.maximum(np.maximum(bits - fmt.mantissa - 1, least - base), 0)
    drop = drop if is_wide else np.minimum(drop, 62)
    kept = size >> drop
    if nearest:
        rest, half = size - (kept << drop), (np.ones_like(kept) << drop) >> 1
        kept = kept + ((drop > 0) & ((rest > half) | ((rest == half) & (kept & 1 == 1))))
    return np.ldexp(kept.astype(np.float64), base + drop)


class _Addable(Protocol):
    def __add__(self, other: Any, /) -> Any: ...

    def __sub__(self, other: Any, /) -> Any: ...


_Summand = TypeVar("_Summand", bound=_Addable)


def two_sum(a: _Summand, b: _Summand) -> tuple[_Summand, _Summand]:
    """The sum of f64 numbers and its error, by `error_of_sum`."""
    total = a + b
    return total, error_of_sum(a, b, total)


def error_of_sum(a: _Summand, b: _Summand, total: _Summand) -> _Summand:
    """The error of a sum of f64 numbers (Knuth's two-sum). It is exact unless the sum overflows.

    The numbers may be arrays, or code of any kind that computes them.
    """
    back = total - a
    error: _Summand = (a - (total - back)) + (b - back)
    return error


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


__all__ = [
    "error_of_sum",
    "exact_sum",
    "fma_f32",
    "narrow_bits",
    "round_float",
    "round_integers",
    "round_to_odd",
    "two_sum",
]


# The conversions that vISA's mov makes between register types.


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
    return _float_to_float(numbers.astype(np.float64) if target is DF else odd_doubles(numbers), DF, target)


def odd_doubles(numbers: Array) -> Array:
    """Integers as f64, which cannot represent all of 64 bits: those are rounded to odd, and can be rounded again."""
    nearest = numbers.astype(np.float64)
    if numbers.dtype.itemsize < 8:
        return nearest
    limit = float(np.iinfo(numbers.dtype).max) if nearest.size else 0.0
    inside = nearest < limit
    back = np.where(inside, nearest, 0.0).astype(numbers.dtype)
    error = np.where(inside, np.where(numbers > back, 1.0, np.where(numbers < back, -1.0, 0.0)), -1.0)
    return round_to_odd(nearest, error)


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


# FCVT: conversions of BF8 and TF32 (FCVT.md).

_DROPPED = F.mantissa - TF32.mantissa


def fcvt(src0: npt.ArrayLike, dst_type: str) -> Array:
    """Convert HF to BF8, BF8 to HF, or F to TF32 (FCVT.md).

    HF to BF8 rounds to nearest even, keeps subnormals, and overflows to infinity. BF8 to HF is exact. F to TF32 rounds
    to nearest even and flushes subnormal numbers to zeros of their sign. NaN gives the canonical NaN.

    Args:
        src0: numbers of any shape: float16 for "bf8", float8_e5m2 for "hf", float32 for "tf32", or their unsigned bit
            patterns.
        dst_type: what to convert to.

    Returns:
        float8_e5m2, float16, or for "tf32" float32 whose lowest 13 bits are zero.

    Raises:
        TypeError: if `src0` has another type.
        ValueError: if `dst_type` is none of these.
    """
    if dst_type == "bf8":
        return round_float(as_format(src0, HF, "src0"), BF8)
    if dst_type == "hf":
        return round_float(as_format(src0, BF8, "src0"), HF)
    if dst_type == "tf32":
        return _to_tf32(as_format(src0, F, "src0"))
    raise ValueError(f"'dst_type' must be 'bf8', 'hf' or 'tf32', but got {dst_type!r}")


def _to_tf32(values: Array) -> Array:
    bits = np.array(bits_of(values))
    exponent = bits & np.uint32(F.infinity)
    subnormal, special = exponent == 0, exponent == F.infinity
    odd = (bits >> np.uint32(_DROPPED)) & np.uint32(1)
    half = np.uint32((1 << (_DROPPED - 1)) - 1)
    rounded = (bits + np.where(special, np.uint32(0), half + odd)) & np.uint32(0xFFFFFFFF << _DROPPED & 0xFFFFFFFF)
    result = np.where(subnormal, bits & np.uint32(0x80000000), rounded).astype(np.uint32)
    nan = np.isnan(values)
    return canonical(np.where(nan, np.uint32(TF32.nan), result).view(np.float32), TF32)


# SRND: stochastic rounding, F to HF and HF to BF8 (SRND.md).

SOURCES = {HF: F, BF8: HF}
"""The source format of each result. Rounding uses as many random bits as the mantissa loses."""

_TARGETS = {target.name: target for target in SOURCES}


def srnd(src0: npt.ArrayLike, src1: npt.ArrayLike, dst_type: str) -> Array:
    """Round stochastically: add random bits to the mantissa from its lowest bit on, and truncate (SRND.md).

    Subnormal sources and results are kept. Overflow and infinity give infinity, NaN gives the canonical NaN.

    Args:
        src0: the numbers, of any shape: float32 for "hf", float16 for "bf8", or their unsigned bit patterns.
        src1: random numbers of the same type or as unsigned integers of the same width, broadcast against `src0`; the
            lowest 13 bits of each are used for "hf", the lowest 8 for "bf8".
        dst_type: "hf" or "bf8".

    Returns:
        float16 or float8_e5m2, of the broadcast shape of `src0` and `src1`.

    Raises:
        TypeError: if `src0` or `src1` has another type.
        ValueError: if `dst_type` is neither.
    """
    if dst_type not in _TARGETS:
        raise ValueError(f"'dst_type' must be 'hf' or 'bf8', but got {dst_type!r}")
    target = _TARGETS[dst_type]
    source = SOURCES[target]
    count = source.mantissa - target.mantissa
    values, words = broadcast(as_format(src0, source, "src0"), as_format(src1, source, "src1"))
    random = bits_of(words).astype(np.uint64) & np.uint64((1 << count) - 1)
    bits = bits_of(values).astype(np.uint64)
    sign = bits >> np.uint64(source.bits - 1)
    magnitude = bits & np.uint64((1 << (source.bits - 1)) - 1)
    infinity = np.uint64(source.infinity)
    # A finite number and the random bits may pass the pattern of infinity, which means infinity.
    moved = magnitude + np.where(magnitude >= infinity, np.uint64(0), random)
    rounded = narrow_bits(moved, source.fields, target.fields, nearest=False)
    result = np.where(magnitude > infinity, np.uint64(target.nan), rounded | sign << np.uint64(target.bits - 1))
    return np.asarray(result.astype(f"u{target.bytes}")).view(target.dtype)


# Fused multiply-add in every float type of vISA's registers.
#
# Source: IEEE 754-2019, 5.4.1: fusedMultiplyAdd rounds the exact a * b + c once.

# Elements of a block, small enough that temporaries stay in the caches.
_BLOCK = 1 << 13

_EXACT_BLOCK = 1 << 10

_SPLITTER = 2.0**27 + 1


def fma(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, fmt: str) -> Array:
    """`a * b + c`, rounded once to nearest even (IEEE 754-2019, 5.4.1).

    Subnormals are kept, overflow gives infinity, and NaN results are canonical. A sum that is exactly zero is positive
    unless the product and `c` are both negative zeros.

    Args:
        a: factors in the storage type of `fmt`, or its unsigned bit patterns.
        b: factors, likewise.
        c: addends, likewise; the three shapes are broadcast.
        fmt: vISA's name of their type: hf, bf, f or df.

    Returns:
        An array of the broadcast shape, in the storage type of `fmt`.

    Raises:
        ValueError: if `fmt` is none of these, or the shapes do not broadcast.
        TypeError: if an operand has another type.
    """
    if fmt not in _STEPS:
        raise ValueError(f"'fmt' must be one of {', '.join(_STEPS)}, but got {fmt!r}")
    form = TYPES[fmt]
    operands = broadcast(as_format(a, form, "a"), as_format(b, form, "b"), as_format(c, form, "c"))
    x, y, z = (operand.reshape(-1) for operand in operands)
    result = np.empty(x.shape, form.dtype)
    step, exact = _STEPS[fmt]
    # The doubtful results of all blocks are computed together: they are few, and one call is faster than many.
    doubtful = []
    with np.errstate(all="ignore"):
        for start in range(0, x.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block], at = step(x[block], y[block], z[block])
            if at.size:
                doubtful.append(at + start)
        for some in _blocks(doubtful):
            result[some] = exact(x[some], y[some], z[some])
    return result.reshape(operands[0].shape)


def _blocks(indices: list[Array]) -> Iterator[Array]:
    """The indices, divided into blocks."""
    if indices:
        together = np.concatenate(indices)
        for start in range(0, together.size, _EXACT_BLOCK):
            yield together[start : start + _EXACT_BLOCK]


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The f64 product and its error (Dekker's product).

    They are exact if the factors are below 2**990, and the product is zero or between 2**-900 and 2**1000.
    """
    product = a * b
    # Veltkamp's splitting: the products of the halves are exact.
    a_scaled, b_scaled = a * _SPLITTER, b * _SPLITTER
    a_high, b_high = a_scaled - (a_scaled - a), b_scaled - (b_scaled - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


# numpy's own conversions and comparisons of f16 are not vectorised.
_HF_WIDE = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def widen_hf(values: Array) -> Array:
    """f16 numbers as f32."""
    return _HF_WIDE.take(bits_of(values))


def narrow_hf(values: Array) -> Array:
    """f32 numbers rounded to nearest even in f16, with canonical NaNs."""
    bits = values.view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    # From exponent -14 on, a pattern is the f32 pattern without its lowest 13 bits and with another exponent bias.
    normal = (magnitude - np.uint32((112 << 23) - 0xFFF) + ((magnitude >> np.uint32(13)) & np.uint32(1))) >> np.uint32(
        13
    )
    # The last bit of f32 numbers from 1/2 to 1 is 2**-24, as that of subnormal f16 numbers: adding 1/2 rounds to it.
    subnormal = (np.abs(values) + np.float32(0.5)).view(np.uint32) - np.uint32(126 << 23)
    pattern = np.where(magnitude < 113 << 23, subnormal, np.minimum(normal, np.uint32(0x7C00)))
    pattern |= (bits >> np.uint32(16)) & np.uint32(0x8000)
    result = pattern.astype(np.uint16)
    result[np.isnan(values)] = HF.nan
    return result.view(np.float16)


def narrow_bf(values: Array) -> Array:
    """f32 numbers rounded to nearest even in bf16, with canonical NaNs."""
    bits = values.view(np.uint32)
    rounded = (bits + ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)) >> np.uint32(16)
    result = rounded.astype(np.uint16)
    result[np.isnan(values)] = BF.nan
    return result.view(BF.dtype)


def _fast_f(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """The results, and the indices of those that may be wrong, as in the functions for the other formats."""
    total = x.astype(np.float64)
    total *= y
    total += z
    result = total.astype(np.float32)
    # Rounding twice is wrong only if the first result is the midpoint of two numbers.
    doubtful = total.view(np.int64) & 0x1FFFFFFF == 0x10000000
    # The midpoints of subnormal numbers have other patterns.
    doubtful |= (np.abs(result) <= np.float32(2.0**-126)) & (total != 0)
    return canonical(result, F), np.flatnonzero(doubtful)


def _fast_hf(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    # A product has at most 22 significant bits, and none below 2**-48: it is exact.
    total = widen_hf(x)
    total *= widen_hf(y)
    total += widen_hf(z)
    doubtful = total.view(np.int32) & 0x1FFF == 0x1000
    doubtful |= (np.abs(total) < np.float32(2.0**-14)) & (total != 0)
    return narrow_hf(total), np.flatnonzero(doubtful)


def _fast_bf(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    total = x.astype(np.float64)
    total *= y.astype(np.float32)
    total += z.astype(np.float32)
    single = total.astype(np.float32)
    # f32 and bf have the same exponents, so this holds for subnormal numbers too.
    return narrow_bf(single), np.flatnonzero(single.view(np.int32) & 0xFFFF == 0x8000)


def _exact_narrow(x: Array, y: Array, z: Array, fmt: str) -> Array:
    """Results of hf, bf and f: rounded to odd in f64, which has more than two bits beyond theirs, and rounded again."""
    odd = round_to_odd(*two_sum(x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)))
    return convert(odd, "df", fmt)


def _fast_df(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    # S. Boldo and G. Melquiond, "Emulation of a FMA and correctly-rounded sums: proved algorithms using rounding to
    # odd", IEEE Transactions on Computers 57(4).
    product, low = two_product(x, y)
    middle, lowest = two_sum(z, low)
    high, rest = two_sum(product, middle)
    result = high + round_to_odd(*two_sum(rest, lowest))
    # The errors of zero products are positive zeros, even where all else is negative.
    result = np.where(result == 0, product + z, result)
    infinite = ~(np.isfinite(x) & np.isfinite(y))
    result = np.where(infinite, product + z, np.where(np.isfinite(z), result, z))
    size = np.abs(product)
    usual = (np.abs(x) < 2.0**990) & (np.abs(y) < 2.0**990) & (np.abs(z) < 2.0**1000) & (size < 2.0**1000)
    usual &= (size > 2.0**-900) | (x == 0) | (y == 0)
    return canonical(result, DF), np.flatnonzero(~(usual | infinite | ~np.isfinite(z)))


_Fast = Callable[[Array, Array, Array], tuple[Array, Array]]

_Exact = Callable[[Array, Array, Array], Array]

_STEPS: dict[str, tuple[_Fast, _Exact]] = {
    "hf": (_fast_hf, partial(_exact_narrow, fmt="hf")),
    "bf": (_fast_bf, partial(_exact_narrow, fmt="bf")),
    "f": (_fast_f, partial(_exact_narrow, fmt="f")),
    "df": (_fast_df, lambda x, y, z: exact_sum([(x, y), (z, None)], DF)),
}
