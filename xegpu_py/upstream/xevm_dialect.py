"""MLIR's dialect XeVM: its ops and attributes, with the syntax of LLVM's main branch, which 22.1.8's is part of."""

from __future__ import annotations

import itertools
import re
import types
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

from xegpu_py.ir.builtin import OneOf, TypeConstraint
from xegpu_py.ir.codecs import AttributeCodec, Cursor, ParserScope
from xegpu_py.ir.definition import Attr, Attribute, Dialect, Interface, Operand, Result, default, enum_attr
from xegpu_py.ir.operation import Operation

# The dialect as XeVMOps.td of LLVM's main branch defines it. In the IR it has another name, since the bindings register
# 22.1.8's `xevm`, which has no ops of scaled products and conversions; that one keeps the attribute `#xevm.target`.

NAME = "upstream_xevm"
"""The dialect's name in the IR. No text spells it."""


class UpstreamXeVM(Dialect, name=NAME, namespace="xevm"):
    """MLIR's XeVM: messages of blocks and products of the lanes of a subgroup, among ops of `llvm`."""

    others = ("target",)
    any_attributes = True


DIALECT = UpstreamXeVM

PREFIX = NAME + "."


def _cases(name: str, summary: str, cases: str) -> type[Enum]:
    """An enum of the dialect. Its cases are words."""
    made = Enum(name, {case.upper(): case for case in cases.split()}, type=str)  # type: ignore[misc]
    made.__doc__ = summary
    return enum_attr(UpstreamXeVM, name)(made)


def _levels(first: str, others: str) -> str:
    """The cache hints of L1 (one of `first`), and of L2 and L3 (one of `others`)."""
    found = itertools.product(first.split(), others.split(), others.split())
    return " ".join(f"L1{a}_L2{b}_L3{c}" for a, b, c in found)


_DEFAULT = " Use_Default"

LoadCacheControl: Any = _cases(
    "load_cache_control", "What caches do with loads.", _levels("uc c s", "uc c") + " ir" + _DEFAULT
)

StoreCacheControl: Any = _cases(
    "store_cache_control", "What caches do with stores.", _levels("uc wt s wb", "uc wb") + _DEFAULT
)

MemScope: Any = _cases(
    "mem_scope", "Who sees what was written before a fence.", "lane subgroup workgroup cluster device system"
)

AddrSpace: Any = _cases("addr_space", "The memory that a fence orders.", "private global constant shared generic")

ElemType: Any = _cases(
    "elem_type",
    "The format of elements, which types of registers do not tell.",
    "bf16 f16 s8 u8 s4 u4 tf32 f32 s32 e2m1 bf8 f8",
)

Dimension: Any = _cases("dimension", "A dimension of the grid or of a workgroup.", "x y z")


@dataclass(frozen=True)
class MMAShape(Attr, dialect=UpstreamXeVM, name="mma_shape"):
    """The sizes of a product: A is MxK, B is KxN, C and D are MxN."""

    m: int
    n: int
    k: int


@dataclass(frozen=True)
class MMATypes(Attr, dialect=UpstreamXeVM, name="mma_types"):
    """The formats of a product's matrices."""

    d: ElemType
    a: ElemType
    b: ElemType
    c: ElemType = ElemType.F32


class Pointer(TypeConstraint):
    """A pointer of LLVM's."""

    summary = "LLVM pointer"
    _pattern = r"!llvm\.ptr(?:<\d+>)?"


class I32(OneOf):
    """A 32-bit integer."""

    summary = "32-bit integer"
    names = ("i32",)


class IdType(OneOf):
    """An integer that holds an id."""

    summary = "i32 or i64"
    names = ("i32", "i64")


class LaneElements(TypeConstraint):
    """Elements that one lane holds: a number or a vector of one dimension."""

    summary = "number or vector of one dimension"
    _pattern = r"(?:vector<\d+x)?(?:[su]?i\d+|b?f\d+\w*|tf32)>?"


class Range(AttributeCodec):
    """The range of an id, `<i32, 0, 16>`, as its text."""

    summary = "a range, such as <i32, 0, 16>"

    def read(self, cursor: Cursor, scope: ParserScope) -> str:
        if not cursor.at("<"):
            return scope.read_attribute(cursor)
        m = cursor.match(_RANGE)
        if m is None:
            raise cursor.expected(self.summary)
        return "#llvm.constant_range" + m[0]


