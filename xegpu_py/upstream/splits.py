"""How vectors of any rank become matrices: by a split of their dimensions into those of the rows and of the columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from mlir import ir

from xegpu_py.passes.common.control_flow import forwarded_groups
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.upstream.rebuilding import PREFIX

Shape = tuple[int, ...]

PRODUCTS = (PREFIX + "dpas", PREFIX + "dpas_mx")
_SAME_ELEMENT = ("vector.fma", PREFIX + "truncf")


def matrix(shape: Shape, split: int) -> tuple[int, int]:
    """The rows and columns of a vector whose first `split` dimensions are rows."""
    return math.prod(shape[:split]), math.prod(shape[split:])


class Splits:
    """How each vector of a kernel is split into rows and columns. Vectors that one op works on element by element have
    the same."""

    def __init__(self, ops: Sequence[ir.Operation], shapes: dict[ir.Value, Shape]) -> None:
        self.shapes = shapes
        self._alike: UnionFind[ir.Value] = UnionFind()
        self._votes: dict[ir.Value, Counter[int]] = {}
        self._chosen: dict[ir.Value, int] = {}
        for op in ops:
            for group in same_split(op):
                if vectors := [v for v in group if v in shapes]:
                    self._alike.join(vectors)
        for op in ops:
            self._vote(op)
        casts = [op for op in ops if op.name == "vector.shape_cast"]
        self._chosen.update((leader, votes.most_common(1)[0][0]) for leader, votes in self._votes.items())
        for _ in casts:
            if not any(self._follow(op) for op in casts):
                break

    def of(self, value: ir.Value) -> int:
        """The split of a vector: by default the last dimension is the columns."""
        return self._chosen.get(self._alike.find(value), len(self.shapes[value]) - 1)

    def _for(self, value: ir.Value, split: int, weight: int) -> None:
        if value in self.shapes:
            self._votes.setdefault(self._alike.find(value), Counter())[split] += weight

    def _vote(self, op: ir.Operation) -> None:
        name = op.name
        if name.startswith(PREFIX):
            for v in (*op.operands, *op.results):
                if v in self.shapes and len(self.shapes[v]) > 1:
                    self._for(v, len(self.shapes[v]) - 1, 10)
        elif name == "vector.multi_reduction":
            shape = self.shapes[op.operands[0]]
            for before, after in reduced_runs(shape, reduced_dims(op))[-1:]:
                self._for(op.operands[0], before, 5)
                if op.results[0] in self.shapes:
                    left = len(self.shapes[op.results[0]])
                    self._for(op.results[0], min(after, left), 20)
        elif name == "vector.broadcast" and op.operands[0] in self.shapes:
            source, wide = self.shapes[op.operands[0]], self.shapes[op.results[0]]
            if is_transposed(op):
                self._for(op.operands[0], len(source), 8)
            else:
                # As a row, if it is repeated for each row; or as a column, if it is repeated along it.
                column = source[-1] == 1 and wide[-1] > 1
                self._for(op.operands[0], len(source) - 1, 2 if column else 8)

    def _follow(self, op: ir.Operation) -> bool:
        """Choose the split of a cast's operand or result so that rows and columns are kept."""
        ends = (op.operands[0], op.results[0])
        for known, unknown in (ends, ends[::-1]):
            if known not in self.shapes or unknown not in self.shapes:
                continue
            if self._alike.find(unknown) in self._chosen or self._alike.find(known) not in self._chosen:
                continue
            rows = matrix(self.shapes[known], self.of(known))[0]
            shape = self.shapes[unknown]
            for split in range(len(shape), -1, -1):
                if math.prod(shape[:split]) == rows:
                    self._chosen[self._alike.find(unknown)] = split
                    return True
        return False


def same_split(op: ir.Operation) -> Iterable[Sequence[ir.Value]]:
    """Groups of operands and results of an op that have the same split."""
    if is_elementwise(op) or op.name == PREFIX + "convert_layout":
        yield [*op.operands, *op.results]
    elif op.name == "vector.multi_reduction":
        yield [op.operands[1], op.results[0]]
    elif groups := forwarded_groups(op):
        yield from groups
    elif op.name in (PREFIX + "load", PREFIX + "store"):
        view: Any = op.opview
        if (view.chunk_size or 1) == 1:
            yield [v for v in (view.value, view.offsets, view.mask) if v is not None]
    elif op.name == PREFIX + "atomic_rmw":
        yield [v for v in (*op.operands, *op.results) if isinstance(v.type, ir.VectorType)]
    elif op.name in PRODUCTS and op.opview.acc is not None:
        yield [op.opview.acc, op.opview.result]


def is_elementwise(op: ir.Operation) -> bool:
    """Whether elements of the result come from the elements at the same place."""
    if op.name == "arith.constant" or not (op.name.startswith(("arith.", "math.")) or op.name in _SAME_ELEMENT):
        return False
    return any(isinstance(v.type, ir.VectorType) for v in op.results)


def is_transposed(op: ir.Operation) -> bool:
    """Whether a vector of one dimension is broadcast only to be transposed: it is repeated along a column then."""
    users = [use.owner.operation for use in op.results[0].uses]
    return bool(users) and all(
        u.name == "vector.transpose" and list(ir.DenseI64ArrayAttr(u.attributes["permutation"])) == [1, 0]
        for u in users
    )


def reduced_dims(op: ir.Operation) -> tuple[int, ...]:
    """The dimensions that a `vector.multi_reduction` reduces."""
    return tuple(ir.DenseI64ArrayAttr(op.attributes["reduction_dims"]))


def reduced_runs(shape: Shape, dims: Sequence[int], split: int | None = None) -> list[tuple[int, int]]:
    """The splits before and after each step of a reduction; each takes dimensions that follow each other away.

    A run that ends with the last dimension is one of columns: the split is before it. Another one is of rows: the split
    is behind it, and where it was then. A run of rows and columns of the split that a vector has is done in two steps.
    """
    left = [d for d in dims if shape[d] > 1] or list(dims)
    runs: list[list[int]] = []
    for d in left:
        gap = range(runs[-1][-1] + 1, d) if runs else ()
        if runs and all(shape[i] == 1 for i in gap):
            runs[-1] += [*gap, d]
        else:
            runs.append([d])
    found = []
    for run in reversed(runs):
        behind = [d for d in range(run[-1] + 1, len(shape)) if shape[d] > 1 and d not in dims]
        removed = sum(d < run[0] for d in dims)
        if split is not None and run[0] < split <= run[-1] and not behind:
            found += [(split, run[0] - removed)] * 2
            continue
        found.append((run[-1] + 1 if behind else run[0], run[0] - removed))
    return found
