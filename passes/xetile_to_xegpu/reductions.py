"""Reductions and broadcasts of blocks, as ops of vector."""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import vector
from xegpu_py.passes.common.combining import identity
from xegpu_py.passes.xetile.vectors import element_of, shape_of, splat, vector_type


def reduce(view: Any, value: ir.Value) -> ir.Value:
    """A reduction along a dimension, of all elements or of groups of them."""
    (dim,) = view.dims
    shape, element = shape_of(value), element_of(value)
    result = shape_of(view.result)
    size = shape[dim] // result[dim]
    if size == 1:
        return value
    kind = view.kind.value
    apart = (*shape[:dim], result[dim], size, *shape[dim + 1 :])
    left = tuple(n for i, n in enumerate(apart) if i != dim + 1)
    if result[dim] == 1:
        apart = shape
        left = tuple(n for i, n in enumerate(shape) if i != dim)
    else:
        value = vector.shape_cast(vector_type(apart, element), value)
    axis = dim if result[dim] == 1 else dim + 1
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
