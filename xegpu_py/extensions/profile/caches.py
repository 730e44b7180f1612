"""Caches: the reuse of lines in a trace, and which accesses a cache of a size serves."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from xegpu_py.extensions.profile.counts import LINE, Trace
from xegpu_py.numerics.formats import Array
from xegpu_py.runtime.device_memory import Buffer
from xegpu_py.visa.program import Dim

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
    distances = np.full(count, FIRST)
    distances[again] = _ranks(before)[again] - (before[again] + 1)
    return distances


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
        smaller = np.cumsum(sorting < length, axis=1)
        right = sorting >= length
        ranks[np.take_along_axis(pieces, sorting, axis=1)[right]] += smaller[right]
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
    reuse = {}
    for buffer in buffers:
        in_buffer = (trace.lines >= buffer.address // LINE) & (
            trace.lines <= (buffer.address + buffer.bytes - 1) // LINE
        )
        if in_buffer.any():
            reuse[buffer.name] = np.bincount(entries[in_buffer], minlength=last + 1).tolist()
    return reuse


WAYS = 16
"""Lines of a set of a cache, of which the least recently used one is evicted (an assumption)."""


def hits(lines: Array, capacity: int) -> Array:
    """How probably a cache of `capacity` lines serves each access.

    The number of distinct lines between two accesses of one line is that of an average stretch of the trace of the same
    length. Source: Xiang et al., HOTL: a higher order theory of locality, ASPLOS 2013. They are spread over the sets at
    random, and the line is there if fewer than `WAYS` are in its set. Source: Smith, A comparative study of set
    associative memory mapping algorithms, IEEE TSE 1978.

    Args:
        lines: int64[accesses], the lines in the order of accesses.

    Returns:
        float64[accesses].
    """
    count = len(lines)
    if not count or capacity < 1:
        return np.zeros(count)
    order = np.argsort(lines, kind="stable")
    ordered = lines[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    times = np.zeros(count, np.int64)
    times[order[same + 1]] = order[same + 1] - order[same]
    starts = np.r_[True, ordered[1:] != ordered[:-1]]
    first, last = order[starts], order[np.r_[starts[1:], True]]
    # Gaps without the line: before its first access, between two, and after the last.
    gaps = np.concatenate([first, count - 1 - last, times[times > 0] - 1])
    histogram = np.bincount(gaps, minlength=count + 1).astype(np.float64)
    longer = np.cumsum(histogram[::-1])[::-1]
    # sum over gaps g of max(g - w + 1, 0), the stretches of length w that are within a gap.
    within = np.cumsum(longer[::-1])[::-1]
    length = np.arange(1, count + 1)
    footprint = int(starts.sum()) - within[1 : count + 1] / (count - length + 1)
    each = np.maximum.accumulate(footprint) * min(WAYS, capacity) / capacity
    served, term = np.zeros(count), np.exp(-each)
    for n in range(1, min(WAYS, capacity) + 1):
        served += term
        term = term * each / n
    return np.where(times > 0, served[times - 1], 0.0)


def distinct(lines: Array) -> Array:
    """The distinct lines, sorted: `numpy.unique`, which takes several times as long."""
    ordered = np.sort(lines)
    return ordered[np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)]]


def new_lines(
    each: Mapping[int, Array], grid: Dim, buffers: Sequence[Buffer], wave: int, capacity: float, warm: bool
) -> float:
    """Lines that a launch loads from memory and stores there, if all workgroups access as those do that ran.

    The lines of a rectangle of workgroups are those of one, and for each further workgroup in x, y or z the lines that
    those which follow the middle one add on average. Workgroups run in waves, along x first. A wave finds
    in the shared cache what as many waves before it have accessed as fit there.

    Args:
        each: the lines that workgroups of a sample access, sorted, by their numbers, that of the middle one first.
        wave: workgroups that run together.
        capacity: lines of the shared cache.
        warm: whether the cache holds what an earlier launch left there.
    """
    numbers = list(each)
    middle = each[numbers[0]]
    x, y, z = grid
    parts = []
    for buffer in buffers:
        lowest, highest = buffer.address // LINE, (buffer.address + max(buffer.bytes, 1) - 1) // LINE

        def own(lines: Array, lowest: int = lowest, highest: int = highest) -> Array:
            return lines[(lines >= lowest) & (lines <= highest)]

        mine = own(middle)
        sizes = [len(own(lines)) for lines in each.values()]
        size = sum(sizes) / len(sizes)
        if not size:
            continue
        steps = []
        for step, n in zip((1, x, x * y), grid):
            following = itertools.takewhile(each.__contains__, range(numbers[0] + step, numbers[0] + step * n, step))
            others = [own(each[number]) for number in following]
            fresh = (len(distinct(np.concatenate([mine, *others]))) - len(mine)) / max(len(others), 1)
            steps.append(fresh / max(len(mine), 1))
        parts.append((size, steps, highest - lowest + 1))

    def lines_of_first(groups: float) -> float:
        """The lines of so many workgroups, along x first."""
        across = min(groups, x)
        down = min(max(groups / x, 1.0), y)
        deep = max(groups / (x * y), 1.0)
        total = 0.0
        for size, steps, most in parts:
            lines: float = size
            for step, n in zip(steps, (across, down, deep)):
                lines *= 1 + step * (n - 1)
            total += min(lines, most)
        return total

    groups = x * y * z
    whole = lines_of_first(groups)
    if whole <= capacity:
        return 0.0 if warm else whole
    waves = groups / wave
    first = lines_of_first(min(wave, groups))
    cached = 0
    # All waves do not fit.
    while lines_of_first(wave * (cached + 1)) <= capacity:
        cached += 1
    added = lines_of_first(min(wave * (cached + 1), groups)) - (lines_of_first(wave * cached) if cached else 0.0)
    return max(first + (waves - 1) * added, whole)
