"""Operators and conversions of values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from mlir import ir as mlir
from mlir.dialects import arith, vector

from xegpu_py.ir.builtin import call_external
from xegpu_py.tiles import element_types
from xegpu_py.tiles.element_types import DType, dtype_of
from xegpu_py.tiles.value_base import Deferred, ShapeMethods, common_shape

if TYPE_CHECKING:
    from typing_extensions import Self


# The operators of values: arithmetic, bits, shifts and comparisons by element, with the types of `types`.

S = TypeVar("S", bound="OperatorMethods")


def _operator(method: Callable[..., Any], *extra_arguments: Any) -> Callable[[S, Any], S]:
    """The operator that calls a method with its operand and these arguments."""

    def operator(self: S, other: Any) -> S:
        return method(self, other, *extra_arguments)

    return operator


class OperatorMethods(ShapeMethods):
    """The operators of `Value`."""

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    @abstractmethod
    def to(self, dtype: Any) -> Self:
        """The numbers in another type; see `ConversionMethods.to`."""

    def _places(self, dim: int) -> Self:
        """The index of each element along a dimension, int32."""
        shape = tuple(n if d == dim else 1 for d, n in enumerate(self.shape))
        step = vector.step(element_types.index.vector((self.shape[dim],)))
        return type(self)(step, element_types.index).to(element_types.int32).reshape(shape).broadcast(self.shape)

    # Arithmetic.

    def _both(self, other: Any, dtype: DType | None = None) -> tuple[Self, Self]:
        """Both operands, converted to the type in which they are combined and broadcast to one shape."""
        if isinstance(other, type(self)):
            dtype = dtype or element_types.promote(self.dtype, other.dtype)
            shape = common_shape(self.shape, other.shape)
            return self.to(dtype).broadcast(shape), other.to(dtype).broadcast(shape)
        if isinstance(other, Deferred):
            return self._both(other.value, dtype)
        dtype = dtype or element_types.with_scalar(self.dtype, other)
        if dtype.kind == "bool" and not isinstance(other, (bool, np.bool_)):
            dtype = element_types.int32
        return self.to(dtype), self.constant(dtype, other, self.shape)

    def _arith(self, other: Any, name: str, swapped: bool = False) -> Self:
        """`arith.NAMEf`, or `arith.NAMEi` of integers."""
        if not isinstance(other, (OperatorMethods, Deferred, bool, int, float, np.generic)):
            return NotImplemented
        a, b = self._both(other)
        if a.dtype.kind == "bool":
            a, b = a.to(element_types.int32), b.to(element_types.int32)
        if swapped:
            a, b = b, a
        return a._op(f"arith.{name}{'f' if a.dtype.is_float else 'i'}", b)

    def _op(self, name: str, *others: Self, dtype: DType | None = None) -> Self:
        if self.dtype.is_narrow and dtype is None:
            # There is no arithmetic on these types. float32 has enough bits that rounding twice equals rounding once.
            wide = [v.to(element_types.float32) for v in (self, *others)]
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
        if not isinstance(other, (OperatorMethods, Deferred, bool, int, float, np.generic)):
            return NotImplemented
        if isinstance(other, Deferred):
            other = other.value
        if isinstance(other, OperatorMethods):
            dtype = element_types.promote(self.dtype, other.dtype)
        else:
            dtype = element_types.with_scalar(self.dtype, other)
        a, b = self._both(other, dtype if dtype.is_float else element_types.float32)
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
            a, b = a.to(element_types.int32), b.to(element_types.int32)
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
            divisor_plus_one = self._op("arith.addi", self._number(1))
            special = self._made(
                arith.cmpi(arith.CmpIPredicate.ule, divisor_plus_one.ir, self._number(1).ir), element_types.bool_
            )
        return special, special._selected(self._number(1), self)

    def _floordiv(self, other: Any, swapped: bool = False) -> Self:
        a, b = self._dividend(other, "//", swapped)
        if a.dtype.is_float:
            return a._divmod(b)[0]
        special, divisor = b._own_rule(None if swapped else other)
        quotient = a._op("arith.floordivsi" if a.dtype.is_signed else "arith.divui", divisor)
        if special is None:
            return quotient
        # By 0 this is 0. By -1 it is -a, which wraps around.
        return special._selected((0 - a) & b if a.dtype.is_signed else b, quotient)

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
        remainder = a._op("arith.remsi", b)
        differs = ((remainder ^ b) < 0) & remainder.differs(0)
        return remainder + differs.to(remainder.dtype) * b

    __mod__, __rmod__ = _operator(_modulo), _operator(_modulo, True)

    def _divmod(self, other: Self) -> tuple[Self, Self]:
        """The quotient rounded down and the remainder of floating-point values, by the algorithm of numpy and CPython.

        Narrow types compute in float32.
        """
        if self.dtype.bits < 32 or self.dtype.is_narrow:
            wide = self.to(element_types.float32)._divmod(other.to(element_types.float32))
            return wide[0].to(self.dtype), wide[1].to(self.dtype)
        zero = self._number(0.0)
        remainder = self._op("arith.remf", other)
        quotient = (self - remainder) / other
        needs_correction = remainder.differs(0) & ((remainder < 0) ^ (other < 0))
        remainder = needs_correction._selected(remainder + other, remainder)
        remainder = remainder.equals(0)._selected(zero._op("math.copysign", other), remainder)
        quotient = needs_correction._selected(quotient - 1, quotient)
        down = quotient._op("math.floor")
        down = ((quotient - down) > 0.5)._selected(down + 1, down)
        exact = self / other
        down = quotient.equals(0)._selected(zero._op("math.copysign", exact), down)
        return other.equals(0)._selected(exact, down), remainder

    def _power(self, other: Any, swapped: bool = False) -> Self:
        if isinstance(other, int) and not isinstance(other, bool) and 0 < other <= 64 and not swapped:
            product, square, exponent = None, self, other
            while exponent:
                if exponent & 1:
                    product = square if product is None else product * square
                exponent >>= 1
                square = square * square if exponent else square
            assert product is not None
            return product
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
        if isinstance(other, OperatorMethods) and self.dtype.kind == other.dtype.kind == "bool":
            a, b = self._both(other, element_types.bool_)
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
        if not isinstance(other, (OperatorMethods, Deferred, bool, int, float, np.generic)):
            return NotImplemented
        a, b = self._both(other)
        if a.dtype.is_narrow:
            a, b = a.to(element_types.float32), b.to(element_types.float32)
        if a.dtype.is_float:
            float_predicate = f"{'U' if name == 'ne' else 'O'}{name.upper()}"
            return a._made(arith.cmpf(arith.CmpFPredicate[float_predicate], a.ir, b.ir), element_types.bool_)
        name = name if name in ("eq", "ne") else f"{'s' if a.dtype.is_signed else 'u'}{name}"
        return a._made(arith.cmpi(arith.CmpIPredicate[name], a.ir, b.ir), element_types.bool_)

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


# Conversions of values to other element types, with the rounding and the saturation named.

ROUNDINGS = ("nearest", "zero", "up", "down", "stochastic")
"""How `to` rounds floating-point numbers: to nearest even, toward zero, up, down, and by random bits."""

_ALIASES = {None: "nearest", "rtne": "nearest", "rtz": "zero", "rtp": "up", "rtn": "down", "sr": "stochastic"}

_STOCHASTIC = {("float32", "float16"): "i32", ("float16", "float8_e5m2"): "i16"}
"""The conversions of SRND, and the types of their random bits."""


class ConversionMethods(OperatorMethods):
    """The methods of `Value` that change element types."""

    def to(
        self,
        dtype: Any,
        rounding: str | None = None,
        saturate: bool = False,
        random: Any = None,
        *,
        bitcast: bool = False,
        fp_downcast_rounding: str | None = None,
    ) -> Self:
        """The numbers in another type, as numpy's `astype`.

        Floating-point values are rounded to nearest even; toward zero where they become integers, which must hold them.
        Integers keep their low bits. True is 1. A number is true unless it is zero.

        Args:
            dtype: the type, or a `pointer_type` of which an address becomes a pointer.
            rounding: of floating-point numbers to a type that does not hold them: "nearest" (even; FCVT where there is
                one), "zero", "up", "down", or "stochastic", which is SRND: float32 to float16, float16 to float8_e5m2,
                and float32 to float8_e5m2 in these two steps. Of numbers that become integers: all but "stochastic",
                by default "zero". Triton's "rtne" and "rtz" are read too.
            saturate: whether numbers out of the type's range become its greatest or least finite number, instead of an
                infinity or their low bits; NaN becomes 0 as an integer.
            random: the random bits of stochastic rounding, integers of the value's shape; the instruction adds the
                lowest 13 of them to float32, and the lowest 8 to float16.
            bitcast: whether to take the bits, as `bitcast` does.
            fp_downcast_rounding: Triton's name of `rounding`.

        Raises:
            ValueError: if these types do not support the rounding.
            TypeError: if stochastic rounding is given no random bits, or another rounding is given some.
        """
        if hasattr(dtype, "of_number"):
            # A type of pointers, which a higher layer defines.
            return dtype.of_number(self)
        target = dtype_of(dtype)
        if bitcast:
            return self.bitcast(target)
        rounding_name = rounding if rounding is not None else fp_downcast_rounding
        mode = _ALIASES.get(rounding_name, rounding_name)
        if mode not in ROUNDINGS:
            raise ValueError(f"there is no rounding {rounding_name!r}; there are {', '.join(map(repr, ROUNDINGS))}")
        if (random is not None) != (mode == "stochastic"):
            requirement = "needs random=" if mode == "stochastic" else f"takes no random bits, as {mode!r} does"
            raise TypeError(f"stochastic rounding {requirement}")
        if mode == "stochastic":
            return self._stochastic(target, random, saturate)
        if self.dtype.is_float and target.is_integer:
            return self._to_whole(target, "zero" if rounding_name is None else mode, saturate)
        if self.dtype.is_float and target.is_float:
            return self._to_float(target, mode, saturate)
        if rounding_name is not None and not target.is_float:
            raise ValueError(f"{self.dtype} becomes {target} without rounding")
        if rounding_name is not None and mode != "nearest":
            raise ValueError(f"{self.dtype} is rounded to {target} to nearest only; convert it to float32 first")
        return self._whole_saturated(target) if saturate else self._converted(target)

    astype = to

    def _converted(self, to: DType) -> Self:
        """Convert as `arith` ops do: to nearest even, toward zero to integers, integers to their low bits."""
        source_type = self.dtype
        if to == source_type:
            return self._made(self.ir)
        if to.kind == "bool":
            return self.differs(0)
        if source_type.is_float and to.is_float:
            return self._float_to_float(to)
        if to.is_float:
            # bool and index have no conversions of their own.
            wide = self._converted(
                {"bool": element_types.uint8, "index": element_types.int64}.get(source_type.kind, source_type)
            )
            return wide._op("arith.sitofp" if wide.dtype.is_signed else "arith.uitofp", dtype=to)
        if source_type.is_float:
            through = element_types.int64 if to.kind == "index" else to
            integers = self._op("arith.fptosi" if through.is_signed else "arith.fptoui", dtype=through)
            return integers._converted(to)
        if "index" in (source_type.kind, to.kind):
            target_type = source_type if to.kind == "index" else to
            if target_type.kind == "bool":
                return self._converted(element_types.int64)._converted(element_types.index)
            return self._op("arith.index_cast" if target_type.is_signed else "arith.index_castui", dtype=to)
        if to.bits == source_type.bits:
            return self._made(self.ir, to)
        name = "trunci" if to.bits < source_type.bits else "extsi" if source_type.is_signed else "extui"
        return self._op(f"arith.{name}", dtype=to)

    def _float_to_float(self, to: DType) -> Self:
        """Rounded to nearest even, once."""
        source_type = self.dtype
        if to == source_type:
            return self._made(self.ir)
        if element_types.holds_all(to, source_type) or (source_type, to) == (
            element_types.tfloat32,
            element_types.float32,
        ):
            return self._op("arith.extf", dtype=to)
        if source_type.bits == to.bits < 32:
            # Neither type holds the other.
            return self._float_to_float(element_types.float32)._float_to_float(to)
        return self._op("arith.truncf", dtype=to)

    def _to_float(self, to: DType, mode: str, saturate: bool) -> Self:
        """Floating-point numbers rounded to another floating-point type by a mode."""
        if to == self.dtype or element_types.holds_all(to, self.dtype) or (mode == "nearest" and not saturate):
            return self._converted(to)
        source = self
        if self.dtype.bits < 32 or self.dtype == element_types.tfloat32:
            source = self._converted(element_types.float32)
        if saturate or not to.infinite:
            # Directed rounding, too, stops at the greatest number of a type without infinities.
            source = source._clipped(source._number(to.most), keep_infinities=not saturate)
        nearest = source._converted(to)
        if mode == "nearest":
            return nearest
        back = nearest._converted(element_types.float32)._converted(source.dtype)
        # The next number away from zero has the next integer as its bits; the first one beyond the type is infinity.
        storage_type = element_types.float32 if to == element_types.tfloat32 else to
        bits = nearest._converted(storage_type).bitcast(element_types.integer_of(to.bits, signed=True))
        ulp = bits._number(1 << 13 if to == element_types.tfloat32 else 1)
        if mode == "zero":
            bits = (back.__abs__() > source.__abs__())._selected(bits - ulp, bits)
        else:
            rounded_past = back < source if mode == "up" else back > source
            outward = source > 0 if mode == "up" else source < 0
            bits = rounded_past._selected(outward._selected(bits + ulp, bits - ulp), bits)
        return bits.bitcast(storage_type)._converted(to)

    def _clipped(self, most: Self, keep_infinities: bool) -> Self:
        """Numbers greater in magnitude than `most` become `most` with their sign; NaN stays."""
        too_great = abs(self) > most
        if keep_infinities:
            too_great = too_great & (abs(self) != self._number(float("inf")))
        return too_great._selected((self < 0)._selected(-most, most), self)

    def _to_whole(self, to: DType, mode: str, saturate: bool) -> Self:
        """Floating-point numbers as integers."""
        if self.dtype.bits < 32 or self.dtype == element_types.tfloat32:
            return self._converted(element_types.float32)._to_whole(to, mode, saturate)
        if mode != "zero":
            name = {"nearest": "roundeven", "up": "ceil", "down": "floor"}[mode]
            return self._op(f"math.{name}")._to_whole(to, "zero", saturate)
        if not saturate:
            return self._converted(to)
        low, high = to.limits
        # The first number beyond the type is a power of two, which every type holds that is not narrower.
        above_range = self >= self._number(float(high + 1))
        below_range = self < self._number(float(low))
        inside = ~(above_range | below_range | (self != self))
        integers = inside._selected(self, self._number(0))._converted(to)
        most, least = integers._number(high), integers._number(low)
        return above_range._selected(most, below_range._selected(least, integers))

    def _whole_saturated(self, to: DType) -> Self:
        """Integers as numbers of another type, clamped to its range."""
        if "bool" in (self.dtype.kind, to.kind):
            return self._converted(to)
        (low, high), (least, most) = self.dtype.limits, (-int(to.most), int(to.most)) if to.is_float else to.limits
        clamped = self
        if high > most:
            clamped = (clamped > clamped._number(most))._selected(clamped._number(most), clamped)
        if low < least:
            clamped = (clamped < clamped._number(least))._selected(clamped._number(least), clamped)
        return clamped._converted(to)

    def _stochastic(self, to: DType, random: Any, saturate: bool) -> Self:
        """SRND; see docs/numerics.md."""
        if (self.dtype.name, to.name) == ("float32", "float8_e5m2"):
            step = self._stochastic(element_types.float16, random, saturate)
            # The second step uses other random bits than the first.
            return step._stochastic(to, random >> 13, saturate)
        random_type = _STOCHASTIC.get((self.dtype.name, to.name))
        if random_type is None:
            legal_pairs = ", ".join(f"{a} to {b}" for a, b in _STOCHASTIC)
            raise ValueError(f"there is no stochastic rounding of {self.dtype} to {to}; there is one of {legal_pairs}")
        if not isinstance(random, ConversionMethods) or not random.dtype.is_integer:
            raise TypeError("the random bits of stochastic rounding are integers")
        source = self._clipped(self._number(to.most), keep_infinities=False) if saturate else self
        bits = random._converted(element_types.dtype_of(random_type)).broadcast_to(self.shape)
        line = not self.shape
        if line:
            source, bits = source.reshape((1,)), bits.reshape((1,))
        rounded = source._made(call_external("llvm.genx.srnd", source._type(source.shape, to), source.ir, bits.ir), to)
        return rounded.reshape(()) if line else rounded

    def bitcast(self, dtype: Any) -> Self:
        """The same bits as elements of another type of the same width; tf32 has those of float32.

        Raises:
            TypeError: if the widths differ.
        """
        to = dtype_of(dtype)
        if self.dtype == element_types.tfloat32 and to != self.dtype:
            return self._converted(element_types.float32).bitcast(to)
        if (
            to.bits != self.dtype.bits
            or "index" in (to.kind, self.dtype.kind)
            or to == element_types.tfloat32 != self.dtype
        ):
            raise TypeError(f"cannot take the bits of {self.dtype} for {to}: they have {self.dtype.bits} and {to.bits}")
        if to.mlir == self.dtype.mlir:
            return self._made(self.ir, to)
        return self._op("arith.bitcast", dtype=to)
