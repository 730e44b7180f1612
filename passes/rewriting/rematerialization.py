"""Rematerialization: vectors that follow from the positions of their elements are computed again where they are needed.

Masks and indices are such vectors. A subgroup that needs elements of others computes them, instead of an exchange
through shared local memory with its barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, vector

from xegpu_py.dialects.xetile import BroadcastOp, ConvertLayoutOp
from xegpu_py.passes.analysis.ir_queries import defining_op, is_vector, shape_of
from xegpu_py.passes.analysis.memory_effects import effects_of
from xegpu_py.passes.analysis.tile_division import LONG_OPS
from xegpu_py.passes.analysis.tile_layout_inference import clone_with_shape, is_elementwise, is_splat, splat_with_shape
from xegpu_py.passes.rewriting import builders as build

_MOST_OPS = 32
"""The most ops that are computed again; one of `LONG_OPS` counts as 16."""

Box = tuple[tuple[build.Index, ...], tuple[int, ...]]
"""The first position of a part of a vector, and the part's shape."""


class Rematerialization:
    """Computes parts of vectors whose elements follow from their positions and from scalars."""

    def __init__(self, replacement: Callable[[ir.Value], ir.Value]) -> None:
        """Create it.

        Args:
            replacement: the new value of an old scalar.
        """
        self._replacement = replacement
        self._costs: dict[ir.Value, int] = {}
        self._parts: dict[tuple[ir.Value, Box, ir.Block], ir.Value] = {}

    def is_cheap(self, value: ir.Value) -> bool:
        """Return whether a vector can be computed of positions and scalars, by not too many ops."""
        return self._cost(value) <= _MOST_OPS

    def _cost(self, value: ir.Value) -> int:
        if value not in self._costs:
            self._costs[value] = self._cost_of(value)
        return self._costs[value]

    def _cost_of(self, value: ir.Value) -> int:
        if not is_vector(value):
            return 0
        op = defining_op(value)
        if op is None or len(op.results) > 1 or len(op.regions) or effects_of(op):
            return _MOST_OPS + 1
        if is_splat(op) or op.name in ("vector.step", "vector.create_mask"):
            return 1
        if isinstance(op.opview, BroadcastOp) and op.opview.broadcast_size is None:
            return self._cost(op.operands[0])
        if isinstance(op.opview, ConvertLayoutOp) or _adds_unit_dimensions(op):
            return self._cost(op.operands[0])
        if not is_elementwise(op):
            return _MOST_OPS + 1
        return min(sum(map(self._cost, op.operands)), _MOST_OPS) + (16 if op.name in LONG_OPS else 1)

    def part(self, value: ir.Value, box: Box) -> ir.Value:
        """A part of a vector that `is_cheap`, at the insertion point."""
        key = (value, box, ir.InsertionPoint.current.block)
        if key not in self._parts:
            op = defining_op(value)
            assert op is not None
            self._parts[key] = self._computed(op, *box)
        return self._parts[key]

    def _computed(self, op: ir.Operation, start: Sequence[build.Index], shape: tuple[int, ...]) -> ir.Value:
        kind = build.with_shape(op.results[0].type, shape)
        if is_splat(op):
            return splat_with_shape(op, [*map(self._replacement, op.operands)], shape)
        if op.name == "vector.step":
            return arith.addi(vector.step(kind), vector.broadcast(kind, build.index(start[0])))
        if op.name == "vector.create_mask":
            bounds = [arith.subi(self._replacement(b), build.index(s)) for b, s in zip(op.operands, start)]
            return vector.create_mask(kind, bounds)
        box = tuple(start), shape
        if isinstance(op.opview, ConvertLayoutOp):
            return self.part(op.operands[0], box)
        if isinstance(op.opview, BroadcastOp):
            (dim,) = op.opview.dims
            row = tuple((0, 1) if i == dim else pair for i, pair in enumerate(zip(*box)))
            value = self.part(op.operands[0], (tuple(s for s, _ in row), tuple(n for _, n in row)))
            return BroadcastOp(value, op.opview.dims, result=kind).result
        if op.name == "vector.shape_cast":
            wide = iter([(s, n) for s, n, whole in zip(*box, shape_of(op.results[0])) if whole > 1])
            pairs = [next(wide) if n > 1 else (0, 1) for n in shape_of(op.operands[0])]
            source = self.part(op.operands[0], (tuple(s for s, _ in pairs), tuple(n for _, n in pairs)))
            return build.shape_cast(source, shape)
        operands = [self.part(v, box) if is_vector(v) else self._replacement(v) for v in op.operands]
        return clone_with_shape(op, operands, shape)[0]


def _adds_unit_dimensions(op: ir.Operation) -> bool:
    """Whether an op is a cast between shapes that differ in dimensions of size 1."""
    if op.name != "vector.shape_cast":
        return False
    source, result = (tuple(n for n in shape_of(v) if n > 1) for v in (op.operands[0], op.results[0]))
    return source == result
