"""The combining kinds of reductions and atomic updates: what two numbers become."""

from __future__ import annotations

from collections.abc import Callable

from xegpu_py.passes.common.combining import CombiningKind
from xegpu_py.passes.common.registers import unsigned
from xegpu_py.passes.xegpu_to_visa.emit import Emitter
from xegpu_py.passes.xegpu_to_visa.values import Const, Reg
from xegpu_py.passes.xegpu_to_visa.wide import product

from xegpu_py.numerics.formats import TYPES

Combine = Callable[[Reg, Reg], Reg]
"""What two numbers become, element by element."""


def combiner(emit: Emitter, kind: CombiningKind, name: str) -> Combine:
    """What combines numbers of a vISA type."""
    if name == "bf":
        # vISA has no minimum of bf, and computes sums and products of it in f.
        wide = combiner(emit, kind, "f")
        return lambda a, b: emit.in_registers(wide(emit.in_registers(a, "f"), emit.in_registers(b, "f")), name)
    if kind == CombiningKind.MUL and name in ("q", "uq"):
        return lambda a, b: emit.as_type(product(emit, a, b, a.count), name)
    instruction = kind.value[:3] if kind.value.startswith(("min", "max")) else kind.value
    worked = unsigned(name) if kind in (CombiningKind.MINUI, CombiningKind.MAXUI) else name

    def combine(a: Reg, b: Reg) -> Reg:
        left, right = emit.as_type(a, worked), emit.as_type(b, worked)
        found = emit.as_type(emit.apply(instruction, worked, a.count, left, right), name)
        if kind not in (CombiningKind.MINIMUMF, CombiningKind.MAXIMUMF):
            return found
        # vISA's min and max give the other operand if one is NaN.
        numbers = emit.flags("and", a.count, *(emit.compare("eq", a.count, n, n) for n in (a, b)))
        return emit.choose(numbers, name, a.count, found, Const(TYPES[name].nan, name, a.count))

    return combine
