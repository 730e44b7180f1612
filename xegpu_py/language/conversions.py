"""Conversions of values to other element types, with the rounding and the saturation named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xegpu_py.ir.calls import called
from xegpu_py.language import types
from xegpu_py.language.held import BUILDING
from xegpu_py.language.operators import Operators
from xegpu_py.language.types import DType, dtype_of

if TYPE_CHECKING:
    from typing_extensions import Self

ROUNDINGS = ("nearest", "zero", "up", "down", "stochastic")
"""How `to` rounds floating-point numbers: to nearest even, toward zero, up, down, and by random bits."""

_ALIASES = {None: "nearest", "rtne": "nearest", "rtz": "zero", "rtp": "up", "rtn": "down", "sr": "stochastic"}

_STOCHASTIC = {("float32", "float16"): "i32", ("float16", "float8_e5m2"): "i16"}
"""The conversions of SRND, and the types of their random bits."""

_BYTES = {"float8_e4m3fn": (3, 7, 0x43E80000, 0x7F, 0x7F), "float8_e5m2": (2, 15, 0x476FFFFF, 0x7C, 0x7E)}
"""Types of 8 bits: mantissa bits, exponent bias, the float32 bits above which numbers overflow, infinity and NaN."""


class Conversions(Operators):
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
            dtype: the type.
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
        target = dtype_of(dtype)
        if bitcast:
            return self.bitcast(target)
        named = rounding if rounding is not None else fp_downcast_rounding
        mode = _ALIASES.get(named, named)
        if mode not in ROUNDINGS:
            raise ValueError(f"there is no rounding {named!r}; there are {', '.join(map(repr, ROUNDINGS))}")
        if (random is not None) != (mode == "stochastic"):
            what = "needs random=" if mode == "stochastic" else f"takes no random bits, as {mode!r} does"
            raise TypeError(f"stochastic rounding {what}")
        if mode == "stochastic":
            return self._stochastic(target, random, saturate)
        if self.dtype.is_float and target.is_integer:
            return self._to_whole(target, "zero" if named is None else mode, saturate)
        if self.dtype.is_float and target.is_float:
            return self._to_float(target, mode, saturate)
        if named is not None and not target.is_float:
            raise ValueError(f"{self.dtype} becomes {target} without rounding")
        if named is not None and mode != "nearest":
            raise ValueError(f"{self.dtype} is rounded to {target} to nearest only; convert it to float32 first")
        return self._whole_saturated(target) if saturate else self._converted(target)

    astype = to

    def _converted(self, to: DType) -> Self:
        """Convert as `arith` ops do: to nearest even, toward zero to integers, integers to their low bits."""
        old = self.dtype
        if to == old:
            return self._made(self.ir)
        if to.kind == "bool":
            return self.differs(0)
        if old.is_float and to.is_float:
            return self._float_to_float(to)
        if to.is_float:
            # bool and index have no conversions of their own.
            wide = self._converted({"bool": types.uint8, "index": types.int64}.get(old.kind, old))
            if to.bits < 16:
                return wide._converted(types.float32)._float_to_float(to)
            return wide._op("arith.sitofp" if wide.dtype.is_signed else "arith.uitofp", dtype=to)
        if old.is_float:
            through = types.int64 if to.kind == "index" else to
            source = self._float_to_float(types.float32) if old.bits < 16 or old == types.tfloat32 else self
            found = source._op("arith.fptosi" if through.is_signed else "arith.fptoui", dtype=through)
            return found._converted(to)
        if "index" in (old.kind, to.kind):
            other = old if to.kind == "index" else to
            if other.kind == "bool":
                return self._converted(types.int64)._converted(types.index)
            return self._op("arith.index_cast" if other.is_signed else "arith.index_castui", dtype=to)
        if to.bits == old.bits:
            return self._made(self.ir, to)
        name = "trunci" if to.bits < old.bits else "extsi" if old.is_signed else "extui"
        return self._op(f"arith.{name}", dtype=to)

    def _float_to_float(self, to: DType) -> Self:
        """Rounded to nearest even, once."""
        old = self.dtype
        if to == old:
            return self._made(self.ir)
        by_bits = {types.float8_e4m3fn, *([types.float8_e5m2] if "fcvt" in BUILDING.target.absent else [])}
        if to in by_bits:
            return self._to_byte(to) if old == types.float32 else self._wide()._float_to_float(to)
        if old in by_bits:
            return self._of_byte()._float_to_float(to)
        if types.holds_all(to, old) or (old, to) == (types.tfloat32, types.float32):
            if old.bits == 8 and to.bits > 16:
                return self._float_to_float(types.float16)._float_to_float(to)
            if to.bits == 64 and old.bits < 32:
                return self._float_to_float(types.float32)._float_to_float(to)
            return self._op("arith.extf", dtype=to)
        if old == types.float32 or (old, to) in ((types.float64, types.float32), (types.float16, types.float8_e5m2)):
            return self._op("arith.truncf", dtype=to)
        # Neither type holds the other, or no op rounds once.
        return self._wide()._float_to_float(to)

    def _wide(self) -> Self:
        """As float32: exactly, but float64 rounded to odd, so that rounding again equals rounding once."""
        return self._odd_float32() if self.dtype.bits == 64 else self._float_to_float(types.float32)

    def _of_byte(self) -> Self:
        """A type of 8 bits as float16, exactly, by integer instructions."""
        byte = self.bitcast(types.uint8)._converted(types.uint16)
        if self.dtype == types.float8_e5m2:
            return (byte << 8).bitcast(types.float16)
        # The bits of float8_e4m3fn are those of a number 2^8 times less, subnormal ones too.
        size = byte & 0x7F
        number = ((size << 7) | ((byte & 0x80) << 8)).bitcast(types.float16) * 256.0
        return size.equals(0x7F)._selected(number._number(float("nan")), number)

    def _to_byte(self, to: DType) -> Self:
        """float32 as a type of 8 bits, to nearest even, by integer instructions.

        Greater numbers and infinities become infinity; NaN if the type has no infinity.
        """
        mantissa, bias, beyond, infinity, nan = _BYTES[to.name]
        bits = self.bitcast(types.uint32)
        size = bits & 0x7FFFFFFF
        # So many bits are rounded off; a carry raises the exponent.
        rounded = 23 - mantissa
        normal = (size + ((1 << rounded - 1) - 1) + ((size >> rounded) & 1) >> rounded) - (127 - bias << mantissa)
        # Subnormal numbers are multiples of the least one, which is the last place of a power of two.
        power = self._number(2.0 ** (23 + 1 - bias - mantissa))
        subnormal = (size.bitcast(types.float32) + power).bitcast(types.uint32) - power.bitcast(types.uint32)
        found = (size < (128 - bias << 23))._selected(subnormal, normal)
        found = (size > beyond)._selected(found._number(infinity), found)
        found = (size > 0x7F800000)._selected(found._number(nan), found)
        return (found | ((bits >> 24) & 0x80))._converted(types.uint8).bitcast(to)

    def _odd_float32(self) -> Self:
        """float64 as float32 rounded to odd, so that rounding again equals rounding once."""
        near = self._op("arith.truncf", dtype=types.float32)
        bits = near.bitcast(types.int32)
        back = near._op("arith.extf", dtype=types.float64)
        # Round toward zero; then set the lowest bit of inexact results.
        toward = bits - (abs(back) > abs(self)).to(types.int32)
        return (toward | (back != self).to(types.int32)).bitcast(types.float32)

    def _to_float(self, to: DType, mode: str, saturate: bool) -> Self:
        """Floating-point numbers rounded to another floating-point type by a mode."""
        if to == self.dtype or types.holds_all(to, self.dtype) or (mode == "nearest" and not saturate):
            return self._converted(to)
        source = self
        if self.dtype.bits < 32 or self.dtype == types.tfloat32:
            source = self._converted(types.float32)
        if saturate or not to.infinite:
            # Directed rounding, too, stops at the greatest number of a type without infinities.
            source = source._clipped(source._number(to.most), keep_infinities=not saturate)
        found = source._converted(to)
        if mode == "nearest":
            return found
        back = found._converted(types.float32)._converted(source.dtype)
        # The next number away from zero has the next integer as its bits; the first one beyond the type is infinity.
        held = types.float32 if to == types.tfloat32 else to
        bits = found._converted(held).bitcast(types.integer_of(to.bits, signed=True))
        one = bits._number(1 << 13 if to == types.tfloat32 else 1)
        if mode == "zero":
            bits = (back.__abs__() > source.__abs__())._selected(bits - one, bits)
        else:
            wrong = back < source if mode == "up" else back > source
            outward = source > 0 if mode == "up" else source < 0
            bits = wrong._selected(outward._selected(bits + one, bits - one), bits)
        return bits.bitcast(held)._converted(to)

    def _clipped(self, most: Self, keep_infinities: bool) -> Self:
        """Numbers greater in magnitude than `most` become `most` with their sign; NaN stays."""
        beyond = abs(self) > most
        if keep_infinities:
            beyond = beyond & (abs(self) != self._number(float("inf")))
        return beyond._selected((self < 0)._selected(-most, most), self)

    def _to_whole(self, to: DType, mode: str, saturate: bool) -> Self:
        """Floating-point numbers as integers."""
        if self.dtype.bits < 32 or self.dtype == types.tfloat32:
            return self._converted(types.float32)._to_whole(to, mode, saturate)
        if mode != "zero":
            name = {"nearest": "roundeven", "up": "ceil", "down": "floor"}[mode]
            return self._op(f"math.{name}")._to_whole(to, "zero", saturate)
        if not saturate:
            return self._converted(to)
        low, high = to.limits
        # The first number beyond the type is a power of two, which every type holds that is not narrower.
        above = self >= self._number(float(high + 1))
        below = self < self._number(float(low))
        inside = ~(above | below | (self != self))
        whole = inside._selected(self, self._number(0))._converted(to)
        most, least = whole._number(high), whole._number(low)
        return above._selected(most, below._selected(least, whole))

    def _whole_saturated(self, to: DType) -> Self:
        """Integers as numbers of another type, clamped to its range."""
        if "bool" in (self.dtype.kind, to.kind):
            return self._converted(to)
        (low, high), (least, most) = self.dtype.limits, (-int(to.most), int(to.most)) if to.is_float else to.limits
        found = self
        if high > most:
            found = (found > found._number(most))._selected(found._number(most), found)
        if low < least:
            found = (found < found._number(least))._selected(found._number(least), found)
        return found._converted(to)

    def _stochastic(self, to: DType, random: Any, saturate: bool) -> Self:
        """SRND; see docs/numerics.md."""
        if (self.dtype.name, to.name) == ("float32", "float8_e5m2"):
            step = self._stochastic(types.float16, random, saturate)
            # The second step uses other random bits than the first.
            return step._stochastic(to, random >> 13, saturate)
        wanted = _STOCHASTIC.get((self.dtype.name, to.name))
        if wanted is None:
            pairs = ", ".join(f"{a} to {b}" for a, b in _STOCHASTIC)
            raise ValueError(f"there is no stochastic rounding of {self.dtype} to {to}; there is one of {pairs}")
        if not isinstance(random, Conversions) or not random.dtype.is_integer:
            raise TypeError("the random bits of stochastic rounding are integers")
        source = self._clipped(self._number(to.most), keep_infinities=False) if saturate else self
        bits = random._converted(types.dtype_of(wanted)).broadcast_to(self.shape)
        line = not self.shape
        if line:
            source, bits = source.reshape((1,)), bits.reshape((1,))
        found = source._made(called("llvm.genx.srnd", source._type(source.shape, to), source.ir, bits.ir), to)
        return found.reshape(()) if line else found

    def bitcast(self, dtype: Any) -> Self:
        """The same bits as elements of another type of the same width; tf32 has those of float32.

        Raises:
            TypeError: if the widths differ.
        """
        to = dtype_of(dtype)
        if self.dtype == types.tfloat32 and to != self.dtype:
            return self._converted(types.float32).bitcast(to)
        if to.bits != self.dtype.bits or "index" in (to.kind, self.dtype.kind) or to == types.tfloat32 != self.dtype:
            raise TypeError(f"cannot take the bits of {self.dtype} for {to}: they have {self.dtype.bits} and {to.bits}")
        if to.mlir == self.dtype.mlir:
            return self._made(self.ir, to)
        return self._op("arith.bitcast", dtype=to)
