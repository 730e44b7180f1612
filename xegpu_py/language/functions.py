"""The functions of the tile language, on scalars, lines and matrices alike."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, gpu, math, vector

from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import vector_text
from xegpu_py.language import types
from xegpu_py.language.types import dtype_of
from xegpu_py.language.values import BUILDING, Product, Value, constant, value_of

_DIMENSIONS = ("x", "y", "z")


def full(shape: Sequence[int], number: Any, dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A line or matrix of one number, or of a scalar of the kernel."""
    if isinstance(number, Value):
        return number.to(dtype).broadcast(tuple(shape))
    return constant(dtype_of(dtype), number, tuple(shape), map)


def zeros(shape: Sequence[int], dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A line or matrix of zeros."""
    return full(shape, 0, dtype, map)


def ones(shape: Sequence[int], dtype: Any = np.float32, map: WgMap | None = None) -> Value:
    """A line or matrix of ones."""
    return full(shape, 1, dtype, map)


def zeros_like(value: Value) -> Value:
    """Zeros of a value's shape and type."""
    return zeros(value.shape, value.dtype)


def arange(start: int, stop: int | None = None, map: WgMap | None = None) -> Value:
    """The indices from `start` up to `stop` as a line of type index; from 0 up to `start` where there is one number.

    Raises:
        ValueError: if there are none.
    """
    BUILDING.check()
    first, last = (0, start) if stop is None else (start, stop)
    if last <= first:
        raise ValueError(f"arange({first}, {last}) has no elements")
    made = vector.step(mlir.Type.parse(vector_text((last - first,), "index")))
    if map is not None:
        made.owner.operation.attributes["map"] = map.to_ir()
    found = Value(made, types.index)
    return found + first if first else found


def where(mask: Any, a: Any, b: Any) -> Value:
    """Elements of `a` where the mask is set, and of `b` elsewhere, by numpy's broadcasting."""
    chosen = value_of(mask).to(types.bool_)
    if isinstance(a, (Value, Product)):
        one, other = _value(a)._both(b)
    elif isinstance(b, (Value, Product)):
        other, one = _value(b)._both(a)
    else:
        dtype = types.promote(types.of_scalar(a), types.of_scalar(b))
        one, other = constant(dtype, a), constant(dtype, b)
    shape = tuple(np.broadcast_shapes(chosen.shape, one.shape))
    made = arith.select(chosen.broadcast(shape).ir, one.broadcast(shape).ir, other.broadcast(shape).ir)
    return Value(made, one.dtype)


def _value(given: Any) -> Value:
    return given.value if isinstance(given, Product) else value_of(given)


def barrier() -> None:
    """Wait for all subgroups of the workgroup. Afterwards what they have written can be read."""
    BUILDING.check()
    gpu.barrier()
    BUILDING.built()


def subgroup_id() -> Value:
    """The number of the subgroup in its workgroup. Kernels with maps seldom need it."""
    return Value(gpu.subgroup_id(), types.index)


def _dimension(axis: int | str) -> gpu.Dimension:
    name = axis if isinstance(axis, str) else _DIMENSIONS[axis] if axis in (0, 1, 2) else ""
    if name not in _DIMENSIONS:
        raise ValueError(f"the axes of the grid are 0, 1, 2 or 'x', 'y', 'z', not {axis!r}")
    return gpu.Dimension[name]


def block_id(axis: int | str) -> Value:
    """The workgroup's place in the grid along an axis: 0, 1, 2 or "x", "y", "z"."""
    BUILDING.check()
    return Value(gpu.block_id(_dimension(axis)), types.index)


def grid_size(axis: int | str) -> Value:
    """Workgroups along an axis: 0, 1, 2 or "x", "y", "z"."""
    BUILDING.check()
    return Value(gpu.grid_dim(_dimension(axis)), types.index)


program_id, num_programs = block_id, grid_size


def cdiv(a: Any, b: Any) -> Any:
    """The quotient rounded up, of numbers and of values."""
    return -(-a // b) if not isinstance(a, Value) else (a + (b - 1)) // b


def _unary(name: str, title: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        given = _value(value)
        if not given.dtype.is_float:
            given = given.to(types.float32)
        return Value(getattr(math, name)(given.ir), given.dtype)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{title} of each element; float32 of integers."
    return apply


exp, exp2, log, log2 = (
    _unary("exp", "e to the power"),
    _unary("exp2", "2 to the power"),
    _unary("log", "The natural logarithm"),
    _unary("log2", "The logarithm to base 2"),
)
sin, cos, tan, tanh = (
    _unary("sin", "The sine"),
    _unary("cos", "The cosine"),
    _unary("tan", "The tangent"),
    _unary("tanh", "The hyperbolic tangent"),
)
sqrt, rsqrt, erf = (
    _unary("sqrt", "The square root"),
    _unary("rsqrt", "The reciprocal of the square root"),
    _unary("erf", "The error function"),
)
floor, ceil, round_ = (
    _unary("floor", "The greatest whole number that is not greater"),
    _unary("ceil", "The least whole number that is not less"),
    _unary("roundeven", "The nearest whole number, ties to even,"),
)


def sigmoid(value: Any) -> Value:
    """1 / (1 + exp(-x)) of each element."""
    given = _value(value)
    return 1 / (1 + exp(-given))


def abs_(value: Any) -> Any:
    """The absolute value of each element."""
    return abs(value)


def fma(a: Any, b: Any, c: Any) -> Value:
    """a * b + c with one rounding, of floating-point values of one type.

    Raises:
        TypeError: for integers.
    """
    x, y = _value(a)._both(b)
    x, z = x._both(c)
    y = y.to(x.dtype).broadcast(x.shape)
    if not x.dtype.is_float:
        raise TypeError(f"fma needs floating-point values, not {x.dtype}")
    return Value(math.fma(x.ir, y.ir, z.ir), x.dtype)


def _chosen(a: Any, b: Any, python: Callable[..., Any], name: str) -> Any:
    if not isinstance(a, (Value, Product)) and not isinstance(b, (Value, Product)):
        return python(a, b)
    one, other = _value(a)._both(b) if isinstance(a, (Value, Product)) else _value(b)._both(a)
    kind = "imumf" if one.dtype.is_float else "si" if one.dtype.is_signed else "ui"
    return one._op(f"arith.{name}{kind}", other)


def minimum(a: Any, b: Any) -> Any:
    """The lesser of two numbers, element by element; NaN where one is NaN."""
    return _chosen(a, b, min, "min")


def maximum(a: Any, b: Any) -> Any:
    """The greater of two numbers, element by element; NaN where one is NaN."""
    return _chosen(a, b, max, "max")


def clamp(value: Any, least: Any, most: Any) -> Any:
    """Each element, or `least` or `most` where it lies beyond."""
    return minimum(maximum(value, least), most)


def dot(a: Value, b: Value, acc: Value | None = None) -> Value:
    """The product of two matrices, added to `acc` if there is one; float32, or int32 of integers, if there is none."""
    product = Product(a, b)
    return product.value if acc is None else product.plus(acc)


def trans(value: Value, *permutation: int) -> Value:
    """The transpose of a matrix.

    Raises:
        ValueError: if it is another permutation.
    """
    if permutation in ((), (1, 0)):
        return value.T
    if permutation == (0, 1):
        return value
    raise ValueError(f"a matrix has the permutations (0, 1) and (1, 0), not {permutation}")


def reshape(value: Value, *shape: Any) -> Value:
    """The elements in row-major order in another shape."""
    return value.reshape(*shape)


def expand_dims(value: Value, axis: int) -> Value:
    """The value with a dimension of extent 1 before `axis`."""
    return value.expand_dims(axis)


def broadcast_to(value: Any, shape: Sequence[int]) -> Value:
    """The value repeated by numpy's rules."""
    return _value(value).broadcast(tuple(shape))


def cast(value: Any, dtype: Any) -> Value:
    """The numbers in another type: `value.to(dtype)`."""
    return _value(value).to(dtype)


def _reduction(name: str) -> Callable[..., Value]:
    def reduce(value: Value, axis: int | None = None, **options: Any) -> Value:
        found: Value = getattr(_value(value), name)(axis, **options)
        return found

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = getattr(Value, name).__doc__
    return reduce


sum_, prod, max_, min_, any_, all_ = (_reduction(n) for n in ("sum", "prod", "max", "min", "any", "all"))


def minimum_of(*values: Any) -> Any:
    """Python's `min` of several numbers and values."""
    return functools.reduce(minimum, values[0] if len(values) == 1 else values)


def maximum_of(*values: Any) -> Any:
    """Python's `max` of several numbers and values."""
    return functools.reduce(maximum, values[0] if len(values) == 1 else values)
