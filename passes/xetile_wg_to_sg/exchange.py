"""Exchange of parts of values between subgroups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import arith, gpu, memref

from xegpu_py.dialects.xetile import InitTileOp, LoadTileOp, StoreTileOp, Tile, TileAttr
from xegpu_py.dialects.xetile.types import SHARED
from xegpu_py.layout import WgTiles
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import Index, make
from xegpu_py.passes.common.control_flow import STRUCTURED
from xegpu_py.passes.common.values import bits_of, element_of


def _in_memory(element: ir.Type) -> ir.Type:
    """The element type that represents this one in memory; memory has no i1 and no index."""
    if isinstance(element, ir.IndexType):
        return build.integer_type(64)
    return build.integer_type(8) if element == build.integer_type(1) else element


Copy = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""A copy: the number of the source part, the offsets in it, the offsets in the destination, and the shape."""


def copies(have: WgTiles, want: WgTiles) -> list[list[Copy]] | None:
    """For each wanted part, the copies from parts that the same subgroup has; None if a subgroup lacks elements."""
    found: list[list[Copy]] | None = None
    for subgroup in range(want.subgroups):
        parts = have.starts(subgroup)
        needed = []
        for start in want.starts(subgroup):
            listed = _covering(parts, have.data, start, want.data)
            if listed is None:
                return None
            needed.append(listed)
        if found is not None and needed != found:
            return None
        found = needed
    return found


def _covering(
    parts: Sequence[tuple[int, ...]], part: tuple[int, ...], start: tuple[int, ...], size: tuple[int, ...]
) -> list[Copy] | None:
    listed: list[Copy] = []
    covered = 0
    for i, at in enumerate(parts):
        low = tuple(max(a, b) for a, b in zip(at, start))
        high = tuple(min(a + n, b + m) for a, n, b, m in zip(at, part, start, size))
        if all(x < y for x, y in zip(low, high)):
            extent = tuple(y - x for x, y in zip(low, high))
            listed.append((i, _minus(low, at), _minus(low, start), extent))
            covered += math.prod(extent)
    return listed if covered == math.prod(size) else None


def _minus(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x - y for x, y in zip(a, b))


