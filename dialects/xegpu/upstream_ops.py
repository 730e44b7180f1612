"""Upstream's XeGPU dialect: its ops, with the syntax of LLVM 22.1.8, and the spellings of main and IMEX that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.dialects.xegpu.types import READ_HINTS, CacheHint, MemoryScope, is_slm
from xegpu_py.dialects.xegpu.upstream_types import (
    Dense,
    ForWhom,
    Hint,
    Layout,
    LayoutKind,
    MemDesc,
    NBarrier,
    Shuffle,
    Slice,
    Space,
    TensorDesc,
    UpstreamXeGPU,
)
from xegpu_py.ir.builtin import MemRef, OneOf, TypeConstraint, Vector, bit_width, by, shape_and_element, shape_of
from xegpu_py.ir.codecs import Unit
from xegpu_py.ir.definition import Attribute, IndexList, Interface, Operand, Result
from xegpu_py.ir.operation import Operation, ParsedOp

DIALECT = UpstreamXeGPU

AnyLayout = Annotated[Any, LayoutKind()]
"""A layout or a slice."""


class Hinted(Interface):
    """Has cache hints, and a layout."""

    l1_hint: Attribute[Hint] | None = None
    l2_hint: Attribute[Hint] | None = None
    l3_hint: Attribute[Hint] | None = None
    layout: Attribute[AnyLayout] | None = None


class Address(OneOf):
    """An integer that is an address."""

    summary = "integer address"
    names = ("i64", "ui64", "i32", "ui32")


class Value(TypeConstraint):
    """A loaded or stored value: a vector or a number."""

    summary = "vector, integer or floating-point number"
    _pattern = r"vector<[^\[\]]*>|[su]?i\d+|b?f\d+\w*|tf32|index"


class Offsets(TypeConstraint):
    """Offsets of lanes: a vector of index, or an index."""

    summary = "index or vector of index"
    _pattern = r"index|vector<(?:\d+x)+(?:index|[su]?i\d+)>"


class Mask(TypeConstraint):
    """A mask: i1 or a vector of it."""

    summary = "i1 or vector of i1"
    _pattern = r"i1|vector<(?:\d+x)+i1>"


class Byte(OneOf):
    """An integer of 8 bits."""

    summary = "8-bit integer"
    names = ("i8",)


def element_of(value: ir.Value) -> str:
    """The type of a vector's elements, or of a number."""
    return shape_and_element(value)[1]


_WRITE_HINTS = (CacheHint.CACHED, CacheHint.UNCACHED, CacheHint.WRITE_BACK, CacheHint.WRITE_THROUGH)
"""Upstream's; the RFC's have `streaming` instead of `cached`."""


def _check_hints(op: Any) -> None:
    """The cache hints are those of a read or a write (isReadHintOrNone, isWriteHintOrNone)."""
    what, allowed = ("read", READ_HINTS) if "read" in op.effects else ("write", _WRITE_HINTS)
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        hint = getattr(op, name)
        if hint is not None and hint not in allowed:
            names = ", ".join(h.value for h in allowed)
            op.fail(f"{name} = {hint.value} is not a valid hint for a {what}", f"valid hints for a {what} are {names}")


def _check_space(op: Any, source: ir.Value, space: MemoryScope) -> None:
    """A memref is in the descriptor's memory; an address is one of global memory."""
    is_shared = isinstance(source.type, ir.MemRefType) and is_slm(ir.MemRefType(source.type).memory_space)
    if is_shared != (space == MemoryScope.SLM):
        op.fail(f"the descriptor's memory is {space.value}, but that of {source.type} is not")


def _check_block(op: Any, value: ir.Value, desc: TensorDesc, shape: Sequence[int]) -> None:
    """A block's value has its shape, or is a lane's equal part of it (LoadNdOp::verify, StoreNdOp::verify).

    Args:
        shape: that of the whole block, after transforms.
    """
    _check_hints(op)
    _check_offsets(op, desc)
    _check_distribution(op, op.layout, desc.shape)
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


