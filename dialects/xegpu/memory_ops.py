"""XeGPU's ops on memory: blocks, scattered accesses, atomics, barriers and fences."""

from typing import Any, ClassVar

from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.dialects.xegpu.matrix_ops import block_shapes, check_fragments, loaded_shapes, scattered_value_shape
from xegpu_py.dialects.xegpu.types import (
    CHUNK_SIZES,
    Address,
    BlockAccess,
    Byte,
    DescriptorMaker,
    DescriptorUpdate,
    FenceScope,
    Hint,
    Hinted,
    MemoryKind,
    MemoryScope,
    Mode,
    NBarrier,
    Prefetch,
    ScatteredAccess,
    TensorDesc,
    XeGPU,
    check_descriptor_memref,
    check_mask,
    check_scope,
    check_update,
    check_value,
    descriptor_of,
)
from xegpu_py.ir.builtin import (
    Index,
    MaskVector,
    MemRef,
    OffsetVector,
    Vector,
    by,
    shape_of,
    signedness,
    strides_of,
    vector_text,
)
from xegpu_py.ir.definition import DYNAMIC, Attribute, IndexList, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp, VerifyError

# Ops on n-dimensional blocks.


class CreateNdTdescOp(Operation, dialect=XeGPU, name="create_nd_tdesc", interfaces=(DescriptorMaker,)):
    """Creates the descriptor of a block of an n-dimensional tensor (RFC, create_nd_tdesc).

    The source is a memref, or an address with the tensor's shape and strides in elements. Offsets give the block's
    first element; each is an index value or a constant. The innermost stride is the last one, and is 1. Of a 1D
    descriptor the shape and strides may be left out.

    Read as well is the RFC's flat form, `%src, %offset0, %offset1, %shape0, ... : ui64, index, index, index, ...`,
    in which a pack `%offsets:2` counts for two values; if one stride is missing there, the innermost is 1. The
    attribute `boundary_check`, which is the descriptor's, is read on the op too.
    """

    source: Operand[Address | MemRef]
    offsets: IndexList
    shape: IndexList
    strides: IndexList
    tdesc: Result[TensorDesc]
    mode: Attribute[Mode] = default(Mode.SIMT)

    effects = frozenset()
    assembly_format = "$source `` $offsets (`,` $shape^ `,` $strides)? attr-dict `:` type($source) `->` type($tdesc)"
    also_reads = ("$source `,` flat($offsets) attr-dict `:` type($source) `,` type($offsets) `->` type($tdesc)",)
    also_attributes = frozenset(["boundary_check"])

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=False)
        rank = len(desc.shape)
        offsets, shape, strides = self.static_offsets, self.static_shape, self.static_strides
        if len(offsets) != rank:
            self.fail(f"a {rank}D descriptor requires {rank} offsets, but got {len(offsets)}")
        for name, values in (("shape", shape), ("strides", strides)):
            if values and len(values) != rank:
                self.fail(f"a {rank}D descriptor requires {rank} entries in '{name}', but got {len(values)}")
        if bool(shape) != bool(strides):
            self.fail("requires both 'shape' and 'strides', or neither")
        if strides and strides[-1] not in (1, DYNAMIC):
            self.fail(f"the innermost stride must be 1, but got {strides[-1]}")
        if isinstance(self.source.type, ir.MemRefType):
            self._verify_memref(desc, rank)
        elif not shape and rank > 1:
            self.fail(
                "a descriptor created from an address requires the tensor's shape and strides",
                f"write '%address[...], [{', '.join(['%size'] * rank)}], [{', '.join(['%stride'] * rank)}]'",
            )

    def _verify_memref(self, desc: TensorDesc, rank: int) -> None:
        memref = ir.MemRefType(self.source.type)
        if memref.rank != rank:
            self.fail(
                f"a {rank}D descriptor requires a memref of rank {rank}, but got {memref}",
                "use memref.subview to take a 2D slice of a memref of higher rank",
            )
        check_descriptor_memref(self, desc)
        strides = strides_of(memref)
        if strides is not None and strides[-1] not in (1, DYNAMIC):
            self.fail(f"the innermost stride must be 1, but got {strides[-1]} in {memref}")
        for name, given, known in (
            ("shape", self.static_shape, memref.shape),
            ("strides", self.static_strides, strides or []),
        ):
            for a, b in zip(given, known):
                if DYNAMIC not in (a, b) and a != b:
                    self.fail(f"'{name}' {list(given)} does not match {memref}")

    @classmethod
    def reads_as(cls, parsed: ParsedOp) -> str | None:
        for entry in [e for e in parsed.extra if e[0] in cls.also_attributes]:
            parsed.extra.remove(entry)
            # False is a promise that no access needs the check, which changes no value.
            if entry[1] == "true" and not TensorDesc.decode(parsed.type_of("tdesc")).attr.boundary_check:
                return "boundary_check is true, but the descriptor has none"
            if entry[1] not in ("true", "false"):
                return f"boundary_check must be true or false, but got {entry[1]}"
        if "offsets" not in parsed.type_offsets:
            return None
        names = parsed.operands["offsets"]
        rank = len(TensorDesc.decode(parsed.type_of("tdesc")).shape)
        if any(t != "index" for t in parsed.types["offsets"]):
            return "offsets, shape and strides must be of type index"
        if len(names) not in (rank, 3 * rank - 1, 3 * rank):
            return (
                f"a {rank}D descriptor requires {rank} offsets, or offsets, shape and strides ({3 * rank} values), "
                f"but got {len(names)} values"
            )
        groups = [names[i * rank : (i + 1) * rank] for i in range(3)]
        for name, group in zip(cls.spec.index_lists, groups):
            parsed.operands[name] = group
            parsed.types[name] = ["index"] * len(group)
            static = [DYNAMIC] * len(group)
            if name == "strides" and len(group) == rank - 1 and len(names) > rank:
                static.append(1)
            if static:
                parsed.attributes[f"static_{name}"] = tuple(static)
        return None


