"""The operators of values: arithmetic, bits, shifts and comparisons by element, with the types of `types`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, vector

from xegpu_py.ir.builtin import vector_text
from xegpu_py.language import types
from xegpu_py.language.held import Deferred
from xegpu_py.language.shapes import Shapes
from xegpu_py.language.types import DType

if TYPE_CHECKING:
    from typing_extensions import Self


S = TypeVar("S", bound="Operators")


def _operator(method: Callable[..., Any], *more: Any) -> Callable[[S, Any], S]:
    """The operator that calls a method with its operand and these arguments."""

    def operator(self: S, other: Any) -> S:
        return method(self, other, *more)

    return operator


class Operators(Shapes):
    """The operators of `Value`."""

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    @abstractmethod
    def to(self, dtype: Any) -> Self:
        """The numbers in another type; see `Conversions.to`."""

    def _places(self, dim: int) -> Self:
        """The index of each element along a dimension, int32."""
        shape = tuple(n if d == dim else 1 for d, n in enumerate(self.shape))
        step = vector.step(mlir.Type.parse(vector_text((self.shape[dim],), "index")))
        return type(self)(step, types.index).to(types.int32).reshape(shape).broadcast(self.shape)

    # Arithmetic.

    def _both(self, other: Any, dtype: DType | None = None) -> tuple[Self, Self]:
        """Both operands, converted to the type in which they are combined and broadcast to one shape."""
        if isinstance(other, type(self)):
            dtype = dtype or types.promote(self.dtype, other.dtype)
            shape = tuple(np.broadcast_shapes(self.shape, other.shape))
            return self.to(dtype).broadcast(shape), other.to(dtype).broadcast(shape)
        if isinstance(other, Deferred):
            return self._both(other.value, dtype)
        dtype = dtype or types.with_scalar(self.dtype, other)
        if dtype.kind == "bool" and not isinstance(other, (bool, np.bool_)):
            dtype = types.int32
        return self.to(dtype), self.constant(dtype, other, self.shape)

    def _arith(self, other: Any, name: str, swapped: bool = False) -> Self:
        """`arith.NAMEf`, or `arith.NAMEi` of integers."""
        if not isinstance(other, (Operators, Deferred, bool, int, float, np.generic)):
            return NotImplemented
        a, b = self._both(other)
        if a.dtype.kind == "bool":
            a, b = a.to(types.int32), b.to(types.int32)
        if swapped:
            a, b = b, a
        return a._op(f"arith.{name}{'f' if a.dtype.is_float else 'i'}", b)

    def _op(self, name: str, *others: Self, dtype: DType | None = None) -> Self:
        if self.dtype.is_narrow and dtype is None:
            # There is no arithmetic on these types. float32 has enough bits that rounding twice equals rounding once.
            wide = [v.to(types.float32) for v in (self, *others)]
            return wide[0]._op(name, *wide[1:]).to(self.dtype)
        result = dtype or self.dtype
        operands = [self.ir, *(o.ir for o in others)]
        return self._made(mlir.Operation.create(name, [self._type(self.shape, result)], operands).result, result)

    def __add__(self, other: Any) -> Self:
        if isinstance(other, Deferred):
            return other.plus(self)
        return self._arith(other, "add")

    __radd__ = _operator(_arith, "add", True)
    __sub__, __rsub__ = _operator(_arith, "sub"), _operator(_arith, "sub", True)
    __mul__, __rmul__ = _operator(_arith, "mul"), _operator(_arith, "mul", True)

    def _divided(self, other: Any, swapped: bool = False) -> Self:
        if not isinstance(other, (Operators, Deferred, bool, int, float, np.generic)):
            return NotImplemented
        if isinstance(other, Deferred):
            other = other.value
        if isinstance(other, Operators):
            dtype = types.promote(self.dtype, other.dtype)
        else:
            dtype = types.with_scalar(self.dtype, other)
        a, b = self._both(other, dtype if dtype.is_float else types.float32)
        return (b if swapped else a)._op("arith.divf", a if swapped else b)

    __truediv__, __rtruediv__ = _operator(_divided), _operator(_divided, True)

    def _integers(self, other: Any, sign: str, swapped: bool) -> tuple[Self, Self]:
        a, b = self._both(other)
        if a.dtype.is_float or a.dtype.kind == "bool":
            raise TypeError(f"'{sign}' needs integers, not {a.dtype}")
        return (b, a) if swapped else (a, b)

    def _dividend(self, other: Any, sign: str, swapped: bool) -> tuple[Self, Self]:
        """The operands of `//` and `%`."""
        a, b = self._both(other)
        if a.dtype.kind == "bool":
            a, b = a.to(types.int32), b.to(types.int32)
        if a.dtype.is_integer and not swapped and isinstance(other, (int, np.integer)) and not other:
            raise ZeroDivisionError(f"'{sign}' by zero")
        return (b, a) if swapped else (a, b)

    def _own_rule(self, given: Any) -> tuple[Self | None, Self]:
        """Where this divisor is 0 or -1, for which arith's divisions are undefined; and the divisor with 1 there.

        Args:
            given: the operand that became this divisor. For a number nothing is undefined unless it is -1.
        """
        if isinstance(given, (int, np.integer)) and given != -1:
            return None, self
        if not self.dtype.is_signed:
            special = self.equals(0)
        else:
            # One comparison finds both: -1 and 0 become 0 and 1.
            after = self._op("arith.addi", self._number(1))
            special = self._made(arith.cmpi(arith.CmpIPredicate.ule, after.ir, self._number(1).ir), types.bool_)
        return special, special._selected(self._number(1), self)

    def _floordiv(self, other: Any, swapped: bool = False) -> Self:
        a, b = self._dividend(other, "//", swapped)
        if a.dtype.is_float:
            return a._divmod(b)[0]
        special, divisor = b._own_rule(None if swapped else other)
        found = a._op("arith.floordivsi" if a.dtype.is_signed else "arith.divui", divisor)
        if special is None:
            return found
        # By 0 this is 0. By -1 it is -a, which wraps around.
        return special._selected((0 - a) & b if a.dtype.is_signed else b, found)

    __floordiv__, __rfloordiv__ = _operator(_floordiv), _operator(_floordiv, True)

    def _modulo(self, other: Any, swapped: bool = False) -> Self:
        a, b = self._dividend(other, "%", swapped)
        if a.dtype.is_float:
            return a._divmod(b)[1]
        # The remainder of a division by 1 is that by 0 and by -1: 0.
        _, b = b._own_rule(None if swapped else other)
        if not a.dtype.is_signed:
            return a._op("arith.remui", b)
        # Python's remainder has the divisor's sign, arith's the dividend's.
        rest = a._op("arith.remsi", b)
        differs = ((rest ^ b) < 0) & rest.differs(0)
        return rest + differs.to(rest.dtype) * b

    __mod__, __rmod__ = _operator(_modulo), _operator(_modulo, True)

    def _divmod(self, other: Self) -> tuple[Self, Self]:
        """The quotient rounded down and the remainder of floating-point values, by the algorithm of numpy and CPython.

        Narrow types compute in float32.
        """
        if self.dtype.bits < 32 or self.dtype.is_narrow:
            wide = self.to(types.float32)._divmod(other.to(types.float32))
            return wide[0].to(self.dtype), wide[1].to(self.dtype)
        zero = self._number(0.0)
        rest = self._op("arith.remf", other)
        quotient = (self - rest) / other
        above = rest.differs(0) & ((rest < 0) ^ (other < 0))
        rest = above._selected(rest + other, rest)
        rest = rest.equals(0)._selected(zero._op("math.copysign", other), rest)
        quotient = above._selected(quotient - 1, quotient)
        down = quotient._op("math.floor")
        down = ((quotient - down) > 0.5)._selected(down + 1, down)
        exact = self / other
        down = quotient.equals(0)._selected(zero._op("math.copysign", exact), down)
        return other.equals(0)._selected(exact, down), rest

    def _power(self, other: Any, swapped: bool = False) -> Self:
        if isinstance(other, int) and not isinstance(other, bool) and 0 < other <= 64 and not swapped:
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
        return (b if swapped else a)._op("math.powf", a if swapped else b)

    __pow__, __rpow__ = _operator(_power), _operator(_power, True)

    def _bits(self, other: Any, sign: str, name: str) -> Self:
        a, b = self._both(other)
        if a.dtype.is_float:
            raise TypeError(f"'{sign}' needs integers or truth values, not {a.dtype}")
        # The result of two bools is bool, unlike in arithmetic.
        if isinstance(other, Operators) and self.dtype.kind == other.dtype.kind == "bool":
            a, b = self._both(other, types.bool_)
        return a._op(f"arith.{name}", b)

    __and__ = __rand__ = _operator(_bits, "&", "andi")
    __or__ = __ror__ = _operator(_bits, "|", "ori")
    __xor__ = __rxor__ = _operator(_bits, "^", "xori")

    def _shift(self, other: Any, sign: str, swapped: bool = False) -> Self:
        a, b = self._integers(other, sign, swapped)
        count = b if swapped else other
        if isinstance(count, int) and not 0 <= count < a.dtype.bits:
            raise ValueError(f"cannot shift {a.dtype} by {count} bits")
        return a._op("arith.shli" if sign == "<<" else "arith.shrsi" if a.dtype.is_signed else "arith.shrui", b)

    __lshift__, __rlshift__ = _operator(_shift, "<<"), _operator(_shift, "<<", True)
    __rshift__, __rrshift__ = _operator(_shift, ">>"), _operator(_shift, ">>", True)

    def __invert__(self) -> Self:
        if self.dtype.is_float:
            raise TypeError(f"'~' needs integers or truth values, not {self.dtype}")
        ones = True if self.dtype.kind == "bool" else -1 if self.dtype.is_signed else (1 << self.dtype.bits) - 1
        return self._op("arith.xori", self.constant(self.dtype, ones, self.shape))

    def __neg__(self) -> Self:
        if self.dtype.is_float:
            return self._op("arith.negf")
        return 0 - self

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        if self.dtype.is_float:
            return self._op("math.absf")
        return self._op("math.absi") if self.dtype.is_signed else self

    def _compare(self, other: Any, name: str) -> Self:
        if not isinstance(other, (Operators, Deferred, bool, int, float, np.generic)):
            return NotImplemented
        if (
            not isinstance(other, (Operators, Deferred))
            and self.dtype.is_integer
            and not isinstance(other, (bool, float))
        ):
            # The comparison with an out-of-range number would be constant, which is most likely a mistake.
            types.with_scalar(self.dtype, other)
        a, b = self._both(other)
        if a.dtype.is_narrow:
            a, b = a.to(types.float32), b.to(types.float32)
        if a.dtype.is_float:
            real = f"{'U' if name == 'ne' else 'O'}{name.upper()}"
            return a._made(arith.cmpf(arith.CmpFPredicate[real], a.ir, b.ir), types.bool_)
        name = name if name in ("eq", "ne") else f"{'s' if a.dtype.is_signed else 'u'}{name}"
        return a._made(arith.cmpi(arith.CmpIPredicate[name], a.ir, b.ir), types.bool_)

    __lt__, __le__ = _operator(_compare, "lt"), _operator(_compare, "le")
    __gt__, __ge__ = _operator(_compare, "gt"), _operator(_compare, "ge")
    __eq__ = _operator(_compare, "eq")  # type: ignore[assignment]
    __ne__ = _operator(_compare, "ne")  # type: ignore[assignment]

    def equals(self, other: Any) -> Self:
        """Where the elements are equal: `==`."""
        return self == other

    def differs(self, other: Any) -> Self:
        """Where the elements differ: `!=`."""
        return self != other
