"""`xetile-split-stacks`: scattered accesses of stacks of matrices, used one by one, become one for each matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, vector

from xegpu_py.dialects.xetile import BroadcastOp, InitTileOp, LoadOp, StoreOp, Tile, TileAttr
from xegpu_py.dialects.xetile.ops import mapped_subgroups
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import (
    bits_of,
    defining_op,
    element_of,
    is_vector,
    post_order,
    shape_of,
    tile_kernels,
)
from xegpu_py.passes.analysis.shuffle_distribution import moved_dim, shuffled_rows
from xegpu_py.passes.analysis.target_messages import hints_of
from xegpu_py.passes.analysis.tile_layout_inference import clone_with_shape, is_elementwise, is_splat, splat_with_shape
from xegpu_py.passes.rewriting.builders import constant, extract_slice, replace_op, shape_cast, with_shape

SHORTEST = 512
"""The fewest bits of a row of a surface that 2D block messages address."""


@register_pass("xetile-split-stacks")
class XeTileSplitStacks(Pass):
    """Split scattered stacks into matrices.

    A stack is a matrix whose rows are those of several matrices, which are used one by one. A load of which only slices
    of so many rows are used, as by a product of stacks, becomes a load for each of them; so does a store of matrices
    that `vector.shuffle` concatenates, and what elementwise ops compute in between. Their indices and masks are sliced
    too, and computed for each matrix. Loads of rows that are too short for 2D block messages, and kernels with maps,
    are not changed.

        %v = xetile.load %t : !xetile.tile<32x16xf16, #xetile.tile_attr<scattered = true>> -> vector<32x16xf16>
        %a = vector.extract_strided_slice %v {offsets = [0, 0], sizes = [16, 16], strides = [1, 1]} : ...
        %b = vector.extract_strided_slice %v {offsets = [16, 0], sizes = [16, 16], strides = [1, 1]} : ...

    becomes two loads of 16x16, from the tiles of the first and the last 16 rows of indices.
    """

    def run(self, op: ir.Operation) -> None:
        for func in tile_kernels(op):
            if mapped_subgroups(func) is None:
                _Stacks().run(func)


class _Stacks:
    """Splits the stacks of one kernel."""

    def __init__(self) -> None:
        self._parts: defaultdict[tuple[int, int], dict[ir.Value, ir.Value]] = defaultdict(dict)
        self._split: dict[ir.Value, bool] = {}
        self._used: dict[ir.Value, int] = {}
        self._joined: dict[ir.Value, int] = {}

    def run(self, func: ir.Operation) -> None:
        ops = walk(func)
        for op in ops:
            view: Any = op.opview
            if isinstance(view, LoadOp) and _is_stack(view.value) and _is_scattered(view):
                rows, width = self._used_rows(view.value), shape_of(view.value)[1] * bits_of(element_of(view.value))
                if rows and width >= SHORTEST:
                    self._load(view, rows)
        for op in ops:
            view = op.opview
            if isinstance(view, StoreOp) and _is_stack(view.value) and _is_scattered(view):
                rows = self._joined_rows(view.value)
                if rows:
                    self._store(view, rows)
            elif op.name == "vector.extract_strided_slice" and _is_stack(op.operands[0]):
                slice_rows = _taken(op)
                if slice_rows is not None and self._is_split(op.operands[0]):
                    replace_op(op, self._rows(op.operands[0], *slice_rows))

    def _is_split(self, value: ir.Value) -> bool:
        """Whether a slice of a value is one of what it is computed of."""
        for v in post_order(value, self._split, _operands):
            op = defining_op(v)
            is_concatenated = op is not None and _halves(op) is not None
            self._split[v] = is_concatenated or any(self._split[operand] for operand in _operands(v))
        return self._split[value]

    def _used_rows(self, value: ir.Value) -> int:
        """The number of rows of the slices of a value that are its only uses; 0 if there are others."""
        for v in post_order(value, self._used, _results_of_uses):
            rows = {self._rows_of_use(use.owner.operation) for use in v.uses}
            count = rows.pop() if len(rows) == 1 else 0
            self._used[v] = count if count < shape_of(v)[0] else 0
        return self._used[value]

    def _rows_of_use(self, user: ir.Operation) -> int:
        if is_elementwise(user) and len(user.results) == 1:
            return self._used[user.results[0]]
        rows = _taken(user)
        if rows is None or rows[0] % rows[1] or shape_of(user.operands[0])[0] % rows[1]:
            return 0
        return rows[1]

    def _joined_rows(self, value: ir.Value) -> int:
        """The number of rows of the matrices of equal size that are concatenated to a value; 0 if there are none."""
        for v in post_order(value, self._joined, _sources):
            op = defining_op(v)
            if op is not None and _halves(op) is not None:
                sizes = {self._joined[part] or shape_of(part)[0] for part in _sources(v)}
            else:
                sizes = {self._joined[operand] for operand in _sources(v)} - {0}
            self._joined[v] = sizes.pop() if len(sizes) == 1 else 0
        return self._joined[value]

    def _load(self, view: Any, rows: int) -> None:
        self._split[view.value] = True
        for first in range(0, shape_of(view.value)[0], rows):
            with ir.InsertionPoint(view.operation), view.operation.location:
                tile, mask = self._access(view, first, rows)
                part = LoadOp(tile, mask, padding=view.padding, value=_resized(view.value, rows), **hints_of(view))
            self._parts[first, rows][view.value] = part.value

    def _store(self, view: Any, rows: int) -> None:
        for first in range(0, shape_of(view.value)[0], rows):
            with ir.InsertionPoint(view.operation), view.operation.location:
                tile, mask = self._access(view, first, rows)
                StoreOp(self._rows(view.value, first, rows), tile, mask, **hints_of(view))
        view.operation.erase()

    def _access(self, view: Any, first: int, rows: int) -> tuple[ir.Value, ir.Value | None]:
        """The tile and the mask of some rows."""
        init: Any = view.tile.owner.opview
        stack = Tile.of(view.tile)
        kind = Tile((rows, stack.shape[1]), stack.element, stack.attr).to_ir()
        tile = InitTileOp(init.source, [], indices=self._rows(init.indices, first, rows), tile=kind).tile
        return tile, None if view.mask is None else self._rows(view.mask, first, rows)

    def _rows(self, value: ir.Value, first: int, count: int) -> ir.Value:
        """Some rows of a matrix, or elements of a line."""
        if (first, count) == (0, shape_of(value)[0]):
            return value
        parts = self._parts[first, count]
        for v in post_order(value, parts, _operands):
            op = defining_op(v)
            if op is not None:
                with ir.InsertionPoint(op), op.location:
                    rows = self._computed(op, first, count)
                if rows is not None:
                    parts[v] = rows
        return parts[value] if value in parts else _sliced(value, first, count)

    def _computed(self, op: ir.Operation, first: int, count: int) -> ir.Value | None:
        """Some rows of an op's result, computed of its operands; None for an op that needs more of them."""
        if len(op.results) != 1:
            return None
        value, view = op.results[0], op.opview
        shape = shape_of(value)
        if is_splat(op):
            return splat_with_shape(op, list(op.operands), (count, *shape[1:]))
        if is_elementwise(op):
            operands = [self._rows(v, first, count) if is_vector(v) else v for v in op.operands]
            return clone_with_shape(op, operands, (count, *shape[1:]))[0]
        if op.name == "vector.step":
            start = constant(_resized(value, count), first)
            return start if count == 1 else arith.addi(vector.step(start.type), start)
        halves = _halves(op)
        if halves is not None:
            for source, start_row in zip(halves, (0, shape_of(halves[0])[0])):
                if start_row <= first and first + count <= start_row + shape_of(source)[0]:
                    return self._rows(source, first - start_row, count)
        elif op.name == "vector.shape_cast":
            return self._cast(op, first, count)
        elif isinstance(view, BroadcastOp):
            return self._broadcast(view, first, count)
        return None

    def _cast(self, op: ir.Operation, first: int, count: int) -> ir.Value | None:
        (source,), shape = op.operands, shape_of(op.results[0])
        have = shape_of(source)
        width = have[1] if len(have) == 2 else 1
        begin, size = (n * (shape[1] if len(shape) == 2 else 1) for n in (first, count))
        if len(have) > 2 or begin % width or size % width:
            return None
        value, result_shape = self._rows(source, begin // width, size // width), (count, *shape[1:])
        cast = defining_op(value)
        if cast is not None and cast.name == "vector.shape_cast" and shape_of(cast.operands[0]) == result_shape:
            return cast.operands[0]
        return shape_cast(value, result_shape)

    def _broadcast(self, view: BroadcastOp, first: int, count: int) -> ir.Value | None:
        source, times = view.value, view.broadcast_size
        if view.dims == (1,):
            source = self._rows(source, first, count)
        elif times is not None:
            if first // times != (first + count - 1) // times:
                return None
            source, times = self._rows(source, first // times, 1), None
        kind = _resized(view.result, count)
        if source.type == kind:
            return source
        return BroadcastOp(source, view.dims, result=kind, broadcast_size=times).result


def _resized(value: ir.Value, rows: int) -> ir.Type:
    return with_shape(value.type, (rows, *shape_of(value)[1:]))


def _sliced(value: ir.Value, first: int, count: int) -> ir.Value:
    shape = shape_of(value)
    return extract_slice(value, [first, *[0] * (len(shape) - 1)], [count, *shape[1:]])


def _is_stack(value: ir.Value) -> bool:
    return len(shape_of(value)) == 2 and shape_of(value)[0] > 1


def _is_scattered(view: Any) -> bool:
    init = defining_op(view.tile)
    is_init = init is not None and isinstance(init.opview, InitTileOp)
    return is_init and Tile.of(view.tile).attr == TileAttr(scattered=True)


def _taken(op: ir.Operation) -> tuple[int, int] | None:
    """The first row and the number of rows that a slice is of; None if it is another one."""
    rows = shuffled_rows(op) if op.name == "vector.extract_strided_slice" and moved_dim(op) == 0 else None
    return (rows[0], len(rows)) if rows else None


def _operands(value: ir.Value) -> list[ir.Value]:
    """The vectors of which an elementwise op computes a value; none for a value of another op."""
    op = defining_op(value)
    is_computed = op is not None and len(op.results) == 1 and is_elementwise(op)
    return [v for v in op.operands if is_vector(v)] if op is not None and is_computed else []


def _sources(value: ir.Value) -> Sequence[ir.Value]:
    """The matrices that are concatenated to a value, or of which an elementwise op computes it."""
    op = defining_op(value)
    halves = _halves(op) if op is not None else None
    return _operands(value) if halves is None else halves


def _results_of_uses(value: ir.Value) -> list[ir.Value]:
    """The values that elementwise ops compute of a value."""
    users = [use.owner.operation for use in value.uses]
    return [user.results[0] for user in users if len(user.results) == 1 and is_elementwise(user)]


def _halves(op: ir.Operation) -> Sequence[ir.Value] | None:
    """The matrices that a shuffle concatenates; None for another op."""
    if op.name != "vector.shuffle":
        return None
    rows = sum(shape_of(v)[0] for v in op.operands)
    return list(op.operands) if shuffled_rows(op) == tuple(range(rows)) else None
