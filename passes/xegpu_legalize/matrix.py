"""`dpas`: an instruction for each tile of the result and each step of K."""

from __future__ import annotations

from typing import Any

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode
from xegpu_py.passes.xegpu_legalize import boxes
from xegpu_py.passes.xegpu_legalize.cuts import dpas_cuts
from xegpu_py.passes.xegpu_legalize.plan import shape_of
from xegpu_py.passes.xegpu_legalize.rewrite import Rewriter, rewrites


@rewrites("xegpu.dpas")
def dpas(low: Rewriter, op: ir.Operation) -> bool:
    """K is the outermost loop, so that instructions that wait for each other do not follow each other."""
    view: Any = op.opview
    if view.mode != Mode.VC:
        return False
    found = dpas_cuts(view, low.plan.target)
    shape = shape_of(view.result)
    a_shape, b_shape = shape_of(view.lhs), shape_of(view.rhs)
    assert shape and a_shape and b_shape
    if found is None or max(map(len, found)) == 1:
        return False
    rows, columns, depth = found
    pack_a, pack_b = (s[2] if len(s) == 3 else 1 for s in (a_shape, b_shape))
    tail_a, tail_b = ([(0, p)] if len(s) == 3 else [] for s, p in ((a_shape, pack_a), (b_shape, pack_b)))
    bounds = (boxes.segments(shape[0], rows), boxes.segments(shape[1], columns))
    tiles = list(boxes.grid(bounds))
    sums = [None if view.acc is None else low.part(view.acc, tile) for tile in tiles]
    for k in depth:
        for i, ((row, height), (column, width)) in enumerate(tiles):
            a = low.part(view.lhs, ((row, height), (k // pack_a, depth.step // pack_a), *tail_a))
            b = low.part(view.rhs, ((k // pack_b, depth.step // pack_b), (column, width), *tail_b))
            text = low.vector((height, width), view.result)
            # What is summed first has the accumulator's type, all that follows the result's.
            sums[i] = low.build(xegpu.dpas, a, b, acc=sums[i], result=text, mode=view.mode)
    low.set(view.result, bounds, [s for s in sums if s is not None])
    return True
