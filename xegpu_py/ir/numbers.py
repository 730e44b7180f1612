"""Attributes of numbers: of scalar types, and of vectors whose elements are all equal."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.builtin import is_float

ROUNDING = "roundingmode"
"""The attribute of ops of arith that round."""

NEAREST = 0
"""Its number for rounding to nearest even, which ops without the attribute do."""

_MODES = ("to nearest even", "downward", "upward", "toward zero", "to nearest, ties away from zero")


def number_attribute(kind: ir.Type, number: float) -> ir.Attribute:
    """A number as one of this type, rounded to nearest even; infinities and NaN are numbers of floating-point types."""
    shaped = isinstance(kind, ir.ShapedType)
    element = ir.ShapedType(kind).element_type if shaped else kind
    scalar: ir.Attribute
    scalar = ir.FloatAttr.get(element, number) if is_float(str(element)) else ir.IntegerAttr.get(element, int(number))
    return ir.DenseElementsAttr.get_splat(kind, scalar) if shaped else scalar


def number_of(text: str) -> float:
    """The number that an attribute such as `1.0 : f32` or `0xFF800000 : f32` stands for.

    Raises:
        ValueError: if the text is no such attribute.
    """
    try:
        found = ir.Attribute.parse(text)
    except ir.MLIRError as e:
        raise ValueError(f"'{text}' is not a number") from e
    return float(ir.FloatAttr(found).value) if isinstance(found, ir.FloatAttr) else ir.IntegerAttr(found).value


def rounding_mode(op: ir.Operation) -> int:
    """The number of the mode by which an op rounds."""
    return ir.IntegerAttr(op.attributes[ROUNDING]).value if ROUNDING in op.attributes else NEAREST


def rounding_problem(op: ir.Operation) -> tuple[str, str] | None:
    """The reason why an op of arith that rounds is not supported; None if it is."""
    mode = rounding_mode(op)
    if mode == NEAREST:
        return None
    return f"rounds {_MODES[mode]}, which is not supported", "ops without a rounding mode round to nearest even"
