"""Ops of XeGPU with an address for each lane: scattered descriptors, accesses and atomics, in both spellings.

See `block_ops` for the form. The RFC's work in VC mode only.
"""

import math
from typing import TYPE_CHECKING, Any

from mlir import ir

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.matrix_ops import scattered_value_shape
from xegpu_py.dialects.xegpu.op_interfaces import (
    Address,
    DescriptorMaker,
    DescriptorUpdate,
    HasLayout,
    Hinted,
    LaneMask,
    LaneOffsets,
    Prefetch,
    ScatteredAccess,
    UpstreamAddress,
    VectorOrNumber,
    check_descriptor_memref,
    check_hints,
    check_mask,
    check_scope,
    check_update,
    check_value,
    descriptor_of,
)
from xegpu_py.dialects.xegpu.types import CHUNK_SIZES, MemoryScope, Mode, TensorDesc, UpstreamXeGPU, XeGPU
from xegpu_py.ir.bindings import AtomicRMWKind
from xegpu_py.ir.builtin import MaskVector, MemRef, OffsetVector, Vector, by, shape_of, signedness, vector_text
from xegpu_py.ir.definition import Attribute, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp

if TYPE_CHECKING:
    from xegpu_py.dialects.xegpu import upstream_types as upstream
else:
    upstream = deferred("xegpu_py.dialects.xegpu.upstream_types")


class CreateTdescOp(Operation, dialect=XeGPU, name="create_tdesc", interfaces=(DescriptorMaker,)):
    """Creates a scattered descriptor from a base address and one offset in elements for each lane (RFC, create_tdesc).

    With `chunk_size_per_lane` each lane accesses that many consecutive elements, and the descriptor is 2D. VC mode
    only.
    """

    source: Operand[Address | MemRef]
    offsets: Operand[OffsetVector]
    tdesc: Result[TensorDesc]
    mode: Attribute[Mode] = default(Mode.SIMT)
    chunk_size_per_lane: Attribute[int] = default(1)

    effects = frozenset()
    assembly_format = "$source `,` $offsets attr-dict `:` type($source) `,` type($offsets) `->` type($tdesc)"

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=True)
        if self.chunk_size_per_lane not in CHUNK_SIZES:
            self.fail(f"chunk_size_per_lane must be 1, 2, 3, 4 or 8, but got {self.chunk_size_per_lane}")
        if self.chunk_size_per_lane != desc.chunk:
            self.fail(
                f"chunk_size_per_lane = {self.chunk_size_per_lane} does not match the descriptor's {by(desc.shape)}",
                "its dimensions are the lanes, and the chunk if that is larger than 1",
            )
        check_lane_offsets(self, desc)
        if isinstance(self.source.type, ir.MemRefType):
            check_descriptor_memref(self, desc)


class UpstreamCreateTdescOp(Operation, dialect=UpstreamXeGPU, name="create_tdesc", interfaces=(DescriptorMaker,)):
    """Creates a scattered descriptor. Removed after 22.1.8."""

    source: Operand[UpstreamAddress | MemRef]
    offsets: Operand[LaneOffsets]
    tdesc: Result[TensorDesc]

    effects = frozenset()
    assembly_format = "$source `,` $offsets attr-dict `:` type($source) `,` type($offsets) `->` type($tdesc)"

    def verify_op(self) -> None:
        desc = upstream.UpstreamTensorDesc.of(self.tdesc)
        if not desc.scatter:
            self.fail(f"makes scattered descriptors, not {desc}")
        upstream.check_space(self, self.source, desc.scatter.memory_space)
        if shape_of(self.offsets) != desc.lanes:
            self.fail(f"needs one offset for each of {by(desc.lanes)} lanes, but got {self.offsets.type}")


class UpdateOffsetOp(
    Operation, dialect=XeGPU, name="update_offset", also_named=("update_offsets",), interfaces=(DescriptorUpdate,)
):
    """Moves each lane's address by an offset in elements (RFC, update_offset). VC mode only."""

    tdesc: Operand[TensorDesc]
    offsets: Operand[OffsetVector]
    result: Result[TensorDesc]
    mode: Attribute[Mode] = default(Mode.SIMT)

    effects = frozenset()
    same_type = ("result", "tdesc")
    assembly_format = "$tdesc `,` $offsets attr-dict `:` type($tdesc) `,` type($offsets) `->` type($result)"

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=True)
        check_lane_offsets(self, desc)


