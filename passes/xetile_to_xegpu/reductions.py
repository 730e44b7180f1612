"""Lowers reductions and broadcasts to ops of the vector dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects.xetile.compute import reduced_block
from xegpu_py.ir.combining import CombiningKind
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import constant, extract_slice, i64_array, make, shape_cast, with_shape
from xegpu_py.passes.common.values import bits_of, element_of, shape_of


def reduce(view: Any, value: ir.Value) -> ir.Value:
    """Reduce all elements, or groups of elements, along a dimension."""
    (dim,) = view.dims
    result, kind, element = shape_of(view.result), view.kind, element_of(value)
    if result[dim] > 1:
        return _reduced(kind, value, dim, result)
    size, block = shape_of(value)[dim], reduced_block(dim, _bits(element))
    groups: dict[int, list[ir.Value]] = {}
    for start in range(0, size, block):
        extent = tuple(min(block, size - start) if i == dim else n for i, n in enumerate(shape_of(value)))
        part = extract_slice(value, [start if i == dim else 0 for i in range(2)], extent)
        groups.setdefault(extent[dim], []).append(part)
    return _tree(kind, [_reduced(kind, _tree(kind, group), dim, result) for group in groups.values()])


def _bits(element: ir.Type) -> int:
    return 64 if isinstance(element, ir.IndexType) else bits_of(element)


def _tree(kind: CombiningKind, values: Sequence[ir.Value]) -> ir.Value:
    """Combine all values, adjacent ones first."""
    left = list(values)
    while len(left) > 1:
        pairs = [kind.combine(a, b) for a, b in zip(left[::2], left[1::2])]
        left = pairs + ([left[-1]] if len(left) % 2 else [])
    return left[0]


def _reduced(kind: CombiningKind, value: ir.Value, dim: int, result: tuple[int, ...]) -> ir.Value:
    """Reduce by one op."""
    shape = shape_of(value)
    size = shape[dim] // result[dim]
    if size == 1:
        return value
    if result[dim] > 1:
        value = shape_cast(value, (*shape[:dim], result[dim], size, *shape[dim + 1 :]))
    axis = dim + (result[dim] > 1)
    left = with_shape(value.type, [n for i, n in enumerate(shape_of(value)) if i != axis])
    start = constant(left, kind.identity(left.element_type))
    attributes = {"kind": kind.attribute, "reduction_dims": i64_array([axis])}
    return shape_cast(make("vector.multi_reduction", left, value, start, **attributes), result)


def broadcast(view: Any, value: ir.Value) -> ir.Value:
    """Repeat elements along a dimension."""
    (dim,) = view.dims
    times, shape = view.broadcast_size, shape_of(value)
    if times is None or shape[dim] == 1:
        return build.broadcast(value, view.result.type)
    grouped = shape_cast(value, (*shape[: dim + 1], 1, *shape[dim + 1 :]))
    wide = with_shape(value.type, (*shape[: dim + 1], times, *shape[dim + 1 :]))
    return shape_cast(build.broadcast(grouped, wide), shape_of(view.result))
