"""`arith.scaling_extf` and `arith.scaling_truncf` as the ops that MLIR defines them by."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.builders import make, with_element
from xegpu_py.passes.common.values import element_of

from xegpu_py.numerics.formats import E8M0

SCALING = ("arith.scaling_extf", "arith.scaling_truncf")


def expand_scaling(op: ir.Operation) -> list[ir.Operation]:
    """Build, at the insertion point, the ops that one of `SCALING` stands for; the last one gives its result.

    A scale is rounded to f8E8M0FNU and converted to the wider format, in which the element is multiplied by it or the
    number divided.
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
