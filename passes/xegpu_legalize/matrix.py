"""Splits `dpas` and `dpas_mx` into one instruction per tile of the result and step of K."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode
from xegpu_py.dialects.xegpu.matrix import MAX_REPEAT_COUNT, SCALE_BLOCK
from xegpu_py.ir.builtin import bit_width
from xegpu_py.numerics.block_scaled import ROWS
from xegpu_py.passes.common.builders import with_shape
from xegpu_py.passes.common.messages import dpas_step, precision_of, scaled_problem
from xegpu_py.passes.common.registers import shape_and_element
from xegpu_py.passes.common.values import defining_op, shape_of
from xegpu_py.passes.xegpu_legalize import boxes
from xegpu_py.passes.xegpu_legalize.conversion import Legalization, pattern
from xegpu_py.target import Target

SCALED = "xegpu.dpas_mx"
"""The op name of products of block-scaled matrices; each of its steps is one bdpas."""

PRODUCTS = ("xegpu.dpas", SCALED)
"""The op names of matrix products."""


class DpasBlocks(Struct, frozen=True):
    """The division of a product into instructions, and their order.

    A product is computed slab by slab, and operands are loaded directly before their slab. A slab is as deep as a
    message of A is wide. Alternatively it has all of K, and the columns of one message of B; messages are then larger,
    and this is chosen if it needs no more registers. With loads an iteration ahead, a slab is one instruction deep.

    Attributes:
        rows, columns, depth: M, N and K.
        step_columns, step: N and K of an instruction; instructions at the edges are padded with zeros.
        slab_columns, slab_depth: columns, and elements of K, of a slab.
        least_rows: the fewest rows of an instruction.
    """

    rows: int
    columns: int
    depth: int
    step_columns: int
    step: int
    slab_columns: int
    slab_depth: int
    least_rows: int = 1

    @property
    def bounds(self) -> boxes.Bounds:
        """The sizes of the pieces of the result."""
        return boxes.segments(self.rows, range(0, self.rows, MAX_REPEAT_COUNT)), boxes.segments(
            self.columns, range(0, self.columns, self.step_columns)
        )


def dpas_blocks(view: Any, target: Target, ahead: bool = False) -> DpasBlocks | None:
    """The division of a dpas; None if the target does not multiply these elements.

    Args:
        ahead: whether loads are issued one iteration ahead.
    """
    (shape, a), (_, b) = shape_and_element(view.lhs.type), shape_and_element(view.rhs.type)
    scaled = view.operation.name == SCALED
    return _blocks(shape_of(view.result), math.prod(shape[1:]), b, a, scaled, target, ahead)


@lru_cache(maxsize=256)
def _blocks(
    result: boxes.Shape, depth: int, b: str, a: str, scaled: bool, target: Target, ahead: bool
) -> DpasBlocks | None:
    w_precision, a_precision = precision_of(b), precision_of(a)
    if scaled_problem(target) if scaled else {w_precision, a_precision} - set(target.dpas_precisions):
        return None
    m, n = result
    step, across = dpas_step(w_precision, a_precision, target), target.dpas_columns(n) or target.dpas_exec_size
    slab_columns, slab_depth = n, depth
    if (limits := target.block2d) is not None:
        bits = bit_width(b)
        counts = limits.counts.get(bits, (1,))
        widest = max((c * across for c in counts if c * across * bits <= limits.row_bytes * 8), default=across)
        slab_depth = max(limits.row_bytes * 8 // bit_width(a), step)
        if ahead:
            slab_columns, slab_depth = widest, step
        elif slab_depth < depth <= limits.load_height and depth * (m + widest) <= slab_depth * (m + n):
            slab_columns, slab_depth = widest, depth
    return DpasBlocks(m, n, depth, across, step, slab_columns, slab_depth, ROWS if scaled else 1)


@pattern(*PRODUCTS)
def dpas(low: Legalization, op: ir.Operation) -> None:
    """Split a product. K is the outermost loop of a slab, so that dependent instructions are not adjacent."""
    view: Any = op.opview
    blocks = dpas_blocks(view, low.plan.target, low.plan.ahead) if view.mode == Mode.VC else None
    if blocks is None or (blocks.rows, blocks.columns, blocks.depth) == (
        max(min(blocks.rows, MAX_REPEAT_COUNT), blocks.least_rows), blocks.step_columns, blocks.step,
    ):  # fmt: skip
        low.keep(op)
        return
    tiles = list(boxes.grid(blocks.bounds))
    wide = [((row, max(rows, blocks.least_rows)), (column, blocks.step_columns)) for (row, rows), (column, _) in tiles]
    sums = [None if view.acc is None else low.padded(view.acc, box) for box in wide]
    held: dict[Any, ir.Value] = {}

    def factor(value: ir.Value, outer: tuple[int, int], inner: tuple[int, int], depth: int) -> ir.Value:
        """A part of a factor. Dimension `depth` is K, and the innermost dimension may hold packed elements of K."""
        packed = shape_of(value)[2:]
        box = [outer, inner, *((0, n) for n in packed)]
        box[depth] = (box[depth][0] // math.prod(packed), box[depth][1] // math.prod(packed))
        key = (value, outer, inner)
        if key not in held:
            held[key] = low.padded(value, tuple(box))
        return held[key]

    def scales(row: tuple[int, int], column: tuple[int, int], k: int) -> dict[str, ir.Value]:
        """The scales of the blocks of K that a step is in."""
        if op.name != SCALED:
            return {}
        along = (k // SCALE_BLOCK, -(-blocks.step // SCALE_BLOCK))
        given = {"scale_a": (view.scale_a, (row, along)), "scale_b": (view.scale_b, (along, column))}
        return {name: low.padded(value, box) for name, (value, box) in given.items() if value is not None}

    build = xegpu.dpas_mx if op.name == SCALED else xegpu.dpas
    slabs = itertools.product(range(0, blocks.depth, blocks.slab_depth), range(0, blocks.columns, blocks.slab_columns))
    for first, left in slabs:
        operands: dict[ir.Value, None] = {}
        start: ir.Operation | None = None
        for k in range(first, min(first + blocks.slab_depth, blocks.depth), blocks.step):
            for i, (row, column) in enumerate(wide):
                if not left <= column[0] < left + blocks.slab_columns:
                    continue
                a = factor(view.lhs, row, (k, blocks.step), 1)
                b = factor(view.rhs, (k, blocks.step), column, 0)
                operands.update({a: None, b: None})
                # The first instruction reads the accumulator in its own type; partial results have the result's type.
                kind = with_shape(view.result.type, (row[1], blocks.step_columns))
                given = scales(row, column, k)
                sums[i] = build(a, b, acc=sums[i], result=kind, mode=view.mode, **given)
                start = start or defining_op(sums[i])
        if (first or left) and start is not None:
            low.slabs.append((start, list(operands)))
    parts = [low.part(s, ((0, row[1]), (0, column[1]))) for s, (row, column) in zip(sums, tiles) if s is not None]
    low.divide(op, blocks.bounds, parts)
