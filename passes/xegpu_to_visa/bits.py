"""`math`: counts of the bits of integers."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.registers import INDEX, unsigned
from xegpu_py.passes.xegpu_to_visa.arith import result_of
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Reg
from xegpu_py.passes.xegpu_to_visa.wide import half

from xegpu_py.numerics.formats import TYPES


@pattern("math.ctpop", "math.ctlz", "math.cttz")
def count_bits(low: Lowering, op: ir.Operation) -> None:
    """Set bits, or the zeros above or below them, by `cbit` and `lzd` of 32 bits each.

    The zeros below the lowest set bit are set in `~x & (x - 1)`, and no others.
    """
    count, element, name = result_of(low, op)
    if element == "i1":
        truth = low.mask(op.operands[0])
        low.set(op, truth if op.name == "math.ctpop" else low.emit.flags("not", count, truth))
        return
    emit, source = low.emit, low.numbers(op.operands[0])
    name = INDEX if element == "index" else name
    bits, kind = TYPES[name].bits, unsigned(name)
    numbers = emit.spread(emit.in_registers(low.emit.as_unsigned(low.typed(source, name))), count)
    if op.name == "math.cttz":
        below = emit.apply("add", kind, count, numbers, const(-1, name))
        numbers = emit.apply("and", kind, count, emit.apply("not", kind, count, numbers), below)
    parts = [emit.in_registers(numbers, "ud")] if bits < 64 else [half(emit, numbers, u) for u in (False, True)]
    if op.name != "math.ctlz":
        counts = [emit.apply("cbit", "ud", count, part) for part in parts]
        found = counts[0] if len(counts) == 1 else emit.apply("add", "ud", count, *counts)
    else:
        found = _leading(low, parts, count)
        if bits < 32:
            found = emit.apply("add", "ud", count, found, const(bits - 32, "d"))
    low.set(op, emit.in_registers(found, name))


def _leading(low: Lowering, parts: list[Reg], count: int) -> Reg:
    """Zeros above the highest set bit of integers of 32 bits, or of two halves."""
    emit = low.emit
    zeros = [emit.apply("lzd", "ud", count, part) for part in parts]
    if len(parts) == 1:
        return zeros[0]
    more = emit.apply("add", "ud", count, zeros[0], const(32, "ud"))
    return emit.choose(emit.compare("eq", count, parts[1], const(0, "ud")), "ud", count, more, zeros[1])