def _check_offsets(op: Any, desc: TensorDesc) -> None:
    rank = len(desc.shape)
    if op.static_offsets and len(op.static_offsets) != rank:
        op.fail(f"a descriptor of {rank} dimensions needs {rank} offsets, but got {len(op.static_offsets)}")


def _check_distribution(op: Any, layout: Layout | Slice | None, shape: Sequence[int], of_type: bool = False) -> None:
    if layout is not None and not layout.distributes(shape, of_type):
        op.fail(f"{layout} cannot divide {by(shape)} equally")


def _check_element(op: Any, value: ir.Value, desc: TensorDesc | MemDesc) -> None:
    if element_of(value) != desc.element:
        op.fail(f"the elements of {value.type} differ from the descriptor's, {desc.element}")


def _check_places(op: Any) -> TensorDesc | None:
    """Memory and offsets are those of scattered elements. Returns the descriptor, if they are in one."""
    kind = op.source.type
    # Upstream's verifier refuses views, too. Their places are counted from the view's first element.
    if isinstance(kind, ir.MemRefType) and kind.rank != 1 and not isinstance(kind.layout, ir.StridedLayoutAttr):
        op.fail(f"needs a memref of one dimension or a view, but got {kind}")
    is_desc = str(kind).startswith(TensorDesc.mnemonic())
    if is_desc == (op.offsets is not None):
        op.fail("needs offsets, unless they are in a scattered descriptor")
    desc = TensorDesc.of(op.source) if is_desc else None
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
    _check_hints(op)
    desc = _check_places(op)
    kind = op.source.type
    if isinstance(kind, ir.MemRefType) and str(kind.element_type) != element_of(op.value):
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
        _check_distribution(op, op.layout, found)
    if (size := op.contiguity) is not None and (size < 2 or not lanes or lanes[-1] % size):
        op.fail(f"contiguity must be at least 2 and divide the innermost dimension of the offsets, but got {size}")


def _check_product(op: Any) -> None:
    """The shapes of a product's factors and its result fit (verifyDpasDimensions)."""
    if op.acc is not None and op.acc.type != op.result.type:
        op.fail(f"the accumulator {op.acc.type} differs from the result {op.result.type}")
    a, b, d = shape_of(op.lhs), shape_of(op.rhs), shape_of(op.result)
    if {element_of(op.lhs), element_of(op.rhs)} == {"f16", "bf16"}:
        op.fail(f"cannot multiply {op.lhs.type} and {op.rhs.type}, which have different elements")
    if len(a) == 1 or len(d) == 1:
        if len({len(a), len(b), len(d)}) > 1:
            op.fail(f"has {by(a)} times {by(b)} is {by(d)}: at lane level all of these have one dimension")
        if b[0] * bit_width(element_of(op.rhs)) % 32:
            op.fail(f"a lane's part of the second factor must fill multiples of 32 bits, but is {op.rhs.type}")
        return
    if len(a) != len(d) or len(b) not in (len(a), len(a) + 1):
        op.fail(f"cannot multiply {by(a)} and {by(b)} to {by(d)}")
    k = b[-2] if len(b) == len(a) else b[-3] * b[-1]
    n = b[-1] if len(b) == len(a) else b[-2]
    if (a[-2], a[-1], n) != (d[-2], k, d[-1]):
        op.fail(f"{by(a)} times {by(b)} is not {by(d)}")