class Subgroup:
    """The executing subgroup, and the positions of its parts.

    Attributes:
        id: its number in the workgroup.
        slm_bytes: bytes of shared local memory allocated so far.
    """

    def __init__(self) -> None:
        self.id: ir.Value = gpu.subgroup_id()
        # Values computed from the id are inserted before this op, so that loops do not compute them again.
        self._anchor = build.index(0).owner.operation
        self._places: dict[tuple[int, int], ir.Value] = {}
        self.slm_bytes = 0

    def _place(self, own: WgTiles, dim: int) -> Index:
        """The index of the first part that the subgroup owns along a dimension."""
        stride, owners = own.strides[dim], own.owners[dim]
        if owners == 1:
            return 0
        # The outermost dimension needs no remainder, since ids do not exceed it.
        wrap = 0 if stride * owners == own.subgroups else owners
        key = (stride, wrap)
        if key not in self._places:
            with ir.InsertionPoint(self._anchor):
                found = self.id if stride == 1 else arith.divui(self.id, build.index(stride))
                self._places[key] = arith.remui(found, build.index(wrap)) if wrap else found
        return self._places[key]

    def starts(self, own: WgTiles) -> list[tuple[Index, ...]]:
        """The first positions of the subgroup's parts, in the order of `WgTiles.starts`."""
        found: list[tuple[Index, ...]] = [()]
        for dim, (grid, data, rounds) in enumerate(zip(own.grid, own.data, own.rounds)):
            with ir.InsertionPoint(self._anchor):
                first = build.multiply(self._place(own, dim), data)
                along = [build.add(first, r * grid * data) for r in range(rounds)]
            found = [(*f, a) for f in found for a in along]
        return found

    def is_first(self, own: WgTiles) -> ir.Value | None:
        """Whether this is the first of the subgroups that own the same parts; None if no parts are shared."""
        found: ir.Value | None = None
        for grid, owners, stride in zip(own.grid, own.owners, own.strides):
            if owners == grid:
                continue
            with ir.InsertionPoint(self._anchor):
                place = self.id if stride == 1 else arith.divui(self.id, build.index(stride))
                place = arith.remui(place, build.index(grid))
                here = arith.cmpi(arith.CmpIPredicate.ult, place, build.index(owners))
                found = here if found is None else arith.andi(found, here)
        return found

    def exchange(self, parts: Sequence[ir.Value], have: WgTiles, want: WgTiles, user: ir.Operation) -> list[ir.Value]:
        """The subgroup's parts of a value under another distribution."""
        listed = copies(have, want)
        if listed is None:
            return self.shared(lambda: parts, element_of(parts[0]), have, want, user)
        found = []
        for needed in listed:
            if len(needed) == 1:
                i, source, _, size = needed[0]
                found.append(build.extract_slice(parts[i], source, size))
                continue
            made = build.zero(build.with_shape(parts[0].type, want.data))
            for i, source, to, size in needed:
                made = build.insert_slice(build.extract_slice(parts[i], source, size), made, to)
            found.append(made)
        return found

    def reshape(self, parts: Sequence[ir.Value], have: WgTiles, want: WgTiles, user: ir.Operation) -> list[ir.Value]:
        """The subgroup's parts of a value that is cast to another shape."""
        if _same_elements(have, want):
            return [build.shape_cast(p, want.data) for p in parts]
        return self.shared(lambda: parts, element_of(parts[0]), have, want, user)

    def shared(
        self,
        make: Callable[[], Sequence[ir.Value]],
        held: ir.Type,
        have: WgTiles,
        want: WgTiles,
        user: ir.Operation,
    ) -> list[ir.Value]:
        """Exchange parts through shared local memory.

        Args:
            make: gives the parts; only the first of the subgroups that own the same ones executes it, and writes them.
            held: their element type.
        """
        if 1 in (len(have.shape), len(want.shape)):
            # A vector of one dimension is stored as a matrix of one row.
            rows, wanted = _as_row(have), _as_row(want)
            found = self.shared(lambda: [build.shape_cast(p, rows.data) for p in make()], held, rows, wanted, user)
            return [build.shape_cast(f, want.data) for f in found]
        element = _in_memory(held)
        kind = ir.MemRefType.get(have.shape, element, memory_space=ir.Attribute.parse("3"))
        buffer = memref.alloc(kind, [], [])
        self.slm_bytes += math.prod(have.shape) * max(bits_of(element) // 8, 1)
        mine = self.starts(have)

        def write() -> list[ir.Value]:
            for part, start in zip(make(), mine):
                StoreTileOp(_as(part, element), self._tile(buffer, start, have.data, element))
            return []

        first = self.is_first(have)
        if first is None:
            write()
        else:
            build.if_(first, [], write)
        gpu.barrier()
        found = []
        if want.shape != have.shape:
            buffer = build.reinterpret_cast(buffer, 0, want.shape, [want.shape[1], 1])
        for start in self.starts(want):
            tile = self._tile(buffer, start, want.data, element)
            loaded = LoadTileOp(tile, value=build.vector_type(want.data, element)).value
            found.append(_as(loaded, held))
        if in_loop(user):
            gpu.barrier()
        return found

    @staticmethod
    def _tile(buffer: ir.Value, start: Sequence[Index], shape: Sequence[int], element: ir.Type) -> ir.Value:
        tile = Tile(tuple(shape), str(element), TileAttr(memory_space=SHARED))
        made: ir.Value = InitTileOp(buffer, list(start), tile=tile.to_ir(), in_bounds=True).tile
        return made


def _same_elements(have: WgTiles, want: WgTiles) -> bool:
    """Whether the parts of each subgroup hold the same elements in the same order in two shapes."""
    numbers = [np.arange(math.prod(own.shape)).reshape(own.shape) for own in (have, want)]

    def elements(own: WgTiles, numbers: Any, subgroup: int) -> list[list[int]]:
        parts = (tuple(slice(a, a + n) for a, n in zip(start, own.data)) for start in own.starts(subgroup))
        return [numbers[part].ravel().tolist() for part in parts]

    return all(elements(have, numbers[0], i) == elements(want, numbers[1], i) for i in range(have.subgroups))


def _as_row(own: WgTiles) -> WgTiles:
    if len(own.shape) == 2:
        return own
    return WgTiles((1, *own.shape), (1, *own.grid), (1, *own.data), (own.subgroups, *own.strides))


def in_loop(op: ir.Operation) -> bool:
    """Whether an op may run several times."""
    parent: Any = op.parent
    while parent is not None and parent.operation.name != "gpu.func":
        if parent.operation.name in STRUCTURED and parent.operation.name not in ("scf.if", "scf.index_switch"):
            return True
        parent = parent.operation.parent
    return False


def _as(value: ir.Value, element: ir.Type) -> ir.Value:
    """Convert elements to their type in memory, or back."""
    held, kind = element_of(value), build.with_element(value.type, element)
    if held == element:
        return value
    if build.integer_type(1) in (held, element):
        return make("arith.extui" if element != build.integer_type(1) else "arith.trunci", kind, value)
    return make("arith.index_cast", kind, value)
