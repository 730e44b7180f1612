"""`xetile-prefetch`: loops prefetch the tiles that they load some iterations later."""

from __future__ import annotations

import math

from mlir import ir
from mlir.dialects import scf

from xegpu_py.dialects.xetile import InitTileOp, LoadTileOp, PrefetchTileOp, Tile, UpdateTileOffsetOp, WgMap
from xegpu_py.ir.control_flow import terminator, yielded
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import arguments_of, block_of, defining_op, target_for, tile_kernels
from xegpu_py.passes.rewriting.builders import add, clone_with_operands, fold_index, index, loop_carrying, multiply
from xegpu_py.passes.rewriting.tile_conversion import is_tile
from xegpu_py.target import FARTHEST_PREFETCH, Target
from xegpu_py.target.message_rules import Block2DLimits


@register_pass("xetile-prefetch")
class XeTilePrefetch(Pass):
    """Prefetch the tiles that loops load.

    Each loop prefetches the tiles that it loads, `distance` iterations ahead. These are the tiles that each iteration
    advances, and tiles whose offsets depend on the loop's counter. The tiles of the first iterations are prefetched
    before the loop. At workgroup level, each subgroup prefetches another part of the tile, so that a tile which several
    subgroups load is prefetched once.

        %r = scf.for %k = %c0 to %K step %c32 iter_args(%t = %t0) -> (!xetile.tile<32x32xbf16>) {
          %a = xetile.load_tile %t : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
          ...
          %u = xetile.update_tile_offset %t, [0, 32] : !xetile.tile<32x32xbf16>
          scf.yield %u : !xetile.tile<32x32xbf16>
        }

    becomes, with `distance=1`,

        xetile.prefetch_tile %t0 {l1_hint = cached, l3_hint = cached} : !xetile.tile<32x32xbf16>
        %p0 = xetile.update_tile_offset %t0, [0, 32] : !xetile.tile<32x32xbf16>
        %r:2 = scf.for %k = %c0 to %K step %c32 iter_args(%t = %t0, %p = %p0) -> (...) {
          ...
          xetile.prefetch_tile %p {l1_hint = cached, l3_hint = cached} : !xetile.tile<32x32xbf16>
          %q = xetile.update_tile_offset %p, [0, 32] : !xetile.tile<32x32xbf16>
          scf.yield %u, %q : !xetile.tile<32x32xbf16>, !xetile.tile<32x32xbf16>
        }
    """

    distance: int = 1
    target: str = ""

    def run(self, op: ir.Operation) -> None:
        if not 1 <= self.distance <= FARTHEST_PREFETCH:
            bounds = f"distance must be at least 1 and at most {FARTHEST_PREFETCH}"
            self.fail(op, f"cannot prefetch {self.distance} iterations ahead: {bounds}")
        for func in tile_kernels(op):
            prefetching = Prefetching(self.distance, target_for(func, self.target))
            for loop in [inner for inner in walk(func) if inner.name == "scf.for"]:
                prefetching.run(loop)


# Inserts prefetches of the tiles that loops load.


