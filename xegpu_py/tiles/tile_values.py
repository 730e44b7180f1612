"""Values of the tile language, their reductions and methods."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

import numpy as np
from mlir import ir as mlir

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xegpu.matrix_ops import accumulators
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import MATRIX_PRODUCT, CombiningKind
from xegpu_py.numerics.formats import FLOATS
from xegpu_py.tiles import element_types
from xegpu_py.tiles.element_types import DType
from xegpu_py.tiles.operators import ConversionMethods
from xegpu_py.tiles.value_base import BUILDING, Deferred, ShapeMethods, around, axis_of

if TYPE_CHECKING:
    from typing_extensions import Self


# The values of tile kernels: scalars, and elements of any number of dimensions in registers.
#
# A `Value` is immutable: each operator gives a new one. A `Handle` is mutable: `advance` replaces its SSA value. The
# compiler carries both through loops and branches.


def value_of(operand: Any, like: DType | None = None) -> Value:
    """The value of what is given: a value, a product that is not computed yet, or a Python number.

    Args:
        like: the type that a number becomes; by default `element_types.of_scalar` says.

    Raises:
        TypeError: for anything else.
        OverflowError: if the number does not fit the type.
    """
    if isinstance(operand, Product):
        return operand.value
    if isinstance(operand, Value):
        return operand
    dtype = element_types.of_scalar(operand) if like is None else like
    if like is not None and not isinstance(operand, (bool, int, float, np.generic)):
        raise TypeError(f"{operand!r} cannot become a value of the kernel")
    return constant(dtype, operand.item() if isinstance(operand, np.generic) else operand)


def both(a: Any, b: Any) -> tuple[Value, Value]:
    """Two operands, at least one of them a value, converted to their common type and shape."""
    if isinstance(a, (Value, Product)):
        return value_of(a)._both(b)
    rhs, lhs = value_of(b)._both(a)
    return lhs, rhs


def as_index(number: int | Value) -> int | mlir.Value:
    """An index as builders take it: an integer, or an SSA value of type `index`.

    Raises:
        TypeError: if it is not an integer.
    """
    if isinstance(number, Value):
        if number.shape or not number.dtype.is_integer:
            raise TypeError(f"an offset must be an integer, but got {number.describe()}")
        return number.to(element_types.index).ir
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"an offset must be an integer, but got {number!r}")
    return int(number)


# Reductions along dimensions.


class ReductionMethods(ConversionMethods):
    """The methods of `Value` that combine elements.

    All take `axis`: a dimension, several, or None for all. A dimension that is reduced is left out; with
    `keep_dims=True` it keeps extent 1, so that the result broadcasts.
    """

    def reduce(self, kind: Any, axis: Axes = None, group: int | None = None, *, keep_dims: bool = False) -> Self:
        """Combine the elements along dimensions, or each `group` of consecutive elements.

        Args:
            kind: of combination, as `xetile.reduction` names it: "add", "mul", "maximumf", "minsi", "and", ...
            axis: the dimensions.
            group: the number of elements that are combined; by default all.
            keep_dims: whether the dimensions stay, with extent 1.

        Raises:
            ValueError: if a dimension does not exist, or its extent is not a multiple of the group.
        """
        if group is not None:
            if axis is None or not isinstance(axis, int):
                raise ValueError("a group needs an axis")
            return self._combined(kind, axis_of(axis, self.ndim), group)
        reduced, dims = self, axes_of(axis, self.ndim)
        if len(dims) == self.ndim and self.ndim > 2:
            reduced, dims = self.reshape((-1, self.shape[-1])), [0, 1]
        for dim in dims:
            reduced = reduced._combined(kind, dim, None)
        return reduced_shape(reduced, self.shape, axis, keep_dims)

    def _combined(self, kind: str, dim: int, group: int | None) -> Self:
        """Reduce one dimension and keep it."""
        BUILDING.check_together("combine elements")
        if self.dtype.is_narrow:
            return self.to(element_types.float32)._combined(kind, dim, group).to(self.dtype)
        before, extent, after = around(self.shape, dim)
        size = group or extent
        if extent % size:
            raise ValueError(f"groups of {size} elements do not divide the {extent} along axis {dim}")
        shape = (*self.shape[:dim], extent // size, *self.shape[dim + 1 :])
        if size == 1:
            return self._made(self.ir)
        if after == 1:
            lines, at = self.reshape((before, extent)), 1
        else:
            lines, at = self.reshape((before * extent, after)), 0
        covers_dim = size == lines.shape[at]
        result_shape = tuple(n // size if d == at else n for d, n in enumerate(lines.shape))
        reduction = xetile.reduction(
            CombiningKind(kind),
            lines.ir,
            (at,),
            result=self._type(result_shape),
            reduction_size=None if covers_dim else size,
        )
        return self._made(reduction, shape=result_shape).reshape(shape)

    def _kind(self, float_kind: str, signed: str, unsigned: str) -> str:
        return float_kind if self.dtype.is_float else signed if self.dtype.is_signed else unsigned

    def _summed(self, dtype: Any) -> Self:
        """The value in the type in which sums are taken."""
        return self.to(element_types.summed(self.dtype) if dtype is None else dtype)

    def sum(self, axis: Axes = None, group: int | None = None, *, keep_dims: bool = False, dtype: Any = None) -> Self:
        """The sum, in `dtype`; by default in int32 or uint32 of narrower integers and bools, as in Triton."""
        return self._summed(dtype).reduce("add", axis, group, keep_dims=keep_dims)

    def prod(self, axis: Axes = None, group: int | None = None, *, keep_dims: bool = False, dtype: Any = None) -> Self:
        """The product; types as for `sum`."""
        return self._summed(dtype).reduce("mul", axis, group, keep_dims=keep_dims)

    def max(
        self,
        axis: Axes = None,
        group: int | None = None,
        *,
        keep_dims: bool = False,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
    ) -> Any:
        """The greatest element; NaN where one is NaN. With `return_indices` also the first index that has it."""
        maximum = self.reduce(self._kind("maximumf", "maxsi", "maxui"), axis, group, keep_dims=keep_dims)
        return (maximum, self._place_of("max", axis, keep_dims)) if return_indices else maximum

    def min(
        self,
        axis: Axes = None,
        group: int | None = None,
        *,
        keep_dims: bool = False,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
    ) -> Any:
        """The least element; NaN where one is NaN. With `return_indices` also the first index that has it."""
        minimum = self.reduce(self._kind("minimumf", "minsi", "minui"), axis, group, keep_dims=keep_dims)
        return (minimum, self._place_of("min", axis, keep_dims)) if return_indices else minimum

    def argmax(self, axis: int | None = None, tie_break_left: bool = True, *, keep_dims: bool = False) -> Self:
        """The index of the greatest element along a dimension, int32; of several the first. NaN counts as greatest.

        Args:
            axis: the dimension; None for the index in row-major order.
            tie_break_left: Triton's, without effect: the first of several is always chosen.
            keep_dims: whether the dimension stays, with extent 1.
        """
        return self._place_of("max", axis, keep_dims)

    def argmin(self, axis: int | None = None, tie_break_left: bool = True, *, keep_dims: bool = False) -> Self:
        """The index of the least element along a dimension, as `argmax`. NaN counts as least."""
        return self._place_of("min", axis, keep_dims)

    def _place_of(self, extremum: str, axis: Axes, keep_dims: bool) -> Self:
        if axis is None:
            flat_index = self.ravel()._place_of(extremum, 0, False)
            return flat_index.reshape((1,) * self.ndim) if keep_dims else flat_index
        if not isinstance(axis, int):
            raise TypeError(f"arg{extremum} takes one axis, not {axis!r}")
        dim = axis_of(axis, self.ndim)
        wide = self.to(element_types.int32) if self.dtype.kind == "bool" else self
        hit = wide == getattr(wide, extremum)(dim, keep_dims=True)
        if wide.dtype.is_float:
            hit = hit | (wide != wide)
        dim_indices = self._places(dim)
        first_index = hit._selected(dim_indices, dim_indices._number(self.shape[dim])).min(dim, keep_dims=True)
        return reduced_shape(first_index, self.shape, axis, keep_dims)

    def any(self, axis: Axes = None, *, keep_dims: bool = False) -> Self:
        """Whether any element is true."""
        return self.to(element_types.bool_)._bitwise("or", axis, keep_dims)

    def all(self, axis: Axes = None, *, keep_dims: bool = False) -> Self:
        """Whether all elements are true."""
        return self.to(element_types.bool_)._bitwise("and", axis, keep_dims)

    def xor_sum(self, axis: Axes = None, *, keep_dims: bool = False) -> Self:
        """All elements combined by exclusive or.

        Raises:
            TypeError: for floating-point values.
        """
        return self._bitwise("xor", axis, keep_dims)

    def reduce_or(self, axis: Axes = None, *, keep_dims: bool = False) -> Self:
        """All elements combined by or.

        Raises:
            TypeError: for floating-point values.
        """
        return self._bitwise("or", axis, keep_dims)

    def _bitwise(self, kind: str, axis: Axes, keep_dims: bool) -> Self:
        if self.dtype.is_float:
            raise TypeError(f"a reduction by '{kind}' needs integers or truth values, not {self.dtype}")
        if self.dtype.kind == "bool":
            return self.to(element_types.int32).reduce(kind, axis, keep_dims=keep_dims).differs(0)
        return self.reduce(kind, axis, keep_dims=keep_dims)

    def mean(self, axis: Axes = None, *, keep_dims: bool = False) -> Self:
        """The sum divided by the number of elements."""
        count = math.prod(self.shape[dim] for dim in axes_of(axis, self.ndim))
        return self.sum(axis, keep_dims=keep_dims) / count


class Value(ReductionMethods):
    """A scalar, or elements of any number of dimensions in registers. Operators work by element, as in numpy.

    Attributes:
        ir: the SSA value: a scalar, a line, or the matrix in which the leading dimensions are one.
        dtype: its element type, with the sign that MLIR's integers do not have.
        shape: its extents.
    """

    @property
    def element(self) -> str:
        """MLIR's type of an element."""
        return self.dtype.mlir

    @property
    def type(self) -> DType:
        """The element type, by Triton's name."""
        return self.dtype

    def __repr__(self) -> str:
        if BUILDING.evaluation is None:
            return f"<value of the kernel, {self.describe()}>"
        elements = self.numpy()
        return f"{self.dtype}({elements})" if not self.shape else f"{self.dtype}{list(self.shape)} {elements}"

    def __format__(self, form: str) -> str:
        if BUILDING.evaluation is None or self.shape:
            return format(repr(self), form)
        return format(self.numpy().item(), form)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The number or the elements, in a kernel that runs as it is built (`engine="eager"`).

        Raises:
            TypeError: in a kernel that is compiled.
        """
        evaluation = BUILDING.evaluation
        if evaluation is None:
            self._known_only_as_it_runs("numpy()")
        elements = evaluation.value(self.ir).reshape(self.shape)
        return elements.view(self.dtype.dtype) if self.dtype.kind == "uint" and self.dtype.dtype else elements

    # Conversions to Python objects, which are possible only in a kernel that runs as it is built.

    def _known_only_as_it_runs(self, use: str) -> NoReturn:
        raise TypeError(f"{use} of a value that is known only at run time ({self.describe()})")

    def _scalar(self, use: str) -> Any:
        if BUILDING.evaluation is None:
            self._known_only_as_it_runs(use)
        if self.shape:
            raise TypeError(f"{use} of {self.describe()} is ambiguous; use .any() or .all()")
        return self.numpy().item()

    def __bool__(self) -> bool:
        return bool(self._scalar("the truth value"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __index__(self) -> int:
        if self.dtype.is_float and BUILDING.evaluation is not None:
            raise TypeError(f"{self.describe()} is not an integer")
        return int(self._scalar("the number"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __iter__(self) -> Iterator[Any]:
        self._known_only_as_it_runs("iteration")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __matmul__(self, other: Value) -> Product:
        return Product(self, other)

    def with_map(self, map: WgMap) -> Value:
        """The same matrix, distributed among subgroups by another map."""
        return self._made(xetile.convert_layout(self.ir, map, result=self.ir.type))


constant = Value.constant


def _signed(a: Value, b: Value) -> tuple[Value, Value, Value]:
    """Factors of unsigned bytes as signed bytes, each less by 128, and the correction to add to their product."""
    correction = constant(element_types.int32, 0, (a.shape[0], b.shape[1]))
    if a.dtype == element_types.uint8:
        correction = correction + b.to(element_types.int32).sum(0, keep_dims=True) * 128
        a = (a ^ 128).to(element_types.int8)
    if b.dtype == element_types.uint8:
        # The first factor is already signed here.
        correction = correction + a.to(element_types.int32).sum(1, keep_dims=True) * 128
        b = (b ^ 128).to(element_types.int8)
    return a, b, correction


def by_fma(a: Value, b: Value, c: Value | None, dtype: DType) -> Value:
    """A product in the type of its accumulator: one fma adds each term, in the order of K."""
    shape = (a.shape[0], b.shape[1])
    accumulator = constant(dtype, 0.0, shape) if c is None else c.to(dtype)
    attributes = {name: mlir.Attribute.parse(text) for name, text in MATRIX_PRODUCT.items()}
    operands = [a.to(dtype).ir, b.to(dtype).ir, accumulator.ir]
    op = mlir.Operation.create("vector.contract", [accumulator.ir.type], operands, attributes)
    return Value(op.results[0], dtype, shape)


def result_of(factor: DType) -> DType:
    """The type of a product without an accumulator, by the type of its factors."""
    float_result = element_types.float64 if factor == element_types.float64 else element_types.float32
    return float_result if factor.is_float else element_types.int32


class Product(Deferred):
    """A product of matrices that is not computed yet: a following addition becomes the accumulator of its op.

    Args:
        a, b: the factors.
        adds: the only type of such accumulators, for `dot`, which does so in its own block alone; None for `@`.
    """

    def __init__(self, a: Value, b: Value, adds: DType | None = None) -> None:
        for name, v in (("left", a), ("right", b)):
            if not isinstance(v, Value) or v.ndim != 2:
                factor_text = v.describe() if isinstance(v, Value) else repr(v)
                raise TypeError(f"'@' multiplies matrices, but the {name} operand is {factor_text}")
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"'@' cannot multiply {a.describe()} by {b.describe()}")
        if not accumulators(a.dtype.mlir, b.dtype.mlir):
            why = "; dot(a, b, input_precision=...) says how" if a.dtype == b.dtype == element_types.float32 else ""
            raise TypeError(f"'@' cannot multiply {a.describe()} by {b.describe()}{why}")
        self.a, self.b, self._adds = a, b, adds
        self._value: Value | None = None
        self._block = mlir.InsertionPoint.current.block

    @property
    def value(self) -> Value:
        """The product without an accumulator, in float32; of integers in int32, and of float64 in float64."""
        if self._value is None:
            with self._place():
                self._value = self.multiplied(result_of(self.a.dtype))
        return self._value

    def multiplied(self, dtype: DType, c: Value | None = None) -> Value:
        """The product, added to `c` if it is given, in an accumulator type of DPAS."""
        return self._multiply(None, dtype) if c is None else self.plus(c)

    def _place(self) -> mlir.InsertionPoint:
        """The insertion point of the product: in the block of its expression, which dominates all uses."""
        current = mlir.InsertionPoint.current
        block, op = current.block, None
        while block != self._block:
            op = block.owner
            if op is None or op.operation.name == "gpu.func":
                # That block is complete, as a branch is while its variables are merged.
                return mlir.InsertionPoint(self._block)
            block = op.operation.block
        return current if op is None else mlir.InsertionPoint(op)

    def _multiply(self, c: Value | None, dtype: DType) -> Value:
        a, b, correction = self.a, self.b, None
        if not {FLOATS[v.dtype.mlir].name for v in (a, b) if v.dtype.is_float} <= {*BUILDING.target.dpas_precisions}:
            if a.dtype.bits > 8:
                return by_fma(a, b, c, dtype)
            # float16 holds all numbers of 8 bits, and float32 all products.
            a, b = a.to(element_types.float16), b.to(element_types.float16)
        if element_types.uint8 in (a.dtype, b.dtype):
            a, b, correction = _signed(a, b)
        shape = (a.shape[0], b.shape[1])
        tile_product = xetile.tile_mma(a.ir, b.ir, None if c is None else c.ir, d=a._type(shape, dtype))
        product = Value(tile_product, dtype, shape)
        return product if correction is None else product + correction

    def plus(self, c: Value) -> Value:
        """The product added to a matrix."""
        elsewhere = self._adds and (c.dtype != self._adds or mlir.InsertionPoint.current.block != self._block)
        if elsewhere or c.shape != (self.a.shape[0], self.b.shape[1]):
            return c + self.value
        return self._multiply(c, c.dtype)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Value) and other.ndim == 2:
            return self.plus(other)
        return self.value + other

    __radd__ = __add__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value, name)


def _forward(name: str) -> Any:
    def forward(self: Product, *args: Any) -> Any:
        return getattr(self.value, name)(*args)

    forward.__name__ = name
    return forward


for _name in (
    *("sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "mod", "pow", "and", "or", "xor"),
    *("lshift", "rshift", "neg", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "matmul", "getitem"),
    *("bool", "int", "float", "iter", "len"),
):
    setattr(Product, f"__{_name}__", _forward(f"__{_name}__"))

Product.__hash__ = None  # type: ignore[assignment]

S = TypeVar("S", bound=ShapeMethods)

Axes = int | Sequence[int] | None


def axes_of(axis: Axes, rank: int) -> list[int]:
    """The dimensions that a reduction names.

    Raises:
        ValueError: if there is no such dimension, or one is named twice.
    """
    if axis is None:
        return list(range(rank))
    dims = [axis_of(a, rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(dims)) != len(dims):
        raise ValueError("duplicate value in 'axis'")
    return dims


def reduced_shape(reduced: S, shape: Sequence[int], axis: Axes, keep_dims: bool) -> S:
    """The result of a reduction with or without the dimensions that it has reduced."""
    dims = axes_of(axis, len(shape))
    return reduced.reshape(tuple(1 if d in dims else n for d, n in enumerate(shape) if keep_dims or d not in dims))


# Methods of values as functions: `xl.sum(x, axis)` is `x.sum(axis)`.

P = ParamSpec("P")

R = TypeVar("R")


def _function(method: Callable[Concatenate[Value, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A function of anything that `value_of` takes."""

    def function(value: Any, /, *args: P.args, **keywords: P.kwargs) -> R:
        return method(value_of(value), *args, **keywords)

    functools.update_wrapper(function, method)
    return function


sum_, prod, max_, min_ = _function(Value.sum), _function(Value.prod), _function(Value.max), _function(Value.min)

any_, all_, mean, argmax = _function(Value.any), _function(Value.all), _function(Value.mean), _function(Value.argmax)

argmin, xor_sum, reduce_or = _function(Value.argmin), _function(Value.xor_sum), _function(Value.reduce_or)

reshape, ravel, permute = _function(Value.reshape), _function(Value.ravel), _function(Value.permute)

expand_dims, broadcast_to = _function(Value.expand_dims), _function(Value.broadcast_to)

view, unsqueeze = reshape, expand_dims
