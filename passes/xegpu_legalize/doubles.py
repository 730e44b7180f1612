"""Functions of f64, of which vISA has none but division and square roots, by its arithmetic and by integers."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from xegpu_py.passes.common.registers import shape_and_element
from xegpu_py.passes.xegpu_legalize.numbers import Builder, text_of

_MANTISSA = (1 << 52) - 1
_SIGN = -(1 << 63)
_OGE, _OLT, _ORD = 3, 4, 7
"""Numbers of arith.cmpf's predicates."""
_SLT = 2
"""The number of one of arith.cmpi's."""


class _Doubles:
    """New ops on vectors of one shape, in front of an op."""

    def __init__(self, op: ir.Operation) -> None:
        self.builder = Builder(op)
        shape, _ = shape_and_element(str(op.operands[0].type))
        self.float, self.bits = text_of(shape, "f64"), text_of(shape, "i64")

    def number(self, value: float) -> ir.Value:
        """A float, for all elements."""
        return self.builder.constant(value, self.float)

    def pattern(self, value: int) -> ir.Value:
        """An integer, for all elements."""
        return self.builder.constant(value, self.bits)

    def on_floats(self, name: str, *operands: ir.Value) -> ir.Value:
        """An op whose result are floats."""
        return self.builder.emit(name, self.float, *operands)

    def on_bits(self, name: str, *operands: ir.Value) -> ir.Value:
        """An op whose result are integers."""
        return self.builder.emit(name, self.bits, *operands)

    def choose(self, predicate: int, a: ir.Value, b: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        """One of two floats, by a comparison of two others."""
        truth = self.builder.compare(predicate, a, b, "arith.cmpf")
        return self.on_floats("arith.select", truth, yes, no)

    def with_sign(self, magnitude: ir.Value, x: ir.Value) -> ir.Value:
        """A number that is not negative, with the sign of another."""
        return self.on_floats("math.copysign", magnitude, x)

    def finish(self, x: ir.Value, found: ir.Value) -> ir.Value:
        """The result; of a NaN the canonical one, which a sum is."""
        return self.choose(_ORD, x, x, found, self.on_floats("arith.addf", x, x))


def _truncated(d: _Doubles, x: ir.Value) -> ir.Value:
    """The bits of the mantissa that are worth less than 1 cleared: all of them below 1, none from 2^52 on."""
    bits = d.on_bits("arith.bitcast", x)
    biased = d.on_bits("arith.shrui", bits, d.pattern(52))
    exponent = d.on_bits("arith.subi", d.on_bits("arith.andi", biased, d.pattern(0x7FF)), d.pattern(1023))
    places = d.on_bits("arith.minsi", d.on_bits("arith.maxsi", exponent, d.pattern(0)), d.pattern(63))
    fraction = d.on_bits("arith.shrui", d.pattern(_MANTISSA), places)
    kept = d.on_bits("arith.xori", fraction, d.pattern(-1))
    below = d.builder.compare(_SLT, exponent, d.pattern(0))
    kept = d.on_bits("arith.select", below, d.pattern(_SIGN), kept)
    return d.on_floats("arith.bitcast", d.on_bits("arith.andi", bits, kept))


def _trunc(d: _Doubles, x: ir.Value) -> ir.Value:
    return d.finish(x, _truncated(d, x))


def _floor(d: _Doubles, x: ir.Value) -> ir.Value:
    whole = _truncated(d, x)
    less = d.on_floats("arith.subf", whole, d.number(1.0))
    return d.finish(x, d.choose(_OLT, x, whole, less, whole))


def _ceil(d: _Doubles, x: ir.Value) -> ir.Value:
    whole = _truncated(d, x)
    more = d.with_sign(d.on_floats("arith.addf", whole, d.number(1.0)), x)
    return d.finish(x, d.choose(_OLT, whole, x, more, whole))


def _round(d: _Doubles, x: ir.Value) -> ir.Value:
    """Toward zero, and one more in magnitude where at least a half is left."""
    whole = _truncated(d, x)
    rest = d.on_floats("math.absf", d.on_floats("arith.subf", x, whole))
    more = d.on_floats("arith.addf", whole, d.with_sign(d.number(1.0), x))
    return d.finish(x, d.choose(_OGE, rest, d.number(0.5), more, whole))


def _round_even(d: _Doubles, x: ir.Value) -> ir.Value:
    """The sum with 2^52 has no bits below 1, and is rounded to nearest even."""
    size, large = d.on_floats("math.absf", x), d.number(2.0**52)
    whole = d.on_floats("arith.subf", d.on_floats("arith.addf", size, large), large)
    return d.finish(x, d.choose(_OLT, size, large, d.with_sign(whole, x), x))


def _reciprocal_root(d: _Doubles, x: ir.Value) -> ir.Value:
    return d.on_floats("arith.divf", d.number(1.0), d.on_floats("math.sqrt", x))


DOUBLES: dict[str, Callable[[_Doubles, ir.Value], ir.Value]] = {
    "math.trunc": _trunc,
    "math.floor": _floor,
    "math.ceil": _ceil,
    "math.round": _round,
    "math.roundeven": _round_even,
    "math.rsqrt": _reciprocal_root,
}
"""What each function becomes."""


def rewrite_double(op: ir.Operation) -> bool:
    """Rewrite a function of f64; whether it is one of these."""
    rule = DOUBLES.get(op.name)
    if rule is None or shape_and_element(str(op.operands[0].type))[1] != "f64":
        return False
    doubles = _Doubles(op)
    doubles.builder.replace(rule(doubles, op.operands[0]))
    return True
