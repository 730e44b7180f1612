"""Arrays of 2-bit and 4-bit elements: conversion between packed bytes (first element lowest) and one element a byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xegpu_py.numerics.formats import Array

ARRAYS: dict[str, tuple[str, ...]] = {
    **{f"{sign}i4": ("int4", "uint4") for sign in ("", "s", "u")},
    **{f"{sign}i2": ("int2", "uint2") for sign in ("", "s", "u")},
    "f4E2M1FN": ("float4_e2m1fn",),
}
"""The MLIR element types of less than a byte, and the types of ml_dtypes that store one element in a byte."""


def element_bits(element: str) -> int:
    """The width of an element type of less than a byte in bits; 0 for other types."""
    return int(element.lstrip("suif")[0]) if element in ARRAYS else 0


def pack_bytes(values: Array, bits: int) -> Array:
    """Pack elements, uint8[..., n], one a byte, along the last axis. The last packed byte is padded with zeros."""
    *lead, count = values.shape
    each = 8 // bits
    padded = np.zeros((*lead, -(-count // each), each), np.uint8)
    padded.reshape(*lead, -1)[..., :count] = values & np.uint8((1 << bits) - 1)
    found: Array = np.bitwise_or.reduce(padded << np.arange(0, 8, bits, dtype=np.uint8), axis=-1)
    return found


def unpack_bytes(packed: Array, bits: int) -> Array:
    """Unpack bytes, uint8[..., n], along the last axis: one element a byte, zero-extended."""
    fields = packed[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    found: Array = fields.reshape(*packed.shape[:-1], -1)
    return found


class PackedArrays:
    """The packed copies of a launch's arrays of one element a byte; changes are copied back after the launch."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], tuple[Array, Array, Array, int]] = {}

    def pack(self, argument: Any, element: str, title: str) -> Any:
        """The packed copy of an array of ml_dtypes' type for an element; other arguments are returned unchanged.

        Args:
            element: MLIR's name of the element type.
            title: the array's name in errors.

        Returns:
            uint8[..., n / elements of a byte], with the array's strides in whole bytes.

        Raises:
            ValueError: if rows of the packed array would not begin at bytes, or the array overlaps another one.
        """
        names = ARRAYS.get(element, ())
        if not isinstance(argument, np.ndarray) or argument.dtype.name not in names:
            return argument
        bits = element_bits(element)
        each = 8 // bits
        strides = [s if n > 1 else 0 for s, n in zip(argument.strides, argument.shape)]
        if strides and strides[-1] not in (0, 1):
            raise ValueError(f"{title} has elements that do not lie side by side; numpy.ascontiguousarray makes it so")
        if any(s < 0 for s in strides) or any(s % each for s in strides[:-1]):
            raise ValueError(f"{title} has rows that begin within a byte when packed; let them be multiples of {each}")
        count = sum((n - 1) * s for n, s in zip(argument.shape, strides)) + 1 if argument.size else 0
        start = int(argument.ctypes.data)
        for (other, size), _ in self._held.items():
            if start < other + size and other < start + count and (other, size) != (start, count):
                raise ValueError(f"{title} overlaps another array of elements of {bits} bits; give a copy")
        if (start, count) not in self._held:
            flat: Array = np.lib.stride_tricks.as_strided(argument.view(np.uint8), (count,), (1,))
            packed = pack_bytes(flat, bits)
            packed.flags.writeable = argument.flags.writeable
            self._held[start, count] = (flat, packed, packed.copy(), bits)
        packed = self._held[start, count][1]
        shape = (*argument.shape[:-1], -(-argument.shape[-1] // each)) if argument.ndim else ()
        steps = (*(s // each for s in strides[:-1]), 1) if argument.ndim else ()
        if argument.flags.c_contiguous:
            return packed.reshape(shape)
        found: Array = np.lib.stride_tricks.as_strided(packed, shape, steps, writeable=argument.flags.writeable)
        return found

    def write_back(self) -> None:
        """Copy changes of the packed copies back to the arrays."""
        for flat, packed, before, bits in self._held.values():
            changed = np.flatnonzero(packed != before)
            each = 8 // bits
            places = (changed[:, None] * each + np.arange(each)).ravel()
            values = unpack_bytes(packed[changed], bits)
            flat[places[places < len(flat)]] = values[places < len(flat)]


def packed_shape(shape: Sequence[int | None], element: str) -> tuple[int | None, ...]:
    """The shape of a packed array in bytes; None for unknown extents."""
    bits = element_bits(element)
    if not bits or not shape or shape[-1] is None:
        return tuple(shape)
    return (*shape[:-1], -(-shape[-1] * bits // 8))