class LoadNdOp(Operation, dialect=XeGPU, name="load_nd", interfaces=(BlockAccess, Hinted)):
    """Loads the block that a descriptor describes (RFC, load_nd). Elements outside of the tensor read as zero.

    - `transpose` permutes the block's dimensions; with `transpose_bit_width` (VC mode only) units of that many bits
      are transposed as they are, so that elements narrower than it stay together.
    - `vnni_axis` packs as many elements along that axis as 32 bits hold into a new innermost dimension. It is for
      elements below 32 bits, and does not go with `transpose`.
    """

    tdesc: Operand[TensorDesc]
    value: Result[Vector]
    mode: Attribute[Mode] = default(Mode.SIMT)
    transpose: Attribute[tuple[int, ...]] | None = None
    transpose_bit_width: Attribute[int] | None = None
    vnni_axis: Attribute[int] | None = None

    effects = frozenset(["read"])
    assembly_format = "$tdesc attr-dict `:` type($tdesc) `->` type($value)"

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=False)
        shapes = loaded_shapes(desc, self.mode, self.transpose, self.transpose_bit_width, self.vnni_axis)
        held = "the block" if self.mode == Mode.VC or not desc.attr.map else "a work item's part of the block"
        check_value(self, "value", shapes, desc.element, f"that is {held} after the load's transforms")

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        desc = TensorDesc.decode(parsed.type_of("tdesc"))
        given = parsed.attributes
        try:
            shapes = loaded_shapes(
                desc,
                given.get("mode", Mode.SIMT),
                given.get("transpose"),
                given.get("transpose_bit_width"),
                given.get("vnni_axis"),
            )
        except VerifyError as e:
            raise ValueError(f"{cls.OPERATION_NAME}: {e.message}") from None
        return {"value": vector_text(shapes[0], desc.element)}


class StoreNdOp(Operation, dialect=XeGPU, name="store_nd", interfaces=(BlockAccess, Hinted)):
    """Stores a vector to a descriptor's block (RFC, store_nd). Elements outside of the tensor are dropped."""

    value: Operand[Vector]
    tdesc: Operand[TensorDesc]
    mode: Attribute[Mode] = default(Mode.SIMT)

    effects = frozenset(["write"])
    assembly_format = "$value `,` $tdesc attr-dict `:` type($value) `,` type($tdesc)"

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=False)
        check_fragments(desc, self.mode)
        check_value(self, "value", block_shapes(desc, self.mode), desc.element, "this is the descriptor's block")


class PrefetchNdOp(Operation, dialect=XeGPU, name="prefetch_nd", interfaces=(BlockAccess, Hinted, Prefetch)):
    """Brings the block that a descriptor describes into the cache (RFC, prefetch_nd)."""

    tdesc: Operand[TensorDesc]
    mode: Attribute[Mode] = default(Mode.SIMT)
    memory_scope: Attribute[MemoryScope] | None = None

    effects = frozenset(["read", "write"])
    assembly_format = "$tdesc attr-dict `:` type($tdesc)"

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=False)
        check_scope(self, desc)


class UpdateNdOffsetOp(Operation, dialect=XeGPU, name="update_nd_offset", interfaces=(DescriptorUpdate,)):
    """Moves a descriptor's block by offsets in elements, relative to where it is (RFC, update_nd_offset)."""

    tdesc: Operand[TensorDesc]
    offsets: IndexList
    result: Result[TensorDesc]
    mode: Attribute[Mode] = default(Mode.SIMT)

    effects = frozenset()
    same_type = ("result", "tdesc")
    assembly_format = "$tdesc `,` $offsets attr-dict `:` type($tdesc) `->` type($result)"
    also_reads = ("$tdesc `,` flat($offsets) attr-dict `:` type($tdesc) `,` type($offsets) `->` type($result)",)

    def verify_op(self) -> None:
        desc = descriptor_of(self, scattered=False)
        if len(self.static_offsets) != len(desc.shape):
            self.fail(
                f"a {len(desc.shape)}D descriptor moves by {len(desc.shape)} offsets, "
                f"but got {len(self.static_offsets)}"
            )


