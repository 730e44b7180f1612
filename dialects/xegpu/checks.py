"""Rules that several XeGPU ops share, and the constraints on their operands."""

from collections.abc import Sequence
from typing import Any

from mlir import ir

from xegpu_py.dialects.xegpu.interfaces import Hinted
from xegpu_py.dialects.xegpu.types import READ_HINTS, WRITE_HINTS, MemoryScope, Mode, TensorDesc
from xegpu_py.ir.builtin import is_float, vector_of, vector_text
from xegpu_py.ir.constraints import OneOf


class Address(OneOf):
    """A 64-bit address."""

    summary = "64-bit integer address"
    names = ("i64", "ui64", "si64")


class Byte(OneOf):
    """An 8-bit integer."""

    summary = "8-bit integer"
    names = ("i8", "ui8", "si8")


def check_mode(op: Any, desc: TensorDesc) -> None:
    """Check that no sg_map is present in VC mode (RFC, mode)."""
    if op.mode == Mode.VC and desc.attr.map:
        op.fail(
            "in VC mode requires a descriptor without sg_map, but got " + str(desc.attr.map),
            "in VC mode the op accesses the whole block; remove the sg_map, or remove 'mode = vc'",
        )


def check_scattered(op: Any, desc: TensorDesc, expected: bool) -> None:
    """Check that the descriptor is scattered, or not, as `expected` says."""
    if desc.attr.scattered != expected:
        wanted = "a scattered" if expected else "a block"
        other = "create_tdesc" if expected else "create_nd_tdesc"
        op.fail(f"requires {wanted} tensor descriptor, but got {desc}", f"use xegpu.{other} to create the descriptor")


def descriptor_of(op: Any, *, scattered: bool) -> TensorDesc:
    """The descriptor of an op, which is scattered or not, and goes with the op's mode; its cache hints are checked."""
    desc = TensorDesc.of(op.tdesc)
    if scattered and op.mode != Mode.VC:
        op.fail("is available in VC mode only", "add 'mode = vc'")
    check_scattered(op, desc, scattered)
    check_mode(op, desc)
    if isinstance(op, Hinted):
        check_hints(op)
    return desc


def check_hints(op: Any) -> None:
    """Check that the cache hints fit the op's access, a read or a write (RFC, load_nd)."""
    what, allowed = ("read", READ_HINTS) if "read" in op.effects else ("write", WRITE_HINTS)
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        hint = getattr(op, name)
        if hint is not None and hint not in allowed:
            names = ", ".join(h.value for h in allowed)
            op.fail(f"{name} = {hint.value} is not a valid hint for a {what}", f"valid hints for a {what} are {names}")


def check_scope(op: Any, desc: TensorDesc) -> None:
    """Check that a memory_scope of the op equals that of its descriptor."""
    if op.memory_scope is not None and op.memory_scope != desc.attr.memory_scope:
        op.fail(
            f"memory_scope = {op.memory_scope.value} does not match the descriptor's {desc.attr.memory_scope.value}"
        )


def check_mask(op: Any, lanes: int) -> None:
    """Check that the mask has one bit for each lane (RFC, load_gather)."""
    shape, _ = vector_of(str(op.mask.type))
    if shape != (lanes,):
        op.fail(
            f"requires a mask of type vector<{lanes}xi1>, but got {op.mask.type}",
            "the mask has one bit for each lane, not for each element of its chunk",
        )


def check_value(op: Any, name: str, shapes: Sequence[tuple[int, ...]], element: str, why: str) -> None:
    """The value has one of the shapes, and the element type; `why` says where they come from."""
    found = str(getattr(op, name).type)
    if vector_of(found) not in [(s, element) for s in shapes]:
        wanted = " or ".join(vector_text(s, element) for s in shapes)
        op.fail(f"'{name}' must be {wanted}, but got {found}", why)


def check_memref(op: Any, what: str, element: str, slm: bool, setting: str) -> ir.MemRefType:
    """The source, a memref, has the elements of what is made of it, and lies in the memory that it says.

    Args:
        what: what is made.
        slm: whether that lies in shared local memory.
        setting: how it says so.
    """
    memref = ir.MemRefType(op.source.type)
    # An index in memory is an integer of 64 bits.
    if element != ("i64" if isinstance(memref.element_type, ir.IndexType) else str(memref.element_type)):
        op.fail(f"the {what}'s element type {element} does not match the memref's, {memref.element_type}")
    if is_slm(memref.memory_space) != slm:
        op.fail(
            f"{setting} does not match the memory space of {memref}",
            "memory space 3 is shared local memory; all other memory spaces are global memory",
        )
    return memref


def check_descriptor_memref(op: Any, desc: TensorDesc) -> ir.MemRefType:
    """See `check_memref`."""
    scope = desc.attr.memory_scope
    return check_memref(op, "descriptor", desc.element, scope == MemoryScope.SLM, f"memory_scope = {scope.value}")


def _check_kind(op: Any, element: str) -> None:
    """Check that an atomic update has integers or floats, as its kind requires."""
    kind: str = op.kind.name
    wants_float = kind.endswith("f")
    if kind != "assign" and wants_float != is_float(element):
        wanted = "floating-point" if wants_float else "integer"
        op.fail(f"'{kind}' requires {wanted} elements, but got {element}")


def check_update(op: Any, element: str) -> None:
    """Check that an atomic update's kind fits the elements, and that all its values have one type."""
    if op.result.type != op.value.type:
        op.fail(f"result must have the value's type {op.value.type}, but got {op.result.type}")
    _check_expected(op)
    _check_kind(op, element)


def _check_expected(op: Any) -> None:
    """Check that the expected value of a compare and swap has the type of the written value."""
    if op.expected is None:
        return
    if op.kind.name != "assign":
        op.fail(f"with an expected value must be of kind 'assign', but got '{op.kind.name}'")
    if op.expected.type != op.value.type:
        op.fail(f"the expected value must be {op.value.type}, like the value, but got {op.expected.type}")


def check_same_desc(op: Any) -> None:
    """Check that an updated descriptor keeps its type."""
    if op.tdesc.type != op.result.type:
        op.fail(f"result must have the operand's type {TensorDesc.of(op.tdesc)}, but got {TensorDesc.of(op.result)}")


def is_slm(memory_space: ir.Attribute | None) -> bool:
    """Whether a memref in this memory space is in shared local memory."""
    return memory_space is not None and str(memory_space) in (
        "3 : i64",
        "3 : i32",
        "3",
        "#gpu.address_space<workgroup>",
    )
