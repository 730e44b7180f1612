"""`arith.remf`: the exact remainder of a quotient of floats that is rounded toward zero."""

from __future__ import annotations

from mlir import ir
from msgspec import Struct

from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.common.registers import unsigned
from xegpu_py.passes.xegpu_to_visa.arith import result_of
from xegpu_py.passes.xegpu_to_visa.emit import Emitter, const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.scf import assign
from xegpu_py.passes.xegpu_to_visa.values import MASK_LANES, Const, Mask, Reg
from xegpu_py.passes.xegpu_to_visa.wide import divide, with_sign
from xegpu_py.visa.operands import Guard


@pattern("arith.remf")
def remf(low: Lowering, op: ir.Operation) -> None:
    """Computed with integers in f64 or f32; f16 and bf16 are computed in f32, which gives the same remainder."""
    count, _, name = result_of(low, op)
    emit, wide = low.emit, "df" if name == "df" else "f"
    x, y = (emit.spread(emit.in_registers(low.numbers(v), wide), count) for v in op.operands)
    result = emit.reg(wide, count)
    for start in range(0, count, MASK_LANES):
        lanes = min(count - start, MASK_LANES)
        a, b = (emit.apply("mov", wide, lanes, n.part(start, lanes)) for n in (x, y))
        emit.apply("mov", wide, lanes, _remainder(emit, a, b), into=Reg(result.var, start, lanes))
    low.set(op, emit.in_registers(result, name))


_FRACTION = {"f": 23, "df": 52}
"""Stored bits of the mantissa."""


class _Parts(Struct, frozen=True):
    """Magnitudes as integers times powers of two.

    Attributes:
        size: the magnitude's pattern.
        mantissa: the integer.
        exponent: the biased exponent, at least 1.
    """

    size: Reg
    mantissa: Reg
    exponent: Reg


def _parts(emit: Emitter, numbers: Reg) -> _Parts:
    form, count, kind = numbers.format, numbers.count, unsigned(numbers.type)
    fraction = _FRACTION[numbers.type]
    size = emit.apply("and", kind, count, emit.as_type(numbers, kind), const((1 << form.bits - 1) - 1, kind))
    exponent = emit.apply("shr", kind, count, size, const(fraction, "uw"))
    mantissa = emit.apply("and", kind, count, size, const((1 << fraction) - 1, kind))
    normal = emit.compare("ne", count, exponent, const(0, kind))
    whole = emit.apply("or", kind, count, mantissa, const(1 << fraction, kind))
    return _Parts(
        size,
        emit.choose(normal, kind, count, whole, mantissa),
        emit.choose(normal, kind, count, exponent, const(1, kind)),
    )


def _remainder(emit: Emitter, x: Reg, y: Reg) -> Reg:
    """Long division of at most 16 lanes, one quotient bit per iteration, while any lane has bits left.

    With `|x| = m 2^e` and `|y| = n 2^f` the remainder is `2^f` times that of `m 2^(e-f)` by `n`. If `e < f` it is `x`,
    because then `|x| < |y|`.
    """
    name, count, form = x.type, x.count, x.format
    kind, fraction, signed = unsigned(name), _FRACTION[name], {"f": "d", "df": "q"}[name]
    a, b = _parts(emit, x), _parts(emit, y)
    rest = emit.reg(kind, count)
    emit.apply("mov", kind, count, divide(emit, a.mantissa, b.mantissa, count, "rem", False), into=rest)
    left = emit.reg("d", count)
    steps = emit.apply("add", signed, count, b.exponent, a.exponent, modifiers=("-",))
    emit.apply("mov", "d", count, steps, into=left)
    below = emit.compare("lt", count, steps, const(0, signed))
    pending = emit.mask(count)
    begin, end = emit.label("Remainder"), emit.label("Divided")
    with emit.scope():
        emit.place(begin)
        assign(emit, pending, emit.compare("gt", count, left, const(0, "d")))
        emit.emit("jmp", guard=_none(emit, pending), no_mask=False, label=end)
        double = emit.apply("add", kind, count, rest, rest)
        less = emit.apply("add", kind, count, b.mantissa, double, modifiers=("-",))
        double = emit.choose(emit.compare("ge", count, double, b.mantissa), kind, count, less, double)
        emit.choose(pending, kind, count, double, rest, into=rest)
        emit.apply("add", "d", count, left, const(-1, "d"), into=left)
        emit.jump(begin)
    emit.place(end)
    # Both factors and the product are exact: the product is a multiple of the divisor's last bit.
    scaled = emit.apply("mul", name, count, emit.apply("mov", name, count, rest), const(2.0**-fraction, name))
    power = emit.apply("shl", kind, count, b.exponent, const(fraction, "uw"))
    found = emit.as_type(emit.apply("mul", name, count, scaled, emit.as_type(power, name)), kind)
    found = emit.choose(below, kind, count, a.size, found)
    found = with_sign(emit, found, x)
    infinity = (1 << form.bits - 1) - (1 << fraction)
    finite = emit.compare("lt", count, a.size, const(infinity, kind))
    divides = (emit.compare(c, count, b.size, const(n, kind)) for c, n in (("le", infinity), ("ne", 0)))
    valid = emit.flags("and", count, finite, emit.flags("and", count, *divides))
    return emit.as_type(emit.choose(valid, kind, count, found, Const(TYPES[name].nan, kind)), name)


def _none(emit: Emitter, mask: Mask) -> Guard:
    """Whether no bit of a mask is set."""
    more = emit.test(mask, "any") if mask.count > 1 else mask
    return Guard(more.predicates[0], True)
