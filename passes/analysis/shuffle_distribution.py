"""Ops that move elements along a dimension of a workgroup's vectors, and the maps under which subgroups can do so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xetile import WgMap
from xegpu_py.dialects.xetile.ops import subgroups
from xegpu_py.passes.analysis.integer_ranges import INDEX_BITS
from xegpu_py.passes.analysis.ir_queries import bits_of, element_of, is_vector, shape_of

LANES = 16
"""The least number of columns of a subgroup's part if the number of columns can be chosen."""

ACROSS = (
    "vector.shuffle", "vector.extract_strided_slice", "vector.insert_strided_slice", "vector.interleave",
    "vector.deinterleave",
)  # fmt: skip
"""Ops that move elements along a dimension."""

MOST_WHOLE = 512
"""The most bytes of a vector of which each subgroup has the whole, although it could be divided."""

MOST_RUNS = 64
"""The most runs of which a part is put together."""


class Run(Struct, frozen=True):
    """Equally distant rows of a vector that follow each other in parts of another one.

    Attributes:
        first: the first row in the part.
        count: how many rows.
        step: rows from one to the next in the source.
        starts: for each part, the first row in the source.
    """

    first: int
    count: int
    step: int
    starts: tuple[int, ...]


def moved_along(op: ir.Operation) -> int | None:
    """The dimension of a vector along which an op moves elements; None if it moves them along both."""
    if op.name in ("vector.shuffle", "vector.interleave", "vector.deinterleave"):
        return 0 if op.name == "vector.shuffle" else len(shape_of(op.results[0])) - 1
    shapes = [shape_of(v) for v in (op.operands[0], op.results[0])]
    if len(shapes[0]) != len(shapes[1]):
        return None
    dims = [d for d, (a, b) in enumerate(zip(*shapes)) if a != b]
    return dims[0] if len(dims) == 1 else 0 if not dims else None


def places_of(op: ir.Operation) -> tuple[int, ...] | None:
    """The rows of an op's operands, one after the other, that are the rows of its result; None for other ops."""
    if op.name == "vector.shuffle":
        return tuple(ir.DenseI64ArrayAttr(op.attributes["mask"]))
    if op.name == "vector.extract_strided_slice" and moved_along(op) == 0:
        offsets = [ir.IntegerAttr(n).value for n in ir.ArrayAttr(op.attributes["offsets"])]
        return tuple(range(offsets[0], offsets[0] + shape_of(op.results[0])[0]))
    return None


def local_places(op: ir.Operation, parts: int) -> tuple[int, ...] | None:
    """The rows of parts of a shuffle's operands that are the rows of a part of its result; None if parts differ."""
    (first, *_), (second, *_) = (shape_of(v) for v in op.operands)
    return _local_places(places_of(op) or (), first, second, parts)


@lru_cache(maxsize=1024)
def _local_places(places: tuple[int, ...], first: int, second: int, parts: int) -> tuple[int, ...] | None:
    a, b, size = first // parts, second // parts, len(places) // parts
    if parts * (a + b) != first + second or parts * size != len(places):
        return None

    def local(n: int, place: int) -> int | None:
        here = place - n * a if place < first else place - first - n * b + a
        within = 0 <= here < a if place < first else a <= here < a + b
        return here if within else None

    found = [local(0, p) for p in places[:size]]
    for n in range(parts):
        if None in found or [local(n, p) for p in places[n * size : (n + 1) * size]] != found:
            return None
    return tuple(p for p in found if p is not None)


def is_local(op: ir.Operation, parts: int) -> bool:
    """Whether equal parts along the dimension exchange no elements."""
    dim = moved_along(op)
    if dim is None:
        return False
    if parts == 1:
        return True
    if any(shape_of(v)[dim] % parts for v in (*op.operands, *op.results) if is_vector(v)):
        return False
    if op.name == "vector.shuffle":
        return local_places(op, parts) is not None
    return op.name in ("vector.interleave", "vector.deinterleave")


