"""Where the vectors and blocks of a kernel are cut: found once, before anything is rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlir import ir
from xegpu_py.passes.common.control_flow import forwarded
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.passes.xegpu_legalize.boxes import Bounds, Shape, segments
from xegpu_py.passes.xegpu_legalize.shapes import Layout

from xegpu_py.ir.builtin import bit_width, vector_of
from xegpu_py.target import Target

if TYPE_CHECKING:
    from xegpu_py.passes.xegpu_legalize.surfaces import Surfaces

DESC = "!xegpu.tensor_desc<"
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


def shape_of(value: ir.Value) -> Shape | None:
    """The shape of a vector; None of all else."""
    kind = value.type
    if not isinstance(kind, ir.VectorType) or kind.scalable:
        return None
    return tuple(kind.shape) or None


def element_of(value: ir.Value) -> str:
    """The element type of a vector."""
    return vector_of(str(value.type))[1]


def bytes_of(value: ir.Value) -> int:
    """Bytes of an element of a vector in registers, indices as most of them are."""
    element = element_of(value)
    return 4 if element == "index" else max(bit_width(element) // 8, 1)


def is_desc(value: ir.Value) -> bool:
    """Whether a value is a tensor descriptor."""
    return str(value.type).startswith(DESC)


def is_elementwise(op: ir.Operation) -> bool:
    """Whether an op works on vectors element by element."""
    if not (op.name.startswith(("arith.", "math.")) or op.name == "vector.fma"):
        return False
    if op.name == "arith.constant" or not op.results:
        return False
    shape = shape_of(op.results[0])
    return shape is not None and all(shape_of(v) in (None, shape) for v in (*op.operands, *op.results))


def carried(op: ir.Operation) -> list[list[ir.Value]]:
    """The values that are one another in a structured op: what goes in, what is yielded, arguments, results."""
    if op.name not in ("scf.for", "scf.while", "scf.if", "scf.index_switch"):
        return []
    return [[*(user.operands[n] for user, n in uses), *to] for uses, to in forwarded(op)]


@dataclass
class Plan:
    """Where everything is cut.

    Attributes:
        target: the GPU.
        surfaces: the tensors of block descriptors; their classes are `descs`.
        ahead: whether loads come an iteration of their loop ahead.
        vectors: vectors of one shape that are cut alike.
        cuts: by class, the positions in front of which each dimension is cut.
        layouts: by class of descriptors, the layouts that their uses need.
        kept: classes of descriptors that are needed as they are, too.
        given: classes of descriptors that cannot be made in pieces, as their making is not seen.
        most_rows, most_columns: by class, the rows of a message that loads B of a product, and the columns of A.
        held: vectors that are made or used by ops that are not element by element.
    """

    target: Target
    surfaces: Surfaces
    ahead: bool = False
    vectors: UnionFind[ir.Value] = field(default_factory=UnionFind)
    cuts: dict[ir.Value, list[set[int]]] = field(default_factory=dict)
    layouts: dict[ir.Value, dict[Layout, None]] = field(default_factory=dict)
    kept: set[ir.Value] = field(default_factory=set)
    given: set[ir.Value] = field(default_factory=set)
    most_rows: dict[ir.Value, int] = field(default_factory=dict)
    most_columns: dict[ir.Value, int] = field(default_factory=dict)
    held: set[ir.Value] = field(default_factory=set)

    @property
    def descs(self) -> UnionFind[ir.Value]:
        """Descriptors that are moved and carried together."""
        return self.surfaces.classes

    def bounds(self, value: ir.Value) -> Bounds | None:
        """How a vector is cut; None if it is not."""
        shape = shape_of(value)
        cuts = self.cuts.get(self.vectors.find(value)) if shape else None
        if cuts is None or not any(cuts):
            return None
        assert shape
        return tuple(segments(n, sorted(c)) for n, c in zip(shape, cuts))

    def layouts_of(self, value: ir.Value) -> list[Layout]:
        """The layouts in which a descriptor is needed."""
        return list(self.layouts.get(self.descs.find(value), {}))

    def is_kept(self, value: ir.Value) -> bool:
        """Whether a descriptor is needed as it is."""
        root = self.descs.find(value)
        return root in self.kept or root not in self.layouts

    def cut(self, value: ir.Value, dimension: int, positions: Iterable[int]) -> None:
        """Have a vector cut in front of these positions."""
        shape = shape_of(value)
        assert shape
        cuts = self.cuts.setdefault(self.vectors.find(value), [set() for _ in shape])
        cuts[dimension] |= {p for p in positions if 0 < p < shape[dimension]}

    def require(self, desc: ir.Value, layout: Layout | None) -> None:
        """Have a descriptor in a layout, or as it is."""
        root = self.descs.find(desc)
        if layout is None:
            self.kept.add(root)
        else:
            self.layouts.setdefault(root, {})[layout] = None
