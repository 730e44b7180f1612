"""Elements of 2 and 4 bits, and the bytes that they are packed in."""

from __future__ import annotations

from mlir import ir

NARROW = {"i4": 4, "si4": 4, "ui4": 4, "f4E2M1FN": 4, "i2": 2, "si2": 2, "ui2": 2}
"""The bits of elements that share bytes; the first element of a byte is in its lowest bits."""


def narrow_bits(element: ir.Type | str) -> int:
    """The bits of an element type of 2 or 4 bits; 0 for other types."""
    return NARROW.get(str(element), 0)


def memref_bits(kind: ir.Type) -> int:
    """`narrow_bits` of a memref's elements; 0 for other types."""
    return narrow_bits(kind.element_type) if isinstance(kind, ir.MemRefType) else 0


def byte_memref(kind: ir.MemRefType) -> ir.MemRefType:
    """The memref of i8 that holds a memref's elements of 2 or 4 bits.

    Elements are in the order of their linear index, as in MLIR's emulation of narrow types.

    Raises:
        ValueError: if rows do not begin at bytes. Its arguments are a clause that follows an op's name, and a note.
    """
    rows = "rows of an even number of elements begin at bytes; of elements of 2 bits a multiple of four"
    each = 8 // narrow_bits(kind.element_type)
    dynamic, unknown = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
    shape, (strides, offset) = list(kind.shape), kind.get_strides_and_offset()
    byte = ir.IntegerType.get_signless(8, kind.context)
    plain = kind.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank, kind.context))
    if shape:
        if shape[-1] != dynamic:
            if shape[-1] % each and kind.rank > 1:
                raise ValueError(
                    f"has {kind}, whose rows end within a byte: {shape[-1]} elements of {kind.element_type}", rows
                )
            shape[-1] = -(-shape[-1] // each)
        if strides[-1] != 1:
            known = "known to be " if strides[-1] == unknown else ""
            message = f"has {kind}, whose innermost stride is not {known}1, so that elements do not fill bytes"
            raise ValueError(message, "let its type say that the innermost stride is 1, as in strided<[?, 1]>")
    if plain:
        return ir.MemRefType.get(shape, byte, memory_space=kind.memory_space)
    for step in (*strides[:-1], offset):
        if step != unknown and step % each:
            message = f"has {kind}, whose rows begin within a byte: {step} elements of {kind.element_type}"
            raise ValueError(message, rows)
    steps = [n if n == unknown else n // each for n in strides[:-1]] + [1] * bool(strides)
    layout = ir.StridedLayoutAttr.get(offset if offset == unknown else offset // each, steps, kind.context)
    return ir.MemRefType.get(shape, byte, layout=layout, memory_space=kind.memory_space)
