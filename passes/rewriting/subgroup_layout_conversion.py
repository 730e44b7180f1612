"""The executing subgroup, and the exchange of parts of values between subgroups, through shared memory if necessary."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import arith, gpu

from xegpu_py.dialects.xetile import InitTileOp, LoadTileOp, StoreTileOp, Tile, TileAttr
from xegpu_py.dialects.xetile.types import SHARED
from xegpu_py.ir.control_flow import STRUCTURED
from xegpu_py.layout import WgTiles
from xegpu_py.passes.analysis.ir_queries import bits_of, element_of
from xegpu_py.passes.analysis.message_tiling import box_shape, offsets_in, overlap
from xegpu_py.passes.analysis.shuffle_distribution import Run
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import make


def _in_memory(element: ir.Type) -> ir.Type:
    """The element type that represents this one in memory; memory has no i1 and no index."""
    if isinstance(element, ir.IndexType):
        return build.integer_type(64)
    return build.integer_type(8) if element == build.integer_type(1) else element


Copy = tuple[int, list[int], list[int], tuple[int, ...]]
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
        have, want = tuple(zip(at, part)), tuple(zip(start, size))
        common = overlap(have, want)
        extent = box_shape(common)
        if min(extent) > 0:
            listed.append((i, offsets_in(common, have), offsets_in(common, want), extent))
            covered += math.prod(extent)
    return listed if covered == math.prod(size) else None


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
        self._exchanges: dict[ir.Block, int] = {}
        self._buffers: dict[tuple[ir.Block, str], list[tuple[ir.Value, int, int]]] = {}

    def _place(self, own: WgTiles, dim: int) -> build.Index:
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

    def starts(self, own: WgTiles) -> list[tuple[build.Index, ...]]:
        """The first positions of the subgroup's parts, in the order of `WgTiles.starts`."""
        found: list[tuple[build.Index, ...]] = [()]
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
        buffer = self._written(make, held, have, user)
        if want.shape != have.shape:
            buffer = build.reinterpret_cast(buffer, 0, want.shape, [want.shape[1], 1])
        element = _in_memory(held)
        found = [self._read(buffer, start, want.data, element, held) for start in self.starts(want)]
        if in_loop(user):
            gpu.barrier()
        return found

    def moved(
        self,
        sources: Sequence[tuple[Sequence[ir.Value], WgTiles]],
        runs: Sequence[Run],
        want: WgTiles,
        user: ir.Operation,
    ) -> list[ir.Value]:
        """The subgroup's parts of rows that are moved through shared local memory.

        Args:
            sources: the parts of the values whose rows, one after the other, are moved, and their distributions.
            runs: of which runs of rows each part of the result consists.
        """
        held, line = element_of(sources[0][0][0]), len(want.shape) == 1
        element, column = _in_memory(held), (1,) if line else ()
        rows, columns = sum(own.shape[0] for _, own in sources), 1 if line else want.shape[1]
        buffer = self._buffer((rows, columns), element, user)
        top = 0
        for parts, own in sources:
            rows_of = _as_row(own) if line else own
            view = build.reinterpret_cast(buffer, top * columns, rows_of.shape, [rows_of.shape[1], 1])
            cast = [build.shape_cast(p, rows_of.data) for p in parts]
            self._write(view, cast.copy, element, rows_of)
            top += own.shape[0]
        gpu.barrier()
        found = []
        place, down = self._place(want, 0), want.rounds[0]
        for n, start in enumerate(self.starts(want)):
            made = None
            for run in runs:
                number = n // (want.own_count // down) * want.grid[0]
                first = self._chosen(run.starts[number : number + want.owners[0]], place)
                size = (run.count, *want.data[1:])
                part = self._strided(buffer, first, run, columns, 0 if line else start[1], (*size, *column)[:2])
                part = build.shape_cast(_as(part, held), size)
                if run.step < 0:
                    part = make("vector.shuffle", part.type, part, part, mask=build.i64_array(range(run.count)[::-1]))
                if len(runs) == 1:
                    made = part
                    break
                made = build.zero(build.with_shape(part.type, want.data)) if made is None else made
                made = build.insert_slice(part, made, [run.first, *[0] * (len(size) - 1)])
            found.append(made)
        if in_loop(user):
            gpu.barrier()
        return found

    def _strided(
        self, buffer: ir.Value, first: build.Index, run: Run, columns: int, column: build.Index, size: tuple[int, ...]
    ) -> ir.Value:
        """Load rows of a buffer, from the first in memory on."""
        step, element = abs(run.step), ir.MemRefType(buffer.type).element_type
        if run.step < 0:
            first = build.add(first, -step * (run.count - 1))
        start = build.add(build.multiply(first, columns), column)
        if columns == 1 and step == 1:
            # Consecutive elements are a row.
            size = size[::-1]
        view = build.reinterpret_cast(buffer, start, size, [step * columns if size[0] > 1 else size[1], 1])
        return LoadTileOp(self._tile(view, [0, 0], size, element), value=build.vector_type(size, element)).value

    def _chosen(self, numbers: Sequence[int], place: build.Index) -> build.Index:
        """The number at a place."""
        step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
        if all(n == numbers[0] + i * step for i, n in enumerate(numbers)):
            return build.add(build.multiply(place, step), numbers[0])
        kind = build.vector_type((len(numbers),), build.index_type())
        values = ir.DenseElementsAttr.get(np.array(numbers, np.int64), type=kind)
        with ir.InsertionPoint(self._anchor):
            return build.extract_at(make("arith.constant", kind, value=values), build.index(place))

    def _written(
        self, make: Callable[[], Sequence[ir.Value]], held: ir.Type, have: WgTiles, user: ir.Operation
    ) -> ir.Value:
        """A buffer to which all subgroups have written their parts."""
        element = _in_memory(held)
        buffer = self._buffer(have.shape, element, user)
        self._write(buffer, make, element, have)
        gpu.barrier()
        return buffer

    def _write(self, buffer: ir.Value, make: Callable[[], Sequence[ir.Value]], element: ir.Type, have: WgTiles) -> None:
        """Write a subgroup's parts; only the first of those that own the same ones makes and writes them."""
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

    def _read(
        self, buffer: ir.Value, start: Sequence[build.Index], size: tuple[int, ...], element: ir.Type, held: ir.Type
    ) -> ir.Value:
        tile = self._tile(buffer, start, size, element)
        return _as(LoadTileOp(tile, value=build.vector_type(size, element)).value, held)

    def _buffer(self, shape: Sequence[int], element: ir.Type, user: ir.Operation) -> ir.Value:
        """Shared local memory that no subgroup still reads.

        That is a new buffer, or one that was read before the last exchange of the block, which waits for all subgroups.
        In loops each exchange waits for them at its end.
        """
        block, size, looped = user.block, math.prod(shape), in_loop(user)
        number = self._exchanges[block] = self._exchanges.get(block, 0) + 1
        known = self._buffers.setdefault((block, str(element)), [])
        free = [b for b in known if b[1] >= size and (looped or number - b[2] > 1)]
        found = min(free, key=lambda b: b[1], default=None)
        if found is None:
            known.append((build.shared_buffer(shape, element), size, number))
            self.slm_bytes += size * max(bits_of(element) // 8, 1)
            return known[-1][0]
        known[known.index(found)] = (found[0], found[1], number)
        same = tuple(ir.MemRefType(found[0].type).shape) == tuple(shape)
        return found[0] if same else build.reinterpret_cast(found[0], 0, shape, [shape[1], 1])

    @staticmethod
    def _tile(buffer: ir.Value, start: Sequence[build.Index], shape: Sequence[int], element: ir.Type) -> ir.Value:
        tile = Tile(tuple(shape), str(element), TileAttr(memory_space=SHARED))
        return InitTileOp(buffer, list(start), tile=tile.to_ir(), in_bounds=True).tile


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