def _check_matrix(op: Any) -> None:
    """Check that the access is to a part of the matrix (IsValidMatrixOpParams)."""
    desc = MemDesc.of(op.mem_desc)
    _check_element(op, op.value, desc)
    if len(op.static_offsets) != len(desc.shape):
        op.fail(f"a matrix of {by(desc.shape)} needs {len(desc.shape)} offsets, but got {len(op.static_offsets)}")
    found = shape_of(op.value)
    if len(found) == len(desc.shape) and any(n > m for n, m in zip(found, desc.shape)):
        op.fail(f"{op.value.type} exceeds the matrix of {by(desc.shape)}")
    if found:
        _check_distribution(op, op.layout, found)
    lanes = op.layout.lane_layout if op.subgroup_block_io and isinstance(op.layout, Layout) else ()
    if lanes:
        if any(n != 1 for n in op.layout.lane_data[:-1]):
            op.fail(f"subgroup_block_io needs lane_data along the last dimension only, but got {op.layout}")
        if any(n != 1 and s != 1 for n, s in zip(lanes, desc.placed.stride)):
            op.fail(f"subgroup_block_io needs lanes along the dimension of stride 1, but got {op.layout} of {desc}")
        if desc.placed.block != lanes:
            op.fail(f"subgroup_block_io needs blocks of lane_layout {by(lanes)}, but got {desc}")


class CreateNdTdescOp(Operation, dialect=UpstreamXeGPU, name="create_nd_tdesc"):
    """Creates the descriptor of a block of a tensor's innermost dimensions."""

    source: Operand[Address | MemRef]
    offsets: IndexList
    shape: IndexList
    strides: IndexList
    tdesc: Result[TensorDesc]

    effects = frozenset()
    assembly_format = (
        "$source (`` $offsets^)? (`,` `shape` `:` $shape^ `,` `strides` `:` $strides)? "
        "attr-dict `:` type($source) `->` type($tdesc)"
    )
    also_reads = ("$source (`` $offsets^)? (`,` $shape^ `,` $strides)? attr-dict `:` type($source) `->` type($tdesc)",)

    def verify_op(self) -> None:
        desc = TensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"makes descriptors of blocks, not {desc}")
        if bool(self.static_shape) != bool(self.static_strides):
            self.fail("needs both shape and strides, or neither")
        _check_space(self, self.source, desc.block.memory_space if desc.block else MemoryScope.GLOBAL)
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


class LoadNdOp(Operation, dialect=UpstreamXeGPU, name="load_nd", interfaces=(Hinted,)):
    """Loads a block. Offsets count from the descriptor's; without them the block is where the descriptor is."""

    tdesc: Operand[TensorDesc]
    offsets: IndexList
    value: Result[Vector]
    packed: Attribute[Unit] | None = None
    transpose: Attribute[Dense] | None = None
    transpose_bit_width: Attribute[int] | None = None

    effects = frozenset(["read"])
    assembly_format = "$tdesc (`` $offsets^)? prop-dict attr-dict `:` type($tdesc) `->` type($value)"

    def order(self, rank: int) -> tuple[int, ...]:
        """The block's dimension of each dimension of the value. LLVM's main branch names the last two alone."""
        last = self.transpose or ()
        return (*range(rank - len(last)), *(rank - len(last) + d for d in last))

    def verify_op(self) -> None:
        desc = TensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"loads blocks, but {desc} is scattered")
        _check_element(self, self.value, desc)
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


class StoreNdOp(Operation, dialect=UpstreamXeGPU, name="store_nd", interfaces=(Hinted,)):
    """Stores a block."""

    value: Operand[Vector]
    tdesc: Operand[TensorDesc]
    offsets: IndexList

    effects = frozenset(["write"])
    assembly_format = "$value `,` $tdesc (`` $offsets^)? prop-dict attr-dict `:` type($value) `,` type($tdesc)"

    def verify_op(self) -> None:
        desc = TensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"stores blocks, but {desc} is scattered")
        if desc.block and desc.block.array_length > 1:
            self.fail("cannot store to a descriptor with an array_length")
        _check_element(self, self.value, desc)
        _check_block(self, self.value, desc, desc.shape)


