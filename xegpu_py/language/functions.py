"""Functions of the tile language that create values, choose between them, and query the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, gpu, vector

from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import vector_text
from xegpu_py.language import types
from xegpu_py.language.held import BUILDING, static_extent, static_shape
from xegpu_py.language.types import dtype_of
from xegpu_py.language.values import Product, Value, both, constant, value_of

_DIMENSIONS = ("x", "y", "z")


def full(shape: int | Sequence[int], value: Any, dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A line or matrix of one number, or of a scalar of the kernel."""
    if isinstance(value, Value):
        return value.to(dtype).broadcast(static_shape(shape))
    return constant(dtype_of(dtype), value, static_shape(shape), map)


def zeros(shape: int | Sequence[int], dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A line or matrix of zeros."""
    return full(shape, 0, dtype, map)


def ones(shape: int | Sequence[int], dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A line or matrix of ones."""
    return full(shape, 1, dtype, map)


def zeros_like(value: Value) -> Value:
    """Zeros of a value's shape and type."""
    return zeros(value.shape, value.dtype)


def arange(start: int, end: int | None = None, map: WgMap | None = None) -> Value:
    """The indices from `start` up to `end`, or from 0 up to `start` without `end`, as a line of type index.

    Raises:
        ValueError: if the range is empty.
        TypeError: if the bounds are not known at compile time.
    """
    BUILDING.check()
    first, last = (static_extent(n, "a bound of arange") for n in ((0, start) if end is None else (start, end)))
    if last <= first:
        raise ValueError(f"arange({first}, {last}) has no elements")
    made = vector.step(mlir.Type.parse(vector_text((last - first,), "index")))
    if map is not None:
        made.owner.operation.attributes["map"] = map.to_ir()
    found = Value(made, types.index)
    return found + first if first else found


def where(condition: Any, x: Any, y: Any) -> Value:
    """Elements of `x` where the condition holds, and of `y` elsewhere, by numpy's broadcasting."""
    chosen = value_of(condition).to(types.bool_)
    if isinstance(x, (Value, Product)) or isinstance(y, (Value, Product)):
        one, other = both(x, y)
    else:
        dtype = types.promote(types.of_scalar(x), types.of_scalar(y))
        one, other = constant(dtype, x), constant(dtype, y)
    shape = tuple(np.broadcast_shapes(chosen.shape, one.shape))
    made = arith.select(chosen.broadcast(shape).ir, one.broadcast(shape).ir, other.broadcast(shape).ir)
    return one._made(made, shape=shape)


def subgroup_id() -> Value:
    """The number of the subgroup in its workgroup. Kernels with maps rarely need it."""
    return Value(gpu.subgroup_id(), types.index)


def _dimension(axis: int | str) -> gpu.Dimension:
    name = axis if isinstance(axis, str) else _DIMENSIONS[axis] if axis in (0, 1, 2) else ""
    if name not in _DIMENSIONS:
        raise ValueError(f"the axes of the grid are 0, 1, 2 or 'x', 'y', 'z', not {axis!r}")
    return gpu.Dimension[name]


def block_id(axis: int | str) -> Value:
    """The index of the workgroup in the grid along an axis: 0, 1, 2 or "x", "y", "z"."""
    BUILDING.check()
    return Value(gpu.block_id(_dimension(axis)), types.index)


def grid_size(axis: int | str) -> Value:
    """The number of workgroups along an axis: 0, 1, 2 or "x", "y", "z"."""
    BUILDING.check()
    return Value(gpu.grid_dim(_dimension(axis)), types.index)


program_id, num_programs = block_id, grid_size


def to_tensor(given: Any) -> Value:
    """A value of the kernel; a Python number becomes a scalar."""
    return value_of(given)


def condition(given: Any, disable_licm: bool = False) -> Any:
    """The condition of a `while` loop, unchanged. Triton's hint has no effect."""
    return given


def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """The row and column of an element when groups of `size_g` rows are numbered column by column.

    Args:
        i, j: the row and column of the element when the matrix is numbered row by row.
        size_i, size_j: the matrix's rows and columns.
        size_g: the rows of a group; the last group may have fewer.

    Returns:
        The row and column of the element with the same number.
    """
    number = i * size_j + j
    group, place = number // (size_g * size_j), number % (size_g * size_j)
    first = group * size_g
    left = size_i - first
    rows = where(left < size_g, left, size_g) if isinstance(left, Value) else min(left, size_g)
    return first + place % rows, place // rows
