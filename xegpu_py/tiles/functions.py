"""Functions of values: math, creation and rearranging."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from mlir.dialects import arith, gpu, vector

from xegpu_py.argument_types import Range, check
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.numerics.libdevice import LIBDEVICE_OPS, ROUNDINGS
from xegpu_py.tiles import element_types
from xegpu_py.tiles.arrays import Array, Pointers, shared
from xegpu_py.tiles.effects import barrier, device_assert, load, store
from xegpu_py.tiles.element_types import dtype_of
from xegpu_py.tiles.tile_values import Product, Value, both, constant, value_of
from xegpu_py.tiles.value_base import (
    BUILDING,
    alternating,
    axis_of,
    common_shape,
    concatenate,
    matrix_shape,
    static_extent,
    static_shape,
)

# Elementwise mathematical functions of the tile language: those of Triton's `tl.math`, and a few more.
#
# Functions of floating-point numbers convert integers to float32. docs/numerics.md says which are correctly rounded,
# and gives the algorithms of the others.


def cdiv(a: Any, b: Any) -> Any:
    """The quotient rounded up, of numbers and of values.

    Raises:
        TypeError: if it is of anything else.
        ValueError: if a number is divided by the number 0.
    """
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Value):
            check(name, value, int | float)
    if not isinstance(a, Value) and not isinstance(b, Value) and b == 0:
        raise ValueError("'b' must not be 0")
    return -(-a // b) if not isinstance(a, Value) else (a + (b - 1)) // b


def next_power_of_2(n: int) -> int:
    """The least power of two that is not less than a number, which is known at compile time.

    Raises:
        TypeError: if it is known only at run time, or no integer.
        ValueError: if it is negative.
    """
    count = static_extent(n, "the number of next_power_of_2")
    check("n", count, Annotated[int, Range(0)])
    return 1 << max(count - 1, 0).bit_length()


def _unary(name: str, title: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        operand = value_of(value)
        if not operand.dtype.is_float:
            operand = operand.to(element_types.float32)
        return operand._op(f"math.{name}")

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{title} of each element; float32 of integers."
    return apply


exp, exp2, log, log2 = (
    _unary("exp", "e to the power"),
    _unary("exp2", "2 to the power"),
    _unary("log", "The natural logarithm"),
    _unary("log2", "The logarithm to base 2"),
)

sin, cos, tanh = (
    _unary("sin", "The sine"),
    _unary("cos", "The cosine"),
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


def tan(value: Any) -> Value:
    """The tangent of each element: the quotient of the sine and the cosine; float32 of integers."""
    return sin(value) / cos(value)


def sigmoid(value: Any) -> Value:
    """1 / (1 + exp(-x)) of each element."""
    operand = value_of(value)
    return 1 / (1 + exp(-operand))


def abs_(value: Any) -> Any:
    """The absolute value of each element."""
    return abs(value)


def fma(a: Any, b: Any, c: Any) -> Value:
    """a * b + c with one rounding, of floating-point values of one type.

    Raises:
        TypeError: for integers.
    """
    x, y = value_of(a)._both(b)
    x, z = x._both(c)
    y = y.to(x.dtype).broadcast(x.shape)
    if not x.dtype.is_float:
        raise TypeError(f"fma needs floating-point values, not {x.dtype}")
    return x._op("math.fma", y, z)


class PropagateNan(enum.Enum):
    """Behaviour of `minimum`, `maximum` and `clamp` for NaN: NONE gives the other operand, ALL gives NaN."""

    NONE = "none"
    ALL = "all"


def _chosen(a: Any, b: Any, name: str, propagate_nan: PropagateNan) -> Any:
    if not isinstance(a, (Value, Product)) and not isinstance(b, (Value, Product)):
        return {"min": min, "max": max}[name](a, b)
    x, y = both(a, b)
    if x.dtype.kind == "bool":
        return x._op("arith.andi" if name == "min" else "arith.ori", y)
    float_suffix = "imumf" if propagate_nan is PropagateNan.ALL else "numf"
    suffix = float_suffix if x.dtype.is_float else "si" if x.dtype.is_signed else "ui"
    return x._op(f"arith.{name}{suffix}", y)


def minimum(a: Any, b: Any, propagate_nan: PropagateNan = PropagateNan.ALL) -> Any:
    """The lesser of two numbers, element by element; NaN where one is NaN, as numpy's."""
    return _chosen(a, b, "min", propagate_nan)


