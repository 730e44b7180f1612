"""The forms that tiles and loads become, determined before any op is rewritten."""

from __future__ import annotations

import math
from typing import Any

from mlir import ir
from msgspec import Struct, field

from xegpu_py.dialects.xegpu import MemoryScope, TdescAttr, TensorDesc
from xegpu_py.dialects.xegpu.shapes import vnni_factor
from xegpu_py.dialects.xegpu.types import LANES
from xegpu_py.dialects.xetile import (
    AtomicRmwOp,
    InitTileOp,
    LoadTileOp,
    Tile,
    TileMmaOp,
    TransposeOp,
    UpdateTileOffsetOp,
)
from xegpu_py.dialects.xetile.interfaces import TileAccess
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.numbers import number_of
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.messages import pieces
from xegpu_py.passes.xetile.matrices import is_negative
from xegpu_py.passes.xetile.vectors import value_classes

_TILE_LANES = 16
"""The lanes of a descriptor of a scattered tile; the descriptor is live as long as the tile."""


def scattered_lanes(count: int, most: int = _TILE_LANES) -> list[tuple[int, int]]:
    """(first element, lanes) of the scattered descriptors for `count` elements, each of at most `most` lanes."""
    return pieces(count, [n for n in LANES if n <= most])


def scattered_desc(tile: Tile, lanes: int) -> TensorDesc:
    """A descriptor of some elements of a tile."""
    scope = MemoryScope.SLM if tile.attr.memory_space else MemoryScope.GLOBAL
    return TensorDesc((lanes,), tile.element, TdescAttr(memory_scope=scope, scattered=True))


class TileForm(Struct):
    """The properties of a class of tiles.

    Attributes:
        tile: their type.
        roots: the ops that make them.
        users: the ops that load, store, prefetch or move them.
        atomics: the ops that update their elements atomically.
        padded: whether loads of them are padded.
    """

    tile: Tile
    roots: list[ir.Operation] = field(default_factory=list)
    users: list[ir.Operation] = field(default_factory=list)
    updates: list[ir.Operation] = field(default_factory=list)
    atomics: list[ir.Operation] = field(default_factory=list)
    padded: bool = False

    def types(self) -> list[ir.Type]:
        """The types of the values that replace a tile.

        A scattered tile becomes its descriptors. Any other tile becomes a descriptor and, if necessary, the row and
        column of its first element. Tiles of several matrices also have the extents and, for atomics, the address and
        strides.
        """
        if self.tile.scattered:
            lanes = scattered_lanes(math.prod(self.tile.shape))
            return [scattered_desc(self.tile, n).to_ir() for _, n in lanes]
        index = ir.IndexType.get()
        found = [self.desc().to_ir()] if self.is_block else []
        if self.has_place:
            found += [index] * 2
            if self.merged:
                found += [self.address] if self.atomics else []
                found += [index] * (4 if self.atomics else 2)
        return found

    def desc(self) -> TensorDesc:
        """The type of the descriptor."""
        scope = MemoryScope.SLM if self.tile.attr.memory_space else MemoryScope.GLOBAL
        inside = scope == MemoryScope.SLM and self.in_bounds
        return TensorDesc(self.memory_block, self.tile.element, TdescAttr(scope, boundary_check=not inside))

    @property
    def is_block(self) -> bool:
        """Whether the tile has a descriptor of a block."""
        return bool(self.users) or not self.atomics

    @property
    def has_place(self) -> bool:
        """Whether the row and column are needed in addition to a descriptor."""
        return bool(self.atomics) or (self.padded and not self.in_bounds)

    @property
    def in_bounds(self) -> bool:
        """Whether `in_bounds` promises that the tiles are inside their matrix."""
        return all(r.opview.in_bounds for r in self.roots)

    @property
    def address(self) -> ir.Type:
        """The type of the address of each of several matrices."""
        types = {r.operands[0].type for r in self.roots}
        wide = ir.IntegerType.get_signless(64)
        if len(types) == 1 and not isinstance(next(iter(types)), ir.MemRefType):
            return next(iter(types))
        for root in self.roots:
            if not (root.operands[0].type == wide or isinstance(root.operands[0].type, ir.MemRefType)):
                emit_error(
                    root,
                    f"makes a tile of an address of type {root.operands[0].type}, which control flow makes one with "
                    "tiles of other sources",
                    "use addresses of type i64 in control flow that also passes memrefs",
                )
        return wide

    @property
    def merged(self) -> bool:
        """Whether control flow joins tiles of several ops."""
        return len(self.roots) > 1

    @property
    def before(self) -> bool:
        """Whether tiles may begin before the first row or column of their matrix."""
        offsets = [n for r in self.roots for n in r.opview.offsets[-2:]]
        return any(is_negative(n) for n in (*offsets, *(n for u in self.updates for n in u.opview.offsets)))

    @property
    def memory_block(self) -> tuple[int, int]:
        """Rows and columns of the block in memory."""
        rows, columns = self.tile.shape
        return (columns, rows) if self.tile.column_major else (rows, columns)