# Ops with an address for each lane. They work in VC mode only.


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
    if shape_of(op.offsets) != (desc.lanes,):
        op.fail(f"requires one offset for each of {desc.lanes} lanes, but got {op.offsets.type}")


# Named barriers, fences, and hints to the compiler.


class AllocNbarrierOp(Operation, dialect=XeGPU, name="alloc_nbarrier"):
    """Sets the number of named barriers of the work group (RFC, alloc_nbarrier): a constant or a value."""

    count: Operand[Byte | Index] | None = None
    nbarrier_num: Attribute[int] | None = None

    effects = frozenset(["sync"])
    assembly_format = "($count^)? ($nbarrier_num^)? attr-dict (`:` type($count)^)?"

    def verify_op(self) -> None:
        if (self.count is None) == (self.nbarrier_num is None):
            self.fail("requires the attribute 'nbarrier_num' or the operand 'count'")
        if self.nbarrier_num is not None and not 1 <= self.nbarrier_num <= 255:
            self.fail(f"the number of barriers must be 1 to 255, but got {self.nbarrier_num}")


class InitNbarrierOp(Operation, dialect=XeGPU, name="init_nbarrier"):
    """Gives this thread the named barrier of an id, at which a number of threads meet (RFC, init_nbarrier)."""

    nbarrier_id: Operand[Byte]
    participant_thread_num: Operand[Byte]
    result: Result[NBarrier]

    effects = frozenset()
    assembly_format = (
        "$nbarrier_id `,` $participant_thread_num attr-dict `:` "
        "type($nbarrier_id) `,` type($participant_thread_num) `->` type($result)"
    )


class CreateNbarrierOp(Operation, dialect=XeGPU, name="create_nbarrier"):
    """`init_nbarrier` as IMEX had it when the RFC was written.

    All threads of the barrier arrive and wait, which is role 0: they are its producers as well as its consumers.
    """

    nbarrier_id: Operand[Byte]
    nbarrier_role: Operand[Byte]
    result: Result[NBarrier]
    num_producers: Attribute[int]
    num_consumers: Attribute[int]

    effects = frozenset()
    assembly_format = (
        "$nbarrier_id `,` $nbarrier_role attr-dict `:` `(` type($nbarrier_id) `,` type($nbarrier_role) `)` "
        "`->` type($result)"
    )

    def verify_op(self) -> None:
        if self.num_producers != self.num_consumers:
            self.fail(
                f"has {self.num_producers} producers and {self.num_consumers} consumers, but the RFC's named barriers "
                "have threads that all arrive and wait",
                "use one barrier for each direction, with xegpu.init_nbarrier",
            )
        if not 1 <= self.num_producers <= 255:
            self.fail(f"the number of threads must be 1 to 255, but got {self.num_producers}")


class NbarrierArriveOp(Operation, dialect=XeGPU, name="nbarrier_arrive"):
    """Tells the other threads of a named barrier that this one has arrived (RFC, nbarrier_arrive)."""

    nbarrier: Operand[NBarrier]

    effects = frozenset(["sync"])
    assembly_format = "$nbarrier attr-dict (`:` type($nbarrier)^)?"


class NbarrierWaitOp(Operation, dialect=XeGPU, name="nbarrier_wait"):
    """Waits until all threads of a named barrier have arrived (RFC, nbarrier_wait)."""

    nbarrier: Operand[NBarrier]

    effects = frozenset(["sync"])
    assembly_format = "$nbarrier attr-dict (`:` type($nbarrier)^)?"


class FenceOp(Operation, dialect=XeGPU, name="fence"):
    """Orders the memory accesses before it and those after it (RFC, fence).

    Without `scope` it does for the whole GPU, and without `memory_kind` those of both memories.
    """

    scope: Attribute[FenceScope] | None = None
    memory_kind: Attribute[MemoryKind] | None = None

    effects = frozenset(["sync"])
    assembly_format = "attr-dict"


class CompileHintOp(Operation, dialect=XeGPU, name="compile_hint"):
    """Tells a lower-level compiler not to move instructions across this place (RFC, compile_hint)."""

    hint: Attribute[Hint] = default(Hint.SCHEDULE_BARRIER)

    effects = frozenset(["sync"])
    flags: ClassVar = dict.fromkeys(("schedule_barrier", "scheduling_barrier"), ("hint", Hint.SCHEDULE_BARRIER))
    assembly_format = "attr-dict"
