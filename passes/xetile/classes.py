"""Classes of values that must be divided alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from mlir import ir
from xegpu_py.dialects.xetile import Tile
from xegpu_py.passes.xetile.expansion import LOOPS, passed_on
from xegpu_py.passes.xetile.vectors import is_elementwise, is_splat, is_vector

T = TypeVar("T", bound=Hashable)


class Classes(Generic[T]):
    """A union-find."""

    def __init__(self) -> None:
        self._above: dict[T, T] = {}

    def find(self, item: T) -> T:
        """The representative of an item's class."""
        root = item
        while (above := self._above.get(root)) is not None:
            root = above
        while item != root:
            self._above[item], item = root, self._above[item]
        return root

    def join(self, a: T, b: T) -> None:
        """Make two classes one."""
        a, b = self.find(a), self.find(b)
        if a != b:
            self._above[b] = a


def is_tile_choice(op: ir.Operation) -> bool:
    """Whether an op chooses one of two tiles."""
    return op.name == "arith.select" and Tile.accepts(str(op.results[0].type))


def value_classes(ops: Iterable[ir.Operation]) -> Classes[ir.Value]:
    """Vectors that elementwise ops and control flow tie together, and tiles that are the same but for their place."""
    classes: Classes[ir.Value] = Classes()
    for op in ops:
        if op.name in LOOPS:
            for uses, values in passed_on(op):
                for value in (*(user.operands[number] for user, number in uses), *values[1:]):
                    classes.join(values[0], value)
        elif is_elementwise(op) or (is_splat(op) and op.name != "arith.constant"):
            vectors = [v for v in (*op.operands, *op.results) if is_vector(v)]
            for value in vectors[1:]:
                classes.join(vectors[0], value)
        elif is_tile_choice(op):
            for value in op.operands[1:]:
                classes.join(op.results[0], value)
        elif op.name in ("xetile.update_tile_offset", "xetile.convert_layout"):
            classes.join(op.operands[0], op.results[0])
        elif op.name == "xetile.tile_mma" and len(op.operands) == 3:
            classes.join(op.operands[2], op.results[0])
    return classes
