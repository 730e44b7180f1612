"""Properties of builtin types, most of them read from the text of the type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from mlir import ir

_VECTOR = re.compile(r"vector<((?:\s*\d+\s*x)*)\s*(.*)>", re.DOTALL)
_INTEGER = re.compile(r"([su]?)i(\d+)")
_FLOAT = re.compile(r"b?f(\d+)(?:E\w+)?")
_NAMED_FLOATS = {"tf32": 32}


@lru_cache(maxsize=4096)
def vector_of(text: str) -> tuple[tuple[int, ...], str]:
    """The shape and element type of a vector type.

    Raises:
        ValueError: if the text is not a vector of fixed size.
    """
    m = _VECTOR.fullmatch(text)
    if not m or "[" in text:
        raise ValueError(f"expected a vector of fixed size, but got {text}")
    return tuple(int(n) for n in re.findall(r"\d+", m[1])), m[2].strip()


def vector_text(shape: Sequence[int], element: str) -> str:
    """The text of a vector type."""
    return f"vector<{'x'.join(map(str, (*shape, element)))}>"


def is_integer(element: str) -> bool:
    """Whether this is an integer type."""
    return _INTEGER.fullmatch(element) is not None


def is_float(element: str) -> bool:
    """Whether this is a floating-point type."""
    return element in _NAMED_FLOATS or _FLOAT.fullmatch(element) is not None


def keeps_bits(a: ir.Type, b: ir.Type) -> bool:
    """Whether types, of numbers, vectors or memrefs, have integers of one width, whatever their signs."""
    of = (ir.VectorType, ir.MemRefType)
    pair = [kind.element_type if isinstance(kind, of) else kind for kind in (a, b)]
    return (
        isinstance(a, ir.MemRefType) == isinstance(b, ir.MemRefType)
        and all(isinstance(e, ir.IntegerType) for e in pair)
        and pair[0].width == pair[1].width
    )


def signedness(element: str) -> str:
    """`s`, `u`, or nothing for a signless integer."""
    m = _INTEGER.fullmatch(element)
    return m[1] if m else ""


@lru_cache(maxsize=256)
def bit_width(element: str) -> int:
    """The bits that an element takes in a register or in memory; tf32 takes 32.

    Raises:
        ValueError: if the type is neither integer nor floating point.
    """
    if element in _NAMED_FLOATS:
        return _NAMED_FLOATS[element]
    m = _INTEGER.fullmatch(element)
    if m:
        return int(m[2])
    m = _FLOAT.fullmatch(element)
    if m:
        return int(m[1])
    raise ValueError(f"expected an integer or floating-point type, but got {element}")


def by(parts: Sequence[object]) -> str:
    """Dimensions as in `8x16`."""
    return "x".join(map(str, parts))


def enumerator(attribute: object) -> str:
    """The name of the enumerator of an attribute such as `#vector.kind<add>` or `#gpu<dim x>`."""
    return str(attribute).rstrip(">").replace("<", " ").split()[-1]


def strides_of(memref: ir.MemRefType) -> list[int] | None:
    """The memref's strides, `DYNAMIC` where unknown; None for a layout without strides."""
    try:
        return list(memref.get_strides_and_offset()[0])
    except (ValueError, RuntimeError):
        return None
