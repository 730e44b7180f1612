"""Slices of vectors that upstream's folder misreads, rewritten before it runs.

`vector.extract_strided_slice` of a chain of `vector.insert_strided_slice` folds to what was inserted, and looks past
inserts that do not overlap the slice. MLIR 22 (`foldExtractStridedOpFromInsertChain` of VectorOps.cpp) errs twice:

- An insert that begins inside the slice, in any dimension, is treated as if it did not overlap it, and so is lost:

      %1 = vector.insert_strided_slice %a, %0 {offsets = [2], strides = [1]} : vector<2xf32> into vector<8xf32>
      %2 = vector.extract_strided_slice %1 {offsets = [0], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>

  becomes a slice of what was inserted into %0. A slice that is cut in two where the insert begins is read correctly.
- Dimensions for which the slice gives no offset, and which it takes whole, are not compared. If each has an offset,
  they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod

from mlir import ir
from mlir.dialects import arith, vector
from msgspec import Struct, field

from xegpu_py.ir.numbers import number_attribute

_EXTRACT, _INSERT = "vector.extract_strided_slice", "vector.insert_strided_slice"
_NEVER_FOLDED = ("xegpu.", "xetile.", "visa.", "iree_vector_ext.", "gpu.", "memref.load", "vector.transfer_read")
"""Prefixes of the names of ops whose results upstream's passes never replace by other vectors."""

Box = tuple[tuple[int, int], ...]
"""The first element and the number of elements along each dimension."""


def _complete(op: ir.Operation) -> None:
    """Give an extracted slice an offset for each dimension."""
    shape = ir.VectorType(op.operands[0].type).shape
    count = len(ir.ArrayAttr(op.attributes["offsets"]))
    if count == len(shape):
        return
    integer = ir.IntegerType.get_signless(64)
    for name, rest in (("offsets", [0] * len(shape)), ("sizes", shape), ("strides", [1] * len(shape))):
        numbers = [ir.IntegerAttr.get(integer, n) for n in rest[count:]]
        op.attributes[name] = ir.ArrayAttr.get([*ir.ArrayAttr(op.attributes[name]), *numbers])


def _meet(a: Box, b: Box) -> bool:
    return all(x < y + m and y < x + n for (x, n), (y, m) in zip(a, b))


class _Boxes(Struct):
    """Boxes in an order, and those of the first ones that meet another box.

    Attributes:
        grids: the first number of each box, by logarithms of its sizes and by the cell of a grid of that width.
        count: the number of boxes.
        before: boxes that come before these, and how many of the first of them do.
    """

    grids: dict[tuple[int, ...], dict[tuple[int, ...], dict[Box, int]]] = field(default_factory=dict)
    count: int = 0
    before: tuple[_Boxes, int] | None = None

    def add(self, box: Box) -> None:
        """Add a box at the end."""
        logs = tuple(size.bit_length() for _, size in box)
        cell = tuple(at >> log for (at, _), log in zip(box, logs))
        self.grids.setdefault(logs, {}).setdefault(cell, {}).setdefault(box, self.count)
        self.count += 1

    def meeting(self, box: Box, count: int) -> Iterator[Box]:
        """Those of the first `count` boxes, and of the boxes before them, that meet a box."""
        for logs, grid in self.grids.items():
            edges = [(at - (1 << log), at + size - 1, log) for (at, size), log in zip(box, logs)]
            ranges = [range(low >> log, (high >> log) + 1) for low, high, log in edges]
            for cell in product(*ranges) if prod(map(len, ranges)) < len(grid) else grid:
                found = grid.get(cell, {})
                yield from (other for other, number in found.items() if number < count and _meet(box, other))
        if self.before:
            yield from self.before[0].meeting(box, self.before[1])


