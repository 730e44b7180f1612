"""Layout conversion between subgroups: copies within a subgroup, and the exchange of parts through shared memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import arith, gpu, scf

from xegpu_py.dialects.xetile import InitTileOp, LoadTileOp, StoreTileOp, Tile, TileAttr
from xegpu_py.dialects.xetile.types import SHARED
from xegpu_py.ir.control_flow import STRUCTURED
from xegpu_py.layout import WgTiles
from xegpu_py.passes.analysis.block_surfaces import buffer_of
from xegpu_py.passes.analysis.ir_queries import bits_of, defining_op, element_of
from xegpu_py.passes.analysis.memory_effects import effects_of
from xegpu_py.passes.analysis.message_tiling import box_shape, offsets_in, overlap
from xegpu_py.passes.analysis.shuffle_distribution import LaneRun
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import make


def _memory_element(element: ir.Type) -> ir.Type:
    """The element type in memory: i8 for i1, i64 for index, others unchanged."""
    if isinstance(element, ir.IndexType):
        return build.integer_type(64)
    return build.integer_type(8) if element == build.integer_type(1) else element


Copy = tuple[int, list[int], list[int], tuple[int, ...]]
"""A copy: the number of the source part, the offsets in it, the offsets in the destination, and the shape."""


def copies(source: WgTiles, target: WgTiles) -> list[list[Copy]] | None:
    """For each target part, the copies from the subgroup's own parts; None if a subgroup lacks elements."""
    result: list[list[Copy]] | None = None
    for subgroup in range(target.subgroups):
        parts = source.starts(subgroup)
        part_copies = []
        for start in target.starts(subgroup):
            covering = _covering_copies(parts, source.data, start, target.data)
            if covering is None:
                return None
            part_copies.append(covering)
        if result is not None and part_copies != result:
            return None
        result = part_copies
    return result


def _covering_copies(
    parts: Sequence[tuple[int, ...]], part: tuple[int, ...], start: tuple[int, ...], size: tuple[int, ...]
) -> list[Copy] | None:
    result: list[Copy] = []
    covered = 0
    for i, part_start in enumerate(parts):
        source_box, target_box = tuple(zip(part_start, part)), tuple(zip(start, size))
        common = overlap(source_box, target_box)
        extent = box_shape(common)
        if min(extent) > 0:
            result.append((i, offsets_in(common, source_box), offsets_in(common, target_box), extent))
            covered += math.prod(extent)
    return result if covered == math.prod(size) else None