class PrefetchNdOp(Operation, dialect=UpstreamXeGPU, name="prefetch_nd", interfaces=(Hinted,)):
    """Brings a block into the caches."""

    tdesc: Operand[TensorDesc]
    offsets: IndexList

    effects = frozenset(["read", "write"])
    assembly_format = "$tdesc (`` $offsets^)? prop-dict attr-dict `:` type($tdesc)"

    def verify_op(self) -> None:
        desc = TensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"prefetches blocks, but {desc} is scattered")
        _check_hints(self)
        _check_offsets(self, desc)
        _check_distribution(self, self.layout, desc.shape)


class UpdateNdOffsetOp(Operation, dialect=UpstreamXeGPU, name="update_nd_offset"):
    """Moves a descriptor's block. Removed after 22.1.8."""

    tdesc: Operand[TensorDesc]
    offsets: IndexList
    result: Result[TensorDesc]

    effects = frozenset()
    same_type = ("tdesc", "result")
    assembly_format = "$tdesc `,` $offsets attr-dict `:` type($result)"

    def verify_op(self) -> None:
        desc = TensorDesc.of(self.tdesc)
        if desc.scatter:
            self.fail(f"moves blocks, but {desc} is scattered")
        rank = len(desc.shape)
        if len(self.static_offsets) != rank:
            self.fail(f"a descriptor of {rank} dimensions moves by {rank} offsets, not {len(self.static_offsets)}")


class CreateTdescOp(Operation, dialect=UpstreamXeGPU, name="create_tdesc"):
    """Creates a scattered descriptor. Removed after 22.1.8."""

    source: Operand[Address | MemRef]
    offsets: Operand[Offsets]
    tdesc: Result[TensorDesc]

    effects = frozenset()
    assembly_format = "$source `,` $offsets attr-dict `:` type($source) `,` type($offsets) `->` type($tdesc)"

    def verify_op(self) -> None:
        desc = TensorDesc.of(self.tdesc)
        if not desc.scatter:
            self.fail(f"makes scattered descriptors, not {desc}")
        _check_space(self, self.source, desc.scatter.memory_space)
        if shape_of(self.offsets) != desc.lanes:
            self.fail(f"needs one offset for each of {by(desc.lanes)} lanes, but got {self.offsets.type}")


class UpdateOffsetOp(Operation, dialect=UpstreamXeGPU, name="update_offset"):
    """Moves the lanes of a scattered descriptor. Removed after 22.1.8."""

    tdesc: Operand[TensorDesc]
    offsets: Operand[Offsets]
    result: Result[TensorDesc]

    effects = frozenset()
    same_type = ("result", "tdesc")
    assembly_format = "$tdesc `,` $offsets attr-dict `:` type($tdesc) `,` type($offsets)"


class LoadGatherOp(Operation, dialect=UpstreamXeGPU, name="load", interfaces=(Hinted,)):
    """Loads elements from the address of each lane; lanes that are masked off access no memory."""

    source: Operand[TensorDesc | MemRef | Address]
    offsets: Operand[Offsets] | None
    mask: Operand[Mask]
    value: Result[Value]
    chunk_size: Attribute[int] | None = None
    contiguity: Attribute[int] | None = None

    effects = frozenset(["read"])
    assembly_format = (
        "$source (`` `[` $offsets^ `]`)? `,` $mask prop-dict attr-dict `:` "
        "type($source) (`,` type($offsets)^)? `,` type($mask) `->` type($value)"
    )

    verify_op = _check_scattered


class StoreScatterOp(Operation, dialect=UpstreamXeGPU, name="store", interfaces=(Hinted,)):
    """Stores elements to the address of each lane; lanes that are masked off access no memory."""

    value: Operand[Value]
    dest: Operand[TensorDesc | MemRef | Address]
    offsets: Operand[Offsets] | None
    mask: Operand[Mask]
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

    verify_op = _check_scattered


