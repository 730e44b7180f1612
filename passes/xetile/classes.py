"""Classes of values that must be divided alike."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir
from xegpu_py.dialects.xetile import ConvertLayoutOp, Tile, TileMmaOp, UpdateTileOffsetOp
from xegpu_py.passes.common.control_flow import carried
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.passes.common.values import is_vector
from xegpu_py.passes.xetile.vectors import is_elementwise, is_splat


def is_tile_choice(op: ir.Operation) -> bool:
    """Whether an op chooses one of two tiles."""
    return op.name == "arith.select" and Tile.accepts(str(op.results[0].type))


def value_classes(ops: Iterable[ir.Operation]) -> UnionFind[ir.Value]:
    """Vectors that elementwise ops and control flow tie together, and tiles that are the same but for their place."""
    classes: UnionFind[ir.Value] = UnionFind()
    for op in ops:
        for group in carried(op):
            classes.join(group)
        if is_elementwise(op) or (is_splat(op) and op.name != "arith.constant"):
            classes.join(v for v in (*op.operands, *op.results) if is_vector(v))
        elif is_tile_choice(op):
            classes.join([op.results[0], *list(op.operands)[1:]])
        elif isinstance(op.opview, (UpdateTileOffsetOp, ConvertLayoutOp)):
            classes.join([op.operands[0], op.results[0]])
        elif isinstance(op.opview, TileMmaOp) and op.opview.c is not None:
            classes.join([op.opview.c, op.opview.d])
    return classes
