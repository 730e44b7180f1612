"""Boxes of elements in a shape: how to split them, and their position in another shape of the same elements."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

Shape = tuple[int, ...]
Box = tuple[tuple[int, int], ...]
"""(first, count) along each dimension."""

Bounds = tuple[tuple[int, ...], ...]
"""Sizes of the segments into which each dimension is split."""


def whole(shape: Shape) -> Box:
    """The box of all elements."""
    return tuple((0, n) for n in shape)


def sizes(box: Box) -> Shape:
    """A box's shape."""
    return tuple(n for _, n in box)


def segments(extent: int, splits: Iterable[int]) -> tuple[int, ...]:
    """Sizes of the pieces of `extent` elements that are split before these positions."""
    places = [0, *sorted(c for c in set(splits) if 0 < c < extent), extent]
    return tuple(b - a for a, b in itertools.pairwise(places))


def joined(pieces: Sequence[int], most: int) -> tuple[int, ...]:
    """Join neighbouring segments while their total size is at most this limit."""
    found = [pieces[0]]
    for piece in pieces[1:]:
        if found[-1] + piece <= most:
            found[-1] += piece
        else:
            found.append(piece)
    return tuple(found)


@lru_cache(maxsize=1024)
def starts(pieces: tuple[int, ...]) -> tuple[int, ...]:
    """The first positions of consecutive pieces of these sizes."""
    return (0, *itertools.accumulate(pieces[:-1]))


def grid(bounds: Bounds) -> Iterator[Box]:
    """The pieces in row-major order."""
    lines = [list(zip(starts(pieces), pieces)) for pieces in bounds]
    return itertools.product(*lines)


def touched(bounds: Bounds, box: Box) -> list[range]:
    """Along each dimension, the segments that a box overlaps."""
    found = []
    for pieces, (first, count) in zip(bounds, box):
        places = starts(pieces)
        found.append(range(bisect_right(places, first) - 1, bisect_left(places, first + count)))
    return found


def groups(a: Shape, b: Shape) -> list[tuple[range, range]] | None:
    """Group the dimensions of two shapes such that the extents of each group have the same product in both.

    None if the shapes differ in their number of elements.
    """
    if math.prod(a) != math.prod(b):
        return None
    found = []
    i = j = 0
    while i < len(a) or j < len(b):
        first_i, first_j = i, j
        left = a[i] if i < len(a) else 1
        right = b[j] if j < len(b) else 1
        i, j = min(i + 1, len(a)), min(j + 1, len(b))
        while left != right:
            if left < right:
                left *= a[i]
                i += 1
            else:
                right *= b[j]
                j += 1
        found.append((range(first_i, i), range(first_j, j)))
    return found


def linear(shape: Shape, box: Box) -> tuple[int, int] | None:
    """(first, count) of a box in row-major order; None if its elements are not consecutive."""
    first, count, open_ = 0, 1, False
    for extent, (start, size) in zip(shape, box):
        if open_ and size != extent:
            return None
        first, count = first * extent + start, count * size
        open_ = open_ or size > 1
    return first, count


def unlinear(shape: Shape, first: int, count: int) -> Box | None:
    """The box of the `count` elements that start at `first` in row-major order; None if they form no box."""
    box: list[tuple[int, int]] = []
    for d, extent in enumerate(shape):
        inner = math.prod(shape[d + 1 :])
        if count >= inner and count % inner == 0 and first % inner == 0:
            start, size = first // inner, count // inner
            if start + size > extent:
                return None
            return (*box, (start, size), *whole(shape[d + 1 :]))
        start = first // inner
        if (first + count - 1) // inner != start:
            return None
        box.append((start, 1))
        first -= start * inner
    return tuple(box)


def reshape(box: Box, a: Shape, b: Shape) -> Box | None:
    """A box of shape `a` as a box of shape `b`; None if its elements form no box there."""
    parts = groups(a, b)
    if parts is None:
        return None
    found: list[tuple[int, int]] = []
    for left, right in parts:
        place = linear(tuple(a[d] for d in left), tuple(box[d] for d in left))
        inside = place and unlinear(tuple(b[d] for d in right), *place)
        if inside is None:
            return None
        found += inside
    return tuple(found)


def reshape_splits(splits: Sequence[set[int]], a: Shape, b: Shape) -> list[set[int]]:
    """The splits of shape `a` that are also splits of shape `b`: those between whole slices of a dimension of `b`."""
    result: list[set[int]] = [set() for _ in b]
    for left, right in groups(a, b) or []:
        outer = next((d for d in left if a[d] > 1), None)
        place = next((d for d in right if b[d] > 1), None)
        if outer is None or place is None:
            continue
        step = math.prod(a[d] for d in left if d > outer)
        inner = math.prod(b[d] for d in right if d > place)
        for at in splits[outer]:
            if at * step % inner == 0:
                result[place].add(at * step // inner)
        # An innermost dimension that both shapes have keeps its splits.
        last_a, last_b = left[-1], right[-1]
        if len(left) > 1 and len(right) > 1 and a[last_a] == b[last_b] and last_b != place:
            result[last_b] |= set(splits[last_a])
    return result
