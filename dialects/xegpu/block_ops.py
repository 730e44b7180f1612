"""Ops on blocks of XeGPU: descriptors of n-dimensional blocks, loads, stores and prefetches, in both spellings.

Of each op there is a base with what the spellings share, then the RFC's op, then upstream's.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.matrix_ops import block_shapes, check_fragments, loaded_shapes
from xegpu_py.dialects.xegpu.op_interfaces import (
    Address,
    BlockAccess,
    BlockLoad,
    DescriptorMaker,
    DescriptorUpdate,
    HasLayout,
    Hinted,
    Prefetch,
    UpstreamAddress,
    check_descriptor_memref,
    check_hints,
    check_scope,
    check_value,
    descriptor_of,
)
from xegpu_py.dialects.xegpu.types import MemoryScope, Mode, TensorDesc, UpstreamXeGPU, XeGPU
from xegpu_py.ir.builtin import MemRef, Vector, by, shape_of, strides_of, vector_text
from xegpu_py.ir.codecs import Unit
from xegpu_py.ir.definition import DYNAMIC, Attribute, IndexList, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp, VerifyError

if TYPE_CHECKING:
    from xegpu_py.dialects.xegpu import upstream_types as upstream
else:
    upstream = deferred("xegpu_py.dialects.xegpu.upstream_types")


class _CreateNdTdesc(Operation, name="create_nd_tdesc", interfaces=(DescriptorMaker,)):
    source: Operand[Address | MemRef]
    offsets: IndexList
    shape: IndexList
    strides: IndexList
    tdesc: Result[TensorDesc]

    effects = frozenset()


class CreateNdTdescOp(_CreateNdTdesc, dialect=XeGPU):
    """Creates the descriptor of a block of an n-dimensional tensor (RFC, create_nd_tdesc).

    The source is a memref, or an address with the tensor's shape and strides in elements. Offsets give the block's
    first element; each is an index value or a constant. The innermost stride is the last one, and is 1. Of a 1D
    descriptor the shape and strides may be left out.

    Read as well is the RFC's flat form, `%src, %offset0, %offset1, %shape0, ... : ui64, index, index, index, ...`,
    in which a pack `%offsets:2` counts for two values; if one stride is missing there, the innermost is 1. The
    attribute `boundary_check`, which is the descriptor's, is read on the op too.
    """

    mode: Attribute[Mode] = default(Mode.SIMT)

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


class UpstreamCreateNdTdescOp(_CreateNdTdesc, dialect=UpstreamXeGPU):
    """Creates the descriptor of a block of a tensor's innermost dimensions."""

    source: Operand[UpstreamAddress | MemRef]

    assembly_format = (
        "$source (`` $offsets^)? (`,` `shape` `:` $shape^ `,` `strides` `:` $strides)? "
        "attr-dict `:` type($source) `->` type($tdesc)"
    )
    also_reads = ("$source (`` $offsets^)? (`,` $shape^ `,` $strides)? attr-dict `:` type($source) `->` type($tdesc)",)

    def verify_op(self) -> None:
        desc = upstream.UpstreamTensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"makes descriptors of blocks, not {desc}")
        if bool(self.static_shape) != bool(self.static_strides):
            self.fail("needs both shape and strides, or neither")
        upstream.check_space(self, self.source, desc.block.memory_space if desc.block else MemoryScope.GLOBAL)
        is_memref = isinstance(self.source.type, ir.MemRefType)
        memref = ir.MemRefType(self.source.type) if is_memref else None
        if memref is None and not self.static_shape:
            self.fail("needs shape and strides, as the source is an address")
        rank = len(self.static_shape) or (memref.rank if memref else 0)
        if memref is not None and not self.static_shape and not memref.has_static_shape:
            self.fail(f"needs shape and strides, as those of {memref} are not known")
        if len(self.static_shape) != len(self.static_strides):
            self.fail("needs as many strides as extents")
        if rank < len(desc.shape):
            self.fail(f"a descriptor of {by(desc.shape)} needs a source of as many dimensions, but has {rank}")
        if self.static_offsets and len(self.static_offsets) != rank:
            self.fail(f"a source of {rank} dimensions needs {rank} offsets, but got {len(self.static_offsets)}")
        if memref is not None and str(memref.element_type) != desc.element:
            self.fail(f"the descriptor's elements, {desc.element}, differ from the memref's, {memref.element_type}")


class _LoadNd(Operation, name="load_nd", interfaces=(BlockLoad, Hinted)):
    tdesc: Operand[TensorDesc]
    value: Result[Vector]

    effects = frozenset(["read"])


class LoadNdOp(_LoadNd, dialect=XeGPU):
    """Loads the block that a descriptor describes (RFC, load_nd). Elements outside of the tensor read as zero.

    - `transpose` permutes the block's dimensions; with `transpose_bit_width` (VC mode only) units of that many bits
      are transposed as they are, so that elements narrower than it stay together.
    - `vnni_axis` packs as many elements along that axis as 32 bits hold into a new innermost dimension. It is for
      elements below 32 bits, and does not go with `transpose`.
    """

    mode: Attribute[Mode] = default(Mode.SIMT)
    transpose: Attribute[tuple[int, ...]] | None = None
    transpose_bit_width: Attribute[int] | None = None
    vnni_axis: Attribute[int] | None = None

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


