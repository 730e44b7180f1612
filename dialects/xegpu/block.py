"""Ops on n-dimensional blocks."""

from mlir import ir

from xegpu_py.dialects.xegpu.checks import (
    Address,
    check_descriptor_memref,
    check_same_desc,
    check_scope,
    check_value,
    descriptor_of,
)
from xegpu_py.dialects.xegpu.interfaces import BlockAccess, DescriptorMaker, DescriptorUpdate, Hinted, Prefetch
from xegpu_py.dialects.xegpu.shapes import block_shapes, check_fragments, loaded_shapes
from xegpu_py.dialects.xegpu.types import MemoryScope, Mode, TensorDesc, XeGPU
from xegpu_py.ir.builtin import strides_of, vector_text
from xegpu_py.ir.constraints import MemRef, Vector
from xegpu_py.ir.definition import DYNAMIC, Attribute, IndexList, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp, VerifyError


class CreateNdTdescOp(Operation, dialect=XeGPU, name="create_nd_tdesc", interfaces=(DescriptorMaker,)):
    """Creates the descriptor of a block of an n-dimensional tensor (RFC, create_nd_tdesc).

    The source is a memref, or an address with the tensor's shape and strides in elements. Offsets give the block's
    first element; each is an index value or a constant. The innermost stride is the last one, and is 1. Of a 1D
    descriptor the shape and strides may be left out.

    Read as well is the RFC's flat form, `%src, %offset0, %offset1, %shape0, ... : ui64, index, index, index, ...`,
    in which a pack `%offsets:2` counts for two values; if one stride is missing there, the innermost is 1.
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
    """Loads the block that a descriptor describes (RFC, load_nd). What lies outside the tensor reads as zero.

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
    """Stores a vector to a descriptor's block (RFC, store_nd). What lies outside the tensor is dropped."""

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
        check_same_desc(self)