class UpstreamUpdateOffsetOp(Operation, dialect=UpstreamXeGPU, name="update_offset", interfaces=(DescriptorUpdate,)):
    """Moves the lanes of a scattered descriptor. Removed after 22.1.8."""

    tdesc: Operand[TensorDesc]
    offsets: Operand[LaneOffsets]
    result: Result[TensorDesc]

    effects = frozenset()
    same_type = ("result", "tdesc")
    assembly_format = "$tdesc `,` $offsets attr-dict `:` type($tdesc) `,` type($offsets)"


class LoadGatherOp(
    Operation, dialect=XeGPU, name="load_gather", also_named=("load",), interfaces=(ScatteredAccess, Hinted)
):
    """Loads elements from the address of each lane (RFC, load_gather). VC mode only.

    Lanes whose mask bit is clear access no memory. With a chunk the result is 2D, and the chunk is its outer
    dimension; `transpose = [1, 0]` says so, and may be left out.
    """

    tdesc: Operand[TensorDesc]
    mask: Operand[MaskVector]
    value: Result[Vector]
    mode: Attribute[Mode] = default(Mode.SIMT)
    transpose: Attribute[tuple[int, ...]] | None = None

    effects = frozenset(["read"])
    assembly_format = "$tdesc `,` $mask attr-dict `:` type($tdesc) `,` type($mask) `->` type($value)"

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=True)
        check_mask(self, desc.lanes)
        if self.transpose is not None and (desc.chunk == 1 or self.transpose != (1, 0)):
            self.fail(f"transpose must be [1, 0] on a descriptor with a chunk, but got {list(self.transpose)}")
        check_value(self, "value", [scattered_value_shape(desc)], desc.element, "the chunk is the outer dimension")

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        desc = TensorDesc.decode(parsed.type_of("tdesc"))
        return {"value": vector_text(scattered_value_shape(desc), desc.element)}


class UpstreamLoadGatherOp(
    Operation, dialect=UpstreamXeGPU, name="load", interfaces=(ScatteredAccess, Hinted, HasLayout)
):
    """Loads elements from the address of each lane; lanes that are masked off access no memory."""

    source: Operand[TensorDesc | MemRef | UpstreamAddress]
    offsets: Operand[LaneOffsets] | None
    mask: Operand[LaneMask]
    value: Result[VectorOrNumber]
    chunk_size: Attribute[int] | None = None
    contiguity: Attribute[int] | None = None

    effects = frozenset(["read"])
    assembly_format = (
        "$source (`` `[` $offsets^ `]`)? `,` $mask prop-dict attr-dict `:` "
        "type($source) (`,` type($offsets)^)? `,` type($mask) `->` type($value)"
    )

    def verify_op(self) -> None:
        _check_scattered(self)


class StoreScatterOp(
    Operation, dialect=XeGPU, name="store_scatter", also_named=("store",), interfaces=(ScatteredAccess, Hinted)
):
    """Stores elements to the address of each lane whose mask bit is set (RFC, store_scatter). VC mode only."""

    value: Operand[Vector]
    tdesc: Operand[TensorDesc]
    mask: Operand[MaskVector]
    mode: Attribute[Mode] = default(Mode.SIMT)
    memory_scope: Attribute[MemoryScope] | None = None

    effects = frozenset(["write"])
    assembly_format = "$value `,` $tdesc `,` $mask attr-dict `:` type($value) `,` type($tdesc) `,` type($mask)"

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=True)
        check_scope(self, desc)
        check_mask(self, desc.lanes)
        check_value(self, "value", [scattered_value_shape(desc)], desc.element, "the chunk is the outer dimension")


class UpstreamStoreScatterOp(
    Operation, dialect=UpstreamXeGPU, name="store", interfaces=(ScatteredAccess, Hinted, HasLayout)
):
    """Stores elements to the address of each lane; lanes that are masked off access no memory."""

    value: Operand[VectorOrNumber]
    dest: Operand[TensorDesc | MemRef | UpstreamAddress]
    offsets: Operand[LaneOffsets] | None
    mask: Operand[LaneMask]
    chunk_size: Attribute[int] | None = None
    contiguity: Attribute[int] | None = None

    effects = frozenset(["write"])
    assembly_format = (
        "$value `,` $dest (`` `[` $offsets^ `]`)? `,` $mask prop-dict attr-dict `:` "
        "type($value) `,` type($dest) (`,` type($offsets)^)? `,` type($mask)"
    )

    @property
    def source(self) -> ir.Value:
        """The memory."""
        return self.dest

    def verify_op(self) -> None:
        _check_scattered(self)


