"""Vectors of workgroups: xetile's are matrices, and those of other ranks become matrices.

A split of a vector's dimensions says which are those of the rows; it is chosen so that as few ops as possible need
another split of their operands. Each op of MLIR's vector dialect has a method that builds it on matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import vector

from xegpu_py.dialects import xetile
from xegpu_py.ir.combining import CombiningKind
from xegpu_py.passes.common.values import shape_of
from xegpu_py.upstream.rebuilding import PREFIX, cast, element_of, vector_type
from xegpu_py.upstream.splits import (
    Shape,
    is_elementwise,
    is_transposed,
    matrix,
    reduced_dims,
    reduced_runs,
)
from xegpu_py.upstream.subgroup import SubgroupImport


class VectorImport(SubgroupImport):
    """Rebuilds ops on vectors of one kernel, in place."""

    def __init__(self, func: ir.Operation) -> None:
        super().__init__(func)
        self.shapes: dict[ir.Value, Shape] = {}
        """The shapes of vectors as upstream has them."""
        self.splits: dict[ir.Value, int] = {}
        # By values: the hash of an op changes with its attributes.
        self.done: set[ir.Value] = set()
        """The first results of ops of other dialects that others are in place of."""
        self.transposed: dict[ir.Value, ir.Value] = {}
        """The results of transpositions that are built without them."""

    def is_replaced(self, op: ir.Operation) -> bool:
        return super().is_replaced(op) or (len(op.results) > 0 and op.results[0] in self.done)

    def rule_of(self, op: ir.Operation) -> Callable[[Any], Sequence[ir.Value] | None] | None:
        if op.name.startswith(PREFIX):
            return super().rule_of(op)
        vectors = [v for v in (*op.operands, *op.results) if v in self.shapes or isinstance(v.type, ir.VectorType)]
        if not vectors or op.regions or op.name in ("scf.yield", "scf.condition", "cf.br", "cf.cond_br"):
            return None
        if is_elementwise(op):
            return None
        rule = _RULES.get(op.name, VectorImport.whole)

        def run(view: Any) -> Sequence[ir.Value] | None:
            made = rule(self, view.operation)
            if made is not None:
                self.done.add(view.operation.results[0])
            return made

        return run

    # Values.

    def as_split(self, value: ir.Value, split: int) -> ir.Value:
        """A vector as the matrix of another split."""
        return cast(value, matrix(self.shapes[value], split))

    def put(self, value: ir.Value, old: ir.Value) -> ir.Value:
        """A matrix in place of a vector of upstream's, whose shape and split it gets.

        A value has one shape. A vector of another shape with the same elements, such as a cast's operand, is another
        value; if both are the same matrix, a cast to its own type distinguishes them until the kernel is rebuilt.
        """
        known = shape, split = self.shapes[old], self.splits[old]
        made = cast(value, matrix(shape, split))
        if made in self.shapes and (self.shapes[made], self.splits[made]) != known:
            made = vector.shape_cast(made.type, made)
        self.shapes[made], self.splits[made] = known
        return made

    def whole(self, op: ir.Operation) -> list[ir.Value]:
        """An op on vectors of any rank, with its original shapes."""
        operands = [cast(v, self.shapes[v]) if v in self.shapes else v for v in op.operands]
        kinds = [vector_type(self.shapes[r], element_of(r)) if r in self.shapes else r.type for r in op.results]
        attributes = dict(op.attributes.items())
        made = ir.Operation.create(op.name, results=kinds, operands=operands, attributes=attributes)
        return [self.put(new, old) if old in self.shapes else new for new, old in zip(made.results, op.results)]

    def constant(self, op: ir.Operation) -> list[ir.Value] | None:
        attr = op.attributes["value"]
        if not isinstance(attr, ir.DenseElementsAttr) or not attr.is_splat:
            return self.whole(op)
        kind = op.results[0].type
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, attr.get_splat_value())
        return None

    def broadcast(self, op: ir.Operation) -> list[ir.Value] | None:
        source, result = op.operands[0], op.results[0]
        if source not in self.shapes:
            return None
        wide, narrow = self.shapes[result], self.shapes[source]
        if is_transposed(op) and len(narrow) == 1:
            # The transpositions build it.
            column = self.as_split(source, 1)
            kind = vector_type((narrow[0], wide[0]), element_of(source))
            made = xetile.BroadcastOp(column, (1,), result=kind).result
            for use in list(result.uses):
                user = use.owner.operation
                with ir.InsertionPoint(user):
                    self.transposed[user.results[0]] = made
            return []
        shape = [*[1] * (len(wide) - len(narrow)), *narrow]
        value = source
        runs: list[list[int]] = []
        for d in range(len(wide)):
            if shape[d] == 1 and wide[d] > 1:
                if runs and all(wide[i] == 1 for i in range(runs[-1][-1] + 1, d)):
                    runs[-1].append(d)
                else:
                    runs.append([d])
        for run in reversed(runs):
            times = math.prod(wide[d] for d in run)
            outer, inner = math.prod(shape[: run[0]]), math.prod(shape[run[-1] + 1 :])
            if inner == 1:
                dim, into, repeat = 1, (outer, times), None
            else:
                dim, into, repeat = 0, (outer * times, inner), times if outer > 1 else None
            kind = vector_type(into, element_of(source))
            value = xetile.BroadcastOp(cast(value, (outer, inner)), (dim,), result=kind, broadcast_size=repeat).result
            for d in run:
                shape[d] = wide[d]
        return [self.put(value, result)]

    def shape_cast(self, op: ir.Operation) -> list[ir.Value]:
        return [self.put(op.operands[0], op.results[0])]

    def transpose(self, op: ir.Operation) -> list[ir.Value]:
        result = op.results[0]
        if result in self.transposed:
            return [self.put(self.transposed[result], result)]
        source = op.operands[0]
        shape = self.shapes[source]
        order = [d for d in ir.DenseI64ArrayAttr(op.attributes["permutation"]) if shape[d] > 1]
        if order == sorted(order):
            return [self.put(source, result)]
        turn = next(i for i in range(1, len(order)) if order[i] < order[i - 1])
        first, last = order[turn:], order[:turn]
        if first != sorted(first) or last != sorted(last) or first[-1] > last[0]:
            return self.whole(op)
        value = self.as_split(source, last[0])
        kind = vector_type(shape_of(value)[::-1], element_of(source))
        return [self.put(xetile.TransposeOp(value, (1, 0), result=kind).result, result)]

    def multi_reduction(self, op: ir.Operation) -> list[ir.Value]:
        source, start = op.operands
        shape = list(self.shapes[source])
        kind = str(op.attributes["kind"]).partition("<")[2].rstrip(">")
        value = source
        for before, _ in reduced_runs(tuple(shape), reduced_dims(op), self.splits[source]):
            value, shape = self._reduce(kind, value, shape, before, reduced_dims(op))
        result = op.results[0]
        if result not in self.shapes:
            one = cast(value, (1, 1))
            whole = CombiningKind(kind).combine(one, vector.broadcast(one.type, start))
            return [vector.extract(whole, [], [0, 0])]
        made = self.put(value, result)
        return [self.put(CombiningKind(kind).combine(made, start), result)]

    def _reduce(
        self, kind: str, value: ir.Value, shape: list[int], split: int, dims: Sequence[int]
    ) -> tuple[ir.Value, list[int]]:
        """Combine the run of `dims` that begins, or ends, at the split. The reduced dimensions then have size 1."""
        element = element_of(value)
        rows, columns = math.prod(shape[:split]), math.prod(shape[split:])
        behind = [d for d in range(split, len(shape)) if shape[d] > 1]
        if behind and all(d in dims for d in behind):
            run, dim, left = behind, 1, (rows, 1)
        else:
            run = []
            for d in range(split - 1, -1, -1):
                if shape[d] > 1 and d not in dims:
                    break
                run.append(d)
            size = math.prod(shape[d] for d in run)
            dim, left = 0, (rows // size, columns)
        if not any(shape[d] > 1 for d in run):
            return value, shape
        size = math.prod(shape[d] for d in run)
        whole = size == (rows, columns)[dim]
        made = xetile.ReductionOp(
            kind, cast(value, (rows, columns)), (dim,), result=vector_type(left, element),
            reduction_size=None if whole else size,
        ).result  # fmt: skip
        return made, [1 if d in run else n for d, n in enumerate(shape)]

    def reduction(self, op: ir.Operation) -> list[ir.Value]:
        source = op.operands[0]
        kind = str(op.attributes["kind"]).partition("<")[2].rstrip(">")
        value, _ = self._reduce(kind, source, list(self.shapes[source]), 0, (0,))
        number = vector.extract(cast(value, (1, 1)), [], [0, 0])
        if len(op.operands) > 1:
            number = CombiningKind(kind).combine(number, op.operands[1])
        return [number]


_RULES: dict[str, Callable[[VectorImport, ir.Operation], list[ir.Value] | None]] = {
    "arith.constant": VectorImport.constant,
    "vector.broadcast": VectorImport.broadcast,
    "vector.splat": VectorImport.broadcast,
    "vector.shape_cast": VectorImport.shape_cast,
    "vector.transpose": VectorImport.transpose,
    "vector.multi_reduction": VectorImport.multi_reduction,
    "vector.reduction": VectorImport.reduction,
}
