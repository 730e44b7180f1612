"""Ops with an address for each lane. They work in VC mode only."""

from typing import Any

from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.dialects.xegpu.checks import (
    Address,
    check_descriptor_memref,
    check_mask,
    check_same_desc,
    check_scope,
    check_update,
    check_value,
    descriptor_of,
)
from xegpu_py.dialects.xegpu.interfaces import DescriptorMaker, DescriptorUpdate, Hinted, Prefetch, ScatteredAccess
from xegpu_py.dialects.xegpu.shapes import scattered_value_shape
from xegpu_py.dialects.xegpu.types import CHUNK_SIZES, MemoryScope, Mode, TensorDesc, XeGPU
from xegpu_py.ir.builtin import by, signedness, vector_of, vector_text
from xegpu_py.ir.constraints import MaskVector, MemRef, OffsetVector, Vector
from xegpu_py.ir.definition import Attribute, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp


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


class PrefetchOp(Operation, dialect=XeGPU, name="prefetch", interfaces=(ScatteredAccess, Hinted, Prefetch)):
    """Brings the elements at the address of each lane into the cache (RFC, prefetch). VC mode only."""

    tdesc: Operand[TensorDesc]
    mode: Attribute[Mode] = default(Mode.SIMT)

    effects = frozenset(["read", "write"])
    assembly_format = "$tdesc attr-dict `:` type($tdesc)"

    def verify_op(self) -> None:
        descriptor_of(self, scattered=True)


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
        check_same_desc(self)


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


def check_lane_offsets(op: Any, desc: TensorDesc) -> None:
    """There is one offset for each lane (RFC, create_tdesc)."""
    shape, _ = vector_of(str(op.offsets.type))
    if shape != (desc.lanes,):
        op.fail(f"requires one offset for each of {desc.lanes} lanes, but got {op.offsets.type}")
