"""Differences of two arrays: how many elements have other bits, and how far apart floats are."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py.numerics.formats import FLOATS, Array, Format

APART = (1 << 64) - 1
"""The distance of unequal integers, and of a NaN and a number."""


class Unlike(Struct, frozen=True):
    """How an array differs from another one.

    Attributes:
        count: the number of elements that differ.
        size: the number of all elements.
        nans: the number of elements that are a NaN in both, of other bits.
        ulps: the largest distance of other floats in units in the last place, `APART` for a NaN and a number; None for
            integers and structures.
        index: the first element that differs.
        before, after: it in both arrays.
    """

    count: int
    size: int
    nans: int
    ulps: int | None
    index: tuple[int, ...]
    before: Any
    after: Any

    @property
    def mixed(self) -> bool:
        """Whether an element is a NaN in one of the arrays only."""
        return self.ulps == APART

    @property
    def extent(self) -> str:
        """How many elements differ, and by how much."""
        parts = [f"{self.count} of {self.size} elements differ"]
        if self.mixed:
            parts.append("some are NaN in one only")
        elif self.ulps:
            parts.append(f"by up to {self.ulps} units in the last place")
        if self.nans:
            parts.append(f"{self.nans if self.nans < self.count else 'all'} are NaNs of other bits")
        return ", ".join(parts)

    @property
    def values(self) -> tuple[str, str]:
        """The first element that differs, in both arrays; with its bits if it looks the same."""
        before, after = str(self.before), str(self.after)
        if before == after:
            return before + _bits(self.before), after + _bits(self.after)
        return before, after


def _bits(value: Any) -> str:
    return f" (0x{np.asarray(value).tobytes()[::-1].hex()})"


def unlike(before: Array, after: Array, ulps: int = 0) -> Unlike | None:
    """How an array differs from another one of its type and shape; None if it does not.

    Args:
        ulps: the allowed difference of floats in units in the last place.
    """
    apart = ulps_apart(before, after)
    positions = np.argwhere(apart > np.uint64(ulps))
    if not len(positions):
        return None
    index = tuple(positions[0].tolist())
    if not _format(before.dtype):
        return Unlike(len(positions), before.size, 0, None, index, before[index], after[index])
    with np.errstate(invalid="ignore"):
        nans = np.isnan(before.astype(np.float64)) & np.isnan(after.astype(np.float64)) & (apart > 0)
    most = int(apart[~nans].max(initial=0))
    return Unlike(len(positions), before.size, int(nans.sum()), most, index, before[index], after[index])


def _format(dtype: np.dtype[Any]) -> Format | None:
    """The floating-point format of a type; None if its elements are no floats."""
    return next((f for f in FLOATS.values() if f.storage == dtype.name), None)


def ulps_apart(a: Array, b: Array) -> Array:
    """The distance of elements in units in the last place, uint64; `APART` for unequal elements that are no floats, and
    for a NaN and a number.
    """
    bits, fmt = a.dtype.itemsize, _format(a.dtype)
    if bits not in (1, 2, 4, 8):
        x, y = (np.ascontiguousarray(v).reshape(*v.shape, 1).view(np.uint8) for v in (a, b))
        return np.asarray(np.where((x != y).any(-1), np.uint64(APART), np.uint64(0)))
    x, y = (np.ascontiguousarray(v).reshape(v.shape).view(f"u{bits}") for v in (a, b))
    if not fmt:
        return np.asarray(np.where(x != y, np.uint64(APART), np.uint64(0)))
    # Patterns of negative numbers grow with the magnitude; negate them, so that patterns are ordered as the numbers.
    is_signed = fmt.exponent + fmt.mantissa < fmt.bits
    sign = np.uint64(1 << (fmt.bits - 1) if is_signed else 0)
    p, q = (_ordered(v.astype(np.uint64), sign) for v in (x, y))
    # Distances of 64 bits wrap around as signed numbers, but not as unsigned ones.
    apart = np.where(p > q, p - q, q - p).view(np.uint64)
    with np.errstate(invalid="ignore"):
        mixed = np.isnan(a.astype(np.float64)) != np.isnan(b.astype(np.float64))
    far = np.where(mixed, np.uint64(APART), np.maximum(apart, np.uint64(1)))
    return np.asarray(np.where(x == y, np.uint64(0), far))


def _ordered(patterns: Array, sign: np.uint64) -> Array:
    """Patterns of floats as integers of the order of the numbers."""
    magnitudes = (patterns & ~sign).view(np.int64)
    return np.where(patterns & sign != 0, -magnitudes, magnitudes)
