"""The rebuilding of a kernel with blocks for vectors, and messages for tiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from mlir import ir
from mlir.dialects import arith
from xegpu_py.dialects.xetile import BroadcastOp, InitTileOp, ReductionOp, Tile, TileMmaOp, TransposeOp
from xegpu_py.passes.xetile.expansion import Expansion, fail, rebuilds
from xegpu_py.passes.xetile.vectors import (
    combine,
    cut,
    element_of,
    index,
    is_elementwise,
    is_splat,
    is_vector,
    put,
    reshaped,
    resized,
    shape_of,
    splat_of,
    vector_type,
    zero,
)
from xegpu_py.passes.xetile_blocking.plan import Part, Plan, Shape
from xegpu_py.passes.xetile_blocking.sinking import Slab, sink

from xegpu_py.target import Target

Piece = tuple[Part, ir.Value]


def assemble(pieces: Sequence[Piece], at: Shape, size: Shape, whole: ir.Type) -> ir.Value:
    """A part of a vector that stands in pieces; what lies outside of all of them is zero."""
    end = tuple(a + n for a, n in zip(at, size))
    met: list[tuple[Shape, Shape, Part, ir.Value]] = []
    for part, value in pieces:
        low = tuple(max(a, b) for a, b in zip(at, part[0]))
        high = tuple(min(e, b + n) for e, b, n in zip(end, *part))
        if all(x < y for x, y in zip(low, high)):
            met.append((low, tuple(y - x for x, y in zip(low, high)), part, value))
    if len(met) == 1 and met[0][1] == size:
        low, _, part, value = met[0]
        return cut(value, [x - b for x, b in zip(low, part[0])], size)
    found = zero(reshaped(whole, size))
    for low, extent, part, value in met:
        inner = cut(value, [x - b for x, b in zip(low, part[0])], extent)
        found = put(inner, found, [x - a for x, a in zip(low, at)])
    return found


class Blocking(Expansion):
    """Divides all vectors and tiles of a kernel as a `Plan` says."""

    def __init__(self, func: ir.Operation, target: Target, ahead: bool = False) -> None:
        super().__init__(func)
        self.plan = Plan(func, target, ahead)
        self._slabs: list[Slab] = []

    def run(self) -> None:
        super().run()
        for slab in self._slabs:
            sink(slab)

    def types(self, value: ir.Value) -> list[ir.Type]:
        if is_vector(value):
            return [reshaped(value.type, size) for _, size in self.plan.parts(value)]
        if Tile.accepts(str(value.type)):
            tile = Tile.of(value)
            messages = self.plan.messages(value)
            return [tile.part(size).to_ir() for listed in messages.values() for _, size in listed]
        return [value.type]

    def argument(self, argument: ir.Value) -> list[ir.Value]:
        if Tile.accepts(str(argument.type)):
            fail(self.func, f"has an argument of type {Tile.of(argument)}", "make tiles in the kernel, of memrefs")
        if not is_vector(argument):
            return [argument]
        return [cut(argument, at, size) for at, size in self.plan.parts(argument)]

    def pieces(self, value: ir.Value) -> list[Piece]:
        """The blocks of an old vector, with their places."""
        return list(zip(self.plan.parts(value), self.get(value), strict=True))

    def region(self, value: ir.Value, at: Shape, size: Shape) -> ir.Value:
        """A part of an old vector."""
        return assemble(self.pieces(value), at, size, value.type)

    def whole(self, value: ir.Value) -> ir.Value:
        """An old vector in one."""
        return self.region(value, (0,) * len(shape_of(value)), shape_of(value))

    def blocks(self, value: ir.Value, pieces: Sequence[Piece]) -> list[ir.Value]:
        """The blocks that a value is divided into, from other pieces of it."""
        return [assemble(pieces, at, size, value.type) for at, size in self.plan.parts(value)]

    def other(self, op: Any) -> Sequence[ir.Value] | None:
        vectors = [v for v in (*op.operands, *op.results) if is_vector(v)]
        if not vectors:
            return None
        if len(op.results) == 1 and is_splat(op):
            return self._splat(op)
        if is_elementwise(op) and len(op.results) == 1:
            return self._elementwise(op)
        return self._undivided(op)

    def _undivided(self, op: ir.Operation) -> Sequence[ir.Value]:
        """An op that works on whole vectors."""
        operands = [self.whole(v) if is_vector(v) else self.one(v) for v in op.operands]
        made = op.clone()
        for i, operand in enumerate(operands):
            made.operands[i] = operand
        for old, new in zip(op.results, made.results):
            self.values[old] = [cut(new, at, size) for at, size in self.plan.parts(old)] if is_vector(old) else [new]
        return self.values[op.results[0]] if len(op.results) == 1 else list(made.results)

    @rebuilds("vector.extract_strided_slice")
    def _slice(self, view: Any) -> Sequence[ir.Value]:
        """A part of a vector is divided without putting the vector together."""
        op = view.operation
        starts, sizes, steps = (
            [ir.IntegerAttr(a).value for a in ir.ArrayAttr(op.attributes[n])] for n in ("offsets", "sizes", "strides")
        )
        if set(steps) != {1} or len(sizes) != len(shape_of(op.operands[0])):
            return self._undivided(op)
        found = []
        for at, size in self.plan.parts(op.results[0]):
            found.append(self.region(op.operands[0], tuple(a + s for a, s in zip(at, starts)), size))
        return found

    def _splat(self, op: ir.Operation) -> list[ir.Value]:
        made: dict[Shape, ir.Value] = {}
        for _, size in self.plan.parts(op.results[0]):
            if size not in made:
                made[size] = splat_of(op, [self.one(v) for v in op.operands], size)
        return [made[size] for _, size in self.plan.parts(op.results[0])]

    def _elementwise(self, op: ir.Operation) -> list[ir.Value]:
        found = []
        result = op.results[0] if is_vector(op.results[0]) else next(v for v in op.operands if is_vector(v))
        for i, (at, size) in enumerate(self.plan.parts(result)):
            operands = []
            for v in op.operands:
                if not is_vector(v):
                    operands.append(self.one(v))
                elif self.plan.block(v) == self.plan.block(result):
                    operands.append(self.get(v)[i])
                else:
                    operands.append(self.region(v, at, size))
            found += resized(op, operands, size)
        return found

    @rebuilds("xetile.init_tile")
    def _init_tile(self, view: InitTileOp) -> list[ir.Value]:
        tile = Tile.of(view.tile)
        source = self.one(view.source)
        made = []
        for listed in self.plan.messages(view.tile).values():
            for at, size in listed:
                kind = tile.part(size).to_ir()
                if tile.scattered:
                    indices = self.region(view.indices, at, size)
                    made.append(InitTileOp(source, [], indices=indices, tile=kind).tile)
                    continue
                offsets = [v if isinstance(v, int) else self.one(v) for v in view.offsets]
                offsets[-2:] = [_plus(v, n) for v, n in zip(offsets[-2:], at)]
                shape, strides = (
                    [v if isinstance(v, int) else self.one(v) for v in group] for group in (view.shape, view.strides)
                )
                made.append(
                    InitTileOp(
                        source, offsets, shape or None, strides or None, tile=kind, in_bounds=view.in_bounds
                    ).tile
                )
        return made

    @rebuilds("xetile.update_tile_offset")
    def _update(self, view: Any) -> list[ir.Value]:
        tiles = self.get(view.tile)
        if view.indices is None:
            offsets = [v if isinstance(v, int) else self.one(v) for v in view.offsets]
            return [type(view)(t, offsets, result=t.type).result for t in tiles]
        listed = [part for group in self.plan.messages(view.tile).values() for part in group]
        return [
            type(view)(t, [], indices=self.region(view.indices, at, size), result=t.type).result
            for t, (at, size) in zip(tiles, listed, strict=True)
        ]

    def _role(self, tile: ir.Value, role: str) -> list[Piece]:
        """The messages of an old tile for a role."""
        tiles = iter(self.get(tile))
        found = {name: [(part, next(tiles)) for part in listed] for name, listed in self.plan.messages(tile).items()}
        return found[role]

    @rebuilds("xetile.prefetch_tile")
    def _prefetch(self, view: Any) -> list[ir.Value]:
        for _, tile in self._role(view.tile, "prefetch"):
            type(view)(tile, l1_hint=view.l1_hint, l2_hint=view.l2_hint, l3_hint=view.l3_hint)
        return []

    @rebuilds("xetile.load_tile", "xetile.load")
    def _load(self, view: Any) -> list[ir.Value]:
        loaded: list[Piece] = []
        hints = {n: getattr(view, n) for n in ("padding", "l1_hint", "l2_hint", "l3_hint")}
        for (at, size), tile in self._role(view.tile, "load"):
            kind = reshaped(view.value.type, size)
            if view.operation.name == "xetile.load":
                mask = None if view.mask is None else self.region(view.mask, at, size)
                value = type(view)(tile, mask, value=kind, **hints).value
            else:
                value = type(view)(tile, value=kind, **hints).value
            loaded.append(((at, size), value))
        return self.blocks(view.value, loaded)

    @rebuilds("xetile.store_tile", "xetile.store", "xetile.atomic_rmw")
    def _store(self, view: Any) -> list[ir.Value]:
        """Stores and atomic ops: each message takes its part of the value."""
        name = view.operation.name
        results: list[Piece] = []
        for (at, size), tile in self._role(view.tile, "store"):
            value = self.region(view.value, at, size)
            mask = None
            if name != "xetile.store_tile" and view.mask is not None:
                mask = self.region(view.mask, at, size)
            if name == "xetile.atomic_rmw":
                old = type(view)(view.kind, value, tile, mask, result=value.type).result
                results.append(((at, size), old))
                continue
            hints = {n: getattr(view, n) for n in ("l1_hint", "l2_hint", "l3_hint")}
            if name == "xetile.store":
                type(view)(value, tile, mask, **hints)
            else:
                type(view)(value, tile, **hints)
        return self.blocks(view.result, results) if results else []

    @rebuilds("xetile.tile_mma")
    def _mma(self, view: TileMmaOp) -> list[ir.Value]:
        """Products of one dpas each, slab by slab."""
        step, slabs, n = self.plan.step(view.a), self.plan.slabs(view.operation), self.plan.columns
        depth, columns = shape_of(view.b)
        places = self.plan.parts(view.d)
        element = element_of(view.d)
        sums: list[ir.Value | None] = [None] * len(places)
        if view.c is not None:
            sums = [self.region(view.c, at, (size[0], n)) for at, size in places]
        held: dict[tuple[str, Shape], ir.Value] = {}

        def operand(name: str, value: ir.Value, at: Shape, size: Shape) -> ir.Value:
            key = (name, at)
            if key not in held:
                held[key] = self.region(value, at, size)
            return held[key]

        for first, left in product(range(0, depth, slabs.depth), range(0, columns, slabs.columns)):
            pieces: list[ir.Value] = []
            start: ir.Operation | None = None
            for k in range(first, min(first + slabs.depth, depth), step):
                for i, (at, size) in enumerate(places):
                    if not left <= at[1] < left + slabs.columns:
                        continue
                    a = operand("a", view.a, (at[0], k), (size[0], step))
                    b = operand("b", view.b, (k, at[1]), (step, n))
                    pieces += [a, b]
                    made = TileMmaOp(a, b, sums[i], d=vector_type((size[0], n), element))
                    start = start or made.operation
                    sums[i] = made.d
            if (first or left) and start is not None:
                self._slabs.append(Slab(start, list(dict.fromkeys(pieces))))
        return [cut(s, (0, 0), size) for s, (_, size) in zip(sums, places) if s is not None]

    @rebuilds("xetile.convert_layout")
    def _convert(self, view: Any) -> list[ir.Value]:
        return self.get(view.value)

    @rebuilds("xetile.transpose")
    def _transpose(self, view: TransposeOp) -> list[ir.Value]:
        if view.permutation == (0, 1):
            return self.get(view.value)
        made: dict[Part, ir.Value] = {}
        pieces: list[Piece] = []
        # The blocks of the operand are those that were loaded, so that a load and its transpose can become one.
        for (at, size), value in self.pieces(view.value):
            turned = (at[::-1], size[::-1])
            made[turned] = TransposeOp(value, (1, 0), result=reshaped(value.type, size[::-1])).result
            pieces.append((turned, made[turned]))
        return self.blocks(view.result, pieces)

    @rebuilds("xetile.reduction")
    def _reduction(self, view: ReductionOp) -> list[ir.Value]:
        (dim,) = view.dims
        shape = shape_of(view.value)
        size = view.reduction_size or shape[dim]
        block = self.plan.block(view.value)
        found = []
        for at, extent in self.plan.parts(view.result):
            if extent[dim] == 1 and size > block[dim]:
                found.append(self._reduce_line(view, at, extent, size, block[dim]))
                continue
            wide = tuple(n * size if i == dim else n for i, n in enumerate(extent))
            origin = tuple(n * size if i == dim else n for i, n in enumerate(at))
            part = self.region(view.value, origin, wide)
            found.append(self._reduced(view, part, size))
        return found

    def _reduce_line(self, view: ReductionOp, at: Shape, extent: Shape, size: int, block: int) -> ir.Value:
        """One result of each line: blocks are combined with each other first, and then the block that is left."""
        (dim,) = view.dims
        groups: dict[int, list[ir.Value]] = {}
        for start in range(0, size, block):
            n = min(block, size - start)
            wide = tuple(n if i == dim else m for i, m in enumerate(extent))
            origin = tuple(a * size + start if i == dim else a for i, a in enumerate(at))
            groups.setdefault(n, []).append(self.region(view.value, origin, wide))
        kind = view.kind.value
        sums = [self._reduced(view, _tree(kind, group), n) for n, group in groups.items()]
        return _tree(kind, sums)

    def _reduced(self, view: ReductionOp, value: ir.Value, size: int) -> ir.Value:
        if size == 1:
            return value
        (dim,) = view.dims
        shape = tuple(n // size if i == dim else n for i, n in enumerate(shape_of(value)))
        given = size if shape[dim] > 1 else None
        made = ReductionOp(view.kind, value, view.dims, result=reshaped(value.type, shape), reduction_size=given)
        found: ir.Value = made.result
        return found

    @rebuilds("xetile.broadcast")
    def _broadcast(self, view: BroadcastOp) -> list[ir.Value]:
        (dim,) = view.dims
        times = view.broadcast_size
        made: dict[tuple[Shape, Shape], ir.Value] = {}
        found = []
        for at, size in self.plan.parts(view.result):
            if times is None:
                origin, extent = _with(at, dim, 0), _with(size, dim, 1)
                skip = 0
            else:
                first, last = at[dim] // times, (at[dim] + size[dim] - 1) // times
                origin, extent = _with(at, dim, first), _with(size, dim, last - first + 1)
                skip = at[dim] - first * times
            key = (origin, (*size, skip))
            if key not in made:
                value = self.region(view.value, origin, extent)
                wide = size if times is None else _with(size, dim, extent[dim] * times)
                if wide != extent:
                    kind = reshaped(value.type, wide)
                    given = times if times and extent[dim] > 1 else None
                    value = BroadcastOp(value, view.dims, result=kind, broadcast_size=given).result
                made[key] = cut(value, _with((0, 0), dim, skip), size)
            found.append(made[key])
        return found


def _with(shape: Shape, dim: int, size: int) -> Shape:
    return tuple(size if i == dim else n for i, n in enumerate(shape))


def _tree(kind: str, values: Sequence[ir.Value]) -> ir.Value:
    """All values combined, neighbours first."""
    left = list(values)
    while len(left) > 1:
        pairs = [combine(kind, a, b) for a, b in zip(left[::2], left[1::2])]
        left = pairs + ([left[-1]] if len(left) % 2 else [])
    return left[0]


def _plus(value: int | ir.Value, number: int) -> int | ir.Value:
    if isinstance(value, int):
        return value + number
    return arith.addi(value, index(number)) if number else value
