"""The rebuilding of loops with prefetches of the tiles that they load."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from xegpu_py.dialects.xetile import PrefetchTileOp, Tile, UpdateTileOffsetOp, WgMap
from xegpu_py.passes.xetile.expansion import Expansion

ROWS, LINE_BYTES = 32, 64
"""Rows, and bytes of a row, that one prefetch brings."""


class Prefetching(Expansion):
    """Adds prefetches to the loops of a kernel."""

    def __init__(self, func: ir.Operation, distance: int) -> None:
        super().__init__(func)
        self._distance = distance
        self._moves: dict[ir.Operation, list[ir.Operation]] = {}

    def more(self, loop: ir.Operation) -> list[ir.Value]:
        body = loop.regions[0].blocks[0]
        moves = self._moves[loop] = []
        begun = []
        yields = list(list(body.operations)[-1].operation.operands)
        for init, argument, yielded in zip(list(loop.operands)[3:], list(body.arguments)[1:], yields):
            if not Tile.accepts(str(argument.type)) or Tile.of(argument).attr.memory_space:
                continue
            move = None if isinstance(yielded.owner, ir.Block) else yielded.owner.operation
            loaded = any(u.owner.operation.name == "xetile.load_tile" for u in argument.uses)
            if move is None or move.name != UpdateTileOffsetOp.OPERATION_NAME or not loaded:
                continue
            outside = all(v in self.values for v in list(move.operands)[1:])
            if move.operands[0] != argument or not outside:
                continue
            moves.append(move)
            begun.append(self._begin(init, move))
        return begun

    def more_yielded(self, loop: ir.Operation, carried: Sequence[ir.Value]) -> list[ir.Value]:
        return [self._step(tile, move) for tile, move in zip(carried, self._moves[loop])]

    def _begin(self, init: ir.Value, move: ir.Operation) -> ir.Value:
        """The tile that the loop prefetches first, after those before it have been prefetched."""
        tile = self.one(init)
        wg_map = Tile.of(tile).wg_map
        owner = tile.owner
        if wg_map and not isinstance(owner, ir.Block) and owner.operation.name == "xetile.init_tile":
            own = owner.operation.clone()
            own.results[0].set_type(Tile.of(tile).with_map(spread(Tile.of(tile), wg_map)).to_ir())
            tile = own.results[0]
        for _ in range(self._distance):
            tile = self._step(tile, move)
        return tile

    def _step(self, tile: ir.Value, move: ir.Operation) -> ir.Value:
        PrefetchTileOp(tile, l1_hint="cached", l3_hint="cached")
        offsets = [v if isinstance(v, int) else self.one(v) for v in move.opview.offsets]
        made: ir.Value = UpdateTileOffsetOp(tile, offsets, result=tile.type).result
        return made


def spread(tile: Tile, wg_map: WgMap) -> WgMap:
    """The map by which as many subgroups prefetch a tile, each another part that one message brings if possible."""
    count = 1
    for n in wg_map.sg_layout:
        count *= n
    best, best_cost = wg_map, None
    for down in (d for d in range(1, count + 1) if count % d == 0):
        data = []
        for size, layout in zip(tile.shape, (down, count // down)):
            data.append(size // layout if size % layout == 0 else size)
        found = WgMap((down, count // down), tuple(data))
        if found.problem_for(tile.shape):
            continue
        messages = -(-data[0] // ROWS) * -(-data[1] * tile.bits // 8 // LINE_BYTES)
        wasted = data[0] * data[1] * count - tile.shape[0] * tile.shape[1]
        # Narrow parts share lines of the cache.
        narrow = max(LINE_BYTES - data[1] * tile.bits // 8, 0)
        cost = (messages, wasted, narrow)
        if best_cost is None or cost < best_cost:
            best, best_cost = found, cost
    return best
