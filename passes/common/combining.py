"""The kinds of reductions: the op that combines two elements, and the identity."""

from __future__ import annotations

import math

from mlir import ir
from xegpu_py.passes.common.builders import make
from xegpu_py.passes.common.values import element_of

COMBINING = {
    "add": ("arith.addf", "arith.addi"),
    "mul": ("arith.mulf", "arith.muli"),
    "minui": ("", "arith.minui"),
    "minsi": ("", "arith.minsi"),
    "minnumf": ("arith.minnumf", ""),
    "minimumf": ("arith.minimumf", ""),
    "maxui": ("", "arith.maxui"),
    "maxsi": ("", "arith.maxsi"),
    "maxnumf": ("arith.maxnumf", ""),
    "maximumf": ("arith.maximumf", ""),
    "and": ("", "arith.andi"),
    "or": ("", "arith.ori"),
    "xor": ("", "arith.xori"),
}
"""For each kind of `#vector.kind` the op that combines two floats, and two integers; "" if there is none."""


def combining_op(kind: str, element: ir.Type) -> str:
    """The op that combines two elements as a reduction of this kind does; "" if the kind is not for such elements."""
    return COMBINING[kind][0 if isinstance(element, ir.FloatType) else 1]


def identity(kind: str, element: ir.Type) -> ir.Attribute:
    """The element that combines with any other to that other, even if it is a NaN or a zero of either sign.

    For minnumf and maxnumf, which prefer numbers, it is NaN: a reduction of nothing but NaN is NaN.
    """
    # Here, so that tools start without numerics.
    from xegpu_py.numerics.formats import FLOATS

    if isinstance(element, ir.FloatType):
        most = FLOATS[str(element)].greatest
        values = {"add": -0.0, "mul": 1.0, "minimumf": most, "maximumf": -most}
        return ir.FloatAttr.get(element, values.get(kind, math.nan))
    bits = 64 if isinstance(element, ir.IndexType) else ir.IntegerType(element).width
    top = 1 << (bits - 1)
    numbers = {"mul": 1, "and": -1, "minui": -1, "minsi": top - 1, "maxsi": -top}
    number = numbers.get(kind, 0)
    # A single bit that is set is the signed number -1.
    return ir.IntegerAttr.get(element, -(number & 1) if bits == 1 else number)


def combine(kind: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """Two numbers, or vectors element by element, combined as a reduction of this kind does."""
    return make(combining_op(kind, element_of(a)), a.type, a, b)
