"""Vectors of offsets that are affine: a number and a multiple of each index, as those of blocks are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mlir import ir
from mlir.dialects import arith

from xegpu_py.ir.dense import integer_elements
from xegpu_py.passes.common.builders import index
from xegpu_py.passes.common.divisors import divisor
from xegpu_py.passes.common.values import constant_of, defining_op, shape_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Affine:
    """The offsets of a vector of some shape: `start`, the values times their factors, and `steps` times the indices."""

    shape: Shape
    steps: tuple[int, ...]
    start: int = 0
    values: tuple[tuple[ir.Value, int], ...] = ()

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        """The sum with, or the difference to, offsets of the same shape."""
        steps = tuple(a + sign * b for a, b in zip(self.steps, other.steps))
        values = self.values + tuple((v, sign * n) for v, n in other.values)
        return Affine(self.shape, steps, self.start + sign * other.start, values)

    def times(self, factor: int) -> Affine:
        """All offsets times a number."""
        values = tuple((v, n * factor) for v, n in self.values)
        return replace(self, steps=tuple(s * factor for s in self.steps), start=self.start * factor, values=values)

    @property
    def is_constant(self) -> bool:
        """Whether all offsets are one known number."""
        return not self.values and not any(s for s, n in zip(self.steps, self.shape) if n > 1)

    def step_of(self, dims: Sequence[int]) -> int | None:
        """The distance of neighbours if some dimensions are collapsed into one; None if it is not constant."""
        found: int | None = None
        size = 1
        for dim in reversed(dims):
            if self.shape[dim] == 1:
                continue
            if found is None:
                found = self.steps[dim]
            elif self.steps[dim] != found * size:
                return None
            size *= self.shape[dim]
        return 0 if found is None else found

    def divisor(self) -> int:
        """The largest power of two that is known to divide the first offset; 0 if it is 0."""
        return math.gcd(self.start, *(divisor(v) * n for v, n in self.values))

    def renamed(self, made: Mapping[ir.Value, ir.Value]) -> Affine:
        """The same offsets with some values replaced by others."""
        return replace(self, values=tuple((made.get(v, v), n) for v, n in self.values))

    def first(self) -> ir.Value:
        """Build the first offset."""
        total = index(self.start)
        for value, factor in self.values:
            total = arith.addi(total, value if factor == 1 else arith.muli(value, index(factor)))
        return total


def affine(value: ir.Value) -> Affine | None:
    """The offsets that a vector holds, if they are affine."""
    shape = shape_of(value)
    op = defining_op(value)
    rule = None if op is None else _RULES.get(op.name)
    return rule(op, shape) if op is not None and rule else None


def _constant(op: ir.Operation, shape: Shape) -> Affine | None:
    attr = op.attributes["value"]
    if not isinstance(attr, ir.DenseElementsAttr):
        return None
    if attr.is_splat:
        return Affine(shape, (0,) * len(shape), int(ir.IntegerAttr(attr.get_splat_value()).value))
    numbers = np.array(integer_elements(ir.DenseIntElementsAttr(attr)), dtype=object).reshape(shape)
    first = numbers[(0,) * len(shape)]
    units = [tuple(int(i == d) for i in range(len(shape))) for d in range(len(shape))]
    steps = tuple(int(numbers[u] - first) if n > 1 else 0 for u, n in zip(units, shape))
    expected = first + sum(s * i for s, i in zip(steps, np.indices(shape).astype(object)))
    return Affine(shape, steps, int(first)) if (numbers == expected).all() else None


def _step(op: ir.Operation, shape: Shape) -> Affine | None:
    return Affine(shape, (1,))


def _broadcast(op: ir.Operation, shape: Shape) -> Affine | None:
    (source,) = op.operands
    if not isinstance(source.type, ir.VectorType):
        known = constant_of(source)
        still = (0,) * len(shape)
        return Affine(shape, still, known) if known is not None else Affine(shape, still, 0, ((source, 1),))
    found = affine(source)
    if found is None:
        return None
    lead = len(shape) - len(found.shape)
    steps = (0,) * lead + tuple(0 if n == 1 else s for s, n in zip(found.steps, found.shape))
    return Affine(shape, steps, found.start, found.values)


def _transpose(op: ir.Operation, shape: Shape) -> Affine | None:
    found = affine(op.operands[0])
    order = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    return found and Affine(shape, tuple(found.steps[i] for i in order), found.start, found.values)


def _cast(op: ir.Operation, shape: Shape) -> Affine | None:
    found = affine(op.operands[0])
    if found is None:
        return None
    pieces: list[tuple[int, int]] = []
    """Sizes and steps of parts that divide the dimensions of both shapes, the innermost first."""
    for size, step in zip(reversed(found.shape), reversed(found.steps)):
        pieces.append((size, step))
    steps = []
    rest = [p for p in pieces if p[0] > 1]
    for wanted in reversed(shape):
        step, have = 0, 1
        while have < wanted:
            if not rest:
                return None
            size, own = rest.pop(0)
            if have > 1 and own != step * have:
                return None
            step = step if have > 1 else own
            missing = wanted // have
            if size > missing:
                if size % missing:
                    return None
                rest.insert(0, (size // missing, own * missing))
                size = missing
            elif missing % size:
                return None
            have *= size
        steps.append(step)
    return Affine(shape, tuple(reversed(steps)), found.start, found.values)


def _sum(op: ir.Operation, shape: Shape) -> Affine | None:
    a, b = (affine(v) for v in op.operands)
    return a.plus(b, -1 if op.name == "arith.subi" else 1) if a and b else None


def _product(op: ir.Operation, shape: Shape) -> Affine | None:
    a, b = (affine(v) for v in op.operands)
    if a is None or b is None:
        return None
    if b.is_constant:
        return a.times(b.start)
    return b.times(a.start) if a.is_constant else None


_RULES: dict[str, Callable[[ir.Operation, Shape], Affine | None]] = {
    "arith.constant": _constant,
    "vector.step": _step,
    "vector.broadcast": _broadcast,
    "vector.transpose": _transpose,
    "vector.shape_cast": _cast,
    "arith.addi": _sum,
    "arith.subi": _sum,
    "arith.muli": _product,
}