class PrefetchOp(Operation, dialect=XeGPU, name="prefetch", interfaces=(ScatteredAccess, Hinted, Prefetch)):
    """Brings the elements at the address of each lane into the cache (RFC, prefetch). VC mode only."""

    tdesc: Operand[TensorDesc]
    mode: Attribute[Mode] = default(Mode.SIMT)

    effects = frozenset(["read", "write"])
    assembly_format = "$tdesc attr-dict `:` type($tdesc)"

    def verify_op(self) -> None:
        descriptor_of(self, scattered=True)


class UpstreamPrefetchOp(
    Operation, dialect=UpstreamXeGPU, name="prefetch", interfaces=(ScatteredAccess, Hinted, Prefetch, HasLayout)
):
    """Brings scattered elements into the caches."""

    source: Operand[TensorDesc | MemRef | UpstreamAddress]
    offsets: Operand[LaneOffsets] | None
    offset_align_byte: Attribute[int] | None = None

    effects = frozenset(["read", "write"])
    assembly_format = "$source (`` `[` $offsets^ `]`)? prop-dict attr-dict `:` type($source) (`,` type($offsets)^)?"

    def verify_op(self) -> None:
        check_hints(self)
        _check_memory(self)
        if self.offsets is not None and shape_of(self.offsets):
            upstream.check_distribution(self, self.layout, shape_of(self.offsets))
        is_address = isinstance(self.source.type, ir.IntegerType)
        if is_address and self.offset_align_byte is None:
            self.fail("needs offset_align_byte, as the source is an address")
        if self.offset_align_byte is not None and not is_address:
            self.fail(f"offset_align_byte needs an address, but the source is {self.source.type}")


class AtomicRmwOp(Operation, dialect=XeGPU, name="atomic_rmw", interfaces=(ScatteredAccess,)):
    """Reads, modifies and writes the element of each lane atomically; gives what was read (RFC, atomic_rmw).

    The kinds are those of arith's `AtomicRMWKind`. VC mode only. Read as well are the kind in quotes or without a
    comma, and the operand order `%tdesc, %mask, %value`.

    With `expecting`, which goes beyond the RFC, the op is a compare and swap: `assign` writes only where memory holds
    the bits that are expected.
    """

    kind: Attribute[AtomicRMWKind]
    value: Operand[Vector]
    tdesc: Operand[TensorDesc]
    mask: Operand[MaskVector]
    expected: Operand[Vector] | None = None
    result: Result[Vector]
    mode: Attribute[Mode] = default(Mode.SIMT)

    effects = frozenset(["read", "write"])
    same_type = ("result", "value")
    assembly_format = (
        "$kind `,` $value `,` $tdesc `,` $mask (`expecting` $expected^)? attr-dict `:` "
        "type($value) `,` type($tdesc) `,` type($mask) (`expecting` type($expected)^)? `->` type($result)"
    )
    also_reads = (
        "$kind (`,`)? $value `,` $tdesc `,` $mask attr-dict `:` "
        "type($value) `,` type($tdesc) `,` type($mask) (`->` type($result))?",
        "$kind (`,`)? $tdesc `,` $mask `,` $value attr-dict `:` "
        "type($tdesc) `,` type($mask) `,` type($value) (`->` type($result))?",
    )

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=True)
        check_mask(self, desc.lanes)
        check_value(self, "value", [scattered_value_shape(desc)], desc.element, "one value for each element accessed")
        check_update(self, desc.element)
        against = {"maxs": "u", "mins": "u", "maxu": "s", "minu": "s"}.get(self.kind.name)
        if against and signedness(desc.element) == against:
            self.fail(f"'{self.kind.name}' does not match the signedness of {desc.element}")


