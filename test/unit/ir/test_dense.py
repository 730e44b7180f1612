"""Elements of dense constants, as attributes."""

import pytest
from mlir import ir

from xegpu_py.ir.builtin import dense_elements

TYPES = ["i1", "i8", "ui8", "si16", "i64", "index", "f16", "bf16", "f32", "f64", "tf32", "f8E5M2", "f8E4M3FN"]


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("count", [4, 150])
def test_elements_make_the_constant_again(element, count):
    """Short constants are written as numbers, long ones as bytes."""
    with ir.Context(), ir.Location.unknown():
        kind = ir.Type.parse(f"vector<{count // 2}x2x{element}>")
        inner = ir.ShapedType(kind).element_type
        if isinstance(inner, (ir.IntegerType, ir.IndexType)):
            given = [ir.IntegerAttr.get(inner, i % 7 if element != "i1" else i % 2) for i in range(count)]
        else:
            given = [ir.FloatAttr.get(inner, (i % 9 - 3) / 2) for i in range(count)]
        constant = ir.DenseElementsAttr.get(given, kind)
        assert dense_elements(constant) == given


@pytest.mark.parametrize("text", ["[0x7F81, 0xFF80, 1.5] : vector<3xbf16>", "[0x7E01, 0x8000, 0.1] : vector<3xf16>"])
def test_bits_are_kept(text):
    value, _, kind = text.partition(" : ")
    with ir.Context(), ir.Location.unknown():
        constant = ir.Attribute.parse(f"dense<{value}> : {kind}")
        assert str(ir.DenseElementsAttr.get(dense_elements(constant), constant.type)) == str(constant)


def test_a_splat():
    with ir.Context(), ir.Location.unknown():
        constant = ir.Attribute.parse("dense<2.5> : vector<2x3xbf16>")
        assert dense_elements(constant) == [ir.Attribute.parse("2.5 : bf16")] * 6
