"""Functions of f64 by f64 and integer arithmetic; vISA has only division and square root for f64."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from xegpu_py.passes.common.builders import binary, compare, constant, integer_type, make, select, with_element, zero
from xegpu_py.passes.common.values import element_of
from xegpu_py.passes.xegpu_legalize.forms import Forms, form
from xegpu_py.passes.xegpu_legalize.numbers import by_single

_MANTISSA = (1 << 52) - 1
_SIGN = -(1 << 63)


def _with_sign(magnitude: ir.Value, x: ir.Value) -> ir.Value:
    """A non-negative number with the sign of another."""
    return make("math.copysign", x.type, magnitude, x)


def _or_nan(x: ir.Value, found: ir.Value) -> ir.Value:
    """The result for a number; for a NaN the canonical NaN, which an addition gives."""
    nan = binary("addf", x, x)
    return select(compare("ord", x, x), found, nan)


def _truncated(x: ir.Value) -> ir.Value:
    """Clear the mantissa bits of weight less than 1: all bits of numbers below 1, none of numbers from 2^52 on."""
    kind = with_element(x.type, integer_type(64))

    bits = make("arith.bitcast", kind, x)
    exponent = binary("subi", binary("andi", binary("shrui", bits, 52), 0x7FF), 1023)
    places = binary("minsi", binary("maxsi", exponent, 0), 63)
    kept = binary("xori", binary("shrui", constant(kind, _MANTISSA), places), -1)
    kept = select(compare("slt", exponent, zero(kind)), constant(kind, _SIGN), kept)
    return make("arith.bitcast", x.type, binary("andi", bits, kept))


def _floor(x: ir.Value) -> ir.Value:
    whole = _truncated(x)
    less = binary("subf", whole, constant(x.type, 1.0))
    return _or_nan(x, select(compare("olt", x, whole), less, whole))


def _ceil(x: ir.Value) -> ir.Value:
    whole = _truncated(x)
    more = _with_sign(binary("addf", whole, constant(x.type, 1.0)), x)
    return _or_nan(x, select(compare("olt", whole, x), more, whole))


def _round(x: ir.Value) -> ir.Value:
    """Round toward zero, and add one to the magnitude where the fraction is at least a half."""
    whole = _truncated(x)
    rest = make("math.absf", x.type, binary("subf", x, whole))
    more = binary("addf", whole, _with_sign(constant(x.type, 1.0), x))
    return _or_nan(x, select(compare("oge", rest, constant(x.type, 0.5)), more, whole))


def _round_even(x: ir.Value) -> ir.Value:
    """Add 2^52, which rounds to nearest even since the sum has no bits below 1, and subtract it."""
    size, large = make("math.absf", x.type, x), constant(x.type, 2.0**52)
    whole = binary("subf", binary("addf", size, large), large)
    return _or_nan(x, select(compare("olt", size, large), _with_sign(whole, x), x))


DOUBLES: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.trunc": lambda x: _or_nan(x, _truncated(x)),
    "math.floor": _floor,
    "math.ceil": _ceil,
    "math.round": _round,
    "math.roundeven": _round_even,
    "math.rsqrt": lambda x: binary("divf", constant(x.type, 1.0), make("math.sqrt", x.type, x)),
}
"""The expansion of each function."""


@form(*DOUBLES)
def integral(forms: Forms, op: ir.Operation) -> None:
    """Expand a function of f64. Narrow formats use the functions of f32."""
    if isinstance(element_of(op.operands[0]), ir.F64Type):
        forms.replace(op, DOUBLES[op.name](op.operands[0]))
    else:
        by_single(forms, op)