_RANGE = re.compile(r"<\s*i\d+\s*,\s*-?\d+\s*,\s*-?\d+\s*>")


class InSurface(Interface):
    """Accesses a block of a surface: address, bytes of a row, rows, bytes between rows, and the block's place."""

    ptr: Operand[Pointer]
    base_width: Operand[I32]
    base_height: Operand[I32]
    base_pitch: Operand[I32]
    x: Operand[I32]
    y: Operand[I32]


class Sized(Interface):
    """Accesses a block of this size, in elements."""

    elem_size_in_bits: Attribute[int]
    tile_width: Attribute[int]
    tile_height: Attribute[int]


_PLACE = ("ptr", "base_width", "base_height", "base_pitch", "x", "y")

_OPERANDS = " `,` ".join(f"${name}" for name in _PLACE)

_TYPES = " `,` ".join(f"type(${name})" for name in _PLACE)


class BlockLoadOp(Operation, dialect=UpstreamXeVM, name="blockload"):
    """Loads consecutive elements; a lane has every sixteenth one."""

    ptr: Operand[Pointer]
    res: Result[LaneElements]
    cache_control: Attribute[LoadCacheControl] | None = None

    effects = frozenset(["read"])
    assembly_format = "$ptr prop-dict attr-dict `:` `(` type($ptr) `)` `->` type($res)"


class BlockStoreOp(Operation, dialect=UpstreamXeVM, name="blockstore"):
    """Stores consecutive elements; a lane has every sixteenth one."""

    ptr: Operand[Pointer]
    val: Operand[LaneElements]
    cache_control: Attribute[StoreCacheControl] | None = None

    effects = frozenset(["write"])
    assembly_format = "$ptr `,` $val prop-dict attr-dict `:` `(` type($ptr) `,` type($val) `)`"


class BlockLoad2dOp(Operation, dialect=UpstreamXeVM, name="blockload2d", interfaces=(InSurface, Sized)):
    """Loads a block; elements out of bounds are zero."""

    res: Result[LaneElements]
    v_blocks: Attribute[int]
    transpose: Attribute[bool]
    pack_register: Attribute[bool]
    cache_control: Attribute[LoadCacheControl] | None = None

    effects = frozenset(["read"])
    assembly_format = f"{_OPERANDS} prop-dict attr-dict `:` `(` {_TYPES} `)` `->` type($res)"

    def verify_op(self) -> None:
        if self.transpose and self.pack_register:
            self.fail("transpose and pack_register exclude each other")


class BlockStore2dOp(Operation, dialect=UpstreamXeVM, name="blockstore2d", interfaces=(Sized,)):
    """Stores a block; elements out of bounds are not stored."""

    ptr: Operand[Pointer]
    base_width: Operand[I32]
    base_height: Operand[I32]
    base_pitch: Operand[I32]
    x: Operand[I32]
    y: Operand[I32]
    stored_val: Operand[LaneElements]
    cache_control: Attribute[StoreCacheControl] | None = None

    effects = frozenset(["write"])
    assembly_format = f"{_OPERANDS} `,` $stored_val prop-dict attr-dict `:` `(` {_TYPES} `,` type($stored_val) `)`"


class BlockPrefetch2dOp(Operation, dialect=UpstreamXeVM, name="blockprefetch2d", interfaces=(InSurface, Sized)):
    """Brings a block into the caches."""

    v_blocks: Attribute[int]
    cache_control: Attribute[LoadCacheControl] | None = None

    effects = frozenset(["read", "write"])
    assembly_format = f"{_OPERANDS} prop-dict attr-dict `:` `(` {_TYPES} `)`"


class MemfenceOp(Operation, dialect=UpstreamXeVM, name="memfence"):
    """Makes a work item's writes visible to the others in a scope."""

    scope: Attribute[MemScope]
    addrspace: Attribute[AddrSpace] = default(AddrSpace.GENERIC)

    effects = frozenset(["sync"])
    assembly_format = "prop-dict attr-dict"


class PrefetchOp(Operation, dialect=UpstreamXeVM, name="prefetch"):
    """Brings what is at a lane's address into the caches."""

    ptr: Operand[Pointer]
    cache_control: Attribute[LoadCacheControl] | None = None

    effects = frozenset(["read", "write"])
    assembly_format = "$ptr prop-dict attr-dict `:` `(` type($ptr) `)`"


