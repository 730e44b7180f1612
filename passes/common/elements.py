"""Element types in memory."""

from __future__ import annotations

from mlir import ir
from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.common.builders import index_type, integer_type, make, with_element
from xegpu_py.passes.common.values import element_of, is_desc

from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.verifier import walk

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
    note = "messages have elements of 8, 16, 32 and 64 bits, and indices; truth values can be kept as i8"
    return f"accesses elements of type {element}, which no message has", note


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


def check_elements(func: ir.Operation) -> None:
    """Check that no access is to elements of 2 or 4 bits, which are not addressable; i1 takes a byte.

    Raises:
        DiagnosticError: at the first op that accesses such elements.
    """
    for op in walk(func):
        if op.name not in _ACCESSES:
            continue
        kinds = [v.type for v in (*op.operands, *op.results)]
        elements = [str(k.element_type) for k in kinds if isinstance(k, ir.MemRefType)]
        elements += [TensorDesc.decode(t).element for t in map(str, filter(is_desc, kinds))]
        narrow = next((e for e in elements if e not in ("i1", "index") and bit_width(e) < 8), None)
        if narrow:
            note = "xegpu-emulate-narrow-types makes bytes of them"
            emit_error(op, f"accesses elements of type {narrow}, which have no addresses", note)
