"""Interfaces of the ops of XeGPU, constraints on their operands, and the rules that several of them share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from mlir import ir

from xegpu_py.dialects.xegpu.types import (
    READ_HINTS,
    UPSTREAM_WRITE_HINTS,
    WRITE_HINTS,
    CacheHint,
    MemoryScope,
    Mode,
    TensorDesc,
    UpstreamXeGPU,
    is_slm,
)
from xegpu_py.ir.builtin import (
    ConstraintEmitter,
    OneOf,
    TypeConstraint,
    is_float,
    shape_and_element,
    shape_of,
    vector_text,
)
from xegpu_py.ir.codecs import AttributeCodec, Cursor, ParserScope
from xegpu_py.ir.definition import Attribute, Interface


class LayoutCodec(AttributeCodec):
    """A layout or a slice of one. Their classes, in `upstream_types`, are looked up in the dialect when one is read."""

    summary = "a layout"

    def read(self, cursor: Cursor, scope: ParserScope) -> Any:
        start = cursor.skip()
        return self._decode_at(scope.resolve(scope.read_attribute(cursor)), cursor, start)

    def decode(self, raw: str) -> Any:
        layout, part = UpstreamXeGPU.attributes["layout"], UpstreamXeGPU.attributes["slice"]
        return (part if raw.startswith(part.mnemonic() + "<") else layout).decode(raw)

    def encode(self, value: Any) -> str:
        return str(value.encode())

    def write(self, value: Any) -> str:
        return str(value)

    def coerce(self, value: Any) -> Any:
        if type(value) not in (UpstreamXeGPU.attributes["layout"], UpstreamXeGPU.attributes["slice"]):
            raise TypeError(f"expected {self.summary}, but got {value!r}")
        return value

    def irdl(self, emitter: ConstraintEmitter) -> str:
        return emitter.constraint("irdl.any")


AnyLayout = Annotated[Any, LayoutCodec()]
"""A layout or a slice, in upstream's spelling."""


# Properties of the ops of XeGPU, and of dialects above it, which passes ask for instead of names.


class Hinted(Interface):
    """Has cache hints (RFC, L1_hint)."""

    l1_hint: Attribute[CacheHint] | None = None
    l2_hint: Attribute[CacheHint] | None = None
    l3_hint: Attribute[CacheHint] | None = None


class HasLayout(Interface):
    """Says in upstream's spelling how its value is distributed."""

    layout: Attribute[AnyLayout] | None = None


class HasProductLayouts(Interface):
    """Says in upstream's spelling how its matrices are distributed."""

    layout_a: Attribute[AnyLayout] | None = None
    layout_b: Attribute[AnyLayout] | None = None
    layout_cd: Attribute[AnyLayout] | None = None


class MemoryAccess(Interface):
    """Accesses memory by a descriptor, its operand `tdesc`."""

    if TYPE_CHECKING:

        @property
        def mode(self) -> Mode: ...

        @property
        def tdesc(self) -> ir.Value: ...

        @property
        def value(self) -> ir.Value:
            """The vector that is loaded or stored, or updates memory; prefetches have none."""


class BlockAccess(MemoryAccess):
    """Accesses the block of a descriptor."""


class BlockLoad(BlockAccess):
    """Gives the block of a descriptor."""


class ScatteredAccess(MemoryAccess):
    """Accesses memory at the address of each lane of a descriptor."""


class Prefetch(Interface):
    """Brings memory into the caches, and has no other effect."""


class MatrixProduct(Interface):
    """Multiplies the matrices `lhs` and `rhs`, and adds `acc` if it is there."""

    if TYPE_CHECKING:

        @property
        def mode(self) -> Mode: ...

        @property
        def acc(self) -> ir.Value | None: ...

        @property
        def result(self) -> ir.Value: ...


class DescriptorUpdate(Interface):
    """Gives a descriptor that is moved by offsets."""


class DescriptorMaker(Interface):
    """Gives a descriptor of memory by an address or a memref."""


# Rules that several XeGPU ops share, and the constraints on their operands.


class Address(OneOf):
    """A 64-bit address."""

    summary = "64-bit integer address"
    names = ("i64", "ui64", "si64")


class Byte(OneOf):
    """An 8-bit integer."""

    summary = "8-bit integer"
    names = ("i8", "ui8", "si8")


class UpstreamByte(OneOf):
    """An 8-bit integer of upstream's."""

    summary = "8-bit integer"
    names = ("i8",)


class UpstreamAddress(OneOf):
    """An address of upstream's."""

    summary = "integer address"
    names = ("i64", "ui64", "i32", "ui32")


class VectorOrNumber(TypeConstraint):
    """A loaded or stored value: a vector or a number."""

    summary = "vector, integer or floating-point number"
    _pattern = r"vector<[^\[\]]*>|[su]?i\d+|b?f\d+\w*|tf32|index"


class LaneOffsets(TypeConstraint):
    """Offsets of lanes: a vector of index, or an index."""

    summary = "index or vector of index"
    _pattern = r"index|vector<(?:\d+x)+(?:index|[su]?i\d+)>"


class LaneMask(TypeConstraint):
    """A mask: i1 or a vector of it."""

    summary = "i1 or vector of i1"
    _pattern = r"i1|vector<(?:\d+x)+i1>"


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
    """Check that the cache hints fit the op's access, a read or a write (RFC, load_nd; upstream's isReadHintOrNone)."""
    written = UPSTREAM_WRITE_HINTS if op.dialect_class is UpstreamXeGPU else WRITE_HINTS
    what, allowed = ("read", READ_HINTS) if "read" in op.effects else ("write", written)
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
    if shape_of(op.mask) != (lanes,):
        op.fail(
            f"requires a mask of type vector<{lanes}xi1>, but got {op.mask.type}",
            "the mask has one bit for each lane, not for each element of its chunk",
        )


def check_value(op: Any, name: str, shapes: Sequence[tuple[int, ...]], element: str, why: str) -> None:
    """The value has one of the shapes, and the element type; `why` says where they come from."""
    found = getattr(op, name).type
    if shape_and_element(found) not in [(s, element) for s in shapes]:
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


def check_update(op: Any, element: str) -> None:
    """Check that an atomic update's kind fits the elements, and an expected value the kind and the written value."""
    if op.expected is not None and op.kind.name != "assign":
        op.fail(f"with an expected value must be of kind 'assign', but got '{op.kind.name}'")
    if op.expected is not None and op.expected.type != op.value.type:
        op.fail(f"the expected value must be {op.value.type}, like the value, but got {op.expected.type}")
    kind: str = op.kind.name
    if kind != "assign" and kind.endswith("f") != is_float(element):
        wanted = "floating-point" if kind.endswith("f") else "integer"
        op.fail(f"'{kind}' requires {wanted} elements, but got {element}")
