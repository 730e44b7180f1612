"""The rebuilding of loops with prefetches of the tiles that they load."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from xegpu_py.dialects.xetile import InitTileOp, PrefetchTileOp, Tile, UpdateTileOffsetOp, WgMap
from xegpu_py.passes.common.builders import add, index, multiply
from xegpu_py.passes.xetile.expansion import Expansion
from xegpu_py.passes.xetile.matrices import known

from xegpu_py.target import Block2DLimits, Target


class Prefetching(Expansion):
    """Adds prefetches to the loops of a kernel."""

    def __init__(self, func: ir.Operation, distance: int, target: Target) -> None:
        super().__init__(func)
        self._distance = distance
        self._limits = target.block2d or Block2DLimits()
        self._moves: dict[ir.Operation, list[ir.Operation]] = {}
        self._made: dict[ir.Operation, list[ir.Operation]] = {}

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
        counter = body.arguments[0]
        inits = [o.operation for o in body.operations if o.operation.name == InitTileOp.OPERATION_NAME]
        made = self._made[loop] = [op for op in inits if self._is_followed(op, counter)]
        lower, _, step = (self.one(v) for v in list(loop.operands)[:3])
        for op in made:
            for turn in range(self._distance):
                self._make(op, {counter: index(add(lower, multiply(known(step), turn)))})
        return begun

    def more_yielded(self, loop: ir.Operation, carried: Sequence[ir.Value]) -> list[ir.Value]:
        counter = loop.regions[0].blocks[0].arguments[0]
        step = known(self.one(list(loop.operands)[2]))
        for op in self._made[loop]:
            self._make(op, {counter: index(add(self.one(counter), multiply(step, self._distance)))})
        return [self._step(tile, move) for tile, move in zip(carried, self._moves[loop])]

    def _is_followed(self, op: ir.Operation, counter: ir.Value) -> bool:
        """Whether a tile made in the loop is loaded, at a place that depends on the loop's counter."""
        tile = Tile.of(op.results[0])
        loaded = any(u.owner.operation.name == "xetile.load_tile" for u in op.results[0].uses)
        moving = any(v not in self.values for v in op.operands)
        in_global = not tile.scattered and not tile.attr.memory_space
        return in_global and loaded and moving and all(self._is_counted(v, counter) for v in op.operands)

    def _is_counted(self, given: ir.Value, counter: ir.Value) -> bool:
        """Whether a value is from outside of the loop, or arithmetic on its counter."""
        if given == counter or given in self.values:
            return True
        if isinstance(given.owner, ir.Block) or not given.owner.operation.name.startswith("arith."):
            return False
        return all(self._is_counted(v, counter) for v in given.owner.operation.operands)

    def _make(self, op: ir.Operation, stands: dict[ir.Value, ir.Value]) -> None:
        """Make the tile of another turn, and prefetch it."""
        made = self._copy(op, stands)
        tile = Tile.of(made.results[0])
        if tile.wg_map:
            made.results[0].set_type(tile.with_map(spread(tile, tile.wg_map, self._limits)).to_ir())
        PrefetchTileOp(made.results[0], l1_hint="cached", l3_hint="cached")

    def _copy(self, op: ir.Operation, stands: dict[ir.Value, ir.Value]) -> ir.Operation:
        """An op of a loop's body, and what it is computed of there, with other values for some."""
        operands = []
        for operand in op.operands:
            owner = operand.owner
            if operand not in stands and not isinstance(owner, ir.Block) and owner.operation.block == op.block:
                stands[operand] = self._copy(owner.operation, stands).results[0]
            operands.append(stands[operand] if operand in stands else self.one(operand))
        made = op.clone()
        for i, operand in enumerate(operands):
            made.operands[i] = operand
        return made

    def _begin(self, init: ir.Value, move: ir.Operation) -> ir.Value:
        """The tile that the loop prefetches first, after those before it have been prefetched."""
        tile = self.one(init)
        wg_map = Tile.of(tile).wg_map
        owner = tile.owner
        if wg_map and not isinstance(owner, ir.Block) and owner.operation.name == "xetile.init_tile":
            own = owner.operation.clone()
            own.results[0].set_type(Tile.of(tile).with_map(spread(Tile.of(tile), wg_map, self._limits)).to_ir())
            tile = own.results[0]
        for _ in range(self._distance):
            tile = self._step(tile, move)
        return tile

    def _step(self, tile: ir.Value, move: ir.Operation) -> ir.Value:
        PrefetchTileOp(tile, l1_hint="cached", l3_hint="cached")
        offsets = [v if isinstance(v, int) else self.one(v) for v in move.opview.offsets]
        made: ir.Value = UpdateTileOffsetOp(tile, offsets, result=tile.type).result
        return made


def spread(tile: Tile, wg_map: WgMap, limits: Block2DLimits) -> WgMap:
    """The map by which as many subgroups prefetch a tile, each another part that one message brings if possible."""
    rows, line = limits.load_height, limits.row_bytes
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
        messages = -(-data[0] // rows) * -(-data[1] * tile.bits // 8 // line)
        wasted = data[0] * data[1] * count - tile.shape[0] * tile.shape[1]
        # Narrow parts share lines of the cache.
        narrow = max(line - data[1] * tile.bits // 8, 0)
        cost = (messages, wasted, narrow)
        if best_cost is None or cost < best_cost:
            best, best_cost = found, cost
    return best
