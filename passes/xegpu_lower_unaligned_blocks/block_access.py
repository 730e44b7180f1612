"""The block of one access: its parts, each of one message, and their addresses, lanes and masks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from mlir import ir
from msgspec import Struct, field

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import TdescAttr, TensorDesc
from xegpu_py.passes.analysis import message_tiling as blocks
from xegpu_py.passes.analysis.affine_analysis import IndexForms, constant_part, plus
from xegpu_py.passes.analysis.block_surfaces import tensor_of
from xegpu_py.passes.analysis.ir_queries import shape_of
from xegpu_py.passes.analysis.message_tiling import Box, Segments, tiles
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import fold_index
from xegpu_py.passes.rewriting.memory_access import lane_offsets, lanes_in_bounds
from xegpu_py.target import Target

_T = TypeVar("_T")


class StridedTensor(Struct, frozen=True):
    """A tensor in memory: a memref or an address, the offset of its first element, its extents, and its strides."""

    source: ir.Value
    start: build.Index
    extents: tuple[build.Index, ...]
    strides: tuple[build.Index, ...]


def viewed_tensor(view: Any) -> StridedTensor:
    """The tensor of an `xegpu.create_nd_tdesc`."""
    if not isinstance(view.source.type, ir.MemRefType):
        # A line may have no known extent; no access to it reads the extent.
        extents, strides = tuple(map(fold_index, view.shape)) or (0,), tuple(map(fold_index, view.strides)) or (1,)
        return StridedTensor(view.source, 0, extents, strides)
    facts = tensor_of(view)
    start, *of_memref = build.strided_layout(view.source)
    numbers = [
        tuple(
            number if fact is None else fact
            for fact, number in zip(facts_of_form, list(by_view) or by_memref, strict=True)
        )
        for facts_of_form, by_view, by_memref in zip(
            (facts.extents, facts.strides), (view.shape, view.strides), of_memref
        )
    ]
    return StridedTensor(view.source, start, *numbers)


def address_of(tensor: StridedTensor, at: build.Index, desc: TensorDesc) -> ir.Value:
    """The address of element `at` of a tensor, i64."""
    return build.element_address(tensor.source, build.add(tensor.start, at), max(desc.bits, 8))


def line_of(
    tensor: StridedTensor, at: build.Index, count: int, desc: TensorDesc, is_inside: bool = False
) -> tuple[ir.Value, build.Index]:
    """A base in memory, and the offset in elements from it to element `at`.

    The base is a memref of `count` elements if its position is known, a memref of the whole tensor if that is known and
    the element `is_inside`, and otherwise an address. The distinction matters because `at` may be before the tensor's
    first element: it is then never accessed, but a memref cannot begin there.
    """
    first = build.add(tensor.start, at)
    source = tensor.source.type
    if not isinstance(source, ir.MemRefType) and str(source) != "i64":
        return tensor.source, first
    rest: build.Index = 0
    if isinstance(source, ir.MemRefType) and isinstance(tensor.start, int) and is_inside and not isinstance(at, int):
        constants = [n for n in (*tensor.extents, *tensor.strides) if isinstance(n, int)]
        if len(constants) == 2 * len(tensor.extents):
            first, rest = tensor.start, at
            count = 1 + sum((n - 1) * s for n, s in zip(constants, constants[len(tensor.extents) :]))
    if not isinstance(source, ir.MemRefType) or not isinstance(first, int) or not 0 <= first < 1 << 63:
        return address_of(tensor, at, desc), 0
    return build.reinterpret_cast(tensor.source, first, [count], [1]), rest


# The block of one access.


class BlockPart(Struct, frozen=True):
    """A part of a block that one message moves.

    Attributes:
        lead: its offsets along the dimensions outside the innermost two.
        row, rows, column, columns: its offsets and sizes along the innermost two.
    """

    lead: tuple[int, ...]
    row: int
    rows: int
    column: int
    columns: int


class SplitAccess(Struct):
    """An access to a block. An access to a line is treated as one to a matrix of one row (`is_line`).

    Attributes:
        indices: the function's indices.
        target: the GPU.
        row_alignment: the known alignment of the block's rows in bytes.
        count: the number of its parts.
        last: the addresses that are known, by the offsets of parts along dimensions of unknown stride.
        known_counts: the results of `known_count`.
    """

    indices: IndexForms
    target: Target
    row_alignment: int
    desc: TensorDesc
    tensor: StridedTensor
    offsets: tuple[build.Index, ...]
    vector: tuple[int, ...]
    is_line: bool = False
    count: int = 1
    last: dict[tuple[int, ...], build.Index] = field(default_factory=dict)
    known_counts: dict[int, int] = field(default_factory=dict)

    def own(self, dimensions: Sequence[_T]) -> tuple[_T, ...]:
        """Select from one item per dimension of `vector` those of the dimensions that the op's vector has."""
        return (*dimensions[:-2], dimensions[-1]) if self.is_line else tuple(dimensions)

    @property
    def checked(self) -> bool:
        """Whether the access must check bounds."""
        return self.desc.attr.boundary_check

    @property
    def columns(self) -> int:
        """Columns of a block, or of all blocks side by side."""
        return self.desc.shape[-1] * (1 if self.is_array else self.desc.attr.array_length)

    @property
    def is_array(self) -> bool:
        """Whether the vector has a dimension for the blocks of an array."""
        return len(self.vector) > len(self.desc.shape)

    def bounds(self, rows: int, columns: Sequence[int]) -> Segments:
        """The sizes of the pieces of the vector."""
        shape = self.desc.shape
        lead = self.vector[:-2]
        return (*((1,) * n for n in lead), (rows,) * (shape[-2] // rows), tuple(columns))

    def parts(self, bounds: Segments) -> Iterator[tuple[Box, BlockPart]]:
        """The pieces of the vector, and the position of each in the descriptor's block."""
        boxes = list(tiles(bounds))
        self.count = len(boxes)
        for box in boxes:
            (row, rows), (column, columns) = box[-2:]
            lead = tuple(first for first, _ in box[:-2])
            if self.is_array:
                column += lead[0] * self.desc.shape[-1]
                lead = lead[1:]
            yield box, BlockPart(lead, row, rows, column, columns)

    def is_inside(self, dimension: int, size: int) -> bool:
        """Whether the block is known to be in bounds along a dimension."""
        return not self.checked or self.known_count(dimension) >= size

    def known_count(self, dimension: int) -> int:
        """Elements from the block's first one on that are known to be in bounds along a dimension; 0 if none are."""
        if dimension not in self.known_counts:
            indices = self.indices
            at = indices.scalar(self.offsets[dimension])
            count = constant_part(plus(indices.scalar(self.tensor.extents[dimension]), at, -1))
            self.known_counts[dimension] = count if count is not None and indices.is_nonnegative(at) else 0
        return self.known_counts[dimension]

    def split(self, name: str) -> tuple[Segments, TdescAttr | None]:
        """The pieces of the block, each of one message, and the settings of their descriptors if these are of lines.

        Args:
            name: the gather or scatter message that moves a piece if no 1D message does.
        """
        rows, columns = blocks.message_steps(self.desc, self.columns, blocks.most_lanes(self.desc, self.target, name))
        across = blocks.segments(self.columns, range(0, self.columns, columns))
        attr = TdescAttr(memory_scope=self.desc.attr.memory_scope)
        lines = blocks.segments(self.columns, self._line_splits(self.columns, attr))
        if len(lines) <= max(rows * len(across), 1) and self._are_lines():
            return self.bounds(self._rows_of_a_line(attr), lines), attr
        return self.bounds(rows, across), None

    def _line_splits(self, count: int, attr: TdescAttr) -> set[int]:
        return blocks.line_splits(TensorDesc((count,), self.desc.element, attr))

    def _rows_of_a_line(self, attr: TdescAttr) -> int:
        """The rows that one 1D message moves: several if no other elements are between them."""
        if self.is_array or self.tensor.strides[-2] != self.columns:
            return 1
        counts = (n for n in range(self.desc.shape[-2], 1, -1) if self.desc.shape[-2] % n == 0)
        return next((n for n in counts if not self._line_splits(n * self.columns, attr)), 1)

    def _are_lines(self) -> bool:
        """Whether rows are consecutive elements, in bounds, and sufficiently aligned for 1D messages."""
        if self.tensor.strides[-1] != 1:
            return False
        sizes = (*self.desc.shape[:-1], self.desc.shape[-1] * self.desc.attr.array_length)
        if not all(self.is_inside(d, n) for d, n in enumerate(sizes)):
            return False
        size = self.desc.bits // 8
        aligned = self.row_alignment
        if self.is_array:
            aligned = math.gcd(aligned, self.desc.shape[-1] * size)
        return aligned % self.target.line_alignment == 0

    def start(self, part: BlockPart) -> build.Index:
        """The offset of a part's first element from the tensor's first, in elements."""
        constant = 0
        total: build.Index = 0
        *outer, inner = zip(self.offsets, (*part.lead, part.row, part.column), self.tensor.strides, strict=True)
        for at, step, stride in (inner, *outer):
            if isinstance(stride, int):
                # All parts share the sum of the unknown terms.
                total, constant = build.add(total, build.multiply(at, stride)), constant + step * stride
            else:
                total = build.add(total, build.multiply(build.add(at, step), stride))
        return build.add(total, constant)

    def lanes(self, part: BlockPart) -> tuple[list[int], list[int], int]:
        """Row and column of each lane relative to the part, and the number of active lanes."""
        active = part.rows * part.columns
        lanes = 1 << (active - 1).bit_length()
        positions = [divmod(i, part.columns) if i < active else (0, 0) for i in range(lanes)]
        return [r for r, _ in positions], [c for _, c in positions], active

    def descriptor(self, part: BlockPart) -> ir.Value:
        """The lanes of a part as a scattered descriptor."""
        rows, columns, _ = self.lanes(part)
        steps = lane_offsets(len(rows), (rows, columns), self.tensor.strides[-2:])
        if self._varies:
            return scattered_descriptor(self._pointer(part), 0, steps, self.desc)
        start = self.start(part)
        if isinstance(start, int):
            source, rest = line_of(self.tensor, start, 1, self.desc)
        else:
            source, rest = line_of(self.tensor, 0, 1, self.desc)
            rest = build.add(rest, start)
        return scattered_descriptor(source, rest, steps, self.desc)

    @property
    def _varies(self) -> bool:
        """Whether there are several parts, at unknown 64-bit addresses."""
        source = self.tensor.source.type
        if self.count == 1 or self.desc.in_slm or not (isinstance(source, ir.MemRefType) or str(source) == "i64"):
            return False
        return not all(isinstance(n, int) for n in (*self.offsets, *self.tensor.strides))

    def _pointer(self, part: BlockPart) -> ir.Value:
        """The address of a part's first element, which is computed from that of the previous part."""
        size, strides = max(self.desc.bits // 8, 1), self.tensor.strides
        position = (*part.lead, part.row, part.column)
        moving = tuple(0 if isinstance(s, int) else n for n, s in zip(position, strides))
        fixed = sum(n * s for n, s in zip(position, strides) if isinstance(s, int))
        if not self.last:
            zero = BlockPart((0,) * len(part.lead), 0, part.rows, 0, part.columns)
            first = address_of(self.tensor, self.start(zero), self.desc)
            self.last[(0,) * len(position)] = build.make("arith.index_cast", build.index_type(), first)
        pointer = self.last.get(moving)
        if pointer is None:
            last, pointer = next(reversed(self.last.items()))
            steps = [build.multiply(b - a, s) for a, b, s in zip(last, moving, strides)]
            pointer = self.last[moving] = build.add(pointer, build.multiply(build.add(*steps), size))
        return build.make("arith.index_cast", build.integer_type(64), build.add(pointer, fixed * size))

    def mask(self, part: BlockPart) -> ir.Value | None:
        """The mask of the lanes in bounds; None if no lane is. Comparisons are unsigned, for negative indices."""
        rows, columns, active = self.lanes(part)
        lanes = len(rows)
        conditions: list[ir.Value] = []
        outside = (*enumerate(part.lead), *([(len(part.lead), part.row)] if part.rows == 1 else []))
        for dimension, step in outside:
            if self.is_inside(dimension, step + 1):
                continue
            position, extent = build.add(self.offsets[dimension], step), self.tensor.extents[dimension]
            if isinstance(position, int) and (position < 0 or (isinstance(extent, int) and position >= extent)):
                return None
            if not (isinstance(position, int) and isinstance(extent, int)):
                # A comparison of scalars would need a conversion to a mask.
                conditions.append(
                    build.compare("ult", build.index_splat(position, lanes), build.index_splat(extent, lanes))
                )
        conditions += [_mask([i < active for i in range(lanes)])] if active < lanes else []
        inner = [(-1, part.column, columns, part.columns)]
        inner += [(-2, part.row, rows, part.rows)] if part.rows > 1 else []
        for dimension, step, numbers, size in inner:
            if self.is_inside(dimension, step + size):
                continue
            position, extent = build.add(self.offsets[dimension], step), self.tensor.extents[dimension]
            if isinstance(position, int) and isinstance(extent, int):
                if not (position >= 0 and position + size <= extent):
                    conditions.append(_mask([0 <= position + n < extent for n in numbers]))
            else:
                conditions.append(lanes_in_bounds(numbers, position, extent))
        result = conditions[0] if conditions else build.all_set(lanes)
        for other in conditions[1:]:
            result = build.binary("andi", result, other)
        return result


def scattered_descriptor(source: ir.Value, first: build.Index, offsets: ir.Value, desc: TensorDesc) -> ir.Value:
    """A scattered descriptor of the elements of a block's tensor."""
    lanes = shape_of(offsets)
    if first != 0:
        offsets = build.binary("addi", offsets, build.index_splat(first, lanes[0]))
    kind = TensorDesc(lanes, desc.element, TdescAttr(memory_scope=desc.attr.memory_scope, scattered=True))
    return xegpu.create_tdesc(source, offsets, tdesc=kind, mode="vc")


def _mask(lanes: Sequence[bool]) -> ir.Value:
    return build.dense_integers(np.array(lanes), build.integer_type(1))
