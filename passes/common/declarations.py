"""Which variables and predicates instructions name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xegpu_py.visa.operands import Predicate, Variable
from xegpu_py.visa.program import Instruction


def named_by(instructions: Iterable[Instruction]) -> set[Variable | Predicate]:
    """The variables and predicates that instructions name, and the variables that these are aliases of."""
    known = list(instructions)
    found: set[Variable | Predicate | Any] = {
        getattr(operand, "var", None) for inst in known for operand in inst.values.values()
    }
    found |= {inst.guard.var for inst in known if inst.guard}
    found.discard(None)
    for var in list(found):
        while isinstance(var, Variable) and var.alias:
            var = var.alias[0]
            found.add(var)
    return found
