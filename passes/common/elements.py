"""Element types in memory: those of messages, and those of 2 and 4 bits, which share bytes."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.builders import index_type, integer_type, make, with_element
from xegpu_py.passes.common.values import element_of, is_desc

_ACCESSES = (
    "memref.load", "memref.store", "memref.atomic_rmw", "memref.generic_atomic_rmw", "xegpu.create_nd_tdesc",
    "xegpu.create_tdesc",
)  # fmt: skip


def message_element(element: ir.Type) -> str | None:
    """The element type of descriptors for elements in memory, i64 for index; None if no message supports it."""
    if isinstance(element, ir.IndexType):
        return "i64"
    has_messages = isinstance(element, (ir.IntegerType, ir.FloatType)) and bit_width(str(element)) in (8, 16, 32, 64)
    return str(element) if has_messages else None


def no_messages(element: ir.Type) -> tuple[str, str]:
    """The error message and note for elements that no message supports."""
    note = "messages support elements of 8, 16, 32 and 64 bits, and index; store i1 as i8"
    return f"accesses elements of type {element}, which messages do not support", note


def with_index(value: ir.Value, element: ir.Type) -> ir.Value:
    """Convert loaded values to a memref's element type; index is loaded as i64."""
    if not isinstance(element, ir.IndexType):
        return value
    return make("arith.index_cast", with_element(value.type, index_type()), value)


def without_index(value: ir.Value) -> ir.Value:
    """Convert a value to its type in memory: index to i64."""
    if not isinstance(element_of(value), ir.IndexType):
        return value
    return make("arith.index_cast", with_element(value.type, integer_type(64)), value)


def check_elements(ops: Iterable[ir.Operation]) -> None:
    """Check that no access in ops is to elements of 2 or 4 bits, which are not addressable; i1 takes a byte.

    Raises:
        DiagnosticError: at the first op that accesses such elements.
    """
    for op in ops:
        if op.name not in _ACCESSES:
            continue
        kinds = [v.type for v in (*op.operands, *op.results)]
        elements = [str(k.element_type) for k in kinds if isinstance(k, ir.MemRefType)]
        elements += [TensorDesc.decode(t).element for t in map(str, filter(is_desc, kinds))]
        narrow = next((e for e in elements if e not in ("i1", "index") and bit_width(e) < 8), None)
        if narrow:
            note = "xegpu-emulate-narrow-types packs them into bytes"
            emit_error(op, f"accesses elements of type {narrow}, which have no addresses", note)


NARROW = {"i4": 4, "si4": 4, "ui4": 4, "f4E2M1FN": 4, "i2": 2, "si2": 2, "ui2": 2}
"""The bits of elements that share bytes; the first element of a byte is in its lowest bits."""


def narrow_bits(element: ir.Type | str) -> int:
    """The bits of an element type of 2 or 4 bits; 0 for other types."""
    return NARROW.get(str(element), 0)


def memref_bits(kind: ir.Type) -> int:
    """`narrow_bits` of a memref's elements; 0 for other types."""
    return narrow_bits(kind.element_type) if isinstance(kind, ir.MemRefType) else 0


def desc_bits(kind: ir.Type) -> int:
    """`narrow_bits` of a descriptor's elements; 0 for other types."""
    return narrow_bits(TensorDesc.decode(str(kind)).element) if is_desc(kind) else 0


def needs_emulation(func: ir.Operation) -> bool:
    """Whether a kernel has elements of 2 or 4 bits in memory, or computes with them; other passes move whole rows."""
    inside = walk(func)
    kinds = {v.type for op in inside for v in op.results}
    kinds |= {a.type for op in inside for block in blocks_in(op) for a in block.arguments}
    if any(memref_bits(t) or desc_bits(t) for t in kinds):
        return True
    if not any(narrow_bits(element_of(t)) for t in kinds):
        return False
    ops = (op for op in inside if op.name.startswith(("arith.", "vector.transpose")) or "reduction" in op.name)
    values = (v for op in ops for v in (*op.operands, *op.results))
    arguments = func.regions[0].blocks[0].arguments
    return any(narrow_bits(element_of(v.type)) for v in (*values, *arguments))


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
            message = f"has {kind}, whose innermost stride is not {known}1, so elements do not fill bytes"
            raise ValueError(message, "use a type whose innermost stride is 1, such as strided<[?, 1]>")
    if plain:
        return ir.MemRefType.get(shape, byte, memory_space=kind.memory_space)
    for step in (*strides[:-1], offset):
        if step != unknown and step % each:
            message = f"has {kind}, whose rows begin within a byte: {step} elements of {kind.element_type}"
            raise ValueError(message, rows)
    steps = [n if n == unknown else n // each for n in strides[:-1]] + [1] * bool(strides)
    layout = ir.StridedLayoutAttr.get(offset if offset == unknown else offset // each, steps, kind.context)
    return ir.MemRefType.get(shape, byte, layout=layout, memory_space=kind.memory_space)
