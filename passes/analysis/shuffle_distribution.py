"""Distribution of vector shuffles: the maps under which subgroups can move elements along a dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xetile import WgMap
from xegpu_py.dialects.xetile.ops import subgroups
from xegpu_py.passes.analysis.integer_analysis import INDEX_BITS
from xegpu_py.passes.analysis.ir_queries import bits_of, element_of, is_vector, shape_of

LEAST_COLUMNS = 16
"""The least number of columns of a subgroup's part if the map can be chosen."""

SHUFFLE_OPS = (
    "vector.shuffle", "vector.extract_strided_slice", "vector.insert_strided_slice", "vector.interleave",
    "vector.deinterleave",
)  # fmt: skip
"""Ops that move elements along a dimension."""

MOST_REPLICATED_BYTES = 512
"""The most bytes of a vector that is replicated in all subgroups although it could be divided."""

MOST_RUNS = 64
"""The most runs that form a subgroup's part."""


class LaneRun(Struct, frozen=True):
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


def moved_dim(op: ir.Operation) -> int | None:
    """The dimension of a vector along which an op moves elements; None if it moves them along both."""
    if op.name in ("vector.shuffle", "vector.interleave", "vector.deinterleave"):
        return 0 if op.name == "vector.shuffle" else len(shape_of(op.results[0])) - 1
    shapes = [shape_of(v) for v in (op.operands[0], op.results[0])]
    if len(shapes[0]) != len(shapes[1]):
        return None
    dims = [d for d, (a, b) in enumerate(zip(*shapes)) if a != b]
    return dims[0] if len(dims) == 1 else 0 if not dims else None


def shuffled_rows(op: ir.Operation) -> tuple[int, ...] | None:
    """The rows of an op's operands, one after the other, that are the rows of its result; None for other ops."""
    if op.name == "vector.shuffle":
        return tuple(ir.DenseI64ArrayAttr(op.attributes["mask"]))
    if op.name == "vector.extract_strided_slice" and moved_dim(op) == 0:
        offsets = [ir.IntegerAttr(n).value for n in ir.ArrayAttr(op.attributes["offsets"])]
        return tuple(range(offsets[0], offsets[0] + shape_of(op.results[0])[0]))
    return None


def local_rows(op: ir.Operation, parts: int) -> tuple[int, ...] | None:
    """The shuffle of rows within one part of the operands and the result; None if it differs among parts."""
    (first, *_), (second, *_) = (shape_of(v) for v in op.operands)
    return _local_rows(shuffled_rows(op) or (), first, second, parts)


@lru_cache(maxsize=1024)
def _local_rows(rows: tuple[int, ...], first: int, second: int, parts: int) -> tuple[int, ...] | None:
    a, b, size = first // parts, second // parts, len(rows) // parts
    if parts * (a + b) != first + second or parts * size != len(rows):
        return None

    def local(n: int, row: int) -> int | None:
        local_row = row - n * a if row < first else row - first - n * b + a
        in_part = 0 <= local_row < a if row < first else a <= local_row < a + b
        return local_row if in_part else None

    first_rows = [local(0, p) for p in rows[:size]]
    for n in range(parts):
        if None in first_rows or [local(n, p) for p in rows[n * size : (n + 1) * size]] != first_rows:
            return None
    return tuple(p for p in first_rows if p is not None)


def is_local(op: ir.Operation, parts: int) -> bool:
    """Return whether equal parts along the dimension exchange no elements."""
    dim = moved_dim(op)
    if dim is None:
        return False
    if parts == 1:
        return True
    if any(shape_of(v)[dim] % parts for v in (*op.operands, *op.results) if is_vector(v)):
        return False
    if op.name == "vector.shuffle":
        return local_rows(op, parts) is not None
    return op.name in ("vector.interleave", "vector.deinterleave")


