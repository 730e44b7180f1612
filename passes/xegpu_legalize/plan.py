"""Where the vectors and blocks of a kernel are cut: found once, before anything is rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlir import ir
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


def integers(attribute: Any) -> list[int]:
    """The numbers of an array attribute."""
    if isinstance(attribute, ir.ArrayAttr):
        return [ir.IntegerAttr(a).value for a in attribute]
    return [int(v) for v in ir.DenseI64ArrayAttr(attribute)]


def owner_of(value: ir.Value) -> ir.Operation | None:
    """The op that defines a value; None of a block's argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def is_elementwise(op: ir.Operation) -> bool:
    """Whether an op works on vectors element by element."""
    if not (op.name.startswith(("arith.", "math.")) or op.name == "vector.fma"):
        return False
    if op.name == "arith.constant" or not op.results:
        return False
    shape = shape_of(op.results[0])
    return shape is not None and all(shape_of(v) in (None, shape) for v in (*op.operands, *op.results))


def carried(op: ir.Operation) -> list[list[ir.Value]]:
    """The values that are one another in a structured op: what goes in, arguments, what is yielded, results."""
    name = op.name
    if name == "scf.for":
        body = op.regions[0].blocks[0]
        yields = list(list(body.operations)[-1].operation.operands)
        return [list(v) for v in zip(list(op.operands)[3:], list(body.arguments)[1:], yields, op.results)]
    if name in ("scf.if", "scf.index_switch"):
        ends = [list(list(r.blocks[0].operations)[-1].operation.operands) for r in op.regions if len(r.blocks)]
        return [[result, *(e[i] for e in ends)] for i, result in enumerate(op.results)]
    if name == "scf.while":
        before, after = (r.blocks[0] for r in op.regions)
        condition = list(list(before.operations)[-1].operation.operands)[1:]
        yields = list(list(after.operations)[-1].operation.operands)
        first = [list(v) for v in zip(op.operands, before.arguments, yields)]
        return first + [list(v) for v in zip(condition, after.arguments, op.results)]
    return []


class Classes:
    """Sets of values that are joined as they are found to be alike."""

    def __init__(self) -> None:
        self._parent: dict[ir.Value, ir.Value] = {}

    def find(self, value: ir.Value) -> ir.Value:
        """The value that stands for a set."""
        root = value
        while (above := self._parent.get(root, root)) != root:
            root = above
        while value != root:
            self._parent[value], value = root, self._parent.get(value, value)
        return root

    def join(self, values: Iterable[ir.Value]) -> None:
        """Make the sets of these values one."""
        first, *rest = values
        root = self.find(first)
        for value in rest:
            self._parent[self.find(value)] = root


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
    vectors: Classes = field(default_factory=Classes)
    cuts: dict[ir.Value, list[set[int]]] = field(default_factory=dict)
    layouts: dict[ir.Value, dict[Layout, None]] = field(default_factory=dict)
    kept: set[ir.Value] = field(default_factory=set)
    given: set[ir.Value] = field(default_factory=set)
    most_rows: dict[ir.Value, int] = field(default_factory=dict)
    most_columns: dict[ir.Value, int] = field(default_factory=dict)
    held: set[ir.Value] = field(default_factory=set)

    @property
    def descs(self) -> Classes:
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
