"""What tiles and loads become, found before anything is rebuilt."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mlir import ir
from xegpu_py.dialects.xetile import Tile
from xegpu_py.passes.xetile.classes import Classes, value_classes
from xegpu_py.passes.xetile.expansion import fail
from xegpu_py.passes.xetile_to_xegpu.matrices import facts_of, is_negative

from xegpu_py.ir.numbers import number_of
from xegpu_py.ir.verifier import walk
from xegpu_py.target import Target

PACKED_BITS = 32
"""Bits into which the VNNI layout packs elements, and that transposing loads take for one."""


class Way(Enum):
    """How a tile is read and written."""

    BLOCK = "by 2D block messages"
    LINES = "row by row"
    ELEMENTS = "element by element"
    SCATTERED = "at an address for each element"


@dataclass
class TileForm:
    """What is known of the tiles of a class.

    Attributes:
        tile: their type.
        roots: the ops that make them.
        loads, stores, atomics, updates: the ops that use them.
        way: how they are accessed; None as long as that is not decided.
        needs_place: whether their row and column must be known besides a descriptor.
        array: blocks that a load brings.
    """

    tile: Tile
    roots: list[ir.Operation] = field(default_factory=list)
    loads: list[ir.Operation] = field(default_factory=list)
    stores: list[ir.Operation] = field(default_factory=list)
    atomics: list[ir.Operation] = field(default_factory=list)
    updates: list[ir.Operation] = field(default_factory=list)
    way: Way | None = None
    needs_place: bool = False
    array: int = 1

    @property
    def in_bounds(self) -> bool:
        """Whether the tiles are promised to lie inside their matrix."""
        return all(r.opview.in_bounds for r in self.roots)

    @property
    def address(self) -> ir.Type:
        """The type of the address that stands for where each of several matrices is."""
        types = {r.operands[0].type for r in self.roots}
        wide = ir.IntegerType.get_signless(64)
        if len(types) == 1 and not isinstance(next(iter(types)), ir.MemRefType):
            return next(iter(types))
        for root in self.roots:
            if not (root.operands[0].type == wide or isinstance(root.operands[0].type, ir.MemRefType)):
                fail(
                    root,
                    f"makes a tile of an address of type {root.operands[0].type}, which control flow makes one with "
                    "tiles of other sources",
                    "addresses of type i64 go with memrefs",
                )
        return wide

    @property
    def merged(self) -> bool:
        """Whether control flow makes tiles of several ops one."""
        return len(self.roots) > 1

    @property
    def before(self) -> bool:
        """Whether the tiles may begin before their matrix's first row or column."""
        offsets = [n for r in self.roots for n in r.opview.offsets[-2:]]
        return any(is_negative(n) for n in (*offsets, *(n for u in self.updates for n in u.opview.offsets)))

    def known(self) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
        """The extents and strides that the matrices of all tiles are known to have in common."""
        facts = [facts_of(r.opview) for r in self.roots]
        extents, strides = (
            tuple(of[0] if len(set(of)) == 1 else None for of in zip(*listed))
            for listed in ([f.extents for f in facts], [f.strides for f in facts])
        )
        return extents, strides

    @property
    def memory_block(self) -> tuple[int, int]:
        """Rows and columns of the block as it lies in memory."""
        rows, columns = self.tile.shape
        return (columns, rows) if self.tile.column_major else (rows, columns)


@dataclass(frozen=True)
class LoadForm:
    """What a load of a block becomes.

    Attributes:
        array: blocks side by side, each of which slices take by itself; 1 if it is used as a whole.
        packed: whether it is in VNNI layout, as the second operand of products alone needs it.
        turned: whether all that is done with it is to transpose it, so that it is loaded transposed.
    """

    array: int = 1
    packed: bool = False
    turned: bool = False


