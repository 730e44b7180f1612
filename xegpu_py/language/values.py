"""The values of tile kernels: scalars, and elements of any number of dimensions in registers.

A `Value` is immutable: each operator gives a new one. A `Handle` is mutable: `advance` replaces its SSA value. The
compiler carries both through loops and branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from mlir import ir as mlir

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xegpu.matrix import accumulators
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.language import types
from xegpu_py.language.held import BUILDING, Deferred
from xegpu_py.language.reductions import Reductions
from xegpu_py.language.types import DType
from xegpu_py.numerics.formats import FLOATS


def value_of(given: Any, like: DType | None = None) -> Value:
    """The value of what is given: a value, a product that is not computed yet, or a Python number.

    Args:
        like: the type that a number becomes; by default `types.of_scalar` says.

    Raises:
        TypeError: for anything else.
        OverflowError: if the number does not fit the type.
    """
    if isinstance(given, Product):
        return given.value
    if isinstance(given, Value):
        return given
    dtype = types.of_scalar(given) if like is None else like
    if like is not None and not isinstance(given, (bool, int, float, np.generic)):
        raise TypeError(f"{given!r} cannot become a value of the kernel")
    return constant(dtype, given.item() if isinstance(given, np.generic) else given)


def both(a: Any, b: Any) -> tuple[Value, Value]:
    """Two operands, at least one of them a value, converted to their common type and shape."""
    if isinstance(a, (Value, Product)):
        return value_of(a)._both(b)
    other, one = value_of(b)._both(a)
    return one, other


def as_index(number: int | Value) -> int | mlir.Value:
    """An index as builders take it: an integer, or an SSA value of type `index`.

    Raises:
        TypeError: if it is not an integer.
    """
    if isinstance(number, Value):
        if number.shape or not number.dtype.is_integer:
            raise TypeError(f"an offset must be an integer, but got {number.describe()}")
        return number.to(types.index).ir
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"an offset must be an integer, but got {number!r}")
    return int(number)


class Value(Reductions):
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
        found = self.numpy()
        return f"{self.dtype}({found})" if not self.shape else f"{self.dtype}{list(self.shape)} {found}"

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
        found = evaluation.value(self.ir).reshape(self.shape)
        return found.view(self.dtype.dtype) if self.dtype.kind == "uint" and self.dtype.dtype else found

    # Conversions to Python objects, which are possible only in a kernel that runs as it is built.

    def _known_only_as_it_runs(self, what: str) -> NoReturn:
        raise TypeError(f"{what} of a value that is known only at run time ({self.describe()})")

    def _scalar(self, what: str) -> Any:
        if BUILDING.evaluation is None:
            self._known_only_as_it_runs(what)
        if self.shape:
            raise TypeError(f"{what} of {self.describe()} is ambiguous; use .any() or .all()")
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
    correction = constant(types.int32, 0, (a.shape[0], b.shape[1]))
    if a.dtype == types.uint8:
        correction = correction + b.to(types.int32).sum(0) * 128
        a = (a ^ 128).to(types.int8)
    if b.dtype == types.uint8:
        # The first factor is already signed here.
        correction = correction + a.to(types.int32).sum(1) * 128
        b = (b ^ 128).to(types.int8)
    return a, b, correction


def by_fma(a: Value, b: Value, c: Value | None, dtype: DType) -> Value:
    """A product in the type of its accumulator: one fma adds each term, in the order of K."""
    shape = (a.shape[0], b.shape[1])
    found = constant(dtype, 0.0, shape) if c is None else c.to(dtype)
    a, b = a.to(dtype), b.to(dtype)
    for k in range(a.shape[1]):
        found = a.along(1, [k]).broadcast(shape)._op("math.fma", b.along(0, [k]).broadcast(shape), found)
    return found


class Product(Deferred):
    """A product of matrices that is not computed yet: a following addition becomes the accumulator of its op."""

    def __init__(self, a: Value, b: Value) -> None:
        for name, v in (("left", a), ("right", b)):
            if not isinstance(v, Value) or v.ndim != 2:
                shown = v.describe() if isinstance(v, Value) else repr(v)
                raise TypeError(f"'@' multiplies matrices, but the {name} operand is {shown}")
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"'@' cannot multiply {a.describe()} by {b.describe()}")
        if not accumulators(a.dtype.mlir, b.dtype.mlir):
            why = "; dot(a, b, input_precision=...) says how" if a.dtype == b.dtype == types.float32 else ""
            raise TypeError(f"'@' cannot multiply {a.describe()} by {b.describe()}{why}")
        self.a, self.b = a, b
        self._value: Value | None = None
        self._block = mlir.InsertionPoint.current.block

    @property
    def value(self) -> Value:
        """The product without an accumulator, in float32; of integers in int32, and of float64 in float64."""
        if self._value is None:
            real = types.float64 if self.a.dtype == types.float64 else types.float32
            with self._place():
                self._value = self.multiplied(real if self.a.dtype.is_float else types.int32)
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
            a, b = a.to(types.float16), b.to(types.float16)
        if types.uint8 in (a.dtype, b.dtype):
            a, b, correction = _signed(a, b)
        shape = (a.shape[0], b.shape[1])
        made = xetile.tile_mma(a.ir, b.ir, None if c is None else c.ir, d=a._type(shape, dtype))
        found = Value(made, dtype, shape)
        return found if correction is None else found + correction

    def plus(self, c: Value) -> Value:
        """The product added to a matrix."""
        if c.shape != (self.a.shape[0], self.b.shape[1]):
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
