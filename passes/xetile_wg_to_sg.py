"""`xetile-wg-to-sg`: distributes workgroup tiles to subgroups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mlir import ir
from mlir.dialects import vector

from xegpu_py.dialects.xegpu.matrix_ops import SCALE_BLOCK
from xegpu_py.dialects.xetile import (
    AtomicRmwOp,
    BroadcastOp,
    InitTileOp,
    LoadOp,
    ReductionOp,
    StoreOp,
    Tile,
    TileMmaOp,
    TransposeOp,
    WgMap,
)
from xegpu_py.dialects.xetile.ops import MAP, SUBGROUPS, subgroups
from xegpu_py.ir.builtin import is_print
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.layout import WgTiles
from xegpu_py.layout.maps import dealing_problem
from xegpu_py.passes.analysis.ir_queries import (
    attributes_of,
    element_of,
    is_used,
    is_vector,
    shape_of,
    target_for,
    tile_kernels,
)
from xegpu_py.passes.analysis.shuffle_distribution import (
    SHUFFLE_OPS,
    is_local,
    local_rows,
    moved_dim,
    runs_of,
    shuffle_map,
    shuffled_rows,
)
from xegpu_py.passes.analysis.target_messages import hints_of
from xegpu_py.passes.analysis.tile_layout_inference import (
    Layouts,
    bitcast_map,
    check_counts,
    clone_with_shape,
    contracted_at_once,
    has_maps,
    is_elementwise,
    is_splat,
    product_operands,
    splat_with_shape,
    use_tile_ops,
)
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.rematerialization import Rematerialization
from xegpu_py.passes.rewriting.rewriter import Results, Rule, Rules
from xegpu_py.passes.rewriting.subgroup_layout_conversion import Subgroup
from xegpu_py.passes.rewriting.tile_conversion import TileConversion, is_tile
from xegpu_py.target import Target


@register_pass("xetile-wg-to-sg")
class XeTileWgToSg(Pass):
    """Distribute tiles of workgroups to subgroups.

    The maps of tiles and vectors define the distribution. A subgroup computes its parts from `gpu.subgroup_id`. A
    tile larger than its map's `sg_layout` x `sg_data` becomes several tiles. Subgroups share the parts of a smaller
    tile, and the first of them stores. For `xetile.convert_layout`, transposes, and reductions across subgroups, a
    subgroup may need elements of others. These go through shared local memory with a barrier between writing and
    reading, and a second barrier in loops. Elements that the subgroup has itself stay in registers, and those that
    follow from their positions, as masks do, are computed again. A barrier that follows one of an exchange at once is
    left out. A contraction of matrices whose code would be long reads its factors from there in a loop over K. Maps
    must be complete: see `xetile-infer-layout`. `target` determines the size of shared local memory.

        %t = xetile.init_tile %A[%m, 0] : memref<1024x1024xf32> -> !xetile.tile<256x128xf32, #xetile.tile_attr<wg_map =
          <sg_layout = [8, 4], sg_data = [32, 32]>>>

    becomes

        %id = gpu.subgroup_id : index
        %row = arith.divui %id, %c4 : index
        %column = arith.remui %id, %c4 : index
        %y = arith.muli %row, %c32 : index
        %x = arith.muli %column, %c32 : index
        %my = arith.addi %m, %y : index
        %t = xetile.init_tile %A[%my, %x] : memref<1024x1024xf32> -> !xetile.tile<32x32xf32>
    """

    target: str = ""

    def run(self, op: ir.Operation) -> None:
        for func in tile_kernels(op):
            if has_maps(func):
                Distribution(func, target_for(func, self.target)).run()


# Converts the kernel of a workgroup to that of one subgroup.

rule: Rules[Rule[Distribution]] = Rules()
"""The rules by op name. Ops without a rule are elementwise, or work on whole vectors."""


class Distribution(TileConversion):
    """The conversion of a kernel's vectors and tiles to the parts that a subgroup owns, one per round of the map.

    Attributes:
        target: the GPU.
        layouts: the maps of the workgroup's vectors and tiles.
        subgroup: the subgroup that executes the kernel.
    """

    rules = rule

    def __init__(self, func: ir.Operation, target: Target) -> None:
        super().__init__(func)
        self.target = target
        use_tile_ops(func)
        self.layouts = Layouts(func)
        self._parts: dict[tuple[ir.Value, WgTiles, ir.Block], list[ir.Value]] = {}
        self._rematerialization = Rematerialization(self.replacement)
        check_counts(func, self.layouts)
        block = func.regions[0].blocks[0]
        for argument in block.arguments:
            if is_vector(argument) or is_tile(argument):
                emit_error(func, f"has an argument of type {argument.type}, which cannot be divided among subgroups")
        first = block.operations[0]
        with ir.InsertionPoint(first), first.location:
            self.subgroup = Subgroup()

    def run(self) -> None:
        super().run()
        if SUBGROUPS in self.func.attributes:
            del self.func.attributes[SUBGROUPS]
        if self.subgroup.slm_bytes > self.target.slm_bytes:
            emit_error(
                self.func,
                f"exchanges {self.subgroup.slm_bytes} bytes through shared local memory, but target "
                f"{self.target.name} has {self.target.slm_bytes}",
                "use maps under which subgroups own more of the elements that they use, or smaller tiles",
            )

    def tiles_of(self, value: ir.Value) -> WgTiles:
        """The distribution of an old value's parts to subgroups."""
        wg_map = self.layouts.get(value)
        shape = Tile.of(value).shape if is_tile(value) else shape_of(value)
        if wg_map is None:
            return WgTiles.of(shape, [1] * len(shape), shape)
        return WgTiles.of(shape, wg_map.sg_layout, wg_map.sg_data)

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> list[ir.Type] | None:
        if not (is_vector(value) or is_tile(value)):
            return None
        tiles = self.tiles_of(value)
        part = Tile.of(value).part(tiles.data).to_ir() if is_tile(value) else build.with_shape(value.type, tiles.data)
        return [part] * tiles.own_count

    def convert_without_rule(self, op: ir.Operation) -> None:
        if not any(is_vector(v) for v in (*op.operands, *op.results)):
            super().convert_without_rule(op)
        elif is_elementwise(op):
            self.replace(op, *self._elementwise(op))
        else:
            self.replace(op, self._on_vectors(op))

    def _on_vectors(self, op: ir.Operation) -> list[ir.Value]:
        if len(op.results) == 1 and is_splat(op):
            tiles = self.tiles_of(op.results[0])
            return [splat_with_shape(op, [self.replacement(v) for v in op.operands], tiles.data)] * tiles.own_count
        if op.name in ("vector.step", "vector.create_mask"):
            return self._computed(op.results[0], self.tiles_of(op.results[0]))
        if len(op.results) != 1 or not op.name.startswith(("vector.", "arith.constant")):
            self.fail("on vectors cannot be divided among subgroups")
        return self.undivided(op)

    def undivided(self, op: ir.Operation) -> list[ir.Value]:
        """Convert an op that works on whole vectors: each subgroup computes the whole result."""
        operands = []
        for value in op.operands:
            if is_vector(value) and self.layouts.get(value) is not None:
                operands += self.parts(value, self.everywhere(value), op)
            else:
                operands.append(self.replacement(value))
        clone = op.clone()
        for i, operand in enumerate(operands):
            clone.operands[i] = operand
        if MAP in clone.attributes:
            del clone.attributes[MAP]
        (value,) = op.results
        if not is_vector(value) or self.layouts.get(value) is None:
            return [clone.results[0]]
        return self.subgroup.exchange([clone.results[0]], self.everywhere(value), self.tiles_of(value), op)

    def everywhere(self, value: ir.Value) -> WgTiles:
        """The distribution that gives each subgroup the whole of an old vector."""
        shape, wg_map = shape_of(value), self.layouts.get(value)
        assert wg_map is not None
        grid = [subgroups(wg_map), *[1] * (len(shape) - 1)]
        return WgTiles.of(shape, grid, shape)

    def tiles_across(self, op: ir.Operation, value: ir.Value, result_map: WgMap) -> WgTiles:
        """The distribution of an operand or result of an op that moves elements, for that of its result."""
        wg_map = shuffle_map(op, value, op.results[0], result_map)
        assert wg_map is not None
        return WgTiles.of(shape_of(value), wg_map.sg_layout, wg_map.sg_data)

    def parts(self, value: ir.Value, want: WgTiles, user: ir.Operation) -> list[ir.Value]:
        """The parts of an old vector that the subgroup needs; uses in one block share them."""
        key = (value, want, user.block)
        if key not in self._parts:
            compute = self.computing(value, want)
            self._parts[key] = self.subgroup.exchange(self.get(value), self.tiles_of(value), want, user, compute)
        return self._parts[key]

    def computing(self, value: ir.Value, tiles: WgTiles) -> Callable[[], list[ir.Value]] | None:
        """The function that computes parts of an old vector; None if its elements do not follow from positions."""
        return partial(self._computed, value, tiles) if self._rematerialization.is_cheap(value) else None

    def _computed(self, value: ir.Value, tiles: WgTiles) -> list[ir.Value]:
        return [self._rematerialization.part(value, (s, tiles.data)) for s in self.subgroup.starts(tiles)]

    def _elementwise(self, op: ir.Operation) -> list[list[ir.Value]]:
        """The parts of each result."""
        tiles = self.tiles_of(op.results[0])
        groups = [self.parts(v, tiles, op) if is_vector(v) else None for v in op.operands]
        rounds = []
        for i in range(tiles.own_count):
            operands = [self.replacement(v) if g is None else g[i] for v, g in zip(op.operands, groups)]
            rounds.append(clone_with_shape(op, operands, tiles.data))
        parts = [list(p) for p in zip(*rounds)]
        owns = map(self.tiles_of, op.results)
        return [p if to == tiles else self.subgroup.exchange(p, tiles, to, op) for p, to in zip(parts, owns)]

    def combined(self, view: ReductionOp, have: WgTiles) -> list[ir.Value]:
        """Combine and reduce the parts of a subgroup that are consecutive along the dimension."""
        (dim,) = view.dims
        down, across = have.rounds
        parts = self.get(view.value)
        lines = (
            [parts[c::across] for c in range(across)]
            if dim == 0
            else [parts[r * across : (r + 1) * across] for r in range(down)]
        )
        reduced_parts = []
        for line in lines:
            total = line[0]
            for part in line[1:]:
                total = view.kind.combine(total, part)
            reduced_parts.append(self.reduced(view, total, have.data[dim]))
        return reduced_parts

    @staticmethod
    def reduced(view: ReductionOp, part: ir.Value, size: int) -> ir.Value:
        (dim,) = view.dims
        if size == 1:
            return part
        shape = tuple(n // size if i == dim else n for i, n in enumerate(shape_of(part)))
        reduction_size = size if shape[dim] > 1 else None
        return ReductionOp(
            view.kind, part, view.dims, result=build.with_shape(part.type, shape), reduction_size=reduction_size
        ).result


@rule("vector.shape_cast")
def shape_cast(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """Cast each subgroup's elements; elements that other subgroups have are exchanged."""
    source, result = op.operands[0], op.results[0]
    if d.layouts.get(source) is None or d.layouts.get(result) is None:
        return d.undivided(op)
    compute = d.computing(result, d.tiles_of(result))
    return d.subgroup.reshape(d.get(source), d.tiles_of(source), d.tiles_of(result), op, compute)


@rule("vector.bitcast")
def bitcast(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """Cast each part, or the whole vector if parts would divide elements."""
    (value,), (result,) = op.operands, op.results
    wg_map = bitcast_map(d.layouts.get(result), result, value)
    if wg_map is None or wg_map.problem_for(shape_of(value)):
        return d.undivided(op)
    tiles = WgTiles.of(shape_of(value), wg_map.sg_layout, wg_map.sg_data)
    kind = build.with_shape(result.type, d.tiles_of(result).data)
    return [vector.bitcast(kind, part) for part in d.parts(value, tiles, op)]


@rule(*SHUFFLE_OPS)
def moved_across(d: Distribution, op: ir.Operation) -> Results:
    """Convert ops that move elements along a dimension.

    If parts exchange no elements, each is moved on its own. Otherwise rows go through shared local memory, or each
    subgroup gets the whole dimension.
    """
    result = op.results[0]
    result_map, dim = d.layouts.get(result), moved_dim(op)
    if result_map is None or dim is None or any(d.layouts.get(v) is None for v in op.operands):
        return d.undivided(op)
    tiles = d.tiles_of(result)
    if not is_local(op, tiles.counts[dim]):
        wg_map = shuffle_map(op, result, result, result_map)
        assert wg_map is not None
        if wg_map.sg_data[dim] < tiles.shape[dim]:
            rows = shuffled_rows(op) or ()
            runs = runs_of(rows, tiles.counts[dim])
            if runs is None:
                return d.undivided(op)
            sources = list(op.operands)[: 1 + (max(rows) >= shape_of(op.operands[0])[0])]
            return d.subgroup.shuffle_rows([(d.get(v), d.tiles_of(v)) for v in sources], runs, tiles, op)
        tiles = WgTiles.of(tiles.shape, wg_map.sg_layout, wg_map.sg_data)
    part_map = WgMap(tiles.grid, tiles.data)
    groups = [d.parts(v, d.tiles_across(op, v, part_map), op) for v in op.operands]
    attributes = {n: a for n, a in attributes_of(op).items() if n != MAP}
    if op.name == "vector.extract_strided_slice":
        attributes["sizes"] = build.integer_array(tiles.data)
    elif op.name == "vector.shuffle":
        attributes["mask"] = build.i64_array(local_rows(op, tiles.counts[dim]) or ())
    kinds = [build.with_shape(result.type, tiles.data)] * len(op.results)
    moved_parts = [build.create(op.name, kinds, operands, attributes).results for operands in zip(*groups, strict=True)]
    exchanged = [
        d.subgroup.exchange(list(new), tiles, d.tiles_of(v), op) for new, v in zip(zip(*moved_parts), op.results)
    ]
    return tuple(exchanged)


@rule("gpu.barrier")
def barrier(d: Distribution, op: ir.Operation) -> None:
    """Leave out a barrier that follows that of an exchange, if no other memory was accessed since."""
    if d.subgroup.has_just_waited(op):
        d.erase(op)
    else:
        d.keep(op)


@rule("xetile.init_tile")
def init_tile(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """A tile for each part that the subgroup owns."""
    view: InitTileOp = op.opview
    tile, tiles = Tile.of(view.tile), d.tiles_of(view.tile)
    kind = tile.part(tiles.data).to_ir()
    source = d.replacement(view.source)
    if view.indices is not None:
        parts = d.parts(view.indices, tiles, op)
        return [InitTileOp(source, [], indices=p, tile=kind).tile for p in parts]
    offsets, shape, strides = (
        [v if isinstance(v, int) else d.replacement(v) for v in group]
        for group in (view.offsets, view.shape, view.strides)
    )
    new_tiles = []
    for start in d.subgroup.starts(tiles):
        part_offsets: list[build.Index] = [*offsets[:-2], *(build.add(a, b) for a, b in zip(offsets[-2:], start))]
        bounds = {"in_bounds": view.in_bounds, "clipped": view.clipped}
        new_tiles.append(InitTileOp(source, part_offsets, shape or None, strides or None, tile=kind, **bounds).tile)
    return new_tiles


@rule("xetile.update_tile_offset")
def update_tile_offset(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """Move each part by the same offsets."""
    view: Any = op.opview
    tiles = d.get(view.tile)
    if view.indices is not None:
        parts = d.parts(view.indices, d.tiles_of(view.tile), op)
        return [type(view)(t, [], indices=p, result=t.type).result for t, p in zip(tiles, parts, strict=True)]
    offsets = [v if isinstance(v, int) else d.replacement(v) for v in view.offsets]
    return [type(view)(t, offsets, result=t.type).result for t in tiles]


@rule("xetile.prefetch_tile")
def prefetch_tile(d: Distribution, op: ir.Operation) -> None:
    """A prefetch of each part."""
    view: Any = op.opview
    for tile in d.get(view.tile):
        type(view)(tile, **hints_of(view))
    d.replace(op)


@rule("xetile.load_tile", "xetile.load")
def load(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """A load of each part."""
    view: Any = op.opview
    tiles = d.tiles_of(view.value)
    masks: Sequence[ir.Value | None] = [None] * tiles.own_count
    scattered = isinstance(view, LoadOp)
    if scattered and view.mask is not None:
        masks = d.parts(view.mask, tiles, op)
    hints = {"padding": view.padding, **hints_of(view)}
    kind = build.with_shape(view.value.type, tiles.data)
    tiles_and_masks = zip(d.get(view.tile), masks, strict=True)
    return [type(view)(t, *([m] if scattered else []), value=kind, **hints).value for t, m in tiles_and_masks]


@rule("xetile.store_tile", "xetile.store", "xetile.atomic_rmw")
def store(d: Distribution, op: ir.Operation) -> Results:
    """Stores and atomic ops: the first of the subgroups that share a part executes the op."""
    view: Any = op.opview
    tiles = d.tiles_of(view.tile)
    first = d.subgroup.is_first(tiles)
    values, updates = d.parts(view.value, tiles, op), isinstance(view, AtomicRmwOp)

    def optional(name: str) -> Sequence[ir.Value | None]:
        vector = getattr(view, name, None)
        return [None] * len(values) if vector is None else d.parts(vector, tiles, op)

    masks, expected = optional("mask"), optional("expected")

    def act() -> list[ir.Value]:
        results = []
        for part, tile, mask, expected_part in zip(values, d.get(view.tile), masks, expected, strict=True):
            if updates:
                results.append(type(view)(view.kind, part, tile, mask, expected_part, result=part.type).result)
                continue
            type(view)(part, tile, *([mask] if isinstance(view, StoreOp) else []), **hints_of(view))
        return results

    if first is None:
        previous: Sequence[ir.Value] = act()
    elif updates and is_used(view.result):
        previous = d.subgroup.exchange_through_memory(act, element_of(view.value), tiles, tiles, op)
    else:
        build.if_(first, [], lambda: act()[:0])
        previous = values
    return list(previous) if updates else ()


@rule("gpu.printf")
def printf(d: Distribution, op: ir.Operation) -> None:
    """Print once for the workgroup."""
    first = build.compare("eq", d.subgroup.id, 0)
    build.if_(
        first, [], lambda: list(build.create_like(op, [], [d.replacement(value) for value in op.operands]).results)
    )
    d.replace(op)


@rule("func.call")
def call(d: Distribution, op: ir.Operation) -> None:
    """Print each part, by the first of the subgroups that share it; other calls are elementwise."""
    if not (is_print(op) and is_elementwise(op)):
        d.convert_without_rule(op)
        return
    tiles = d.tiles_of(op.operands[0])
    groups = [d.parts(v, tiles, op) if is_vector(v) else [d.replacement(v)] * tiles.own_count for v in op.operands]

    def act() -> list[ir.Value]:
        return [value for operands in zip(*groups) for value in clone_with_shape(op, operands, tiles.data)]

    first = d.subgroup.is_first(tiles)
    if first is None:
        act()
    else:
        build.if_(first, [], act)
    d.replace(op)


@rule("xetile.tile_mma")
def tile_mma(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """A product for each part of the result, from whole rows and columns of the factors."""
    view: TileMmaOp = op.opview
    tiles = d.tiles_of(view.d)
    rows, columns = tiles.data
    depth = shape_of(view.b)[0]
    a_own = WgTiles.of(shape_of(view.a), tiles.grid, (rows, depth))
    b_own = WgTiles.of(shape_of(view.b), tiles.grid, (depth, columns))
    a, b = d.parts(view.a, a_own, op), d.parts(view.b, b_own, op)
    count = tiles.own_count
    c: Sequence[ir.Value | None] = [None] * count if view.c is None else d.parts(view.c, tiles, op)
    kind = build.with_shape(view.d.type, tiles.data)
    across = tiles.rounds[1]

    def scales(value: ir.Value | None, own_shape: tuple[int, int], repeats: int) -> Sequence[ir.Value | None]:
        """The scales of each row or column of parts."""
        if value is None:
            return [None] * repeats
        return d.parts(value, WgTiles.of(shape_of(value), tiles.grid, own_shape), op)

    blocks = -(-depth // SCALE_BLOCK)
    scale_a = scales(view.scale_a, (rows, blocks), tiles.rounds[0])
    scale_b = scales(view.scale_b, (blocks, columns), across)
    products = []
    for i in range(count):
        row, column = i // across, i % across
        products.append(TileMmaOp(a[row], b[column], c[i], scale_a[row], scale_b[column], d=kind).d)
    return products


@rule("vector.contract")
def contraction(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """A product for each part of the result, by fused multiplications and additions.

    Where their code would be long, a loop over K reads parts of the factors from shared local memory.
    """
    if not product_operands(op) or d.layouts.get(op.results[0]) is None:
        return d.undivided(op)
    tiles = d.tiles_of(op.results[0])
    a, b, c = op.operands
    sums, depth = d.parts(c, tiles, op), shape_of(b)[0]
    size = contracted_at_once(op, tiles)

    def added(a_parts: Sequence[ir.Value], b_parts: Sequence[ir.Value], sums: Sequence[ir.Value]) -> list[ir.Value]:
        across = tiles.rounds[1]
        pairs = [(a_parts[i // across], b_parts[i % across]) for i in range(len(sums))]
        return [build.create_like(op, [s.type], [*pair, s]).results[0] for pair, s in zip(pairs, sums)]

    rows, columns = tiles.data
    a_own, b_own = (rows, size), (size, columns)
    if size == depth:
        own = [WgTiles.of(shape_of(v), tiles.grid, data) for v, data in ((a, a_own), (b, b_own))]
        return added(d.parts(a, own[0], op), d.parts(b, own[1], op), sums)
    factors = [(d.get(v), d.tiles_of(v)) for v in (a, b)]
    starts = d.subgroup.starts(tiles)

    def step(k: ir.Value, read: list[Callable[..., ir.Value]], sums: Sequence[ir.Value]) -> list[ir.Value]:
        read_a, read_b = read
        a_parts = [read_a((start[0], k), a_own) for start in starts[:: tiles.rounds[1]]]
        b_parts = [read_b((k, start[1]), b_own) for start in starts[: tiles.rounds[1]]]
        return added(a_parts, b_parts, sums)

    return d.subgroup.loop_over_memory(factors, range(0, depth, size), step, sums, op)


@rule("xetile.convert_layout")
def convert_layout(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """The subgroup's parts under the other map."""
    view: Any = op.opview
    return d.parts(view.value, d.tiles_of(view.result), op)


@rule("xetile.transpose")
def transpose(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """Transpose each part. The operand is exchanged so that the subgroup has the parts that its results need."""
    view: TransposeOp = op.opview
    tiles = d.tiles_of(view.result)
    if view.permutation == (0, 1):
        return d.parts(view.value, tiles, op)
    parts = d.parts(view.value, tiles.transposed(), op)
    kind = build.with_shape(view.result.type, tiles.data)
    transposed = [TransposeOp(p, (1, 0), result=kind).result for p in parts]
    down, across = tiles.rounds
    return [transposed[c * down + r] for r in range(down) for c in range(across)]


@rule("xetile.broadcast")
def broadcast(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """Repeat the elements of each part."""
    view: BroadcastOp = op.opview
    (dim,) = view.dims
    times = view.broadcast_size
    result_tiles = d.tiles_of(view.result)
    if times and dim == 0 and times % result_tiles.data[0] == 0:
        # Each part repeats one row.
        count = result_tiles.counts[0]
        runs = runs_of(tuple(i * result_tiles.data[0] // times for i in range(count)), count)
        rows = result_tiles.replaced(0, count, 1)
        parts = d.subgroup.shuffle_rows([(d.get(view.value), d.tiles_of(view.value))], runs or (), rows, op)
        kind = build.with_shape(view.result.type, result_tiles.data)
        return [BroadcastOp(part, view.dims, result=kind).result for part in parts]
    tiles = _in_groups(result_tiles, dim, times or 1)
    want = (
        tiles.replaced(dim, tiles.shape[dim] // times, tiles.data[dim] // times) if times else tiles.replaced(dim, 1, 1)
    )
    parts = d.parts(view.value, want, op)
    kind = build.with_shape(view.result.type, tiles.data)
    across = tiles.rounds[1]
    results = []
    for i in range(tiles.own_count):
        row, column = divmod(i, across)
        index = column if times is None and dim == 0 else row if times is None else i
        if times is not None and want.data[dim] == 1:
            results.append(BroadcastOp(parts[index], view.dims, result=kind).result)
        else:
            results.append(BroadcastOp(parts[index], view.dims, result=kind, broadcast_size=times).result)
    return d.subgroup.exchange(results, tiles, result_tiles, op)


@rule("xetile.reduction")
def reduction(d: Distribution, op: ir.Operation) -> list[ir.Value]:
    """Reduce each part, and combine the results of several subgroups through shared local memory."""
    view: ReductionOp = op.opview
    (dim,) = view.dims
    value_tiles, result_tiles = d.tiles_of(view.value), d.tiles_of(view.result)
    size = view.reduction_size or value_tiles.shape[dim]
    have = _in_groups(value_tiles, dim, size) if size < value_tiles.shape[dim] else value_tiles
    parts = d.subgroup.exchange(d.get(view.value), value_tiles, have, op)
    data, owners = have.data[dim], have.owners[dim]
    if data % size == 0:
        local = have.replaced(dim, have.shape[dim] // size, data // size)
        parts = [d.reduced(view, p, size) for p in parts]
        return d.subgroup.exchange(parts, local, result_tiles, op)
    parts = d.combined(view, have)
    # The partial results of all subgroups, side by side.
    partial = have.replaced(dim, owners, 1)
    whole = result_tiles.replaced(dim, owners, owners)
    gathered = d.subgroup.exchange(parts, partial, whole, op)
    return [d.reduced(view, p, owners) for p in gathered]


def _in_groups(tiles: WgTiles, dim: int, size: int) -> WgTiles:
    """A distribution like this one, but with whole groups of `size` elements along a dimension in each part."""
    whole = tiles.shape[dim]
    fitting = [n for n in range(size, whole + 1, size) if dealing_problem(whole, tiles.grid[dim], n) is None]
    return tiles if tiles.data[dim] % size == 0 else tiles.replaced(dim, whole, fitting[0])
