"""How reductions and atomic updates combine two elements."""

from __future__ import annotations

import math
from enum import Enum

from mlir import ir

from xegpu_py.ir.builtin import enumerator


class CombiningKind(str, Enum):
    """How a reduction combines elements. Values are the names of `#vector.kind`."""

    ADD = "add"
    MUL = "mul"
    MINUI = "minui"
    MINSI = "minsi"
    MINNUMF = "minnumf"
    MINIMUMF = "minimumf"
    MAXUI = "maxui"
    MAXSI = "maxsi"
    MAXNUMF = "maxnumf"
    MAXIMUMF = "maximumf"
    AND = "and"
    OR = "or"
    XOR = "xor"

    @classmethod
    def of(cls, op: ir.Operation, name: str = "kind") -> CombiningKind:
        """The kind that an op's attribute names, such as `#vector.kind<add>` or `#gpu<all_reduce_op add>`."""
        return cls(enumerator(op.attributes[name]))

    @classmethod
    def of_atomic(cls, kind: str) -> CombiningKind:
        """The kind of an atomic update, by the name of one of arith's `AtomicRMWKind` other than `assign`."""
        return _ATOMIC[kind]

    @property
    def attribute(self) -> ir.Attribute:
        """The attribute `#vector.kind`."""
        return ir.Attribute.parse(f"#vector.kind<{self.value}>")

    def scalar_op(self, element: ir.Type) -> str:
        """The op that combines two elements of a type, or vectors of them; "" if the kind does not support the type."""
        is_float = isinstance(element, ir.FloatType)
        if self in (CombiningKind.ADD, CombiningKind.MUL):
            return f"arith.{self.value}{'f' if is_float else 'i'}"
        if self in (CombiningKind.AND, CombiningKind.OR, CombiningKind.XOR):
            return "" if is_float else f"arith.{self.value}i"
        return f"arith.{self.value}" if self.value.endswith("f") == is_float else ""

    def identity(self, element: ir.Type) -> ir.Attribute:
        """The identity element: combined with any element, NaN and signed zeros included, it gives that element.

        For minnumf and maxnumf, which prefer numbers, it is NaN, so that a reduction of only NaN is NaN.
        """
        # Imported here to keep the start of the tools fast.
        from xegpu_py.numerics.formats import FLOATS

        if isinstance(element, ir.FloatType):
            most = FLOATS[str(element)].greatest
            values = {"add": -0.0, "mul": 1.0, "minimumf": most, "maximumf": -most}
            return ir.FloatAttr.get(element, values.get(self.value, math.nan))
        bits = 64 if isinstance(element, ir.IndexType) else ir.IntegerType(element).width
        top = 1 << (bits - 1)
        numbers = {"mul": 1, "and": -1, "minui": -1, "minsi": top - 1, "maxsi": -top}
        number = numbers.get(self.value, 0)
        # As a signed number, a single set bit is -1.
        return ir.IntegerAttr.get(element, -(number & 1) if bits == 1 else number)

    def combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Combine two numbers, or two vectors elementwise."""
        element = a.type.element_type if isinstance(a.type, ir.VectorType) else a.type
        return ir.Operation.create(self.scalar_op(element), [a.type], [a, b]).results[0]

    def reduce(self, vector: ir.Value) -> ir.Value:
        """Reduce the elements of a vector of one dimension."""
        kind = {"kind": self.attribute}
        return ir.Operation.create("vector.reduction", [vector.type.element_type], [vector], kind).results[0]


_ATOMIC = {
    **{f"{kind.value}{suffix}": kind for kind in (CombiningKind.ADD, CombiningKind.MUL) for suffix in "fi"},
    **{f"{kind.value}i": kind for kind in (CombiningKind.AND, CombiningKind.OR, CombiningKind.XOR)},
    **{kind.value.removesuffix("i"): kind for kind in CombiningKind if kind.value.startswith(("min", "max"))},
}
"""The kinds by name of arith's `AtomicRMWKind`: `maxs` is maxsi, `addf` and `addi` are add."""
