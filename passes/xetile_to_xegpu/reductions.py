"""Reductions and broadcasts of blocks, as ops of vector."""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import vector
from xegpu_py.passes.xetile.vectors import constant, element_of, shape_of, vector_type

from xegpu_py.ir.builtin import bit_width, is_float

_INFINITY = {
    "f16": ("0x7C00", "0xFC00"),
    "bf16": ("0x7F80", "0xFF80"),
    "f32": ("0x7F800000", "0xFF800000"),
    "f64": ("0x7FF0000000000000", "0xFFF0000000000000"),
}


def neutral(kind: str, element: str) -> str:
    """The number that changes nothing when it is combined with another one."""
    if is_float(element):
        if kind in ("add", "mul"):
            return "-0.0" if kind == "add" else "1.0"
        return _INFINITY[element]["max" in kind]
    bits = bit_width(element)
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    return str({"mul": 1, "and": -1, "minui": -1, "minsi": most, "maxsi": least}.get(kind, 0))


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
    start = constant(vector_type(left, element), neutral(kind, element))
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
