"""The register types of MLIR's types."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.builtin import bit_width, signedness
from xegpu_py.ir.decoded import Decoded
from xegpu_py.numerics.formats import FLOATS, TYPES
from xegpu_py.passes.common.values import element_of, shape_of

_INTEGERS = {8: "b", 16: "w", 32: "d", 64: "q"}

INDEX = "q"
"""The register type of `index` in memory, and of an index that may need 64 bits."""


def register_type(element: str) -> str:
    """vISA's type that holds elements of an MLIR type; signless integers are held as signed ones, and index in 64 bits.

    Raises:
        ValueError: if no register type holds the elements.
    """
    if element == "index":
        return INDEX
    if element in FLOATS and FLOATS[element].bits >= 8:
        return FLOATS[element].register
    found = _INTEGERS.get(bit_width(element))
    if found is None:
        raise ValueError(f"elements of type {element} have no register type")
    return f"u{found}" if signedness(element) == "u" else found


def element_bytes(element: str) -> int:
    """Bytes of an element in memory."""
    return 8 if element == "index" else max(bit_width(element) // 8, 1)


_SHAPES = Decoded(lambda kind: (shape_of(kind), str(element_of(kind))))


def shape_and_element(kind: ir.Type | str) -> tuple[tuple[int, ...], str]:
    """The shape and element type of a vector; the shape of a scalar is ()."""
    return _SHAPES[ir.Type.parse(kind) if isinstance(kind, str) else kind]


def unsigned(name: str) -> str:
    """The unsigned integer type as wide as a type."""
    return {1: "ub", 2: "uw", 4: "ud", 8: "uq"}[TYPES[name].bytes]
