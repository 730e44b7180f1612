"""Fused multiply-add in every float type of vISA's registers.

Source: IEEE 754-2019, 5.4.1: fusedMultiplyAdd rounds the exact a * b + c once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.convert import convert
from xegpu_py.numerics.formats import BF, DF, HF, TYPES, Array, F, as_format, bits_of, canonical
from xegpu_py.numerics.rounding import ExactSum, round_to_odd, two_sum

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
    operands = np.broadcast_arrays(as_format(a, form, "a"), as_format(b, form, "b"), as_format(c, form, "c"))
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


def _exact_df(x: Array, y: Array, z: Array) -> Array:
    total = ExactSum(x.shape, -2200, 2200)
    total.add_product(x, y)
    total.add(z)
    return total.rounded(DF)


_Fast = Callable[[Array, Array, Array], tuple[Array, Array]]
_Exact = Callable[[Array, Array, Array], Array]
_STEPS: dict[str, tuple[_Fast, _Exact]] = {
    "hf": (_fast_hf, partial(_exact_narrow, fmt="hf")),
    "bf": (_fast_bf, partial(_exact_narrow, fmt="bf")),
    "f": (_fast_f, partial(_exact_narrow, fmt="f")),
    "df": (_fast_df, _exact_df),
}