class Forms:
    """The forms of a kernel's tiles and loads."""

    def __init__(self, func: ir.Operation, target: Target) -> None:
        self.target = target
        ops = walk(func)
        self._classes: Classes[ir.Value] = value_classes(ops)
        self._tiles: dict[ir.Value, TileForm] = {}
        for op in ops:
            self._note(op)
        for form in self._tiles.values():
            form.array = min((self.load(op).array for op in form.loads), default=1)
            if form.stores or len({self.load(op).array for op in form.loads}) > 1:
                form.array = 1
            form.needs_place = any(is_padded(op.opview) for op in form.loads) and not form.in_bounds

    def tiles(self) -> list[TileForm]:
        """The forms of all tiles."""
        return list(self._tiles.values())

    def tile(self, value: ir.Value) -> TileForm:
        """The form of a tile."""
        root = self._classes.find(value)
        if root not in self._tiles:
            self._tiles[root] = TileForm(Tile.of(value))
        return self._tiles[root]

    def _note(self, op: ir.Operation) -> None:
        name = op.name.removeprefix("xetile.")
        if name == "init_tile":
            self.tile(op.results[0]).roots.append(op)
        elif name in ("load_tile", "load"):
            self.tile(op.operands[0]).loads.append(op)
        elif name in ("store_tile", "store"):
            self.tile(op.operands[1]).stores.append(op)
        elif name == "atomic_rmw":
            self.tile(op.operands[1]).atomics.append(op)
        elif name == "update_tile_offset":
            self.tile(op.operands[0]).updates.append(op)

    def load(self, op: ir.Operation) -> LoadForm:
        """The form of a load, as it is used."""
        if op.name != "xetile.load_tile" or (is_padded(op.opview) and not self.tile(op.operands[0]).in_bounds):
            return LoadForm()
        value, tile = op.results[0], Tile.of(op.operands[0])
        users = [u.owner.operation for u in value.uses]
        if users and all(_is_transpose(o) for o in users):
            packed = tile.bits < PACKED_BITS and all(_feeds_products(o.results[0]) for o in users)
            return LoadForm(turned=True, packed=packed and not tile.column_major)
        slices = bool(users) and all(o.name == "vector.extract_strided_slice" for o in users)
        if not slices:
            packed = tile.bits < PACKED_BITS and _feeds_products(value)
            return LoadForm(packed=packed)
        if tile.column_major:
            return LoadForm()
        array = self._array(tile, [(_list(o, "offsets"), _list(o, "sizes")) for o in users])
        pack = PACKED_BITS // tile.bits if tile.bits < PACKED_BITS else 1
        rows = [n for o in users for n in (_list(o, "offsets")[0], _list(o, "sizes")[0])]
        packed = pack > 1 and all(n % pack == 0 for n in rows) and all(_feeds_products(o.results[0]) for o in users)
        return LoadForm(array, packed)

    def _array(self, tile: Tile, slices: list[tuple[list[int], list[int]]]) -> int:
        widths = {sizes[1] for _, sizes in slices}
        limits = self.target.block2d
        if len(widths) != 1 or not limits:
            return 1
        (width,) = widths
        count = tile.shape[1] // width
        fits = tile.shape[1] % width == 0 and all(at[1] % width == 0 for at, _ in slices)
        return count if fits and count in limits.counts[tile.bits] else 1


def is_padded(view: Any) -> bool:
    """Whether what a load finds outside of the matrix is something else than zero, which messages give."""
    if view.padding is None:
        return False
    number = number_of(view.padding)
    return number != 0 or math.copysign(1, number) < 0


def _is_transpose(op: ir.Operation) -> bool:
    return bool(op.name == "xetile.transpose" and op.opview.permutation == (1, 0))


def _feeds_products(value: ir.Value) -> bool:
    """Whether a value is the second operand of products, and nothing else."""
    uses = list(value.uses)
    return bool(uses) and all(u.owner.operation.name == "xetile.tile_mma" and u.operand_number == 1 for u in uses)


def _list(op: ir.Operation, name: str) -> list[int]:
    return [ir.IntegerAttr(a).value for a in ir.ArrayAttr(op.attributes[name])]