class Prefetching:
    """Adds prefetches to the loops of a kernel."""

    def __init__(self, distance: int, target: Target) -> None:
        self._distance = distance
        self._limits = target.block2d or Block2DLimits()

    def run(self, loop: ir.Operation) -> None:
        """Prefetch the tiles that a loop advances, and those that it makes at places that its counter gives."""
        body = loop.regions[0].blocks[0]
        counter, *arguments = body.arguments
        lower, _, step, *inits = loop.operands
        outs, end = yielded(body), terminator(body)
        moves = [move for argument, out in zip(arguments, outs) if (move := _move_of(argument, out)) is not None]
        tile_inits = [o.operation for o in body.operations if isinstance(o.opview, InitTileOp)]
        tile_inits = [op for op in tile_inits if _is_followed(op, counter)]
        with loop.location, ir.InsertionPoint(loop):
            begun = [self._begin(inits[arguments.index(move.operands[0])], move) for move in moves]
            for op in tile_inits:
                for iteration in range(self._distance):
                    self._make(op, {counter: index(add(lower, multiply(fold_index(step), iteration)))})
        with end.location, ir.InsertionPoint(end):
            for op in tile_inits:
                self._make(op, {counter: index(add(counter, multiply(fold_index(step), self._distance)))})
        if begun:
            carrier = loop_carrying(loop.opview, range(len(outs)), begun)
            with end.location, ir.InsertionPoint(carrier.body):
                nexts = [self._step(*pair) for pair in zip(list(carrier.inner_iter_args)[len(outs) :], moves)]
                scf.YieldOp([*end.operands, *nexts])
            loop.erase()

    def _make(self, op: ir.Operation, stands: dict[ir.Value, ir.Value]) -> None:
        tile = self._spread(clone_with_operands(op, stands))
        PrefetchTileOp(tile, l1_hint="cached", l3_hint="cached")

    def _spread(self, maker: ir.Operation) -> ir.Value:
        """The tile of an op, with the map by which it is prefetched."""
        prefetch_tile: ir.Value = maker.results[0]
        tile = Tile.of(prefetch_tile)
        if tile.wg_map:
            prefetch_tile.set_type(tile.with_map(spread(tile, tile.wg_map, self._limits)).to_ir())
        return prefetch_tile

    def _begin(self, init: ir.Value, move: ir.Operation) -> ir.Value:
        """The tile that the loop prefetches first; the earlier tiles are prefetched here."""
        tile, maker = init, defining_op(init)
        if Tile.of(tile).wg_map and maker is not None and isinstance(maker.opview, InitTileOp):
            tile = self._spread(maker.clone())
        for _ in range(self._distance):
            tile = self._step(tile, move)
        return tile

    def _step(self, tile: ir.Value, move: ir.Operation) -> ir.Value:
        PrefetchTileOp(tile, l1_hint="cached", l3_hint="cached")
        return UpdateTileOffsetOp(tile, move.opview.offsets, result=tile.type).result


def _move_of(argument: ir.Value, out: ir.Value) -> ir.Operation | None:
    """The op that advances a tile that a loop carries and loads, each time by the same; None if there is none."""
    if not is_tile(argument) or Tile.of(argument).attr.memory_space:
        return None
    move = defining_op(out)
    loaded = any(isinstance(u.owner.opview, LoadTileOp) for u in argument.uses)
    if move is None or not isinstance(move.opview, UpdateTileOffsetOp) or not loaded or move.operands[0] != argument:
        return None
    fixed = all(block_of(v) != block_of(argument) for v in list(move.operands)[1:])
    return move if fixed else None


def _is_followed(op: ir.Operation, counter: ir.Value) -> bool:
    """Whether a tile that is made in the loop is loaded at a position that depends on the loop's counter."""
    tile = Tile.of(op.results[0])
    loaded = any(isinstance(u.owner.opview, LoadTileOp) for u in op.results[0].uses)
    moving = any(block_of(v) == counter.owner for v in op.operands)
    in_global = not tile.scattered and not tile.attr.memory_space
    return in_global and loaded and moving and all(arguments_of(v, counter.owner) <= {0} for v in op.operands)


def spread(tile: Tile, wg_map: WgMap, limits: Block2DLimits) -> WgMap:
    """The map by which the same number of subgroups prefetch a tile, each another part, of one message if possible."""
    rows, line = limits.load_height, limits.row_bytes
    count = math.prod(wg_map.sg_layout)
    best, best_cost = wg_map, None
    for down in (d for d in range(1, count + 1) if count % d == 0):
        data = []
        for size, layout in zip(tile.shape, (down, count // down)):
            data.append(size // layout if size % layout == 0 else size)
        found = WgMap((down, count // down), tuple(data))
        if found.problem_for(tile.shape):
            continue
        messages = -(-data[0] // rows) * -(-data[1] * tile.bits // 8 // line)
        wasted = data[0] * data[1] * count - tile.shape[0] * tile.shape[1]
        # Narrow parts share cache lines.
        narrow = max(line - data[1] * tile.bits // 8, 0)
        cost = (messages, wasted, narrow)
        if best_cost is None or cost < best_cost:
            best, best_cost = found, cost
    return best