@lru_cache(maxsize=1024)
def runs_of(rows: tuple[int, ...], parts: int) -> tuple[LaneRun, ...] | None:
    """The runs that form each of the equal parts of an op's result; None if there are too many, or parts differ."""
    size = len(rows) // parts
    if parts * size != len(rows) or min(rows) < 0:
        return None
    part_runs = [_equal_steps(rows[n * size : (n + 1) * size]) for n in range(parts)]
    if len(part_runs[0]) > MOST_RUNS or any([r[:3] for r in c] != [r[:3] for r in part_runs[0]] for c in part_runs):
        return None
    return tuple(LaneRun(*run[:3], tuple(c[i][3] for c in part_runs)) for i, run in enumerate(part_runs[0]))


def _equal_steps(rows: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Split rows into runs of constant step: first position, number of rows, step and first row."""
    runs = []
    first = 0
    while first < len(rows):
        stop = first + 1
        step = rows[stop] - rows[first] if stop < len(rows) else 1
        while step and stop < len(rows) and rows[stop] - rows[stop - 1] == step:
            stop += 1
        runs.append((first, stop - first, step if stop - first > 1 else 1, rows[first]))
        first = stop
    return runs


def shuffle_map(op: ir.Operation, value: ir.Value, source: ir.Value, wg_map: WgMap | None) -> WgMap | None:
    """The map of an operand or result of an op that moves elements, from that of another one.

    It is the same division if parts exchange no elements. Otherwise each subgroup has the whole extent of the dimension
    along which elements move, and the other dimension is divided if each part has enough lanes. Rows of large vectors
    that cannot be divided in this way go through shared memory, and any division will do.
    """
    shape = shape_of(value)
    if wg_map is None or len(shape) > 2 or len(shape_of(source)) != len(shape):
        return None
    count, dim = subgroups(wg_map), moved_dim(op)
    whole = WgMap((count, *[1] * (len(shape) - 1)), shape)
    if dim is None:
        return whole
    parts = shape_of(source)[dim] // wg_map.sg_data[dim]
    if is_local(op, parts):
        data = tuple(n // parts if d == dim else wg_map.sg_data[d] for d, n in enumerate(shape))
        return WgMap(wg_map.sg_layout, data)
    owners = 1
    if len(shape) == 2:
        size, least = shape[1 - dim], 1 if dim else LEAST_COLUMNS
        fitting = (n for n in range(2, count + 1) if count % n == size % n == 0 and size // n >= least)
        owners = max(fitting, default=1)
        layout, parts_of = [count // owners] * 2, list(shape)
        layout[1 - dim], parts_of[1 - dim] = owners, size // owners
        whole = WgMap(tuple(layout), tuple(parts_of))
    # All operands and results must come to the same decision.
    element = element_of(value)
    bits = INDEX_BITS if isinstance(element, ir.IndexType) else bits_of(element)
    most = max(math.prod(shape_of(v)) * bits // 8 for v in (*op.operands, *op.results))
    if owners == count or most // owners <= MOST_REPLICATED_BYTES or shuffled_rows(op) is None:
        return whole
    return even_map(shape, count)


def part_size(size: int, count: int, least: int) -> int:
    """The elements of a dimension that each of `count` subgroups has: at least `least`, if there are as many."""
    return min((n for n in range(least, size) if size % n == 0 and count % (size // n) == 0), default=size)


def even_map(shape: tuple[int, ...], count: int, columns: bool = False) -> WgMap:
    """The map that divides rows among as many of `count` subgroups as possible, and columns among the rest.

    With `columns` columns are divided first. Remaining subgroups have the same parts as others.
    """
    if len(shape) == 1:
        return WgMap((count,), (part_size(shape[0], count, LEAST_COLUMNS),))
    leasts = (1, LEAST_COLUMNS)
    first = int(columns)
    data, layout = list(shape), [1, 1]
    data[first] = part_size(shape[first], count, leasts[first])
    layout[first] = shape[first] // data[first]
    layout[1 - first] = count // layout[first]
    data[1 - first] = part_size(shape[1 - first], layout[1 - first], leasts[1 - first])
    return WgMap((layout[0], layout[1]), (data[0], data[1]))