@lru_cache(maxsize=1024)
def runs_of(places: tuple[int, ...], parts: int) -> tuple[Run, ...] | None:
    """The runs of which equal parts of an op's result are put together; None if there are too many, or parts differ."""
    size = len(places) // parts
    if parts * size != len(places) or min(places) < 0:
        return None
    cut = [_cut(places[n * size : (n + 1) * size]) for n in range(parts)]
    if len(cut[0]) > MOST_RUNS or any([r[:3] for r in c] != [r[:3] for r in cut[0]] for c in cut):
        return None
    return tuple(Run(*run[:3], tuple(c[i][3] for c in cut)) for i, run in enumerate(cut[0]))


def _cut(places: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Runs: the first place, the number of places, the step, and the first row."""
    found = []
    at = 0
    while at < len(places):
        end = at + 1
        step = places[end] - places[at] if end < len(places) else 1
        while step and end < len(places) and places[end] - places[end - 1] == step:
            end += 1
        found.append((at, end - at, step if end - at > 1 else 1, places[at]))
        at = end
    return found


def across(op: ir.Operation, given: ir.Value, other: ir.Value, wg_map: WgMap | None) -> WgMap | None:
    """The map of an operand or result of an op that moves elements, from that of another one.

    It is the same division if parts exchange no elements. Otherwise each subgroup has the whole extent of the dimension
    along which elements move, and the other dimension is divided if each part has enough lanes. Rows of large vectors
    that cannot be divided in this way go through shared memory, and any division will do.
    """
    shape = shape_of(given)
    if wg_map is None or len(shape) > 2 or len(shape_of(other)) != len(shape):
        return None
    count, dim = subgroups(wg_map), moved_along(op)
    whole = WgMap((count, *[1] * (len(shape) - 1)), shape)
    if dim is None:
        return whole
    parts = shape_of(other)[dim] // wg_map.sg_data[dim]
    if is_local(op, parts):
        data = tuple(n // parts if d == dim else wg_map.sg_data[d] for d, n in enumerate(shape))
        return WgMap(wg_map.sg_layout, data)
    owners = 1
    if len(shape) == 2:
        size, least = shape[1 - dim], 1 if dim else LANES
        fitting = (n for n in range(2, count + 1) if count % n == size % n == 0 and size // n >= least)
        owners = max(fitting, default=1)
        layout, parts_of = [count // owners] * 2, list(shape)
        layout[1 - dim], parts_of[1 - dim] = owners, size // owners
        whole = WgMap(tuple(layout), tuple(parts_of))
    # All operands and results must come to the same decision.
    element = element_of(given)
    bits = INDEX_BITS if isinstance(element, ir.IndexType) else bits_of(element)
    most = max(math.prod(shape_of(v)) * bits // 8 for v in (*op.operands, *op.results))
    if owners == count or most // owners <= MOST_WHOLE or places_of(op) is None:
        return whole
    return even_map(shape, count)


def part(size: int, count: int, least: int) -> int:
    """The elements of a dimension that each of `count` subgroups has: at least `least`, if there are as many."""
    return min((n for n in range(least, size) if size % n == 0 and count % (size // n) == 0), default=size)


def even_map(shape: tuple[int, ...], count: int, columns: bool = False) -> WgMap:
    """The map that divides rows among as many of `count` subgroups as possible, and columns among the rest.

    With `columns` columns are divided first. Remaining subgroups have the same parts as others.
    """
    if len(shape) == 1:
        return WgMap((count,), (part(shape[0], count, LANES),))
    leasts = (1, LANES)
    first = int(columns)
    data, layout = list(shape), [1, 1]
    data[first] = part(shape[first], count, leasts[first])
    layout[first] = shape[first] // data[first]
    layout[1 - first] = count // layout[first]
    data[1 - first] = part(shape[1 - first], layout[1 - first], leasts[1 - first])
    return WgMap((layout[0], layout[1]), (data[0], data[1]))
