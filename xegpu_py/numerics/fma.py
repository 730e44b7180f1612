"""Fused multiply-add in every float type of vISA's registers.

Source: IEEE 754-2019, 5.4.1: fusedMultiplyAdd rounds the exact a * b + c once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.convert import convert
from xegpu_py.numerics.formats import DF, TYPES, Array, as_format, canonical
from xegpu_py.numerics.rounding import ExactSum, fma_f32, round_to_odd

# Blocks whose temporaries stay in the caches.
_BLOCK = 1 << 13
_SPLITTER = 2.0**27 + 1
_NAMES = ("hf", "bf", "f", "df")


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
    if fmt not in _NAMES:
        raise ValueError(f"'fmt' must be one of {', '.join(_NAMES)}, not {fmt!r}")
    form = TYPES[fmt]
    operands = np.broadcast_arrays(as_format(a, form, "a"), as_format(b, form, "b"), as_format(c, form, "c"))
    x, y, z = (operand.reshape(-1) for operand in operands)
    result = np.empty(x.shape, form.dtype)
    step = {"hf": _hf, "bf": _bf, "f": _f, "df": _df}[fmt]
    with np.errstate(all="ignore"):
        for start in range(0, x.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block] = canonical(step(x[block], y[block], z[block]), form)
    return result.reshape(operands[0].shape)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The f64 sum, and its error (Knuth). Exact unless it overflows."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The f64 product, and its error (Dekker).

    Exact where the factors are below 2**990, and the product is zero or from 2**-900 to 2**1000.
    """
    product = a * b
    # Veltkamp's splitting into halves, whose products are exact.
    a_scaled, b_scaled = a * _SPLITTER, b * _SPLITTER
    a_high, b_high = a_scaled - (a_scaled - a), b_scaled - (b_scaled - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _odd_sum(a: Array, b: Array) -> Array:
    total, error = two_sum(a, b)
    return round_to_odd(total, np.where(np.isfinite(total), error, 0.0))


def _f(x: Array, y: Array, z: Array) -> Array:
    product = x.astype(np.float64)
    product *= y
    total = product + z
    result = total.astype(np.float32)
    # Rounding twice goes wrong only where the first result is in the middle between two numbers.
    doubtful = total.view(np.int64) & 0x1FFFFFFF == 0x10000000
    # The middles between subnormal numbers have other patterns.
    doubtful |= (np.abs(result) <= np.float32(2.0**-126)) & (total != 0)
    at = np.flatnonzero(doubtful)
    if at.size:
        result[at] = fma_f32(product[at], z[at])
    return result


def _hf(x: Array, y: Array, z: Array) -> Array:
    # 22 significant bits, from 2**-48 on: exact.
    product = x.astype(np.float32) * y.astype(np.float32)
    total = product + z.astype(np.float32)
    result = total.astype(np.float16)
    doubtful = total.view(np.int32) & 0x1FFF == 0x1000
    doubtful |= (np.abs(total) < np.float32(2.0**-14)) & (total != 0)
    at = np.flatnonzero(doubtful)
    if at.size:
        result[at] = convert(_odd_sum(product[at].astype(np.float64), z[at].astype(np.float64)), "df", "hf")
    return result


def _bf(x: Array, y: Array, z: Array) -> Array:
    product = x.astype(np.float32).astype(np.float64)
    product *= y.astype(np.float32)
    wide = z.astype(np.float32)
    single = (product + wide).astype(np.float32)
    result = single.astype(TYPES["bf"].dtype)
    # f32 has bf's exponents, so that this holds for subnormal numbers too.
    at = np.flatnonzero(single.view(np.int32) & 0xFFFF == 0x8000)
    if at.size:
        result[at] = convert(_odd_sum(product[at], wide[at].astype(np.float64)), "df", "bf")
    return result


def _df(x: Array, y: Array, z: Array) -> Array:
    # S. Boldo and G. Melquiond, "Emulation of a FMA and correctly-rounded sums: proved algorithms using rounding to
    # odd", IEEE Transactions on Computers 57(4).
    product, low = two_product(x, y)
    middle, lowest = two_sum(z, low)
    high, rest = two_sum(product, middle)
    result = high + _odd_sum(rest, lowest)
    # The errors of zero products are positive zeros, even where all else is negative.
    result = np.where(result == 0, product + z, result)
    infinite = ~(np.isfinite(x) & np.isfinite(y))
    result = np.where(infinite, product + z, np.where(np.isfinite(z), result, z))
    size = np.abs(product)
    usual = (np.abs(x) < 2.0**990) & (np.abs(y) < 2.0**990) & (np.abs(z) < 2.0**1000) & (size < 2.0**1000)
    usual &= (size > 2.0**-900) | (x == 0) | (y == 0)
    at = np.flatnonzero(~(usual | infinite | ~np.isfinite(z)))
    for start in range(0, at.size, 1 << 10):
        some = at[start : start + (1 << 10)]
        exact = ExactSum(some.shape, -2200, 2200)
        exact.add_product(x[some], y[some])
        exact.add(z[some])
        result[some] = exact.rounded(DF)
    return result