class UpstreamLoadNdOp(_LoadNd, dialect=UpstreamXeGPU, interfaces=(HasLayout,)):
    """Loads a block. Offsets count from the descriptor's; without them the block is where the descriptor is."""

    offsets: IndexList
    packed: Attribute[Unit] | None = None
    transpose: "Attribute[upstream.Dense] | None" = None
    transpose_bit_width: Attribute[int] | None = None

    assembly_format = "$tdesc (`` $offsets^)? prop-dict attr-dict `:` type($tdesc) `->` type($value)"

    def order(self, rank: int) -> tuple[int, ...]:
        """The block's dimension of each dimension of the value. LLVM's main branch names the last two alone."""
        last = self.transpose or ()
        return (*range(rank - len(last)), *(rank - len(last) + d for d in last))

    def verify_op(self) -> None:
        desc = upstream.UpstreamTensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"loads blocks, but {desc} is scattered")
        upstream.check_element(self, self.value, desc)
        order = self.order(len(desc.shape))
        if sorted(order) != list(range(len(desc.shape))):
            self.fail(
                f"transpose must be a permutation of {len(desc.shape)} dimensions, but got {list(self.transpose or ())}"
            )
        shape = [desc.shape[i] for i in order]
        found = shape_of(self.value)
        packs = self.packed or (self.transpose_bit_width and len(found) == 3)
        # A lane's part has one dimension, which says nothing of the pairs.
        if packs and len(shape) == 2 and len(found) > 1:
            factor = found[-1]
            shape = [shape[0] // factor, shape[1], factor]
        array = desc.block.array_length if desc.block else 1
        _check_block(self, self.value, desc, [array, *shape] if array > 1 else shape)


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


class UpstreamStoreNdOp(Operation, dialect=UpstreamXeGPU, name="store_nd", interfaces=(BlockAccess, Hinted, HasLayout)):
    """Stores a block."""

    value: Operand[Vector]
    tdesc: Operand[TensorDesc]
    offsets: IndexList

    effects = frozenset(["write"])
    assembly_format = "$value `,` $tdesc (`` $offsets^)? prop-dict attr-dict `:` type($value) `,` type($tdesc)"

    def verify_op(self) -> None:
        desc = upstream.UpstreamTensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"stores blocks, but {desc} is scattered")
        if desc.block and desc.block.array_length > 1:
            self.fail("cannot store to a descriptor with an array_length")
        upstream.check_element(self, self.value, desc)
        _check_block(self, self.value, desc, desc.shape)


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


class UpstreamPrefetchNdOp(
    Operation, dialect=UpstreamXeGPU, name="prefetch_nd", interfaces=(BlockAccess, Hinted, Prefetch, HasLayout)
):
    """Brings a block into the caches."""

    tdesc: Operand[TensorDesc]
    offsets: IndexList

    effects = frozenset(["read", "write"])
    assembly_format = "$tdesc (`` $offsets^)? prop-dict attr-dict `:` type($tdesc)"

    def verify_op(self) -> None:
        desc = upstream.UpstreamTensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"prefetches blocks, but {desc} is scattered")
        check_hints(self)
        _check_offsets(self, desc)
        upstream.check_distribution(self, self.layout, desc.shape)


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


class UpstreamUpdateNdOffsetOp(
    Operation, dialect=UpstreamXeGPU, name="update_nd_offset", interfaces=(DescriptorUpdate,)
):
    """Moves a descriptor's block. Removed after 22.1.8."""

    tdesc: Operand[TensorDesc]
    offsets: IndexList
    result: Result[TensorDesc]

    effects = frozenset()
    same_type = ("tdesc", "result")
    assembly_format = "$tdesc `,` $offsets attr-dict `:` type($result)"

    def verify_op(self) -> None:
        desc = upstream.UpstreamTensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"moves blocks, but {desc} is scattered")
        rank = len(desc.shape)
        if len(self.static_offsets) != rank:
            self.fail(f"a descriptor of {rank} dimensions moves by {rank} offsets, not {len(self.static_offsets)}")


# Rules of upstream's blocks.


def _check_block(op: Any, value: ir.Value, desc: "upstream.UpstreamTensorDesc", shape: Sequence[int]) -> None:
    """A block's value has its shape, or is a lane's equal part of it (LoadNdOp::verify, StoreNdOp::verify).

    Args:
        shape: that of the whole block, after transforms.
    """
    check_hints(op)
    _check_offsets(op, desc)
    upstream.check_distribution(op, op.layout, desc.shape)
    found = shape_of(value)
    whole = math.prod(shape)
    if len(found) == 1 and found[0] < whole:
        if desc.layout != "unit":
            op.fail(f"a lane's part, {value.type}, needs a descriptor without layout, but got {desc}")
        if whole % found[0]:
            op.fail(f"{value.type} is no equal part of {by(shape)} elements")
        return
    blocks = desc.block.array_length if desc.block else 1
    # LLVM's main branch has the blocks of an array one below the other as well.
    below = (blocks * shape[1], *shape[2:]) if blocks > 1 else ()
    if found not in (tuple(shape), below):
        op.fail(f"the descriptor's block is {by(shape)}, but the value is {value.type}")


def _check_offsets(op: Any, desc: "upstream.UpstreamTensorDesc") -> None:
    rank = len(desc.shape)
    if op.static_offsets and len(op.static_offsets) != rank:
        op.fail(f"a descriptor of {rank} dimensions needs {rank} offsets, but got {len(op.static_offsets)}")