class LoadForm(Struct, frozen=True):
    """The form of a load of a block.

    Attributes:
        vnni: whether the result is in VNNI layout, because it is only used as the second operand of products.
        transposed: whether the block is loaded transposed, because the result is only transposed.
    """

    vnni: bool = False
    transposed: bool = False


class Forms:
    """The forms of a kernel's tiles and loads."""

    def __init__(self, func: ir.Operation) -> None:
        ops = walk(func)
        self._classes = value_classes(ops)
        self._tiles: dict[ir.Value, TileForm] = {}
        for op in ops:
            self._note(op)
        for form in self._tiles.values():
            if not form.roots:
                emit_error(
                    (form.users + form.atomics + form.updates or [func])[0],
                    "uses a tile that is created outside of the kernel",
                    "create the tile in the kernel, and move it with xetile.update_tile_offset",
                )

    def tile(self, value: ir.Value) -> TileForm:
        """The form of a tile."""
        root = self._classes.find(value)
        if root not in self._tiles:
            self._tiles[root] = TileForm(Tile.of(value))
        return self._tiles[root]

    def _note(self, op: ir.Operation) -> None:
        view: Any = op.opview
        if isinstance(view, InitTileOp):
            self.tile(view.tile).roots.append(op)
        elif isinstance(view, UpdateTileOffsetOp):
            self.tile(view.tile).updates.append(op)
        elif isinstance(view, AtomicRmwOp):
            self.tile(view.tile).atomics.append(op)
        elif isinstance(view, TileAccess):
            form = self.tile(view.tile)
            form.users.append(op)
            form.padded |= isinstance(view, LoadTileOp) and is_padded(view)

    def load(self, op: ir.Operation) -> LoadForm:
        """The form of a load, determined by the uses of its result."""
        form = self.tile(op.operands[0])
        if is_padded(op.opview) and not form.in_bounds:
            return LoadForm()
        (rows, columns), pack = form.tile.shape, vnni_factor(form.tile.bits)
        users = [u.owner.operation for u in op.results[0].uses]
        views = [o.opview for o in users]
        transposed = bool(users) and all(isinstance(v, TransposeOp) and v.permutation == (1, 0) for v in views)
        depth = columns if transposed else rows
        products = map(_feeds_products, [o.results[0] for o in users] if transposed else [op.results[0]])
        return LoadForm(pack > 1 and depth % pack == 0 and all(products), transposed)


def is_padded(view: Any) -> bool:
    """Whether a load pads out-of-bounds elements with a number other than zero, which messages return."""
    if view.padding is None:
        return False
    number = number_of(view.padding)
    return number != 0 or math.copysign(1, number) < 0


def _feeds_products(value: ir.Value) -> bool:
    """Whether a value is only used as the second operand of products."""
    uses = list(value.uses)
    return bool(uses) and all(isinstance(u.owner.opview, TileMmaOp) and u.operand_number == 1 for u in uses)