class PrefetchOp(Operation, dialect=UpstreamXeGPU, name="prefetch", interfaces=(Hinted,)):
    """Brings scattered elements into the caches."""

    source: Operand[TensorDesc | MemRef | Address]
    offsets: Operand[Offsets] | None
    offset_align_byte: Attribute[int] | None = None

    effects = frozenset(["read", "write"])
    assembly_format = "$source (`` `[` $offsets^ `]`)? prop-dict attr-dict `:` type($source) (`,` type($offsets)^)?"

    def verify_op(self) -> None:
        _check_hints(self)
        _check_places(self)
        if self.offsets is not None and shape_of(self.offsets):
            _check_distribution(self, self.layout, shape_of(self.offsets))
        is_address = isinstance(self.source.type, ir.IntegerType)
        if is_address and self.offset_align_byte is None:
            self.fail("needs offset_align_byte, as the source is an address")
        if self.offset_align_byte is not None and not is_address:
            self.fail(f"offset_align_byte needs an address, but the source is {self.source.type}")


class AtomicRmwOp(Operation, dialect=UpstreamXeGPU, name="atomic_rmw"):
    """Reads, modifies and writes the element of each lane atomically."""

    kind: Attribute[AtomicRMWKind]
    tdesc: Operand[TensorDesc | MemRef | Address]
    offsets: Operand[Offsets] | None
    mask: Operand[Mask]
    value: Operand[Value]
    result: Result[Value]
    layout: Attribute[AnyLayout] | None = None

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
        if desc := _check_places(self):
            kinds.append(desc.shape)
        if len(set(kinds)) > 1:
            self.fail(f"descriptor, value and result must have one shape, but have {', '.join(map(by, kinds))}")


class DpasOp(Operation, dialect=UpstreamXeGPU, name="dpas"):
    """Multiplies matrices: `lhs` x `rhs` + `acc`."""

    lhs: Operand[Vector]
    rhs: Operand[Vector]
    acc: Operand[Vector] | None
    result: Result[Vector]
    layout_a: Attribute[AnyLayout] | None = None
    layout_b: Attribute[AnyLayout] | None = None
    layout_cd: Attribute[AnyLayout] | None = None

    effects = frozenset()
    assembly_format = (
        "$lhs `,` $rhs (`,` $acc^)? attr-dict `:` type($lhs) `,` type($rhs) (`,` type($acc)^)? `->` type($result)"
    )
    also_reads = (
        "$lhs `,` $rhs (`,` $acc^)? prop-dict attr-dict `:` "
        "type($lhs) `,` type($rhs) (`,` type($acc)^)? `->` type($result)",
    )

    def verify_op(self) -> None:
        _check_product(self)
        for layout, value in ((self.layout_a, self.lhs), (self.layout_b, self.rhs), (self.layout_cd, self.result)):
            if len(shape_of(value)) > 1:
                _check_distribution(self, layout, shape_of(value))


