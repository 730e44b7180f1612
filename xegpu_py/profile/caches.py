"""Caches: the reuse of lines in a trace, and which accesses a cache of a size serves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xegpu_py.numerics.formats import Array
from xegpu_py.profile.counts import LINE, Trace
from xegpu_py.runtime.device_memory import Buffer

FIRST = -1
"""The reuse distance of the first access of a line."""


def reuse_distances(lines: Array) -> Array:
    """For each access of a line the number of other lines that were accessed since the last access of this one.

    A fully associative cache of n lines that evicts the least recently used one has the line if that number is less
    than n.

    Args:
        lines: int64[accesses], the lines in the order of accesses.

    Returns:
        int64[accesses], `FIRST` for the first access of each line.
    """
    count = len(lines)
    if not count:
        return np.zeros(0, np.int64)
    order = np.argsort(lines, kind="stable")
    same = np.r_[False, lines[order][1:] == lines[order][:-1]]
    before = np.full(count, -1)
    before[order[same]] = order[np.flatnonzero(same) - 1]
    # The accesses between that are first ones since `before` are those whose own last access was no later than it; all
    # accesses up to `before` have that property too.
    again = before >= 0
    found = np.full(count, FIRST)
    found[again] = _ranks(before)[again] - (before[again] + 1)
    return found


def _ranks(values: Array) -> Array:
    """For each value the number of earlier values that are not greater; by merging sorted pieces of growing size."""
    count = len(values)
    size = 1 << max(count - 1, 1).bit_length()
    wide = np.full(size, np.iinfo(np.int64).max)
    wide[:count] = values
    order = np.arange(size)
    ranks = np.zeros(size, np.int64)
    length = 1
    while length < size:
        pieces = order.reshape(-1, 2 * length)
        keys = wide[pieces]
        # A stable sort puts equal values of the left half first.
        sorting = np.argsort(keys, axis=1, kind="stable")
        left = np.cumsum(sorting < length, axis=1)
        right = sorting >= length
        ranks[np.take_along_axis(pieces, sorting, axis=1)[right]] += left[right]
        order = np.take_along_axis(pieces, sorting, axis=1).ravel()
        length *= 2
    return ranks[:count]


def reuse_of(trace: Trace, buffers: Sequence[Buffer]) -> dict[str, list[int]]:
    """By buffer the number of accesses at each reuse distance, in powers of two; see `profiles.Profile`."""
    distances = reuse_distances(trace.lines)
    # Distances below 2^n are in entries up to n.
    entries = np.where(distances > 0, np.floor(np.log2(np.maximum(distances, 1))).astype(np.int64) + 1, 0)
    last = int(entries.max(initial=0)) + 1
    entries[distances == FIRST] = last
    found = {}
    for buffer in buffers:
        own = (trace.lines >= buffer.address // LINE) & (trace.lines <= (buffer.address + buffer.bytes - 1) // LINE)
        if own.any():
            found[buffer.name] = np.bincount(entries[own], minlength=last + 1).tolist()
    return found
