"""Which variables and predicates instructions name."""

from __future__ import annotations

from collections.abc import Iterable

from xegpu_py.visa.operands import Predicate, Variable
from xegpu_py.visa.program import Instruction


def named_by(instructions: Iterable[Instruction]) -> set[Variable | Predicate]:
    """The variables and predicates that instructions name, and the variables that these are aliases of."""
    found: set[Variable | Predicate] = set()
    for inst in instructions:
        for operand in (*inst.values.values(), inst.guard):
            var = getattr(operand, "var", None)
            while var is not None and var not in found:
                found.add(var)
                var = var.alias[0] if isinstance(var, Variable) and var.alias else None
    return found
