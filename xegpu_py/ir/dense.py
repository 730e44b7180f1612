"""Dense constants of any element type; MLIR's Python bindings read only some types."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from mlir import ir

_BUFFERED = ("f16", "f32", "f64")
_READ_WIDTHS = (1, 8, 16, 32, 64)
"""Widths of integers whose constants the bindings read."""

_HEX = re.compile(r'dense<"0x([0-9A-Fa-f]*)">')
_NUMBER = re.compile(r"-?[\w.][\w.+-]*")


def integer_elements(attribute: ir.DenseIntElementsAttr) -> list[int]:
    """The integers of a dense constant in row-major order; those of type index with a sign."""
    numbers = [int(n) for n in attribute]
    if not isinstance(ir.ShapedType(attribute.type).element_type, ir.IndexType):
        return numbers
    return [n - (1 << 64) if n >> 63 else n for n in numbers]


def dense_elements(attribute: ir.DenseElementsAttr) -> list[ir.Attribute]:
    """The elements of a dense constant in row-major order, each with all its bits, those of a NaN too."""
    kind = ir.ShapedType(attribute.type)
    element, count = kind.element_type, math.prod(kind.shape)
    if attribute.is_splat:
        return [attribute.get_splat_value()] * count
    if isinstance(element, ir.IndexType) or (isinstance(element, ir.IntegerType) and element.width in _READ_WIDTHS):
        return [ir.IntegerAttr.get(element, n) for n in integer_elements(ir.DenseIntElementsAttr(attribute))]
    numbers: list[str]
    if str(element) in _BUFFERED:
        buffer: Any = attribute
        bits = np.array(memoryview(buffer)).ravel()
        numbers = [f"0x{int(b):0{2 * bits.itemsize}X}" for b in bits.view(f"u{bits.itemsize}")]
    else:
        text = str(attribute)
        found = _HEX.match(text)
        if found:
            data = bytes.fromhex(found[1])
            size = len(data) // count
            numbers = [f"0x{data[i : i + size][::-1].hex()}" for i in range(0, len(data), size)]
        else:
            numbers = _NUMBER.findall(text[len("dense<") : text.rindex(">", 0, text.rindex(":"))])
    if isinstance(element, ir.IntegerType):
        mask, top = (1 << element.width) - 1, 0 if element.is_unsigned else 1 << element.width - 1
        return [ir.IntegerAttr.get(element, ((int(n, 0) & mask) ^ top) - top) for n in numbers]
    return [ir.Attribute.parse(f"{n} : {element}") for n in numbers]
