"""The matrices in memory that contain tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, memref
from msgspec import Struct

from xegpu_py.dialects.xetile import InitTileOp
from xegpu_py.ir.builtin import bit_width, strides_of
from xegpu_py.passes.common.builders import Index, add, index, known, multiply, reinterpret_cast

_NEVER_NEGATIVE = ("gpu.", "memref.dim")
_KEEP_SIGN = ("arith.addi", "arith.muli", "arith.divui", "arith.remui", "arith.maxsi", "arith.index_cast")


def is_negative(number: Index) -> bool:
    """Whether a number may be negative, as far as is known."""
    if isinstance(number, int):
        return number < 0
    owner = number.owner
    if isinstance(owner, ir.Block):
        parent = owner.owner.operation
        if parent.name == "scf.for" and owner.arguments[0] == number and "unsignedCmp" not in parent.attributes:
            return is_negative(parent.operands[0])
        return True
    op = owner.operation
    if op.name == "arith.constant":
        return int(ir.IntegerAttr(op.attributes["value"]).value) < 0
    if op.name in _KEEP_SIGN:
        return any(is_negative(v) for v in op.operands)
    return not op.name.startswith(_NEVER_NEGATIVE)


class Matrix(Struct):
    """A matrix in memory.

    Attributes:
        source: the memref, or the address.
        extents: rows and columns.
        strides: elements from row to row and from column to column.
        lead: the offset of the matrix's first element from the source's first element, in elements.
        given: whether the op that makes the tile has shape and strides.
    """

    source: ir.Value
    extents: tuple[Index, Index]
    strides: tuple[Index, Index]
    lead: Index = 0
    given: bool = False

    @property
    def memref(self) -> ir.MemRefType | None:
        """The source's type, if it is a memref."""
        kind = self.source.type
        return ir.MemRefType(kind) if isinstance(kind, ir.MemRefType) else None

    def as_2d(self) -> ir.Value:
        """A memref of two dimensions that contains only this matrix."""
        return reinterpret_cast(self.source, self._start(), self.extents, self.strides)

    def address(self) -> ir.Value:
        """The address of the matrix's first element: the source if it is an address, otherwise i64."""
        wide = ir.IntegerType.get_signless(64)
        if self.memref is None:
            return self.source
        base = arith.index_cast(wide, memref.extract_aligned_pointer_as_index(self.source))
        start = self._start()
        if start == 0:
            return base
        size = arith.constant(wide, bit_width(str(self.memref.element_type)) // 8)
        return arith.addi(base, arith.muli(arith.index_cast(wide, index(start)), size))

    def _start(self) -> Index:
        """The offset of the matrix's first element from the beginning of the buffer, in elements."""
        assert self.memref is not None
        own = self.memref.get_strides_and_offset()[1] if strides_of(self.memref) is not None else _UNKNOWN
        if own == _UNKNOWN:
            own = memref.ExtractStridedMetadataOp(self.source).operation.results[1]
        return add(own, self.lead)


_DYNAMIC = ir.ShapedType.get_dynamic_size()
_UNKNOWN = ir.ShapedType.get_dynamic_stride_or_offset()


def matrix_of(view: InitTileOp, one: Callable[[ir.Value], ir.Value]) -> Matrix:
    """The matrix that contains a tile.

    Args:
        one: a function that returns the new value of an old one.
    """
    source = one(view.source)
    shape, strides, offsets = (
        [v if isinstance(v, int) else known(one(v)) for v in group]
        for group in (view.shape, view.strides, view.offsets)
    )
    if not isinstance(source.type, ir.MemRefType):
        return Matrix(source, _pair(shape), _pair(strides), 0, True)
    kind = ir.MemRefType(source.type)
    given = bool(shape)
    if not given:
        own = strides_of(kind) or []
        metadata: Any = memref.ExtractStridedMetadataOp(source).operation.results if _UNKNOWN in own else []
        shape = [memref.dim(source, index(i)) if n == _DYNAMIC else n for i, n in enumerate(kind.shape)]
        strides = [metadata[2 + kind.rank + i] if s == _UNKNOWN else s for i, s in enumerate(own)]
    lead: Index = 0
    for place, stride in zip(offsets[:-2], strides):
        lead = add(lead, multiply(place, stride))
    return Matrix(source, _pair(shape[-2:]), _pair(strides[-2:]), lead, given)


def _pair(numbers: Sequence[Index]) -> tuple[Index, Index]:
    row, column = numbers
    return row, column