_OF_PRODUCT = "`{` `shape` `=` $shape `,` `types` `=` $types `}` attr-dict"


class MMAOp(Operation, dialect=UpstreamXeVM, name="mma"):
    """A product of matrices that the lanes of a subgroup hold: d = a x b + c."""

    a: Operand[LaneElements]
    b: Operand[LaneElements]
    c: Operand[LaneElements] | None
    d: Result[LaneElements]
    shape: Attribute[MMAShape]
    types: Attribute[MMATypes]

    effects = frozenset()
    assembly_format = (
        f"$a `,` $b (`,` $c^)? {_OF_PRODUCT} `:` `(` type($a) `,` type($b) (`,` type($c)^)? `)` `->` type($d)"
    )


class MMAMxOp(Operation, dialect=UpstreamXeVM, name="mma_mx"):
    """A product of block-scaled matrices; a lane has the scales of a row of `a` and of a column of `b`."""

    a: Operand[LaneElements]
    b: Operand[LaneElements]
    scale_a: Operand[LaneElements]
    scale_b: Operand[LaneElements]
    c: Operand[LaneElements] | None
    d: Result[LaneElements]
    shape: Attribute[MMAShape]
    types: Attribute[MMATypes]

    effects = frozenset()
    assembly_format = (
        f"$a `,` $b `,` $scale_a `,` $scale_b (`,` $c^)? {_OF_PRODUCT} `:` "
        "`(` type($a) `,` type($b) `,` type($scale_a) `,` type($scale_b) (`,` type($c)^)? `)` `->` type($d)"
    )


class FormatConversion(Interface):
    """Converts the elements of a lane between formats. Those of 4 bits are packed, two in a byte."""

    arg: Operand[LaneElements]
    res: Result[LaneElements]
    src_etype: Attribute[ElemType]
    dst_etype: Attribute[ElemType]


_CONVERSION, _OLDER_CONVERSION = (
    f"$arg `{{` {formats} `}}` attr-dict `:` `(` type($arg) `)` `->` type($res)"
    for formats in (
        "`src_etype` `=` $src_etype `,` `dst_etype` `=` $dst_etype",
        "`types` `=` `<` `src_type` `=` $src_etype `,` `dst_type` `=` $dst_etype `>`",
    )
)


class TruncfOp(Operation, dialect=UpstreamXeVM, name="truncf", interfaces=(FormatConversion,)):
    """Rounds f16 or bf16 to a format of 8 or 4 bits."""

    effects = frozenset()
    assembly_format = _CONVERSION
    also_reads = (_OLDER_CONVERSION,)


class ExtfOp(Operation, dialect=UpstreamXeVM, name="extf", interfaces=(FormatConversion,)):
    """Widens a format of 8 or 4 bits to f16 or bf16."""

    effects = frozenset()
    assembly_format = _CONVERSION
    also_reads = (_OLDER_CONVERSION,)


class BitcastShuffleOp(Operation, dialect=UpstreamXeVM, name="bitcast_shuffle"):
    """Reads the bits of all lanes, the first component of all lanes, then the next, as components of another width."""

    src: Operand[LaneElements]
    res: Result[LaneElements]

    effects = frozenset()
    assembly_format = "$src attr-dict `:` `(` type($src) `)` `->` type($res)"


class Id(Interface):
    """An id or an extent of the launch."""

    res: Result[IdType]
    range: Attribute[Annotated[str, Range()]] | None = None


def _id(name: str, fields: dict[str, type], syntax: str) -> None:
    """Define the op of an id or of an extent."""
    body: dict[str, Any] = {
        "__doc__": Id.__doc__,
        "__annotations__": fields,
        "effects": frozenset(),
        "assembly_format": syntax,
    }
    types.new_class(
        "IdOp",
        (Operation,),
        {"dialect": UpstreamXeVM, "name": name, "interfaces": (Id,)},
        lambda namespace: namespace.update(body),
    )


_REST = "(`range` $range^)? attr-dict `:` type($res)"

for _name in ("local_id", "local_size", "group_id", "group_count"):
    # Of dimension x, y or z, which the op's name ends with: names of IRDL's ops have no dots.
    _id(_name, {"dimension": Attribute[Dimension]}, "`` `.` `` $dimension " + _REST)

for _name in ("lane_id", "subgroup_id", "subgroup_size"):
    _id(_name, {}, _REST)