class _Function(Struct):
    """The slices of a function."""

    extracts: list[ir.Operation] = field(default_factory=list)
    inserts: list[ir.Operation] = field(default_factory=list)
    boxes: dict[ir.Type, _Boxes] = field(default_factory=dict)
    chains: dict[ir.Value, tuple[_Boxes, int, ir.Value]] = field(default_factory=dict)
    decoded: dict[ir.Attribute, list[int]] = field(default_factory=dict)

    def note(self, op: ir.Operation) -> None:
        """Remember a slice; give an extracted slice an offset for each dimension."""
        if op.name == _EXTRACT:
            self.extracts.append(op)
            _complete(op)
        else:
            self.inserts.append(op)

    def _numbers(self, op: ir.Operation, name: str) -> list[int]:
        # Many slices share few attributes, and decoding one takes long.
        attr = op.attributes[name]
        if attr not in self.decoded:
            self.decoded[attr] = [ir.IntegerAttr(a).value for a in ir.ArrayAttr(attr)]
        return self.decoded[attr]

    def extracted(self, op: ir.Operation) -> Box:
        """Where an extracted slice lies."""
        return tuple(zip(self._numbers(op, "offsets"), self._numbers(op, "sizes")))

    def _inserted(self, op: ir.Operation) -> Box:
        """Where an inserted slice lies: one element of the dimensions that it lacks, which are the first ones."""
        offsets = self._numbers(op, "offsets")
        shape = ir.VectorType(op.operands[0].type).shape
        return tuple(zip(offsets, [1] * (len(offsets) - len(shape)) + shape))

    def _chain(self, value: ir.Value) -> tuple[_Boxes, int, ir.Value]:
        """The boxes of the inserts that make a value, their number, and the value that the first of them changes.

        A chain is walked once, not once for each slice of it and of the values that it changes.
        """
        links: list[ir.Value] = []
        while value not in self.chains and not isinstance(value.owner, ir.Block) and value.owner.name == _INSERT:
            links.append(value)
            value = value.owner.operands[1]
        boxes, count, source = self.chains.get(value) or (_Boxes(), 0, value)
        if links and count < boxes.count:
            boxes, count = _Boxes(before=(boxes, count)), 0
        for link in reversed(links):
            boxes.add(self._inserted(link.owner.operation))
            self.chains[link] = boxes, boxes.count, source
        return boxes, boxes.count if links else count, source

    def cuts(self, op: ir.Operation) -> list[list[int]]:
        """Where to cut an extracted slice, in each dimension.

        Inserts in its chain count. Where the chain begins with a value that folding may replace by another one, such
        as a block argument, all inserts that make vectors of its type do.
        """
        box = self.extracted(op)
        boxes, count, source = self._chain(op.operands[0])
        starts = [[at for at, _ in insert] for insert in boxes.meeting(box, count)]
        if isinstance(source.owner, ir.Block) or not source.owner.name.startswith(_NEVER_FOLDED):
            while self.inserts:
                insert = self.inserts.pop()
                self.boxes.setdefault(insert.results[0].type, _Boxes()).add(self._inserted(insert))
            if every := self.boxes.get(op.operands[0].type):
                starts += [[at for at, _ in insert] for insert in every.meeting(box, every.count)]
        return [
            sorted({at[dim] for at in starts if first < at[dim] < first + size})
            for dim, (first, size) in enumerate(box)
        ]


def is_slice(name: str) -> bool:
    """Whether an op extracts or inserts a slice."""
    return name in (_EXTRACT, _INSERT)


def cut_misread_slices(slices: Sequence[ir.Operation]) -> None:
    """Cut slices that upstream's folder could misread, so that it reads all of them as they are.

    Args:
        slices: the ops for which `is_slice` holds.
    """
    functions: dict[ir.Operation, _Function] = {}
    for op in slices:
        functions.setdefault(_function_of(op), _Function()).note(op)
    for function in functions.values():
        if not function.inserts:
            continue
        while function.extracts:
            op = function.extracts.pop()
            cuts = function.cuts(op)
            if any(cuts) and op.operands[0].type != op.results[0].type:
                _cut(op, cuts, function)


def _function_of(op: ir.Operation) -> ir.Operation:
    while op.parent is not None and op.name not in ("func.func", "gpu.func"):
        op = op.parent.operation
    return op


def _cut(op: ir.Operation, cuts: Sequence[Sequence[int]], function: _Function) -> None:
    """Replace an extracted slice by smaller ones that are put together."""
    source, kind, box = op.operands[0], ir.VectorType(op.results[0].type), function.extracted(op)
    rank = len(kind.shape)
    bounds = [[first, *inner, first + size] for inner, (first, size) in zip(cuts, box)]
    with ir.InsertionPoint(op), op.location:
        made: ir.Value = arith.constant(kind, number_attribute(kind, 0))
        for part in product(*(pairwise(b) for b in bounds)):
            offsets, sizes = [low for low, _ in part], [high - low for low, high in part]
            piece = ir.VectorType.get(sizes, kind.element_type)
            taken = vector.extract_strided_slice(piece, source, offsets, sizes, [1] * rank)
            at = [low - first for low, (first, _) in zip(offsets, box)]
            made = vector.insert_strided_slice(taken, made, at, [1] * rank)
            function.note(made.owner.operation)
    op.results[0].replace_all_uses_with(made)
    # Slices of this one see the new inserts.
    users = [u.owner.operation for u in made.uses]
    function.extracts += [u for u in users if u.name == _EXTRACT]
    op.erase()
