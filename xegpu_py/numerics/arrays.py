"""Arrays of the host as memory: which addresses they span, and which of them overlap."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from xegpu_py.numerics.formats import Array

Span = tuple[int, int]
"""The address of a first byte, and that after the last byte."""


def is_masked(given: object) -> bool:
    """Whether an object is an array of numpy.ma or another subclass of numpy's arrays with a mask."""
    return isinstance(given, np.ndarray) and type(given) is not np.ndarray and hasattr(given, "mask")


def check_numbers(array: np.ndarray[Any, Any], title: str) -> None:
    """Check that an array is one of plain numbers, as kernels access it.

    Raises:
        TypeError: if it has a mask, which kernels would ignore, or elements that are no numbers in native byte order.
    """
    dtype = array.dtype
    if is_masked(array):
        raise TypeError(f"{title} must be an array without a mask, but got a masked array; pass its data or filled()")
    if not dtype.isnative and dtype.kind in "iufc":
        raise TypeError(
            f"{title} must be an array of numbers in native byte order, but got an array of {dtype}; "
            f"astype({dtype.name!r}) makes a copy in native byte order"
        )
    if dtype.hasobject or dtype.fields or dtype.kind in "SUMm" or not dtype.isnative:
        raise TypeError(f"{title} must be an array of numbers in native byte order, but got an array of {dtype}")


def span_of(array: np.ndarray[Any, Any]) -> Span:
    """The bytes between the first and the last element of an array.

    Raises:
        ValueError: if it has a negative stride, or spans more than the host's memory.
    """
    start = int(array.ctypes.data)
    if array.size == 0:
        return start, start
    if any(s < 0 for s in array.strides):
        raise ValueError("has a negative stride; use numpy.ascontiguousarray")
    end = start + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize
    if end >= 1 << 63:
        raise ValueError(f"has strides of {array.strides} bytes, which reach beyond the host's memory")
    return start, end


def memory_between(start: int, end: int) -> Array:
    """This process's memory between two addresses, uint8. The caller keeps the memory alive."""
    if start == end:
        return np.zeros(0, np.uint8)
    memory: Any = (ctypes.c_uint8 * (end - start)).from_address(start)
    return np.ndarray(end - start, np.uint8, memory)


def overlapping(spans: Sequence[Span]) -> list[list[int]]:
    """The numbers of spans in groups, ordered by their first members. Spans of different groups do not overlap."""
    groups: list[list[int]] = []
    for i, (start, end) in enumerate(spans):
        touching = [g for g in groups if any(start < spans[j][1] and spans[j][0] < end for j in g)]
        groups = [g for g in groups if g not in touching] + [[j for g in touching for j in g] + [i]]
    return sorted((sorted(g) for g in groups), key=min)


def copy_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same strides and alignment, for which a kernel has the same version."""
    made: np.ndarray[Any, Any]
    if not array.size or min(array.strides, default=0) < 0:
        made = array.copy()
        return made
    start, end = span_of(array)
    memory = np.zeros(end - start + 64, np.uint8)
    offset = (start - memory.ctypes.data) % 64
    made = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    made[...] = array
    return made
