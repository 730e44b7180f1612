"""Expands `arith.scaling_extf` and `arith.scaling_truncf` by their definitions in MLIR."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.builders import make, with_element
from xegpu_py.passes.common.values import element_of

from xegpu_py.numerics.formats import E8M0

SCALING = ("arith.scaling_extf", "arith.scaling_truncf")


def expand_scaling(op: ir.Operation) -> list[ir.Operation]:
    """Build the expansion of an op in `SCALING` at the insertion point, and return its result.

    The scale is rounded to f8E8M0FNU and converted to the wider format, in which the number is multiplied or divided
    by it.
    """
    value, scale = op.operands
    widens = op.name == "arith.scaling_extf"
    result = op.results[0].type
    wide = element_of(result if widens else value)
    found = []
    if str(element_of(scale)) != E8M0.mlir:
        scale = make("arith.truncf", with_element(scale.type, ir.Type.parse(E8M0.mlir)), scale)
        found.append(scale)
    factor = make("arith.extf", with_element(scale.type, wide), scale)
    if widens:
        extended = make("arith.extf", result, value)
        found += [factor, extended, make("arith.mulf", result, factor, extended)]
    else:
        quotient = make("arith.divf", value.type, value, factor)
        found += [factor, quotient, make("arith.truncf", result, quotient)]
    return [v.owner for v in found]