def maximum(a: Any, b: Any, propagate_nan: PropagateNan = PropagateNan.ALL) -> Any:
    """The greater of two numbers, element by element; NaN where one is NaN, as numpy's."""
    return _chosen(a, b, "max", propagate_nan)


def clamp(x: Any, min: Any, max: Any, propagate_nan: PropagateNan = PropagateNan.ALL) -> Any:
    """The elements limited to the range from `min` to `max`."""
    return minimum(maximum(x, min, propagate_nan), max, propagate_nan)


def fdiv(a: Any, b: Any, ieee_rounding: bool = False) -> Any:
    """a / b of floating-point values, always correctly rounded: Triton's `ieee_rounding` has no effect.

    Raises:
        TypeError: if neither is a floating-point value.
    """
    if not any(
        isinstance(v, float) or (isinstance(v, (Value, Product)) and value_of(v).dtype.is_float) for v in (a, b)
    ):
        raise TypeError("fdiv needs floating-point values")
    return a / b


def div_rn(a: Any, b: Any) -> Any:
    """a / b rounded to nearest even, as `/` is."""
    return fdiv(a, b, True)


def sqrt_rn(value: Any) -> Value:
    """The square root rounded to nearest even, as `sqrt` is."""
    return sqrt(value)


def add(a: Any, b: Any, sanitize_overflow: bool = True) -> Any:
    """a + b. Integers wrap around; Triton's `sanitize_overflow` has no effect."""
    return a + b


def sub(a: Any, b: Any, sanitize_overflow: bool = True) -> Any:
    """a - b; see `add`."""
    return a - b


def mul(a: Any, b: Any, sanitize_overflow: bool = True) -> Any:
    """a * b; see `add`."""
    return a * b


def umulhi(a: Any, b: Any) -> Value:
    """The upper half of the product of unsigned integers of 32 or 64 bits; signed ones are taken as unsigned.

    Raises:
        TypeError: for other types.
    """
    one, other = both(a, b)
    if one.dtype.kind not in ("int", "uint") or one.dtype.bits not in (32, 64):
        raise TypeError(f"umulhi needs integers of 32 or 64 bits, not {one.dtype}")
    x, y = one.to(element_types.integer_of(one.dtype.bits, signed=False)), other
    y = y.to(x.dtype)
    if x.dtype.bits == 32:
        return (x.to(element_types.uint64) * y.to(element_types.uint64) >> 32).to(element_types.uint32).to(one.dtype)
    low, (x1, y1) = 0xFFFFFFFF, (x >> 32, y >> 32)
    x0, y0 = x & low, y & low
    low_high, high_low = x0 * y1, x1 * y0
    carry = ((x0 * y0 >> 32) + (low_high & low) + (high_low & low)) >> 32
    return (x1 * y1 + (low_high >> 32) + (high_low >> 32) + carry).to(one.dtype)


def softmax(value: Any, dim: int | None = None, *, keep_dims: bool | None = None, ieee_rounding: bool = False) -> Value:
    """exp(x - max) divided by its sum along a dimension, by default the first, as in Triton.

    Args:
        value: the numbers.
        dim: the dimension.
        keep_dims, ieee_rounding: Triton's, without effect: the shape is kept, and the division is correctly rounded.
    """
    operand = value_of(value)
    axis = 0 if dim is None else dim
    raised = exp(operand - operand.max(axis, keep_dims=True))
    return raised / raised.sum(axis, keep_dims=True)


def minimum_of(*values: Any) -> Any:
    """Python's `min` of several numbers and values."""
    return functools.reduce(minimum, _several(values, "min"))


def maximum_of(*values: Any) -> Any:
    """Python's `max` of several numbers and values."""
    return functools.reduce(maximum, _several(values, "max"))


def _several(values: tuple[Any, ...], name: str) -> Any:
    """The arguments of Python's `min` and `max`, or the elements of their only argument."""
    if len(values) == 1 and not isinstance(values[0], (tuple, list)):
        raise TypeError(f"{name}() compares several values or those in a list; the elements of one value have {name}()")
    return values[0] if len(values) == 1 else values


# Functions of Triton's `libdevice` that are not functions of the language itself.


def _binary(name: str, title: str) -> Callable[[Any, Any], Value]:
    def apply(x: Any, y: Any) -> Value:
        lhs, rhs = both(x, y)
        if not lhs.dtype.is_float:
            lhs, rhs = lhs.to(element_types.float32), rhs.to(element_types.float32)
        return lhs._op(LIBDEVICE_OPS[name], rhs)

    apply.__doc__ = f"{title}; float32 of integers."
    return apply


