"""The matrices in memory that tiles are parts of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mlir import ir
from mlir.dialects import arith, memref
from xegpu_py.dialects.xegpu.checks import strides_of
from xegpu_py.dialects.xetile import InitTileOp
from xegpu_py.passes.xetile.vectors import index

from xegpu_py.ir.builtin import bit_width

Number: TypeAlias = "int | ir.Value"
"""An index, known or not."""


def value(number: Number) -> ir.Value:
    """An index as an SSA value."""
    return index(number) if isinstance(number, int) else number


def add(a: Number, b: Number) -> Number:
    """A sum, folded where it is known."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if 0 in (a, b) and (isinstance(a, int) or isinstance(b, int)):
        return b if isinstance(a, int) else a
    return arith.addi(value(a), value(b))


def multiply(a: Number, b: Number) -> Number:
    """A product, folded where it is known."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int) and x in (0, 1):
            return y if x else 0
    return arith.muli(value(a), value(b))


def factor(number: Number) -> int:
    """A number that divides this one, as large as is known; 0 for zero."""
    if isinstance(number, int):
        return abs(number)
    owner = number.owner
    if isinstance(owner, ir.Block):
        parent = owner.owner
        if parent.operation.name == "scf.for" and owner.arguments[0] == number:
            lower, _, step = list(parent.operation.operands)[:3]
            return math.gcd(factor(lower), factor(step))
        return 1
    op = owner.operation
    if op.name == "arith.constant":
        return abs(int(ir.IntegerAttr(op.attributes["value"]).value))
    if op.name in ("arith.muli", "arith.addi", "arith.subi"):
        a, b = (factor(v) for v in op.operands)
        return a * b if op.name == "arith.muli" else math.gcd(a, b)
    return 1


_NEVER_NEGATIVE = ("gpu.", "memref.dim")
_KEEP_SIGN = ("arith.addi", "arith.muli", "arith.divui", "arith.remui", "arith.maxsi", "arith.index_cast")


def is_negative(number: Number) -> bool:
    """Whether a number may be below zero, as far as is known."""
    if isinstance(number, int):
        return number < 0
    owner = number.owner
    if isinstance(owner, ir.Block):
        parent = owner.owner.operation
        if parent.name == "scf.for" and owner.arguments[0] == number:
            return is_negative(parent.operands[0])
        return True
    op = owner.operation
    if op.name == "arith.constant":
        return int(ir.IntegerAttr(op.attributes["value"]).value) < 0
    if op.name in _KEEP_SIGN:
        return any(is_negative(v) for v in op.operands)
    return not op.name.startswith(_NEVER_NEGATIVE)


@dataclass
class Matrix:
    """A matrix in memory.

    Attributes:
        source: the memref, or the address.
        extents: rows and columns.
        strides: elements from row to row and from column to column.
        lead: elements from the source's first one to the matrix's.
        given: whether the tile's maker gave shape and strides.
    """

    source: ir.Value
    extents: tuple[Number, Number]
    strides: tuple[Number, Number]
    lead: Number = 0
    given: bool = False

    @property
    def memref(self) -> ir.MemRefType | None:
        """The source's type, if it is a memref."""
        kind = self.source.type
        return ir.MemRefType(kind) if isinstance(kind, ir.MemRefType) else None

    def as_2d(self) -> ir.Value:
        """A memref of two dimensions that is just this matrix."""
        return self._reinterpreted(self._start(), self.extents, self.strides)

    def as_line(self, length: Number) -> ir.Value:
        """A memref of one dimension from the matrix's first element on."""
        return self._reinterpreted(self._start(), (length,), (1,))

    def address(self) -> ir.Value:
        """Where the matrix's first element is: the source if it is an address, and else i64."""
        wide = ir.IntegerType.get_signless(64)
        if self.memref is None:
            return self.source
        base = arith.index_cast(wide, memref.extract_aligned_pointer_as_index(self.source))
        start = self._start()
        if start == 0:
            return base
        size = arith.constant(wide, bit_width(str(self.memref.element_type)) // 8)
        return arith.addi(base, arith.muli(arith.index_cast(wide, value(start)), size))

    def _start(self) -> Number:
        """The matrix's first element, in elements from the beginning of the buffer."""
        assert self.memref is not None
        own = self.memref.get_strides_and_offset()[1] if strides_of(self.memref) is not None else _UNKNOWN
        if own == _UNKNOWN:
            own = memref.ExtractStridedMetadataOp(self.source).operation.results[1]
        return add(own, self.lead)

    def _reinterpreted(self, start: Number, extents: Sequence[Number], strides: Sequence[Number]) -> ir.Value:
        assert self.memref is not None
        mixed: list[list[int]] = []
        dynamic: list[list[ir.Value]] = []
        for group, mark in (((start,), _UNKNOWN), (extents, _DYNAMIC), (strides, _UNKNOWN)):
            mixed.append([n if isinstance(n, int) else mark for n in group])
            dynamic.append([n for n in group if not isinstance(n, int)])
        layout = ir.StridedLayoutAttr.get(mixed[0][0], mixed[2])
        kind = ir.MemRefType.get(mixed[1], self.memref.element_type, layout, self.memref.memory_space)
        found: ir.Value = memref.reinterpret_cast(kind, self.source, *dynamic, *mixed)
        return found


@dataclass(frozen=True)
class Facts:
    """What is known of a matrix before anything is rebuilt; None where it is not.

    Attributes:
        extents: rows and columns.
        strides: elements from row to row and from column to column.
        start: what divides the place of the matrix's first element, in elements; 0 if that is the source's first.
    """

    extents: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    start: int | None


def facts_of(view: InitTileOp) -> Facts:
    """What is known of the matrix that a tile is made of."""

    def numbers(values: Sequence[Number]) -> list[int | None]:
        found = [known(v) for v in values]
        return [n if isinstance(n, int) else None for n in found]

    shape, strides = numbers(view.shape), numbers(view.strides)
    start: int | None = 0
    if isinstance(view.source.type, ir.MemRefType):
        kind = ir.MemRefType(view.source.type)
        own = strides_of(kind) or [_UNKNOWN] * kind.rank
        shape = shape or [None if n == _DYNAMIC else n for n in kind.shape]
        strides = strides or [None if n == _UNKNOWN else n for n in own]
        offset = kind.get_strides_and_offset()[1] if strides_of(kind) is not None else _UNKNOWN
        apart = [None if s is None else factor(o) * s for o, s in zip(view.offsets[:-2], strides)]
        parts = [None if offset == _UNKNOWN else offset, *apart]
        start = None if None in parts else math.gcd(*(n for n in parts if n is not None))
    return Facts(tuple(shape[-2:]), tuple(strides[-2:]), start)


_DYNAMIC = ir.ShapedType.get_dynamic_size()
_UNKNOWN = ir.ShapedType.get_dynamic_stride_or_offset()


def matrix_of(view: InitTileOp, one: Callable[[ir.Value], ir.Value]) -> Matrix:
    """The matrix that a tile is made of.

    Args:
        one: the new value of an old one.
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
    lead: Number = 0
    for place, stride in zip(offsets[:-2], strides):
        lead = add(lead, multiply(place, stride))
    return Matrix(source, _pair(shape[-2:]), _pair(strides[-2:]), lead, given)


def known(number: Number) -> Number:
    """A constant as a Python integer."""
    if not isinstance(number, int) and not isinstance(number.owner, ir.Block):
        op = number.owner.operation
        if op.name == "arith.constant":
            return int(ir.IntegerAttr(op.attributes["value"]).value)
    return number


def _pair(numbers: Sequence[Number]) -> tuple[Number, Number]:
    row, column = numbers
    return row, column
