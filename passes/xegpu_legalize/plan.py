"""The plan of a kernel: the splits of its vectors and blocks, computed before ops are rewritten."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir
from msgspec import Struct, field

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.common.union_find import UnionFind
from xegpu_py.passes.common.values import bits_of, element_of, shape_of
from xegpu_py.passes.xegpu_legalize.boxes import Bounds, segments
from xegpu_py.passes.xegpu_legalize.shapes import Layout, Message, Transform
from xegpu_py.passes.xegpu_legalize.surfaces import Surfaces
from xegpu_py.target import Target

MADE = ("arith.constant", "vector.broadcast", "vector.splat", "vector.step", "vector.create_mask")
"""Ops whose results are made piece by piece on demand."""
REDUCTIONS = ("vector.reduction", "vector.multi_reduction")
VIEWS = (
    "vector.shape_cast", "vector.extract_strided_slice", "vector.transpose", "vector.extract", "vector.broadcast",
    "vector.splat", "vector.step", "vector.create_mask", "arith.constant", "vector.bitcast",
)  # fmt: skip
"""Ops for which a part of the result is the same op on a part of the operand."""


CHAIN_GRFS = 2
"""Registers of a piece of a vector whose shape no message or dpas determines."""

REDUCED_GRFS = 8
"""The same for a vector that is reduced along its rows: pieces of more rows have sums of more lanes."""


def bytes_of(value: ir.Value) -> int:
    """Bytes of a vector's element in registers; of an index those of its usual register type."""
    element = element_of(value)
    return 4 if isinstance(element, ir.IndexType) else max(bits_of(element) // 8, 1)


class Access(Struct, gc=False):
    """An access of memory in VC mode.

    Attributes:
        op: the op.
        tdesc, desc: its descriptor, and the descriptor's type.
        value: the vector that it loads, stores, or updates memory with; None for a prefetch.
        loads: whether it loads a block.
        transform: the transform of such a load; None if it permutes other than the innermost two dimensions.
        legal: whether such a load is one message.
        layout: the layout that it needs of its descriptor; None if it needs no split. Set once all splits are known.
    """

    op: ir.Operation
    tdesc: ir.Value
    desc: TensorDesc
    value: ir.Value | None
    loads: bool = False
    transform: Transform | None = None
    legal: bool = False
    layout: Layout | None = None


class Plan(Struct):
    """The splits of all vectors and blocks.

    Attributes:
        target: the GPU.
        surfaces: the tensors of block descriptors; their classes are `descs`.
        ahead: whether loads are issued one iteration ahead.
        accesses: the accesses of memory by op.
        vectors: classes of vectors of one shape that have the same splits.
        splits: by class, the positions before which each dimension is split.
        layouts: by class of descriptors, the layouts that their uses need.
        kept: classes of descriptors that are also needed whole.
        given: classes of descriptors that cannot be made in pieces, because their creation is not visible.
        most_rows, most_columns: by class, the rows of a message that loads B of a product, and the columns of A.
        products: results of products, which are not split further for the scatters that store them.
        scatters: stores that become scatters.
        messages: by loaded value, the messages that load it; set once all splits are known. None if the load needs no
            split.
        row_alignment: by descriptor of a block that no 2D message moves, the known alignment of its rows in bytes.
    """

    target: Target
    surfaces: Surfaces
    ahead: bool = False
    accesses: dict[ir.Operation, Access] = field(default_factory=dict)
    vectors: UnionFind[ir.Value] = field(default_factory=UnionFind)
    splits: dict[ir.Value, list[set[int]]] = field(default_factory=dict)
    layouts: dict[ir.Value, dict[Layout, None]] = field(default_factory=dict)
    kept: set[ir.Value] = field(default_factory=set)
    given: set[ir.Value] = field(default_factory=set)
    most_rows: dict[ir.Value, int] = field(default_factory=dict)
    most_columns: dict[ir.Value, int] = field(default_factory=dict)
    products: set[ir.Value] = field(default_factory=set)
    scatters: list[ir.Operation] = field(default_factory=list)
    messages: dict[ir.Value, list[Message] | None] = field(default_factory=dict)
    row_alignment: dict[ir.Value, int] = field(default_factory=dict)
    _bounds: dict[ir.Value, Bounds | None] = field(default_factory=dict)

    @property
    def descs(self) -> UnionFind[ir.Value]:
        """Classes of descriptors that are moved and carried together."""
        return self.surfaces.classes

    def bounds(self, value: ir.Value) -> Bounds | None:
        """The sizes of the pieces of a vector; None if it is not split."""
        root = self.vectors.find(value)
        if root not in self._bounds:
            splits = self.splits.get(root, [])
            self._bounds[root] = tuple(map(segments, shape_of(value), splits)) if any(splits) else None
        return self._bounds[root]

    def layouts_of(self, value: ir.Value) -> list[Layout]:
        """The layouts that the uses of a descriptor need."""
        return list(self.layouts.get(self.descs.find(value), {}))

    def is_kept(self, value: ir.Value) -> bool:
        """Whether a descriptor is needed whole."""
        root = self.descs.find(value)
        return root in self.kept or root not in self.layouts

    def split(self, value: ir.Value, dimension: int, positions: Iterable[int]) -> None:
        """Add these positions to the splits of a vector."""
        shape = shape_of(value)
        found = {p for p in positions if 0 < p < shape[dimension]}
        if found:
            root = self.vectors.find(value)
            self.splits.setdefault(root, [set() for _ in shape])[dimension] |= found
            self._bounds.pop(root, None)

    def leave(self, root: ir.Value) -> None:
        """Remove all splits of the vectors of a class."""
        self.splits.pop(root, None)
        self._bounds.pop(root, None)

    def require(self, desc: ir.Value, layout: Layout | None) -> None:
        """Add a layout that a descriptor is needed in; None if it is needed whole."""
        root = self.descs.find(desc)
        if layout is None:
            self.kept.add(root)
        else:
            self.layouts.setdefault(root, {})[layout] = None
