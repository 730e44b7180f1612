"""Where the vectors and blocks of a kernel are split: found once, before anything is rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mlir import ir
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.passes.common.values import bits_of, element_of, shape_of
from xegpu_py.passes.xegpu_legalize.boxes import Bounds, segments
from xegpu_py.passes.xegpu_legalize.shapes import Layout, Message
from xegpu_py.passes.xegpu_legalize.surfaces import Surfaces

from xegpu_py.target import Target

MADE = ("arith.constant", "vector.broadcast", "vector.splat", "vector.step", "vector.create_mask")
"""Ops whose results are made piece by piece as they are needed."""
REDUCTIONS = ("vector.reduction", "vector.multi_reduction")
VIEWS = (
    "vector.shape_cast", "vector.extract_strided_slice", "vector.transpose", "vector.extract", "vector.broadcast",
    "vector.splat", "vector.step", "vector.create_mask", "arith.constant", "vector.bitcast",
)  # fmt: skip
"""Ops of whose results a part is the same op on a part of the operand."""


CHAIN_GRFS = 2
"""Registers of a piece of a vector that no message or dpas gives a shape."""

REDUCED_GRFS = 8
"""Likewise of a vector that is reduced along its rows: the more rows a piece has, the more lanes its sums have."""


def bytes_of(value: ir.Value) -> int:
    """Bytes of an element of a vector in registers, indices as most of them are."""
    element = element_of(value)
    return 4 if isinstance(element, ir.IndexType) else max(bits_of(element) // 8, 1)


@dataclass
class Plan:
    """Where everything is split.

    Attributes:
        target: the GPU.
        surfaces: the tensors of block descriptors; their classes are `descs`.
        ahead: whether loads come an iteration of their loop ahead.
        vectors: vectors of one shape that are split alike.
        splits: by class, the positions in front of which each dimension is split.
        layouts: by class of descriptors, the layouts that their uses need.
        kept: classes of descriptors that are needed as they are, too.
        given: classes of descriptors that cannot be made in pieces, as their making is not seen.
        most_rows, most_columns: by class, the rows of a message that loads B of a product, and the columns of A.
        held: vectors that are made or used by ops that are not element by element.
        messages: by loaded value the messages that load it, once it is known how everything is split; None if the load
            stays as it is.
        row_alignment: by descriptor of a block that no 2D message moves, the bytes of which its rows' addresses are
            known to be multiples.
    """

    target: Target
    surfaces: Surfaces
    ahead: bool = False
    vectors: UnionFind[ir.Value] = field(default_factory=UnionFind)
    splits: dict[ir.Value, list[set[int]]] = field(default_factory=dict)
    layouts: dict[ir.Value, dict[Layout, None]] = field(default_factory=dict)
    kept: set[ir.Value] = field(default_factory=set)
    given: set[ir.Value] = field(default_factory=set)
    most_rows: dict[ir.Value, int] = field(default_factory=dict)
    most_columns: dict[ir.Value, int] = field(default_factory=dict)
    held: set[ir.Value] = field(default_factory=set)
    messages: dict[ir.Value, list[Message] | None] = field(default_factory=dict)
    row_alignment: dict[ir.Value, int] = field(default_factory=dict)
    _bounds: dict[ir.Value, Bounds | None] = field(default_factory=dict)

    @property
    def descs(self) -> UnionFind[ir.Value]:
        """Descriptors that are moved and carried together."""
        return self.surfaces.classes

    def bounds(self, value: ir.Value) -> Bounds | None:
        """The sizes of the pieces that a vector is split into; None if it is not."""
        root = self.vectors.find(value)
        if root not in self._bounds:
            splits = self.splits.get(root, [])
            self._bounds[root] = tuple(map(segments, shape_of(value), splits)) if any(splits) else None
        return self._bounds[root]

    def layouts_of(self, value: ir.Value) -> list[Layout]:
        """The layouts in which a descriptor is needed."""
        return list(self.layouts.get(self.descs.find(value), {}))

    def is_kept(self, value: ir.Value) -> bool:
        """Whether a descriptor is needed as it is."""
        root = self.descs.find(value)
        return root in self.kept or root not in self.layouts

    def split(self, value: ir.Value, dimension: int, positions: Iterable[int]) -> None:
        """Have a vector split in front of these positions."""
        shape, root = shape_of(value), self.vectors.find(value)
        splits = self.splits.setdefault(root, [set() for _ in shape])
        splits[dimension] |= {p for p in positions if 0 < p < shape[dimension]}
        self._bounds.pop(root, None)

    def leave(self, root: ir.Value) -> None:
        """Leave the vectors of a class in one piece."""
        self.splits.pop(root, None)
        self._bounds.pop(root, None)

    def require(self, desc: ir.Value, layout: Layout | None) -> None:
        """Have a descriptor in a layout, or as it is."""
        root = self.descs.find(desc)
        if layout is None:
            self.kept.add(root)
        else:
            self.layouts.setdefault(root, {})[layout] = None
