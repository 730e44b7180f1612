"""Tiles that are accessed element by element, or row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir.dialects import arith, vector
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import MemoryScope, TdescAttr, TensorDesc
from xegpu_py.dialects.xetile import Tile
from xegpu_py.passes.xetile.vectors import constant, cut, element_of, put, shape_of, vector_type, zero
from xegpu_py.passes.xetile_to_xegpu.forms import is_padded
from xegpu_py.passes.xetile_to_xegpu.matrices import Matrix, Number, add, multiply, value

from xegpu_py.ir.numbers import number_attribute, number_of

LANES = 16
"""Lanes of a gather."""

VC: dict[str, Any] = {"mode": "vc"}


def chunks(count: int) -> list[tuple[int, int]]:
    """(first element, lanes) of the messages that access `count` elements."""
    found, at = [], 0
    while at < count:
        lanes = min(LANES, 1 << (count - at).bit_length() - 1)
        found.append((at, lanes))
        at += lanes
    return found


def flat(given: ir.Value) -> ir.Value:
    """A vector in one dimension."""
    shape = shape_of(given)
    return given if len(shape) == 1 else vector.shape_cast(vector_type((math.prod(shape),), element_of(given)), given)


def joined(pieces: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """Lines one after the other, as a vector of this shape."""
    whole = pieces[0]
    element = element_of(pieces[0])
    if len(pieces) > 1:
        whole = zero(vector_type((math.prod(shape),), element))
        at = 0
        for piece in pieces:
            whole = put(piece, whole, [at])
            at += shape_of(piece)[0]
    return whole if len(shape) == 1 else vector.shape_cast(vector_type(shape, element), whole)


def dense(numbers: Sequence[int]) -> ir.Value:
    """A constant vector of indices."""
    kind = vector_type((len(numbers),), "index")
    if len(set(numbers)) == 1:
        return constant(kind, str(numbers[0]))
    return arith.constant(kind, ir.Attribute.parse(f"dense<[{', '.join(map(str, numbers))}]> : {kind}"))


def _splat(number: Number, lanes: int) -> ir.Value:
    kind = vector_type((lanes,), "index")
    return constant(kind, str(number)) if isinstance(number, int) else vector.broadcast(kind, number)


def _all(lanes: int) -> ir.Value:
    return constant(vector_type((lanes,), "i1"), "true")


def _descriptor(tile: Tile, lanes: int) -> TensorDesc:
    scope = MemoryScope.SLM if tile.attr.memory_space else MemoryScope.GLOBAL
    return TensorDesc((lanes,), tile.element, TdescAttr(memory_scope=scope, scattered=True))


def hints(view: Any) -> dict[str, Any]:
    """The cache hints of an op, as arguments of those that it becomes."""
    return {name: getattr(view, name) for name in ("l1_hint", "l2_hint", "l3_hint")}


def _padding(view: Any, kind: ir.Type) -> ir.Value | None:
    """The vector of what stands for elements that are not read; None if that is zero."""
    if not is_padded(view):
        return None
    return arith.constant(kind, number_attribute(kind, number_of(view.padding)))


@dataclass
class Elements:
    """A tile at a place in a matrix.

    Attributes:
        tile: its type.
        matrix: the matrix.
        place: row and column of its first element.
        in_bounds: whether it lies inside the matrix for sure.
    """

    tile: Tile
    matrix: Matrix
    place: tuple[Number, Number]
    in_bounds: bool

    def _messages(self, act: Callable[[ir.Value, ir.Value, int, int], None]) -> None:
        """Let `act` work on each (descriptor, mask, first element, lanes)."""
        columns = self.tile.shape[1]
        (row, column), (by_row, by_column) = self.place, self.matrix.strides
        start = add(add(multiply(row, by_row), multiply(column, by_column)), self.matrix.lead)
        for first, lanes in chunks(math.prod(self.tile.shape)):
            rows = [(first + i) // columns for i in range(lanes)]
            across = [(first + i) % columns for i in range(lanes)]
            offsets = _splat(start, lanes)
            if isinstance(by_row, int) and isinstance(by_column, int):
                offsets = arith.addi(offsets, dense([r * by_row + c * by_column for r, c in zip(rows, across)]))
            else:
                for numbers, stride in ((rows, by_row), (across, by_column)):
                    offsets = arith.addi(offsets, arith.muli(dense(numbers), _splat(stride, lanes)))
            desc = xegpu.create_tdesc(self.matrix.source, offsets, tdesc=_descriptor(self.tile, lanes).to_ir(), **VC)
            act(desc, self._inside(rows, across), first, lanes)

    def _inside(self, rows: Sequence[int], across: Sequence[int]) -> ir.Value:
        """Which elements lie inside the matrix."""
        lanes = len(rows)
        if self.in_bounds:
            return _all(lanes)
        found = None
        for numbers, place, extent in zip((rows, across), self.place, self.matrix.extents):
            at = arith.addi(dense(numbers), _splat(place, lanes))
            # Unsigned, so that what lies before the matrix is outside too.
            below = arith.cmpi(arith.CmpIPredicate.ult, at, _splat(extent, lanes))
            found = below if found is None else arith.andi(found, below)
        return found

    def load(self, view: Any) -> ir.Value:
        """Gather the tile."""
        pieces = []

        def act(desc: ir.Value, mask: ir.Value, first: int, lanes: int) -> None:
            kind = vector_type((lanes,), self.tile.element)
            found = xegpu.load_gather(desc, mask, value=kind, **VC, **hints(view))
            padding = None if self.in_bounds else _padding(view, kind)
            pieces.append(found if padding is None else arith.select(mask, found, padding))

        self._messages(act)
        return joined(pieces, self.tile.shape)

    def store(self, view: Any, given: ir.Value) -> None:
        """Scatter a vector to the tile."""
        line = flat(given)

        def act(desc: ir.Value, mask: ir.Value, first: int, lanes: int) -> None:
            xegpu.store_scatter(cut(line, [first], [lanes]), desc, mask, **VC, **hints(view))

        self._messages(act)

    def atomic(self, view: Any, given: ir.Value) -> ir.Value:
        """Update each element; what was there."""
        line = flat(given)
        pieces = []

        def act(desc: ir.Value, mask: ir.Value, first: int, lanes: int) -> None:
            pieces.append(xegpu.atomic_rmw(view.kind, cut(line, [first], [lanes]), desc, mask, **VC))

        self._messages(act)
        return joined(pieces, self.tile.shape)

    def pad(self, view: Any, loaded: ir.Value, before: bool) -> ir.Value:
        """A loaded block with `padding` where it lies outside of the matrix, and may begin `before` it."""
        padding = _padding(view, loaded.type)
        if padding is None:
            return loaded
        kind = vector_type(self.tile.shape, "i1")
        left = [arith.subi(value(extent), value(place)) for extent, place in zip(self.matrix.extents, self.place)]
        found = arith.select(vector.create_mask(kind, left), loaded, padding)
        for dim, place in enumerate(self.place) if before else ():
            bounds = [value(n) for n in self.tile.shape]
            bounds[dim] = arith.subi(value(0), value(place))
            found = arith.select(vector.create_mask(kind, bounds), padding, found)
        return found

    def _lines(self) -> list[ir.Value]:
        """A descriptor for each row of a tile in shared local memory."""
        assert self.matrix.memref is not None
        (row, column), (by_row, _) = self.place, self.matrix.strides
        line = self.matrix.as_line(math.prod(self.matrix.memref.shape))
        scope = TdescAttr(memory_scope=MemoryScope.SLM, boundary_check=False)
        kind = TensorDesc(self.tile.shape[1:], self.tile.element, scope).to_ir()
        start = add(multiply(row, by_row), column)
        return [
            xegpu.create_nd_tdesc(line, [add(start, multiply(r, by_row))], tdesc=kind, **VC)
            for r in range(self.tile.shape[0])
        ]

    def load_lines(self) -> ir.Value:
        """Load the tile row by row."""
        kind = vector_type(self.tile.shape[1:], self.tile.element)
        return joined([xegpu.load_nd(desc, value=kind, **VC) for desc in self._lines()], self.tile.shape)

    def store_lines(self, given: ir.Value) -> None:
        """Store the tile row by row."""
        for i, desc in enumerate(self._lines()):
            xegpu.store_nd(vector.extract(given, [], [i]), desc, **VC)

    @staticmethod
    def descriptor_types(tile: Tile) -> list[ir.Type]:
        """The types of the descriptors of a scattered tile."""
        return [_descriptor(tile, lanes).to_ir() for _, lanes in chunks(math.prod(tile.shape))]

    @staticmethod
    def descriptors(source: ir.Value, indices: ir.Value, tile: Tile) -> list[ir.Value]:
        """The descriptors of a scattered tile."""
        line = flat(indices)
        return [
            xegpu.create_tdesc(source, cut(line, [at], [lanes]), tdesc=_descriptor(tile, lanes).to_ir(), **VC)
            for at, lanes in chunks(math.prod(tile.shape))
        ]

    @staticmethod
    def moved(held: Sequence[ir.Value], indices: ir.Value, tile: Tile) -> list[ir.Value]:
        """The descriptors of a scattered tile, moved by an offset each."""
        line = flat(indices)
        return [
            xegpu.update_offset(desc, cut(line, [at], [lanes]), result=desc.type, **VC)
            for desc, (at, lanes) in zip(held, chunks(math.prod(tile.shape)), strict=True)
        ]

    @staticmethod
    def gather(held: Sequence[ir.Value], mask: ir.Value | None, view: Any, tile: Tile) -> ir.Value:
        """Load a scattered tile."""
        pieces = []
        line = None if mask is None else flat(mask)
        for desc, (at, lanes) in zip(held, chunks(math.prod(tile.shape)), strict=True):
            on = _all(lanes) if line is None else cut(line, [at], [lanes])
            kind = vector_type((lanes,), tile.element)
            found = xegpu.load_gather(desc, on, value=kind, **VC, **hints(view))
            padding = None if line is None else _padding(view, kind)
            pieces.append(found if padding is None else arith.select(on, found, padding))
        return joined(pieces, tile.shape)

    @staticmethod
    def scatter(held: Sequence[ir.Value], given: ir.Value, mask: ir.Value | None, view: Any, tile: Tile) -> None:
        """Store to a scattered tile."""
        line, on = flat(given), None if mask is None else flat(mask)
        for desc, (at, lanes) in zip(held, chunks(math.prod(tile.shape)), strict=True):
            enabled = _all(lanes) if on is None else cut(on, [at], [lanes])
            xegpu.store_scatter(cut(line, [at], [lanes]), desc, enabled, **VC, **hints(view))

    @staticmethod
    def update(held: Sequence[ir.Value], given: ir.Value, mask: ir.Value | None, view: Any, tile: Tile) -> ir.Value:
        """Update the elements of a scattered tile; what was there."""
        line, on = flat(given), None if mask is None else flat(mask)
        pieces = []
        for desc, (at, lanes) in zip(held, chunks(math.prod(tile.shape)), strict=True):
            enabled = _all(lanes) if on is None else cut(on, [at], [lanes])
            pieces.append(xegpu.atomic_rmw(view.kind, cut(line, [at], [lanes]), desc, enabled, **VC))
        return joined(pieces, tile.shape)
