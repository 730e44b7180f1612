"""The values of tile kernels: scalars, and elements of any number of dimensions in registers.

A `Value` is immutable: each operator gives a new one. A `Handle` is mutable: `advance` replaces its SSA value. The
compiler carries both through loops and branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, vector

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xegpu.matrix import accumulators
from xegpu_py.dialects.xetile import WgMap
from xegpu_py.ir.builtin import vector_of, vector_text
from xegpu_py.ir.numbers import number_attribute
from xegpu_py.language import types
from xegpu_py.language.conversions import Conversions
from xegpu_py.language.held import BUILDING, Number, matrix_shape
from xegpu_py.language.reductions import Reductions
from xegpu_py.language.shapes import Shapes
from xegpu_py.language.types import DType, dtype_of

MOST_ELEMENTS = 1 << 20
"""The most elements of a value, as in Triton. The registers of a workgroup hold less than that."""


def constant(dtype: DType, number: Number | bool, shape: Sequence[int] = (), map: WgMap | None = None) -> Value:
    """A constant, or a vector filled with it.

    Raises:
        OverflowError: if it does not fit the type.
    """
    BUILDING.check()
    number = dtype.signless(number)
    held = matrix_shape(shape)
    kind = mlir.Type.parse(vector_text(held, dtype.mlir) if held else dtype.mlir)
    made: mlir.Value = arith.constant(kind, number_attribute(kind, number))
    if map is not None:
        made.owner.operation.attributes["map"] = map.to_ir()
    return Value(made, dtype, shape)


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
    """Two operands, of which one is a value, in the type in which they are combined and in the same shape."""
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
            raise TypeError(f"an offset must be an integer, not {number.describe()}")
        return number.to(types.index).ir
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"an offset must be an integer, not {number!r}")
    return int(number)


class Value(Shapes, Conversions, Reductions):
    """A scalar, or elements of any number of dimensions in registers. Operators work by element, as in numpy.

    Attributes:
        ir: the SSA value: a scalar, a line, or the matrix in which the leading dimensions are one.
        dtype: its element type, with the sign that MLIR's integers do not have.
        shape: its extents.
    """

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, value: mlir.Value, dtype: DType | None = None, shape: Sequence[int] | None = None) -> None:
        super().__init__(value)
        text = str(value.type)
        held: tuple[int, ...] = ()
        element = text
        if text.startswith("vector<"):
            held, element = vector_of(text)
        self.shape: tuple[int, ...] = held if shape is None else tuple(shape)
        self.dtype = dtype_of(element) if dtype is None else dtype
        assert self.dtype.mlir == element and matrix_shape(self.shape) == held
        if self.size > MOST_ELEMENTS:
            raise ValueError(f"a value has at most {MOST_ELEMENTS} elements, unlike {self.describe()}")

    def with_ir(self, value: mlir.Value) -> Value:
        return Value(value, self.dtype, self.shape)

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
            raise TypeError(f"{self.describe()} is no integer")
        return int(self._scalar("the number"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __iter__(self) -> Iterator[Any]:
        self._known_only_as_it_runs("iteration")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    # Helpers of the base classes.

    def _number(self, number: Number | bool) -> Value:
        """A number of this element type in this shape."""
        return constant(self.dtype, number, self.shape)

    def _zero(self, shape: Sequence[int]) -> Value:
        """Zeros of this element type."""
        return constant(self.dtype, 0, shape)

    def _selected(self, a: Value, b: Value) -> Value:
        """Elements of `a` where this mask is set, and of `b` elsewhere, all of one shape."""
        return a._made(arith.select(self.ir, a.ir, b.ir))

    def _places(self, dim: int) -> Value:
        """The index of each element along a dimension, int32."""
        shape = tuple(n if d == dim else 1 for d, n in enumerate(self.shape))
        step = vector.step(mlir.Type.parse(vector_text((self.shape[dim],), "index")))
        return Value(step, types.index).to(types.int32).reshape(shape).broadcast(self.shape)

    # Arithmetic.

    def _both(self, other: Any, dtype: DType | None = None) -> tuple[Value, Value]:
        """Both operands, converted to the type in which they are combined and broadcast to one shape."""
        if isinstance(other, Value):
            dtype = dtype or types.promote(self.dtype, other.dtype)
            shape = tuple(np.broadcast_shapes(self.shape, other.shape))
            return self.to(dtype).broadcast(shape), other.to(dtype).broadcast(shape)
        if isinstance(other, Product):
            return self._both(other.value, dtype)
        dtype = dtype or types.with_scalar(self.dtype, other)
        if dtype.kind == "bool" and not isinstance(other, (bool, np.bool_)):
            dtype = types.int32
        return self.to(dtype), constant(dtype, other, self.shape)

    def _arith(self, other: Any, name: str, *, swapped: bool = False) -> Value:
        """`arith.NAMEf`, or `arith.NAMEi` of integers."""
        if not isinstance(other, (Value, Product, bool, int, float, np.generic)):
            return NotImplemented
        a, b = self._both(other)
        if a.dtype.kind == "bool":
            a, b = a.to(types.int32), b.to(types.int32)
        if swapped:
            a, b = b, a
        return a._op(f"arith.{name}{'f' if a.dtype.is_float else 'i'}", b)

    def _op(self, name: str, *others: Value, dtype: DType | None = None) -> Value:
        if self.dtype.is_narrow and dtype is None:
            # There is no arithmetic on these types. float32 has enough bits that rounding twice equals rounding once.
            wide = [v.to(types.float32) for v in (self, *others)]
            return wide[0]._op(name, *wide[1:]).to(self.dtype)
        result = dtype or self.dtype
        operands = [self.ir, *(o.ir for o in others)]
        return self._made(mlir.Operation.create(name, [self._type(self.shape, result)], operands).result, result)

    def __add__(self, other: Any) -> Value:
        if isinstance(other, Product):
            return other.plus(self)
        return self._arith(other, "add")

    def __radd__(self, other: Any) -> Value:
        return self._arith(other, "add", swapped=True)

    def __sub__(self, other: Any) -> Value:
        return self._arith(other, "sub")

    def __rsub__(self, other: Any) -> Value:
        return self._arith(other, "sub", swapped=True)

    def __mul__(self, other: Any) -> Value:
        return self._arith(other, "mul")

    def __rmul__(self, other: Any) -> Value:
        return self._arith(other, "mul", swapped=True)

    def _divided(self, other: Any, swapped: bool) -> Value:
        if not isinstance(other, (Value, Product, bool, int, float, np.generic)):
            return NotImplemented
        if isinstance(other, Product):
            other = other.value
        if isinstance(other, Value):
            dtype = types.promote(self.dtype, other.dtype)
        else:
            dtype = types.with_scalar(self.dtype, other)
        a, b = self._both(other, dtype if dtype.is_float else types.float32)
        return (b if swapped else a)._op("arith.divf", a if swapped else b)

    def __truediv__(self, other: Any) -> Value:
        return self._divided(other, False)

    def __rtruediv__(self, other: Any) -> Value:
        return self._divided(other, True)

    def _integers(self, other: Any, sign: str, swapped: bool, hint: str) -> tuple[Value, Value]:
        a, b = self._both(other)
        if a.dtype.is_float or (a.dtype.kind == "bool" and not hint):
            raise TypeError(f"'{sign}' needs integers, not {a.dtype}{f'; {hint}' if hint and a.dtype.is_float else ''}")
        if a.dtype.kind == "bool" and hint:
            a, b = a.to(types.int32), b.to(types.int32)
        if hint and not swapped and isinstance(other, int) and not other:
            raise ZeroDivisionError(f"'{sign}' by zero")
        return (b, a) if swapped else (a, b)

    def _floordiv(self, other: Any, swapped: bool) -> Value:
        a, b = self._integers(other, "//", swapped, "floor(a / b) rounds a quotient down")
        return a._op("arith.floordivsi" if a.dtype.is_signed else "arith.divui", b)

    def __floordiv__(self, other: Any) -> Value:
        return self._floordiv(other, False)

    def __rfloordiv__(self, other: Any) -> Value:
        return self._floordiv(other, True)

    def _modulo(self, other: Any, swapped: bool) -> Value:
        a, b = self._integers(other, "%", swapped, "a - b * floor(a / b) is the remainder of a quotient rounded down")
        if not a.dtype.is_signed:
            return a._op("arith.remui", b)
        # Python's remainder has the divisor's sign, arith's the dividend's.
        rest = a._op("arith.remsi", b)
        differs = ((rest ^ b) < 0) & (rest != 0)
        return rest + differs.to(rest.dtype) * b

    def __mod__(self, other: Any) -> Value:
        return self._modulo(other, False)

    def __rmod__(self, other: Any) -> Value:
        return self._modulo(other, True)

    def __pow__(self, other: Any) -> Value:
        if isinstance(other, int) and not isinstance(other, bool) and 0 < other <= 64:
            found, square, rest = None, self, other
            while rest:
                if rest & 1:
                    found = square if found is None else found * square
                rest >>= 1
                square = square * square if rest else square
            assert found is not None
            return found
        a, b = self._both(other)
        if not a.dtype.is_float:
            raise TypeError("'**' needs floating-point values, or a constant exponent of 1 to 64")
        return a._op("math.powf", b)

    def _bits(self, other: Any, sign: str, name: str, swapped: bool = False) -> Value:
        a, b = self._both(other)
        if a.dtype.is_float:
            raise TypeError(f"'{sign}' needs integers or truth values, not {a.dtype}")
        # The result of two bools is bool, unlike in arithmetic.
        if isinstance(other, Value) and self.dtype.kind == other.dtype.kind == "bool":
            a, b = self._both(other, types.bool_)
        if swapped:
            a, b = b, a
        return a._op(f"arith.{name}", b)

    def __and__(self, other: Any) -> Value:
        return self._bits(other, "&", "andi")

    def __or__(self, other: Any) -> Value:
        return self._bits(other, "|", "ori")

    def __xor__(self, other: Any) -> Value:
        return self._bits(other, "^", "xori")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def _shift(self, other: Any, sign: str, swapped: bool) -> Value:
        a, b = self._integers(other, sign, swapped, "")
        count = b if swapped else other
        if isinstance(count, int) and not 0 <= count < a.dtype.bits:
            raise ValueError(f"cannot shift {a.dtype} by {count} bits")
        return a._op("arith.shli" if sign == "<<" else "arith.shrsi" if a.dtype.is_signed else "arith.shrui", b)

    def __lshift__(self, other: Any) -> Value:
        return self._shift(other, "<<", False)

    def __rlshift__(self, other: Any) -> Value:
        return self._shift(other, "<<", True)

    def __rshift__(self, other: Any) -> Value:
        return self._shift(other, ">>", False)

    def __rrshift__(self, other: Any) -> Value:
        return self._shift(other, ">>", True)

    def __invert__(self) -> Value:
        if self.dtype.is_float:
            raise TypeError(f"'~' needs integers or truth values, not {self.dtype}")
        ones = True if self.dtype.kind == "bool" else -1 if self.dtype.is_signed else (1 << self.dtype.bits) - 1
        return self._op("arith.xori", constant(self.dtype, ones, self.shape))

    def __neg__(self) -> Value:
        if self.dtype.is_float:
            return self._op("arith.negf")
        return 0 - self

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        if self.dtype.is_float:
            return self._op("math.absf")
        return self._op("math.absi") if self.dtype.is_signed else self

    def _compare(self, other: Any, real: str, whole: str) -> Value:
        if not isinstance(other, (Value, Product, bool, int, float, np.generic)):
            return NotImplemented
        if not isinstance(other, (Value, Product)) and self.dtype.is_integer and not isinstance(other, (bool, float)):
            # The comparison with an out-of-range number would be constant, which is most likely a mistake.
            types.with_scalar(self.dtype, other)
        a, b = self._both(other)
        if a.dtype.is_narrow:
            a, b = a.to(types.float32), b.to(types.float32)
        if a.dtype.is_float:
            return a._made(arith.cmpf(arith.CmpFPredicate[real], a.ir, b.ir), types.bool_)
        name = whole if whole in ("eq", "ne") else f"{'s' if a.dtype.is_signed else 'u'}{whole}"
        return a._made(arith.cmpi(arith.CmpIPredicate[name], a.ir, b.ir), types.bool_)

    def __lt__(self, other: Any) -> Value:
        return self._compare(other, "OLT", "lt")

    def __le__(self, other: Any) -> Value:
        return self._compare(other, "OLE", "le")

    def __gt__(self, other: Any) -> Value:
        return self._compare(other, "OGT", "gt")

    def __ge__(self, other: Any) -> Value:
        return self._compare(other, "OGE", "ge")

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return self._compare(other, "OEQ", "eq")

    def __ne__(self, other: Any) -> Value:  # type: ignore[override]
        return self._compare(other, "UNE", "ne")

    def equals(self, other: Any) -> Value:
        """Where the elements are equal: `==`."""
        return self == other

    def __matmul__(self, other: Value) -> Product:
        return Product(self, other)

    def with_map(self, map: WgMap) -> Value:
        """The same matrix, distributed among subgroups by another map."""
        return self._made(xetile.convert_layout(self.ir, map, result=self.ir.type))


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


class Product:
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