def _counting(name: str, title: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        operand = value_of(value)
        if not operand.dtype.is_integer:
            raise TypeError(f"{name} needs integers, not {operand.dtype}")
        return operand._op(f"math.{name}").to(element_types.int32)

    apply.__doc__ = f"{title} of each element, int32."
    return apply


def _test(test: Callable[[Value], Value], title: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        operand = value_of(value)
        return test(operand if operand.dtype.is_float else operand.to(element_types.float32))

    apply.__doc__ = f"Where an element is {title}, bool."
    return apply


def _converted(dtype: element_types.DType, rounding: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        return value_of(value).to(dtype, rounding)

    apply.__doc__ = f"The numbers in {dtype}, rounded {rounding}."
    return apply


def _ffs(value: Any) -> Value:
    """The number of the lowest bit that is set, from 1 on, or 0 if none is: int32."""
    operand = value_of(value)
    return where(operand.equals(0), 0, _counting("cttz", "")(operand) + 1)


def _negative(value: Value) -> Value:
    return value.bitcast(element_types.integer_of(value.dtype.bits, signed=True)) < 0


_EXPANDED = {
    "acos": "arc cosine",
    "asin": "arc sine",
    "atan": "arc tangent",
    "acosh": "inverse hyperbolic cosine",
    "asinh": "inverse hyperbolic sine",
    "atanh": "inverse hyperbolic tangent",
    "cbrt": "cube root",
    "cosh": "hyperbolic cosine",
    "sinh": "hyperbolic sine",
    "erfc": "complementary error function",
    "expm1": "exponential less 1",
    "log10": "logarithm to base 10",
    "log1p": "logarithm of 1 and the number",
    "trunc": "number without its fraction",
    "round": "nearest whole number, ties away from zero,",
}


# Functions of the tile language that create values, choose between them, and query the grid.


def where(condition: Any, x: Any, y: Any) -> Any:
    """Elements of `x` where the condition holds, and of `y` elsewhere, by numpy's broadcasting.

    Both may be pointers, or arrays as pointers to their first elements.

    Raises:
        TypeError: for a pointer and a value, and for pointers to two arrays whose types differ, or of which each
            element is chosen.
    """
    mask = value_of(condition).to(element_types.bool_)
    if isinstance(x, (Array, Pointers)) or isinstance(y, (Array, Pointers)):
        return _chosen_pointers(mask, x, y)
    if isinstance(x, Value) and isinstance(y, Value) and x.dtype.kind == y.dtype.kind == "bool":
        # A choice is no arithmetic, in which two bools are int32.
        lhs, rhs = x._both(y, element_types.bool_)
    elif isinstance(x, (Value, Product)) or isinstance(y, (Value, Product)):
        lhs, rhs = both(x, y)
    else:
        dtype = element_types.promote(element_types.of_scalar(x), element_types.of_scalar(y))
        lhs, rhs = constant(dtype, x), constant(dtype, y)
    shape = common_shape(mask.shape, lhs.shape)
    selected = arith.select(mask.broadcast(shape).ir, lhs.broadcast(shape).ir, rhs.broadcast(shape).ir)
    return lhs._made(selected, shape=shape)


def _chosen_pointers(mask: Value, x: Any, y: Any) -> Pointers:
    lhs, rhs = (Pointers(p, 0) if isinstance(p, Array) else p for p in (x, y))
    if not (isinstance(lhs, Pointers) and isinstance(rhs, Pointers)):
        raise TypeError(f"where() chooses between two pointers or between two values, not between {x!r} and {y!r}")
    array = lhs.array
    if array.ir != rhs.array.ir:
        if mask.shape or array.ir.type != rhs.array.ir.type or not isinstance(array, Array):
            raise TypeError(
                "where() chooses between pointers to two arrays by one condition, and only if the arrays have one "
                "type; load from both with a mask instead"
            )
        array = Array(arith.select(mask.ir, array.ir, rhs.array.ir), lhs.dtype)
    return Pointers(array, where(mask, lhs.indices, rhs.indices))


libdevice: Any = SimpleNamespace(
    **{name: _unary(name, f"The {title}") for name, title in _EXPANDED.items()},
    **{f.__name__: f for f in (ceil, cos, erf, exp, exp2, floor, fma, log, log2, rsqrt, sin, sqrt, tan, tanh, div_rn)},
    **{f"float2int_{how}": _converted(element_types.int32, name) for how, name in ROUNDINGS.items()},
    **{f"float2uint_{how}": _converted(element_types.uint32, name) for how, name in ROUNDINGS.items()},
    abs=abs_,
    fabs=abs_,
    sqrt_rn=sqrt_rn,
    rint=round_,
    nearbyint=round_,
    atan2=_binary("atan2", "The angle of the point (y, x), whose first argument is y"),
    copysign=_binary("copysign", "The size of the first number with the sign of the second"),
    fmod=_binary("fmod", "The remainder, with the sign of the first number"),
    fmin=functools.partial(minimum, propagate_nan=PropagateNan.NONE),
    fmax=functools.partial(maximum, propagate_nan=PropagateNan.NONE),
    pow=_binary("pow", "The first number to the power of the second"),
    exp10=lambda value: _binary("pow", "")(10.0, value),
    isnan=_test(lambda x: x.differs(x), "NaN"),
    isinf=_test(lambda x: abs(x).equals(float("inf")), "infinite"),
    isfinited=_test(lambda x: abs(x) < float("inf"), "finite"),
    finitef=_test(lambda x: abs(x) < float("inf"), "finite"),
    signbit=_test(_negative, "negative, also -0 and NaN with a sign"),
    popc=_counting("ctpop", "The number of bits that are set"),
    clz=_counting("ctlz", "The number of leading bits that are not set"),
    ffs=_ffs,
    umulhi=umulhi,
    float_as_int=lambda value: value_of(value).bitcast(element_types.int32),
    int_as_float=lambda value: value_of(value).bitcast(element_types.float32),
    int2float_rn=lambda value: value_of(value).to(element_types.float32),
    saturatef=lambda value: where(libdevice.isnan(value), 0.0, clamp(value, 0.0, 1.0)),
)
"""The functions of Triton's `libdevice`; docs/numerics.md has their errors."""

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
    low, high = (static_extent(n, "a bound of arange") for n in ((0, start) if end is None else (start, end)))
    if high <= low:
        raise ValueError(f"arange({low}, {high}) has no elements")
    steps = vector.step(element_types.index.vector((high - low,)))
    if map is not None:
        steps.owner.operation.attributes["map"] = map.to_ir()
    line = Value(steps, element_types.index)
    return line + low if low else line


def subgroup_id() -> Value:
    """The number of the subgroup in its workgroup. Kernels with maps rarely need it."""
    return Value(gpu.subgroup_id(), element_types.index)


def _dimension(axis: int | str) -> gpu.Dimension:
    name = axis if isinstance(axis, str) else _DIMENSIONS[axis] if axis in (0, 1, 2) else ""
    if name not in _DIMENSIONS:
        raise ValueError(f"the axes of the grid are 0, 1, 2 or 'x', 'y', 'z', not {axis!r}")
    return gpu.Dimension[name]


def block_id(axis: int | str) -> Value:
    """The index of the workgroup in the grid along an axis: 0, 1, 2 or "x", "y", "z"."""
    BUILDING.check()
    return Value(gpu.block_id(_dimension(axis)), element_types.index)


def grid_size(axis: int | str) -> Value:
    """The number of workgroups along an axis: 0, 1, 2 or "x", "y", "z"."""
    BUILDING.check()
    return Value(gpu.grid_dim(_dimension(axis)), element_types.index)


program_id, num_programs = block_id, grid_size


def to_tensor(number: Any) -> Value:
    """A value of the kernel; a Python number becomes a scalar."""
    return value_of(number)


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
    group, number_in_group = number // (size_g * size_j), number % (size_g * size_j)
    first_row = group * size_g
    rows_left = size_i - first_row
    rows = where(rows_left < size_g, rows_left, size_g) if isinstance(rows_left, Value) else min(rows_left, size_g)
    return first_row + number_in_group % rows, number_in_group // rows


# Functions of the tile language that rearrange elements: broadcast, join, split, gather, pack.


def squeeze(value: Any, dim: int) -> Value:
    """The value without a dimension of extent 1.

    Raises:
        ValueError: if the dimension has another extent.
    """
    return value_of(value).squeeze(dim)


def broadcast(a: Any, b: Any) -> tuple[Value, Value]:
    """Two values in the shape that numpy's rules give them.

    Raises:
        ValueError: if the shapes do not fit.
    """
    lhs, rhs = value_of(a), value_of(b)
    shape = common_shape(lhs.shape, rhs.shape)
    return lhs.broadcast(shape), rhs.broadcast(shape)


def trans(value: Any, *dims: Any) -> Value:
    """The dimensions in another order; without one, the last two are swapped."""
    return value_of(value).permute(*dims) if dims else value_of(value).T


def cast(value: Any, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Value:
    """The numbers in another type, or with `bitcast` the bits: `value.to(dtype)`."""
    return value_of(value).to(dtype, fp_downcast_rounding, bitcast=bitcast)


def _in_one_type(*values: Any) -> list[Value]:
    """Values converted to the type in which they are combined; Python numbers take the type of the values."""
    tensors = [v for v in values if isinstance(v, (Value, Product))]
    if not tensors:
        return _in_one_type(value_of(values[0]), *values[1:])
    dtype = value_of(tensors[0]).dtype
    for v in map(value_of, tensors[1:]):
        dtype = dtype if v.dtype == dtype else element_types.promote(dtype, v.dtype)
    for v in values:
        if not isinstance(v, (Value, Product)):
            dtype = element_types.with_scalar(dtype, v)
    return [value_of(v, dtype).to(dtype) for v in values]


def join(a: Any, b: Any) -> Value:
    """Two values side by side in a new last dimension of extent 2."""
    lhs, rhs = _in_one_type(a, b)
    lhs, rhs = broadcast(lhs, rhs)
    shape = (*lhs.shape, 2)
    left_line, right_line = lhs.ravel(), rhs.ravel()
    return left_line.rows_with(right_line, alternating(left_line.size)).reshape(shape)


def split(value: Any) -> tuple[Value, Value]:
    """The two parts of a value whose last dimension has extent 2: what `join` has joined.

    Raises:
        ValueError: if it has another extent.
    """
    joined = value_of(value)
    if not joined.shape or joined.shape[-1] != 2:
        raise ValueError(f"split needs a last dimension of extent 2, but got {joined.describe()}")
    line = joined.ravel()
    even, odd = (line.rows(list(range(start, joined.size, 2))).reshape(joined.shape[:-1]) for start in (0, 1))
    return even, odd


def interleave(a: Any, b: Any) -> Value:
    """The elements of two values, alternating along the last dimension.

    Raises:
        ValueError: for scalars.
    """
    pairs = join(a, b)
    if pairs.ndim < 2:
        raise ValueError("interleave needs values of at least one dimension")
    return pairs.reshape((*pairs.shape[:-2], 2 * pairs.shape[-2]))


def cat(*values: Any, can_reorder: bool = False, dim: int = 0) -> Value:
    """Concatenate values, or a list or tuple of values, along a dimension.

    Args:
        values: two or more, of one shape but for that dimension.
        can_reorder: Triton's, without effect: the order is always kept.
        dim: the dimension.

    Raises:
        ValueError: if they differ in other dimensions.
    """
    operands = list(values[0]) if len(values) == 1 and isinstance(values[0], (tuple, list)) else list(values)
    converted_operands = _in_one_type(*operands) if operands else []
    if not converted_operands or not all(v.shape for v in converted_operands):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    return concatenate(converted_operands, dim)


def flip(value: Any, dim: int | None = None) -> Value:
    """The elements in reverse order along a dimension, by default the last.

    Raises:
        ValueError: if there is no such dimension.
    """
    operand = value_of(value)
    axis = axis_of(-1 if dim is None else dim, operand.ndim)
    return operand.along(axis, list(range(operand.shape[axis]))[::-1])


FEW_ROWS = 16
"""The rows up to which `gather` compares each with all indices; more go through shared local memory."""

MOST_PARTS = 16
"""The most parts in which `gather` puts elements into shared local memory."""


def gather(src: Any, index: Any, axis: int) -> Value:
    """The elements of `src` at the indices `index` along a dimension, as numpy's `take_along_axis`.

    As an access of memory, an out-of-bounds index stops the run with an error at this line.

    Args:
        src: the elements.
        index: integers; their shape may differ from that of `src` along `axis` only.
        axis: the dimension.

    Raises:
        ValueError: if the shapes differ along another dimension.
        TypeError: if the indices are not integers.
    """
    source, indices = value_of(src), value_of(index)
    dim = axis_of(axis, source.ndim)
    if not indices.dtype.is_integer:
        raise TypeError(f"indices are integers, not {indices.dtype}")
    if indices.ndim != source.ndim or any(
        a != b for d, (a, b) in enumerate(zip(source.shape, indices.shape)) if d != dim
    ):
        raise ValueError(f"gather from {source.describe()} along axis {axis} cannot take indices {indices.describe()}")
    indices = indices.to(element_types.int32) if indices.dtype.bits < 32 else indices
    extent = source.shape[dim]
    inside = indices < extent
    device_assert(
        inside & (indices >= 0) if indices.dtype.is_signed else inside, f"gather: an index is not 0 to {extent - 1}"
    )
    BUILDING.check_together("select elements")
    if extent > FEW_ROWS:
        row_bytes = source.size // extent * max(source.dtype.bits // 8, 1)
        for parts in range(1, MOST_PARTS + 1):
            rows_of_part = -(-extent // parts)
            if BUILDING.take_shared(rows_of_part * row_bytes):
                return _gathered_in_memory(source, indices, dim, rows_of_part)
    # Lanes cannot index registers: each row is compared with all indices.
    moved_indices = indices.with_first(dim)
    rows = source.with_first(dim)
    found = constant(source.dtype, 0, moved_indices.shape)
    for k in range(extent):
        found = where(moved_indices == k, rows.rows([k]).broadcast(moved_indices.shape), found)
    return found.from_first(indices.shape, dim)


def _gathered_in_memory(source: Value, indices: Value, dim: int, rows: int) -> Value:
    """The elements at indices along a dimension, from copies in shared local memory.

    Args:
        rows: how many elements along the dimension are copied at a time. The last copy may have fewer.
    """
    stored = source.to(element_types.uint8) if source.dtype == element_types.bool_ else source
    shape, extent = (*source.shape[:dim], rows, *source.shape[dim + 1 :]), source.shape[dim]
    copied = matrix_shape(shape)
    memory, sought = shared(copied, stored.dtype), indices.to(element_types.index)
    found: Value | None = None
    for first in range(0, extent, rows):
        if rows == extent:
            store(memory.tile(copied, at=(0,) * len(copied)), stored.reshape(copied))
            barrier()
            found = load(memory + _numbers(shape, dim, sought))
        else:
            # Masks, and not slices, whose elements would have to be exchanged among subgroups.
            line = arange(extent).reshape(tuple(extent if d == dim else 1 for d in range(source.ndim))) - first
            is_copied = ((line >= 0) & (line < rows)).broadcast(source.shape)
            store(memory + _numbers(shape, dim, line).broadcast(source.shape), stored, is_copied)
            barrier()
            offsets = sought - first
            is_found = (offsets >= 0) & (offsets < rows)
            found = load(memory + _numbers(shape, dim, offsets), is_found, found)
        barrier()
    assert found is not None
    return found.to(source.dtype)


def _numbers(shape: Sequence[int], dim: int, along: Value) -> Value:
    """The numbers of elements of an array in memory, at indices along a dimension and all those of the others."""
    numbers, stride = value_of(0, element_types.index), 1
    for d, extent in reversed([*enumerate(shape)]):
        line = tuple(extent if d == e else 1 for e in range(len(shape)))
        numbers, stride = numbers + (along if d == dim else arange(extent).reshape(line)) * stride, stride * extent
    return numbers


def unpack_int4(value: Any, signed: bool = True) -> Value:
    """Bytes of two packed 4-bit integers as twice as many integers of 8 bits along the last dimension.

    The first of each two is in the low four bits, as in ONNX and in `ml_dtypes.int4` arrays that are packed.

    Args:
        value: int8 or uint8.
        signed: whether the integers are -8 to 7, which gives int8, and not 0 to 15, which gives uint8.

    Raises:
        TypeError: for other types.
    """
    packed = value_of(value)
    if packed.dtype not in (element_types.int8, element_types.uint8):
        raise TypeError(f"unpack_int4 needs bytes, not {packed.dtype}")
    bytes_ = packed.to(element_types.integer_of(8, signed))
    low = (bytes_ << 4) >> 4
    return interleave(low, bytes_ >> 4)


def pack_int4(value: Any) -> Value:
    """The low four bits of integers packed in half as many bytes along the last dimension: uint8.

    Raises:
        TypeError: for floating-point values.
        ValueError: if the last extent is odd.
    """
    nibbles = value_of(value)
    if nibbles.dtype.kind not in ("int", "uint"):
        raise TypeError(f"pack_int4 needs integers, not {nibbles.dtype}")
    if not nibbles.shape or nibbles.shape[-1] % 2:
        raise ValueError(f"pack_int4 needs an even last extent, but got {nibbles.describe()}")
    low, high = split(nibbles.to(element_types.uint8).reshape((*nibbles.shape[:-1], nibbles.shape[-1] // 2, 2)))
    return (low & 15) | (high << 4)