class Subgroup:
    """The executing subgroup, and the positions of its parts.

    Attributes:
        id: its number in the workgroup.
        slm_bytes: bytes of shared local memory allocated so far.
    """

    def __init__(self) -> None:
        self.id: ir.Value = gpu.subgroup_id()
        # Values computed from the id are inserted before this op, outside of loops.
        self._anchor = build.index(0).owner.operation
        self._part_indices: dict[tuple[int, int], ir.Value] = {}
        self.slm_bytes = 0
        self._exchanges: dict[ir.Block, int] = {}
        self._buffers: dict[tuple[ir.Block, str], list[tuple[ir.Value, int, int]]] = {}

    def _part_index(self, tiles: WgTiles, dim: int) -> build.Index:
        """The index of the first part that the subgroup owns along a dimension."""
        stride, owners = tiles.strides[dim], tiles.owners[dim]
        if owners == 1:
            return 0
        # The outermost dimension needs no remainder, since ids do not exceed it.
        wrap = 0 if stride * owners == tiles.subgroups else owners
        key = (stride, wrap)
        if key not in self._part_indices:
            with ir.InsertionPoint(self._anchor):
                quotient = self.id if stride == 1 else arith.divui(self.id, build.index(stride))
                self._part_indices[key] = arith.remui(quotient, build.index(wrap)) if wrap else quotient
        return self._part_indices[key]

    def starts(self, tiles: WgTiles) -> list[tuple[build.Index, ...]]:
        """The first positions of the subgroup's parts, in the order of `WgTiles.starts`."""
        positions: list[tuple[build.Index, ...]] = [()]
        for dim, (grid, data, rounds) in enumerate(zip(tiles.grid, tiles.data, tiles.rounds)):
            with ir.InsertionPoint(self._anchor):
                first = build.multiply(self._part_index(tiles, dim), data)
                along = [build.add(first, r * grid * data) for r in range(rounds)]
            positions = [(*f, a) for f in positions for a in along]
        return positions

    def is_first(self, tiles: WgTiles) -> ir.Value | None:
        """Return whether this is the first of the subgroups that own the same parts; None if no parts are shared."""
        condition: ir.Value | None = None
        for grid, owners, stride in zip(tiles.grid, tiles.owners, tiles.strides):
            if owners == grid:
                continue
            with ir.InsertionPoint(self._anchor):
                index = self.id if stride == 1 else arith.divui(self.id, build.index(stride))
                index = arith.remui(index, build.index(grid))
                is_owner = arith.cmpi(arith.CmpIPredicate.ult, index, build.index(owners))
                condition = is_owner if condition is None else arith.andi(condition, is_owner)
        return condition

    def exchange(
        self,
        parts: Sequence[ir.Value],
        source: WgTiles,
        target: WgTiles,
        user: ir.Operation,
        compute: Callable[[], list[ir.Value]] | None = None,
    ) -> list[ir.Value]:
        """The subgroup's parts of a value under another distribution.

        Args:
            compute: computes these parts, where the subgroup lacks elements; None to get them from other subgroups.
        """
        copies_by_part = copies(source, target)
        if copies_by_part is None:
            if compute is not None:
                return compute()
            return self.exchange_through_memory(lambda: parts, element_of(parts[0]), source, target, user)
        results = []
        for part_copies in copies_by_part:
            if len(part_copies) == 1:
                i, source_offsets, _, size = part_copies[0]
                results.append(build.extract_slice(parts[i], source_offsets, size))
                continue
            part = build.zero(build.with_shape(parts[0].type, target.data))
            for i, source_offsets, to, size in part_copies:
                part = build.insert_slice(build.extract_slice(parts[i], source_offsets, size), part, to)
            results.append(part)
        return results

    def reshape(
        self,
        parts: Sequence[ir.Value],
        source: WgTiles,
        target: WgTiles,
        user: ir.Operation,
        compute: Callable[[], list[ir.Value]] | None,
    ) -> list[ir.Value]:
        """The subgroup's parts of a value that is cast to another shape; see `exchange`."""
        if _same_elements(source, target):
            return [build.shape_cast(p, target.data) for p in parts]
        if compute is not None:
            return compute()
        return self.exchange_through_memory(lambda: parts, element_of(parts[0]), source, target, user)

    def exchange_through_memory(
        self,
        make: Callable[[], Sequence[ir.Value]],
        value_type: ir.Type,
        source: WgTiles,
        target: WgTiles,
        user: ir.Operation,
    ) -> list[ir.Value]:
        """Exchange parts through shared local memory.

        Args:
            make: computes the parts; only the first of the subgroups with the same parts executes it, and writes them.
            value_type: the parts' type.
        """
        if 1 in (len(source.shape), len(target.shape)):
            # A vector of one dimension is stored as a matrix of one row.
            source_rows, target_rows = _as_row(source), _as_row(target)
            parts = self.exchange_through_memory(
                lambda: [build.shape_cast(p, source_rows.data) for p in make()],
                value_type,
                source_rows,
                target_rows,
                user,
            )
            return [build.shape_cast(f, target.data) for f in parts]
        buffer = self._write_all_parts(make, value_type, source, user)
        if target.shape != source.shape:
            buffer = build.reinterpret_cast(buffer, 0, target.shape, [target.shape[1], 1])
        element = _memory_element(value_type)
        parts = [self._read(buffer, start, target.data, element, value_type) for start in self.starts(target)]
        if in_loop(user):
            gpu.barrier()
        return parts

    def shuffle_rows(
        self,
        sources: Sequence[tuple[Sequence[ir.Value], WgTiles]],
        runs: Sequence[LaneRun],
        target: WgTiles,
        user: ir.Operation,
    ) -> list[ir.Value]:
        """Shuffle rows among subgroups through shared local memory, and return the subgroup's parts of the result.

        Args:
            sources: the parts of the operands, whose rows are concatenated, and their distributions.
            runs: the runs of rows that form each part of the result.
        """
        element_type, line = element_of(sources[0][0][0]), len(target.shape) == 1
        element, column = _memory_element(element_type), (1,) if line else ()
        rows, columns = sum(tiles.shape[0] for _, tiles in sources), 1 if line else target.shape[1]
        buffer = self._buffer((rows, columns), element, user)
        top = 0
        for parts, tiles in sources:
            rows_of = _as_row(tiles) if line else tiles
            view = build.reinterpret_cast(buffer, top * columns, rows_of.shape, [rows_of.shape[1], 1])
            cast = [build.shape_cast(p, rows_of.data) for p in parts]
            self._write(view, cast.copy, element, rows_of)
            top += tiles.shape[0]
        gpu.barrier()
        results = []
        part_index, down = self._part_index(target, 0), target.rounds[0]
        for n, start in enumerate(self.starts(target)):
            part_rows = None
            for run in runs:
                number = n // (target.own_count // down) * target.grid[0]
                first = self._select_number(run.starts[number : number + target.owners[0]], part_index)
                size = (run.count, *target.data[1:])
                part = self._strided(buffer, first, run, columns, 0 if line else start[1], (*size, *column)[:2])
                part = build.shape_cast(_convert_elements(part, element_type), size)
                if run.step < 0:
                    part = make("vector.shuffle", part.type, part, part, mask=build.i64_array(range(run.count)[::-1]))
                if len(runs) == 1:
                    part_rows = part
                    break
                part_rows = build.zero(build.with_shape(part.type, target.data)) if part_rows is None else part_rows
                part_rows = build.insert_slice(part, part_rows, [run.first, *[0] * (len(size) - 1)])
            results.append(part_rows)
        if in_loop(user):
            gpu.barrier()
        return results

    def loop_over_memory(
        self,
        sources: Sequence[tuple[Sequence[ir.Value], WgTiles]],
        steps: range,
        step: Callable[[ir.Value, list[Callable[..., ir.Value]], Sequence[ir.Value]], list[ir.Value]],
        carried: Sequence[ir.Value],
        user: ir.Operation,
    ) -> list[ir.Value]:
        """Write matrices of one type to shared local memory, and read parts of them in a loop.

        Args:
            sources: the parts of the matrices, and their distributions.
            steps: the values of the loop's variable.
            step: an iteration: from the loop's variable, for each matrix a function that reads a part of it by its
                first position and its shape, and the values that the loop carries to those after the iteration.
            carried: the values before the loop.
        """
        element_type = element_of(sources[0][0][0])
        element = _memory_element(element_type)
        buffer = self._buffer((1, sum(math.prod(tiles.shape) for _, tiles in sources)), element, user)
        read: list[Callable[..., ir.Value]] = []
        first = 0
        for parts, tiles in sources:
            view = build.reinterpret_cast(buffer, first, tiles.shape, [tiles.shape[1], 1])
            self._write(view, partial(list, parts), element, tiles)
            read.append(partial(self._read, view, element_in_memory=element, element_type=element_type))
            first += math.prod(tiles.shape)
        gpu.barrier()
        loop = scf.ForOp(*map(build.index, (steps.start, steps.stop, steps.step)), list(carried))
        with ir.InsertionPoint(loop.body):
            scf.yield_(step(loop.induction_variable, read, list(loop.inner_iter_args)))
        if in_loop(user):
            gpu.barrier()
        return list(loop.results)

    def _strided(
        self,
        buffer: ir.Value,
        first: build.Index,
        run: LaneRun,
        columns: int,
        column: build.Index,
        size: tuple[int, ...],
    ) -> ir.Value:
        """Load equally distant rows of a buffer, in the order of memory."""
        step, element = abs(run.step), ir.MemRefType(buffer.type).element_type
        if run.step < 0:
            first = build.add(first, -step * (run.count - 1))
        start = build.add(build.multiply(first, columns), column)
        if columns == 1 and step == 1:
            # Consecutive elements are a row.
            size = size[::-1]
        view = build.reinterpret_cast(buffer, start, size, [step * columns if size[0] > 1 else size[1], 1])
        return LoadTileOp(self._tile(view, [0, 0], size, element), value=build.vector_type(size, element)).value

    def _select_number(self, numbers: Sequence[int], position: build.Index) -> build.Index:
        """Select the number at a dynamic position."""
        step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
        if all(n == numbers[0] + i * step for i, n in enumerate(numbers)):
            return build.add(build.multiply(position, step), numbers[0])
        kind = build.vector_type((len(numbers),), build.index_type())
        values = ir.DenseElementsAttr.get(np.array(numbers, np.int64), type=kind)
        with ir.InsertionPoint(self._anchor):
            return build.extract_at(make("arith.constant", kind, value=values), build.index(position))

    def _write_all_parts(
        self, make: Callable[[], Sequence[ir.Value]], element_type: ir.Type, source: WgTiles, user: ir.Operation
    ) -> ir.Value:
        """Write the parts of all subgroups to a buffer, and wait for all."""
        element = _memory_element(element_type)
        buffer = self._buffer(source.shape, element, user)
        self._write(buffer, make, element, source)
        gpu.barrier()
        return buffer

    def _write(
        self, buffer: ir.Value, make: Callable[[], Sequence[ir.Value]], element: ir.Type, source: WgTiles
    ) -> None:
        """Write a subgroup's parts; only the first of the subgroups with the same parts computes and writes them."""
        starts = self.starts(source)

        def write() -> list[ir.Value]:
            for part, start in zip(make(), starts):
                StoreTileOp(_convert_elements(part, element), self._tile(buffer, start, source.data, element))
            return []

        first = self.is_first(source)
        if first is None:
            write()
        else:
            build.if_(first, [], write)

    def _read(
        self,
        buffer: ir.Value,
        start: Sequence[build.Index],
        size: tuple[int, ...],
        element_in_memory: ir.Type,
        element_type: ir.Type,
    ) -> ir.Value:
        tile = self._tile(buffer, start, size, element_in_memory)
        return _convert_elements(LoadTileOp(tile, value=build.vector_type(size, element_in_memory)).value, element_type)

    def _buffer(self, shape: Sequence[int], element: ir.Type, user: ir.Operation) -> ir.Value:
        """Shared local memory that no subgroup is reading.

        It is a new buffer, or one whose reads precede the block's last exchange, which is a barrier. In loops each
        exchange ends with a barrier.
        """
        block, size, looped = user.block, math.prod(shape), in_loop(user)
        number = self._exchanges[block] = self._exchanges.get(block, 0) + 1
        buffers = self._buffers.setdefault((block, str(element)), [])
        reusable = [b for b in buffers if b[1] >= size and (looped or number - b[2] > 1)]
        buffer = min(reusable, key=lambda b: b[1], default=None)
        if buffer is None:
            buffers.append((build.shared_buffer(shape, element), size, number))
            self.slm_bytes += size * max(bits_of(element) // 8, 1)
            return buffers[-1][0]
        buffers[buffers.index(buffer)] = (buffer[0], buffer[1], number)
        same = tuple(ir.MemRefType(buffer[0].type).shape) == tuple(shape)
        return buffer[0] if same else build.reinterpret_cast(buffer[0], 0, shape, [shape[1], 1])

    def has_just_waited(self, op: ir.Operation) -> bool:
        """Return whether a barrier precedes an op in its block, and between them only exchanged elements are read."""
        preceding = itertools.takewhile(lambda other: other != op, (o.operation for o in op.block.operations))
        for other in reversed([*preceding]):
            if other.name == "gpu.barrier":
                return True
            if effects_of(other) and not self._is_read_of_exchange(other):
                return False
        return False

    def _is_read_of_exchange(self, op: ir.Operation) -> bool:
        if not isinstance(op.opview, LoadTileOp):
            return False
        init = defining_op(op.opview.tile)
        buffers = [buffer for found in self._buffers.values() for buffer, *_ in found]
        return init is not None and isinstance(init.opview, InitTileOp) and buffer_of(init.opview.source) in buffers

    @staticmethod
    def _tile(buffer: ir.Value, start: Sequence[build.Index], shape: Sequence[int], element: ir.Type) -> ir.Value:
        tile = Tile(tuple(shape), str(element), TileAttr(memory_space=SHARED))
        return InitTileOp(buffer, list(start), tile=tile.to_ir(), in_bounds=True).tile


def _same_elements(source: WgTiles, target: WgTiles) -> bool:
    """Return whether the parts of each subgroup have the same elements in the same order in two shapes."""
    numbers = [np.arange(math.prod(tiles.shape)).reshape(tiles.shape) for tiles in (source, target)]

    def elements(tiles: WgTiles, numbers: Any, subgroup: int) -> list[list[int]]:
        parts = (tuple(slice(a, a + n) for a, n in zip(start, tiles.data)) for start in tiles.starts(subgroup))
        return [numbers[part].ravel().tolist() for part in parts]

    return all(elements(source, numbers[0], i) == elements(target, numbers[1], i) for i in range(source.subgroups))


def _as_row(tiles: WgTiles) -> WgTiles:
    if len(tiles.shape) == 2:
        return tiles
    return WgTiles((1, *tiles.shape), (1, *tiles.grid), (1, *tiles.data), (tiles.subgroups, *tiles.strides))


def in_loop(op: ir.Operation) -> bool:
    """Return whether an op is in a loop."""
    parent: Any = op.parent
    while parent is not None and parent.operation.name != "gpu.func":
        if parent.operation.name in STRUCTURED and parent.operation.name not in ("scf.if", "scf.index_switch"):
            return True
        parent = parent.operation.parent
    return False


def _convert_elements(value: ir.Value, element: ir.Type) -> ir.Value:
    """Convert elements to their type in memory, or back."""
    element_type, kind = element_of(value), build.with_element(value.type, element)
    if element_type == element:
        return value
    if build.integer_type(1) in (element_type, element):
        return make("arith.extui" if element != build.integer_type(1) else "arith.trunci", kind, value)
    return make("arith.index_cast", kind, value)