class UpstreamAtomicRmwOp(Operation, dialect=UpstreamXeGPU, name="atomic_rmw", interfaces=(ScatteredAccess, HasLayout)):
    """Reads, modifies and writes the element of each lane atomically."""

    kind: Attribute[AtomicRMWKind]
    tdesc: Operand[TensorDesc | MemRef | UpstreamAddress]
    offsets: Operand[LaneOffsets] | None
    mask: Operand[LaneMask]
    value: Operand[VectorOrNumber]
    result: Result[VectorOrNumber]

    effects = frozenset(["read", "write"])
    assembly_format = (
        "$kind $tdesc (`` `[` $offsets^ `]`)? `,` $mask `,` $value prop-dict attr-dict `:` "
        "type($tdesc) (`,` type($offsets)^)? `,` type($mask) `,` type($value) `->` type($result)"
    )

    @property
    def source(self) -> ir.Value:
        """The memory."""
        return self.tdesc

    def verify_op(self) -> None:
        kinds = [shape_of(self.value), shape_of(self.result)]
        if desc := _check_memory(self):
            kinds.append(desc.shape)
        if len(set(kinds)) > 1:
            self.fail(f"descriptor, value and result must have one shape, but have {', '.join(map(by, kinds))}")


def check_lane_offsets(op: Any, desc: TensorDesc) -> None:
    """There is one offset for each lane (RFC, create_tdesc)."""
    if shape_of(op.offsets) != (desc.lanes,):
        op.fail(f"requires one offset for each of {desc.lanes} lanes, but got {op.offsets.type}")


# Rules of upstream's scattered accesses.


def _check_memory(op: Any) -> "upstream.UpstreamTensorDesc | None":
    """Memory and offsets are those of scattered elements. Returns the descriptor, if they are in one."""
    kind = op.source.type
    # Upstream's verifier refuses views, too. Their places are counted from the view's first element.
    if isinstance(kind, ir.MemRefType) and kind.rank != 1 and not isinstance(kind.layout, ir.StridedLayoutAttr):
        op.fail(f"needs a memref of one dimension or a view, but got {kind}")
    is_desc = str(kind).startswith(upstream.UpstreamTensorDesc.mnemonic())
    if is_desc == (op.offsets is not None):
        op.fail("needs offsets, unless they are in a scattered descriptor")
    desc = upstream.UpstreamTensorDesc.of(op.source) if is_desc else None
    if desc and not desc.scatter:
        op.fail(f"needs a scattered descriptor, but got {desc}")
    return desc


def lanes_of(op: Any) -> tuple[int, ...]:
    """The lanes of a scattered access: those of its mask, whose offset may be one for all."""
    return shape_of(op.mask) or shape_of(op.mask if op.offsets is None else op.offsets)


def chunk_of(op: Any) -> int:
    """The elements from each offset on that a scattered access moves: what its value has beyond one for each."""
    return max(math.prod(shape_of(op.value)) // math.prod(lanes_of(op)), 1)


def _check_scattered(op: Any) -> None:
    """Value, offsets and mask fit each other (isValidGatherScatterBufferParams)."""
    check_hints(op)
    desc = _check_memory(op)
    kind = op.source.type
    if isinstance(kind, ir.MemRefType) and str(kind.element_type) != upstream.element_of(op.value):
        op.fail(f"needs a memref of elements as in {op.value.type}, but got {kind}")
    lanes = desc.lanes if desc else shape_of(op.offsets)
    mask, found = shape_of(op.mask), shape_of(op.value)
    if not desc and mask and not lanes:
        lanes = mask
    if mask != lanes:
        op.fail(f"has offsets for {by(lanes) or 'one lane'}, but a mask of {op.mask.type}")
    chunk = desc.scatter.chunk_size if desc and desc.scatter else op.chunk_size or 1
    expected = [desc.shape if desc else (*lanes, chunk) if chunk > 1 else lanes]
    if desc or math.prod(lanes) == 1:
        # A lane's own chunk.
        expected.append((chunk,))
    if op.offsets is not None and shape_of(op.offsets):
        # LLVM's main branch gives the size of chunks of which all elements have an offset, too.
        expected.append(lanes)
    if op.chunk_size is None and not desc and lanes != (1,) and found[:-1] == lanes:
        # Chunks of which only the value tells the size.
        expected.append(found)
    if found not in expected:
        has = "" if op.chunk_size is None else f" with a chunk_size of {op.chunk_size}"
        op.fail(f"accesses {by(expected[0]) or 'one element'}{has}, but has a value of {op.value.type}")
    if op.layout is not None and op.layout.rank() <= len(found):
        upstream.check_distribution(op, op.layout, found)
    if (size := op.contiguity) is not None and (size < 2 or not lanes or lanes[-1] % size):
        op.fail(f"contiguity must be at least 2 and divide the innermost dimension of the offsets, but got {size}")