class DpasMxOp(Operation, dialect=UpstreamXeGPU, name="dpas_mx"):
    """Multiplies matrices whose blocks have scales. After 22.1.8."""

    lhs: Operand[Vector]
    rhs: Operand[Vector]
    acc: Operand[Vector] | None
    scale_a: Operand[Value] | None
    scale_b: Operand[Value] | None
    result: Result[Vector]
    layout_a: Attribute[AnyLayout] | None = None
    layout_b: Attribute[AnyLayout] | None = None
    layout_cd: Attribute[AnyLayout] | None = None
    layout_a_scale: Attribute[AnyLayout] | None = None
    layout_b_scale: Attribute[AnyLayout] | None = None

    effects = frozenset()
    assembly_format = (
        "$lhs `,` $rhs (`,` $acc^)? (`scale_a` `=` $scale_a^)? (`scale_b` `=` $scale_b^)? prop-dict attr-dict `:` "
        "`(` type($lhs) `,` type($rhs) (`,` type($acc)^)? (`,` type($scale_a)^)? (`,` type($scale_b)^)? `)` "
        "`->` type($result)"
    )
    also_reads = (
        "$lhs `,` $rhs (`,` $acc^)? (`scale_a` `=` $scale_a^)? (`scale_b` `=` $scale_b^)? prop-dict attr-dict `:` "
        "type($lhs) `,` type($rhs) (`,` type($acc)^)? (`,` type($scale_a)^)? (`,` type($scale_b)^)? `->` type($result)",
    )

    def verify_op(self) -> None:
        _check_product(self)
        a, b = shape_of(self.lhs), shape_of(self.rhs)
        scales = {"scale_a": self.scale_a, "scale_b": self.scale_b}
        for name, value in scales.items():
            if value is not None and element_of(value) != SCALE:
                self.fail(f"{name} must have elements {SCALE}, but got {value.type}")
        if len(a) == 1:
            return
        for name, size, axis in (("scale_a", a[-2], -2), ("scale_b", b[-1], -1)):
            given = scales[name]
            shape = shape_of(given) if given is not None else ()
            if shape and (len(shape) != len(a) or shape[axis] != size):
                self.fail(f"{name} must have the rank of its factor and {size} along its dimension, not {by(shape)}")
        layouts = (self.layout_a, self.layout_b, self.layout_cd, self.layout_a_scale, self.layout_b_scale)
        for layout, value in zip(layouts, (self.lhs, self.rhs, self.result, self.scale_a, self.scale_b)):
            if value is not None:
                _check_distribution(self, layout, shape_of(value), of_type=True)
        both = [shape_of(v) for v in (self.scale_a, self.scale_b) if v is not None]
        if len(both) == 2 and all(both) and both[0][-1] != both[1][-2]:
            self.fail(f"scale_a has {both[0][-1]} blocks along K, but scale_b has {both[1][-2]}")


SCALE = "f8E8M0FNU"
"""The format of scales."""


class TruncfOp(Operation, dialect=UpstreamXeGPU, name="truncf"):
    """Rounds to a format of 8 or 4 bits. After 22.1.8."""

    source: Operand[Value]
    result: Result[Value]

    effects = frozenset()
    assembly_format = "$source prop-dict attr-dict `:` type($source) `->` type($result)"

    def verify_op(self) -> None:
        if bit_width(element_of(self.source)) <= bit_width(element_of(self.result)):
            self.fail(f"requires a type wider than the result's, {self.result.type}, but got {self.source.type}")


class LaneShuffleOp(Operation, dialect=UpstreamXeGPU, name="lane_shuffle"):
    """Permutes elements between lanes. After 22.1.8."""

    source: Operand[Vector]
    mode: Attribute[Shuffle]
    result: Result[Vector]

    effects = frozenset()
    assembly_format = "$source $mode prop-dict attr-dict `:` type($source)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return {"result": parsed.type_of("source")}


class ConvertLayoutOp(Operation, dialect=UpstreamXeGPU, name="convert_layout"):
    """Gives the same value another layout."""

    source: Operand[Value]
    result: Result[Value]
    input_layout: Attribute[AnyLayout] | None = None
    target_layout: Attribute[AnyLayout] | None = None

    effects = frozenset()
    same_type = ("result", "source")
    assembly_format = "$source prop-dict attr-dict `:` type($source) (`->` type($result))?"

    def verify_op(self) -> None:
        layouts = [layout for layout in (self.input_layout, self.target_layout) if layout is not None]
        if len({bool(layout.sg_layout) for layout in layouts}) > 1:
            self.fail("either both layouts divide among subgroups, or none")
        for layout in layouts:
            _check_distribution(self, layout, shape_of(self.source))


