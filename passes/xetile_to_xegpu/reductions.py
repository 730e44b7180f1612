"""Reductions and broadcasts, as ops of vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir
from mlir.dialects import vector
from xegpu_py.passes.common.combining import identity
from xegpu_py.passes.xetile.vectors import combine, cut, element_of, shape_of, splat, vector_type

from xegpu_py.ir.builtin import bit_width

ROWS, LINE_BYTES = 8, 64
"""Rows, and bytes of a row, that a reduction combines with their like before it combines what is in them.

This is the order of sums that docs/xetile.md gives; it has nothing to do with what the hardware has.
"""


def reduce(view: Any, value: ir.Value) -> ir.Value:
    """A reduction along a dimension, of all elements or of groups of them."""
    (dim,) = view.dims
    result, kind, element = shape_of(view.result), view.kind.value, element_of(value)
    if result[dim] > 1:
        return _reduced(kind, value, dim, result)
    size, block = shape_of(value)[dim], ROWS if dim == 0 else LINE_BYTES * 8 // max(_bits(element), 8)
    groups: dict[int, list[ir.Value]] = {}
    for start in range(0, size, block):
        extent = tuple(min(block, size - start) if i == dim else n for i, n in enumerate(shape_of(value)))
        part = cut(value, [start if i == dim else 0 for i in range(2)], extent)
        groups.setdefault(extent[dim], []).append(part)
    return _tree(kind, [_reduced(kind, _tree(kind, group), dim, result) for group in groups.values()])


def _bits(element: str) -> int:
    return 64 if element == "index" else bit_width(element)


def _tree(kind: str, values: Sequence[ir.Value]) -> ir.Value:
    """All values combined, neighbours first."""
    left = list(values)
    while len(left) > 1:
        pairs = [combine(kind, a, b) for a, b in zip(left[::2], left[1::2])]
        left = pairs + ([left[-1]] if len(left) % 2 else [])
    return left[0]


def _reduced(kind: str, value: ir.Value, dim: int, result: tuple[int, ...]) -> ir.Value:
    """A reduction as one op."""
    shape, element = shape_of(value), element_of(value)
    size = shape[dim] // result[dim]
    if size == 1:
        return value
    if result[dim] > 1:
        apart = (*shape[:dim], result[dim], size, *shape[dim + 1 :])
        value = vector.shape_cast(vector_type(apart, element), value)
    axis = dim + (result[dim] > 1)
    left = tuple(n for i, n in enumerate(shape_of(value)) if i != axis)
    start = splat(vector_type(left, element), identity(kind, ir.Type.parse(element)))
    found = ir.Operation.create(
        "vector.multi_reduction",
        results=[vector_type(left, element)],
        operands=[value, start],
        attributes={
            "kind": ir.Attribute.parse(f"#vector.kind<{kind}>"),
            "reduction_dims": ir.DenseI64ArrayAttr.get([axis]),
        },
    ).result
    return vector.shape_cast(vector_type(result, element), found)


def broadcast(view: Any, value: ir.Value) -> ir.Value:
    """Elements repeated along a dimension."""
    (dim,) = view.dims
    element, kind = element_of(value), view.result.type
    times = view.broadcast_size
    if times is None or shape_of(value)[dim] == 1:
        return vector.broadcast(kind, value)
    shape = shape_of(value)
    apart = (*shape[: dim + 1], 1, *shape[dim + 1 :])
    wide = (*shape[: dim + 1], times, *shape[dim + 1 :])
    lined = vector.shape_cast(vector_type(apart, element), value)
    return vector.shape_cast(kind, vector.broadcast(vector_type(wide, element), lined))