class CreateMemDescOp(Operation, dialect=UpstreamXeGPU, name="create_mem_desc"):
    """Sees a buffer in shared local memory as a matrix."""

    source: Operand[MemRef]
    mem_desc: Result[MemDesc]

    effects = frozenset()
    assembly_format = "$source prop-dict attr-dict `:` type($source) `->` type($mem_desc)"

    def verify_op(self) -> None:
        source, desc = ir.MemRefType(self.source.type), MemDesc.of(self.mem_desc)
        _check_space(self, self.source, MemoryScope.SLM)
        if source.has_static_shape:
            held = math.prod(source.shape) * bit_width(str(source.element_type))
            if held != math.prod(desc.shape) * bit_width(desc.element):
                self.fail(f"source and matrix must have one size, but are {source} and {desc}")


class LoadMatrixOp(Operation, dialect=UpstreamXeGPU, name="load_matrix"):
    """Loads a block of a matrix in shared local memory."""

    mem_desc: Operand[MemDesc]
    offsets: IndexList
    value: Result[Value]
    subgroup_block_io: Attribute[Unit] | None = None
    layout: Attribute[AnyLayout] | None = None

    effects = frozenset(["read"])
    assembly_format = (
        "$mem_desc `` $offsets prop-dict attr-dict `:` type($mem_desc) (`,` type($offsets)^)? `->` type($value)"
    )

    verify_op = _check_matrix


class StoreMatrixOp(Operation, dialect=UpstreamXeGPU, name="store_matrix"):
    """Stores a block of a matrix in shared local memory."""

    value: Operand[Value]
    mem_desc: Operand[MemDesc]
    offsets: IndexList
    subgroup_block_io: Attribute[Unit] | None = None
    layout: Attribute[AnyLayout] | None = None

    effects = frozenset(["write"])
    assembly_format = (
        "$value `,` $mem_desc `` $offsets prop-dict attr-dict `:` "
        "type($value) `,` type($mem_desc) (`,` type($offsets)^)?"
    )

    verify_op = _check_matrix


class AllocNbarrierOp(Operation, dialect=UpstreamXeGPU, name="alloc_nbarrier"):
    """Sets the number of named barriers."""

    nbarrier_num: Attribute[int]

    effects = frozenset(["sync"])
    assembly_format = "$nbarrier_num attr-dict"


class InitNbarrierOp(Operation, dialect=UpstreamXeGPU, name="init_nbarrier", also_named=("create_nbarrier",)):
    """Gives the named barrier of an id."""

    nbarrier_id: Operand[Byte]
    participant_thread_num: Operand[Byte]
    result: Result[NBarrier]

    effects = frozenset()
    assembly_format = (
        "$nbarrier_id `,` $participant_thread_num attr-dict `:` "
        "type($nbarrier_id) `,` type($participant_thread_num) `->` type($result)"
    )


class NbarrierArriveOp(Operation, dialect=UpstreamXeGPU, name="nbarrier_arrive"):
    """Signals that this thread has arrived."""

    nbarrier: Operand[NBarrier]

    effects = frozenset(["sync"])
    assembly_format = "$nbarrier attr-dict `:` type($nbarrier)"


class NbarrierWaitOp(Operation, dialect=UpstreamXeGPU, name="nbarrier_wait"):
    """Waits until all threads have arrived."""

    nbarrier: Operand[NBarrier]

    effects = frozenset(["sync"])
    assembly_format = "$nbarrier attr-dict `:` type($nbarrier)"


class FenceOp(Operation, dialect=UpstreamXeGPU, name="fence"):
    """Orders memory accesses."""

    memory_kind: Attribute[Space]
    fence_scope: Attribute[ForWhom]

    effects = frozenset(["sync"])
    assembly_format = "`memory_kind` `=` $memory_kind `,` `fence_scope` `=` $fence_scope attr-dict"


class CompileHintOp(Operation, dialect=UpstreamXeGPU, name="compile_hint"):
    """Tells the compiler not to move instructions across this place. IMEX has it."""

    effects = frozenset(["sync"])
    assembly_format = "attr-dict"
