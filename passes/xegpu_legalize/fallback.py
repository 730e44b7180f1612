"""Blocks that no 2D message moves: 1D messages where rows are in bounds and aligned, else gathers and scatters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mlir import ir
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import MemoryScope, TdescAttr, TensorDesc
from xegpu_py.passes.common.surfaces import tensor_of
from xegpu_py.passes.common.values import constant_of
from xegpu_py.passes.xegpu_legalize import shapes as blocks
from xegpu_py.passes.xegpu_legalize.boxes import Bounds, Box, grid, segments
from xegpu_py.passes.xegpu_legalize.plan import Plan, shape_of
from xegpu_py.passes.xegpu_legalize.rewrite import Rewriter
from xegpu_py.passes.xegpu_legalize.shapes import Place

from xegpu_py.ir.builtin import is_float, vector_text
from xegpu_py.ir.diagnostics import remark
from xegpu_py.target import Target

Number: TypeAlias = "int | ir.Value"
"""An index, known or not."""

_ULT = 6
"""Number of arith.cmpi's predicate for less than, unsigned: negative indices are above all extents."""


# Numbers.


def _add(low: Rewriter, a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return low.add(b, a) if isinstance(a, int) else low.add(a, b) if isinstance(b, int) else _binary(low, "addi", a, b)


def _multiply(low: Rewriter, a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int) and x in (0, 1):
            return y if x else 0
    return _binary(low, "muli", _value(low, a), _value(low, b))


def _value(low: Rewriter, number: Number) -> ir.Value:
    return low.index(number) if isinstance(number, int) else number


def _binary(low: Rewriter, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    return low.emit(f"arith.{name}", [a.type], [a, b]).results[0]


def _known(value: Number) -> Number:
    found = constant_of(value)
    return value if found is None else found


def _below(low: Rewriter, a: ir.Value, b: ir.Value) -> ir.Value:
    """Whether 0 <= a < b."""
    shape = shape_of(a)
    kind = vector_text(shape, "i1") if shape else "i1"
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _ULT)
    return low.emit("arith.cmpi", [kind], [a, b], {"predicate": predicate}).results[0]


def _splat(low: Rewriter, number: Number, lanes: int) -> ir.Value:
    kind = vector_text((lanes,), "index")
    if isinstance(number, int):
        return _dense(low, [number] * lanes)
    return low.emit("vector.broadcast", [kind], [number]).results[0]


def _dense(low: Rewriter, numbers: Sequence[int], element: str = "index") -> ir.Value:
    kind = vector_text((len(numbers),), element)
    words = ["false", "true"] if element == "i1" else None
    shown = [words[n] if words else str(n) for n in numbers]
    text = shown[0] if len(set(shown)) == 1 else f"[{', '.join(shown)}]"
    value = ir.Attribute.parse(f"dense<{text}> : {kind}")
    return low.emit("arith.constant", [kind], [], {"value": value}).results[0]


# Descriptors as numbers.


@dataclass(frozen=True)
class _Tensor:
    """A tensor in memory: a memref or an address, elements from there to the first one, extents, and strides."""

    source: ir.Value
    start: Number
    extents: tuple[Number, ...]
    strides: tuple[Number, ...]


def _tensor(low: Rewriter, view: Any) -> _Tensor:
    """The tensor of an `xegpu.create_nd_tdesc`."""
    known = tensor_of(view)
    if not isinstance(view.source.type, ir.MemRefType):
        return _Tensor(view.source, 0, tuple(map(_known, view.shape)), tuple(map(_known, view.strides)))
    memref = ir.MemRefType(view.source.type)
    metadata: list[ir.Value] = []

    def number(found: int | None, given: Sequence[Number], i: int, place: int) -> Number:
        if found is not None:
            return found
        if given:
            return given[i]
        if not metadata:
            base = ir.MemRefType.get([], memref.element_type, memory_space=memref.memory_space)
            kinds = [base, *[ir.IndexType.get()] * (1 + 2 * memref.rank)]
            metadata.extend(low.emit("memref.extract_strided_metadata", kinds, [view.source]).results)
        return metadata[place]

    extents = tuple(number(n, list(view.shape), i, 2 + i) for i, n in enumerate(known.extents))
    strides = tuple(number(n, list(view.strides), i, 2 + memref.rank + i) for i, n in enumerate(known.strides[:-1]))
    return _Tensor(view.source, number(known.start, (), 0, 1), extents, (*strides, 1))


def create(low: Rewriter, view: Any, layout: Place) -> tuple[ir.Value, ...]:
    """What an `xegpu.create_nd_tdesc` makes, as numbers."""
    offsets = [_value(low, o) for o in view.offsets]
    if not layout.address:
        return tuple(offsets)
    tensor = _tensor(low, view)
    numbers = [_value(low, n) for n in (*tensor.extents, *tensor.strides[:-1])]
    return (_address(low, tensor, 0, TensorDesc.of(view.tdesc)), *numbers, *offsets)


def update(low: Rewriter, held: Sequence[ir.Value], by: Sequence[Number]) -> tuple[ir.Value, ...]:
    """What an `xegpu.update_nd_offset` makes of these numbers."""
    fixed = len(held) - len(by)
    return (*held[:fixed], *(_value(low, _add(low, _known(a), _known(b))) for a, b in zip(held[fixed:], by)))


def _address(low: Rewriter, tensor: _Tensor, at: Number, desc: TensorDesc) -> ir.Value:
    """The address of an element, i64; the tensor's own, of any type, if it is its first element."""
    wide = ir.IntegerType.get_signless(64)
    base, at = tensor.source, _add(low, tensor.start, at)
    if isinstance(base.type, ir.MemRefType):
        pointer = low.emit("memref.extract_aligned_pointer_as_index", ["index"], [base]).results[0]
        base = low.emit("arith.index_cast", [wide], [pointer]).results[0]
    if at == 0:
        return base
    number = low.emit("arith.index_cast", [wide], [_value(low, at)]).results[0]
    if desc.bits > 8:
        shift = ir.IntegerAttr.get(wide, (desc.bits // 8).bit_length() - 1)
        number = _binary(low, "shli", number, low.emit("arith.constant", [wide], [], {"value": shift}).results[0])
    return _binary(low, "addi", base, number)


def _line(
    low: Rewriter, tensor: _Tensor, at: Number, count: int, desc: TensorDesc, is_inside: bool = False
) -> tuple[ir.Value, Number]:
    """The memory around element `at`, and how many elements from there it is.

    It is a memref of `count` elements if its place is known, one of the whole tensor if that is known and the element
    `is_inside`, and else an address. Elements before the tensor's first are never accessed, but a memref cannot even
    begin there.
    """
    first = _add(low, tensor.start, at)
    source = tensor.source.type
    if not isinstance(source, ir.MemRefType) and str(source) != "i64":
        return tensor.source, first
    rest: Number = 0
    if isinstance(source, ir.MemRefType) and isinstance(tensor.start, int) and is_inside and not isinstance(at, int):
        known = [n for n in (*tensor.extents, *tensor.strides) if isinstance(n, int)]
        if len(known) == 2 * len(tensor.extents):
            first, rest = tensor.start, at
            count = 1 + sum((n - 1) * s for n, s in zip(known, known[len(tensor.extents) :]))
    if not isinstance(source, ir.MemRefType) or not isinstance(first, int) or first < 0:
        return _address(low, tensor, at, desc), 0
    memref = ir.MemRefType(tensor.source.type)
    layout = ir.StridedLayoutAttr.get(first, [1])
    kind = ir.MemRefType.get([count], memref.element_type, layout, memref.memory_space)
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([first]),
        "static_sizes": ir.DenseI64ArrayAttr.get([count]),
        "static_strides": ir.DenseI64ArrayAttr.get([1]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    }
    return low.emit("memref.reinterpret_cast", [kind], [tensor.source], attributes).results[0], rest


# The block of one access.


@dataclass(frozen=True)
class _Part:
    """A part of a block that one message moves.

    Attributes:
        lead: its place along the dimensions outside the innermost two.
        row, rows, column, columns: its place and size along these.
    """

    lead: tuple[int, ...]
    row: int
    rows: int
    column: int
    columns: int


def _most_lanes(desc: TensorDesc, target: Target, name: str) -> int:
    """Lanes of one gather or scatter message of the block's elements."""
    from xegpu_py.passes.xegpu_legalize.layouts import fitting_lanes

    scattered = TensorDesc((32,), desc.element, TdescAttr(memory_scope=desc.attr.memory_scope, scattered=True))
    return fitting_lanes(scattered, target, name)


def _steps(desc: TensorDesc, columns: int, most: int) -> tuple[int, int]:
    """Rows and columns of a message of `most` lanes: several rows where they are short and a power of two."""
    rows = desc.shape[-2]
    if columns & (columns - 1) or columns >= most:
        return 1, min(columns, most)
    return min(rows & -rows, most // columns), columns


@dataclass
class _Access:
    """An access to a block, as it is rewritten."""

    low: Rewriter
    op: ir.Operation
    desc: TensorDesc
    tensor: _Tensor
    offsets: tuple[Number, ...]
    vector: tuple[int, ...]

    @property
    def checked(self) -> bool:
        """Whether out-of-bounds elements are none of the tensor's."""
        return self.desc.attr.boundary_check

    @property
    def columns(self) -> int:
        """Columns of a block, or of all that lie side by side."""
        return self.desc.shape[-1] * (1 if self.is_array else self.desc.attr.array_length)

    @property
    def is_array(self) -> bool:
        """Whether the vector has a dimension for the blocks of an array."""
        return len(self.vector) > len(self.desc.shape)

    def bounds(self, rows: int, columns: Sequence[int]) -> Bounds:
        """How the vector is cut."""
        shape = self.desc.shape
        lead = self.vector[:-2]
        return (*((1,) * n for n in lead), (rows,) * (shape[-2] // rows), tuple(columns))

    def parts(self, bounds: Bounds) -> Iterator[tuple[Box, _Part]]:
        """The pieces of the vector, and where each is in the block of its descriptor."""
        for box in grid(bounds):
            (row, rows), (column, columns) = box[-2:]
            lead = tuple(first for first, _ in box[:-2])
            if self.is_array:
                column += lead[0] * self.desc.shape[-1]
                lead = lead[1:]
            yield box, _Part(lead, row, rows, column, columns)

    def is_inside(self, dimension: int, size: int) -> bool:
        """Whether the block is known to be in bounds along a dimension."""
        at, extent = self.offsets[dimension], self.tensor.extents[dimension]
        if not self.checked:
            return True
        return isinstance(at, int) and isinstance(extent, int) and at >= 0 and at + size <= extent

    def as_lines(self, name: str) -> bool:
        """Whether rows are moved by 1D messages: they are in bounds, aligned as these need it, and not in many pieces.

        Args:
            name: the gather or scatter message that would be taken else.
        """
        pieces = len(_line_pieces(self)[0])
        rows, columns = _steps(self.desc, self.columns, _most_lanes(self.desc, self.low.plan.target, name))
        if pieces > max(rows * -(-self.columns // columns), 1):
            return False
        sizes = (*self.desc.shape[:-1], self.desc.shape[-1] * self.desc.attr.array_length)
        if not all(self.is_inside(d, n) for d, n in enumerate(sizes)):
            return False
        size = self.desc.bits // 8
        aligned = self.low.plan.surfaces.row_alignment(self.op.opview.tdesc)
        if self.is_array:
            aligned = math.gcd(aligned, self.desc.shape[-1] * size)
        return aligned % self.low.plan.target.line_alignment == 0

    def start(self, part: _Part) -> Number:
        """The place of a part's first element, in elements from the tensor's."""
        low, total, known = self.low, self.offsets[-1], part.column
        for at, step, stride in zip(self.offsets[:-1], (*part.lead, part.row), self.tensor.strides[:-1]):
            if isinstance(stride, int):
                # All parts have the sum of what is not known in common.
                total, known = _add(low, total, _multiply(low, at, stride)), known + step * stride
            else:
                total = _add(low, total, _multiply(low, _add(low, at, step), stride))
        return _add(low, total, known)

    def lanes(self, part: _Part) -> tuple[list[int], list[int], int]:
        """Row and column of each lane, counted from the part's first, and lanes that count."""
        used = part.rows * part.columns
        lanes = 1 << (used - 1).bit_length()
        places = [divmod(i, part.columns) if i < used else (0, 0) for i in range(lanes)]
        return [r for r, _ in places], [c for _, c in places], used

    def descriptor(self, part: _Part) -> ir.Value:
        """The lanes of a part as a scattered descriptor."""
        low, (rows, columns, _) = self.low, self.lanes(part)
        stride = self.tensor.strides[-2]
        if isinstance(stride, int) or part.rows == 1:
            by = stride if isinstance(stride, int) else 0
            steps = _dense(low, [r * by + c for r, c in zip(rows, columns)])
        else:
            steps = _binary(low, "muli", _dense(low, rows), _splat(low, stride, len(rows)))
            steps = _binary(low, "addi", steps, _dense(low, columns))
        start = self.start(part)
        if isinstance(start, int):
            source, rest = _line(low, self.tensor, start, 1, self.desc)
        else:
            source, rest = _line(low, self.tensor, 0, 1, self.desc)
            rest = _add(low, rest, start)
        return _scattered(low, source, rest, steps, self.desc)

    def mask(self, part: _Part) -> ir.Value | None:
        """Which lanes of a part are in bounds; None if it is known that none is."""
        low, (rows, columns, used) = self.low, self.lanes(part)
        lanes = len(rows)
        outside = (*zip(self.offsets[:-2], part.lead, self.tensor.extents[:-2]),)
        found: list[ir.Value] = []
        if part.rows == 1:
            outside = (*outside, (self.offsets[-2], part.row, self.tensor.extents[-2]))
        for at, step, extent in outside if self.checked else ():
            place = _add(low, at, step)
            if isinstance(place, int) and (place < 0 or (isinstance(extent, int) and place >= extent)):
                return None
            if not (isinstance(place, int) and isinstance(extent, int)):
                # A comparison of scalars would have to be made a mask.
                found.append(_below(low, _splat(low, place, lanes), _splat(low, extent, lanes)))
        found += [_dense(low, [int(i < used) for i in range(lanes)], "i1")] if used < lanes else []
        inner = [(self.offsets[-1], part.column, columns, part.columns, self.tensor.extents[-1])]
        if part.rows > 1:
            inner.append((self.offsets[-2], part.row, rows, part.rows, self.tensor.extents[-2]))
        for at, step, numbers, size, extent in inner if self.checked else ():
            place = _add(low, at, step)
            if isinstance(place, int) and isinstance(extent, int):
                if not (place >= 0 and place + size <= extent):
                    found.append(_dense(low, [int(0 <= place + n < extent) for n in numbers], "i1"))
                continue
            at_lanes = _binary(low, "addi", _dense(low, numbers), _splat(low, place, lanes))
            found.append(_below(low, at_lanes, _splat(low, extent, lanes)))
        result = found[0] if found else _dense(low, [1] * lanes, "i1")
        for other in found[1:]:
            result = _binary(low, "andi", result, other)
        return result


def _scattered(low: Rewriter, source: ir.Value, first: Number, offsets: ir.Value, desc: TensorDesc) -> ir.Value:
    """A scattered descriptor of the elements of a block's tensor."""
    lanes = shape_of(offsets)
    assert lanes
    if first != 0:
        offsets = _binary(low, "addi", offsets, _splat(low, first, lanes[0]))
    kind = TensorDesc(lanes, desc.element, TdescAttr(memory_scope=desc.attr.memory_scope, scattered=True))
    made: ir.Value = low.build(xegpu.create_tdesc, source, offsets, tdesc=kind, mode="vc")
    return made


def _access(low: Rewriter, op: ir.Operation, layout: Place, vector: tuple[int, ...]) -> _Access:
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    held, rank = low.pieces[view.tdesc, layout], layout.rank
    offsets = tuple(map(_known, held[-rank:]))
    if layout.address:
        numbers = tuple(map(_known, held[1:-rank]))
        tensor = _Tensor(held[0], 0, numbers[:rank], (*numbers[rank:], 1))
    else:
        tensor = _tensor(low, low.plan.surfaces.made_by(view.tdesc)[0])
    return _Access(low, op, desc, tensor, offsets, vector)


def _hints(view: Any) -> dict[str, Any]:
    return {name: getattr(view, name) for name in ("l1_hint", "l2_hint", "l3_hint")}


def _say(low: Rewriter, op: ir.Operation, count: int, what: str) -> None:
    """Tell what it costs that no 2D message moves a block."""
    why = low.plan.surfaces.problem(op.opview.tdesc) or "has rows that no 2D block message stores"
    remark(op, f"takes {count} {what}{'s' * (count != 1)} in place of 2D block messages: its tensor {why}")


def load(low: Rewriter, op: ir.Operation, layout: Place) -> None:
    """A block that is loaded line by line, or gathered."""
    vector = shape_of(op.results[0])
    assert vector
    access = _access(low, op, layout, vector)
    desc, hints, parts = access.desc, _hints(op.opview), []
    if access.as_lines("lsc_load"):
        bounds, kinds = _lines(access)
        for box, part in access.parts(bounds):
            line = _line_desc(access, part, kinds)
            parts.append(_cast(low, low.build(xegpu.load_nd, line, mode="vc", **hints), box, desc))
        _say(low, op, len(parts), "1D load")
        low.set(op.results[0], bounds, parts)
        return
    rows, columns = _steps(desc, access.columns, _most_lanes(desc, low.plan.target, "lsc_load"))
    bounds = access.bounds(rows, segments(access.columns, range(0, access.columns, columns)))
    count = 0
    for box, part in access.parts(bounds):
        mask = access.mask(part)
        lanes = len(access.lanes(part)[0])
        used = part.rows * part.columns
        if mask is None:
            found = _zeros(low, lanes, desc.element)
        else:
            kind = vector_text((lanes,), desc.element)
            found = low.build(xegpu.load_gather, access.descriptor(part), mask, value=kind, mode="vc", **hints)
            count += 1
        if used < lanes:
            found = low.part(found, ((0, used),))
        parts.append(_cast(low, found, box, desc))
    _say(low, op, count, "gather")
    low.set(op.results[0], bounds, parts)


def store(low: Rewriter, op: ir.Operation, layout: Place) -> None:
    """A block that is stored line by line, or scattered."""
    view: Any = op.opview
    vector = shape_of(view.value)
    assert vector
    access = _access(low, op, layout, vector)
    desc, hints, count = access.desc, _hints(view), 0
    if access.as_lines("lsc_store"):
        bounds, kinds = _lines(access)
        for box, part in access.parts(bounds):
            value = _flat(low, low.part(view.value, box))
            low.build(xegpu.store_nd, value, _line_desc(access, part, kinds), mode="vc", **hints)
            count += 1
        _say(low, op, count, "1D store")
        return
    rows, columns = _steps(desc, access.columns, _most_lanes(desc, low.plan.target, "lsc_store"))
    bounds = access.bounds(rows, segments(access.columns, range(0, access.columns, columns)))
    for box, part in access.parts(bounds):
        mask = access.mask(part)
        if mask is None:
            continue
        value = _padded(low, _flat(low, low.part(view.value, box)), len(access.lanes(part)[0]), desc.element)
        low.build(xegpu.store_scatter, value, access.descriptor(part), mask, mode="vc", **hints)
        count += 1
    _say(low, op, count, "scatter")


def prefetch(low: Rewriter, op: ir.Operation, layout: Place) -> None:
    """A prefetch of each cache line of a block's rows; of what is out of bounds, of the nearest element in bounds."""
    access = _access(low, op, layout, TensorDesc.of(op.opview.tdesc).shape)
    desc = access.desc
    if desc.attr.memory_scope == MemoryScope.SLM:
        return
    across = access.desc.shape[-1] * desc.attr.array_length
    step = max(low.plan.target.cache_line * 8 // desc.bits, 1)
    columns = [*range(0, across, step), *([across - 1] if (across - 1) % step else [])]
    places = list(itertools.product(*map(range, desc.shape[:-1]), columns))
    most = _most_lanes(desc, low.plan.target, "lsc_load")
    count = 0
    for first in range(0, len(places), most):
        chosen = places[first : first + most]
        chosen += chosen[-1:] * ((1 << (len(chosen) - 1).bit_length()) - len(chosen))
        lanes = len(chosen)
        total: ir.Value | None = None
        for d, stride in enumerate(access.tensor.strides):
            at = _binary(low, "addi", _dense(low, [p[d] for p in chosen]), _splat(low, access.offsets[d], lanes))
            if not access.is_inside(d, desc.shape[d] if d < len(desc.shape) - 1 else across):
                last = _splat(low, _add(low, access.tensor.extents[d], -1), lanes)
                at = _binary(low, "maxsi", _binary(low, "minsi", at, last), _splat(low, 0, lanes))
            scaled = at if stride == 1 else _binary(low, "muli", at, _splat(low, stride, lanes))
            total = scaled if total is None else _binary(low, "addi", total, scaled)
        assert total is not None
        source, rest = _line(low, access.tensor, 0, 1, desc)
        low.build(xegpu.prefetch, _scattered(low, source, rest, total, desc), mode="vc", **_hints(op.opview))
        count += 1
    _say(low, op, count, "scattered prefetch" if count == 1 else "scattered prefetche")


def _line_pieces(access: _Access) -> tuple[tuple[int, ...], TdescAttr]:
    """The columns of the 1D messages of a row, and the settings of their descriptors."""
    scope = access.desc.attr.memory_scope
    row = TensorDesc((access.columns,), access.desc.element, TdescAttr(memory_scope=scope))
    return segments(access.columns, sorted(blocks.line_cuts(row))), row.attr


def _lines(access: _Access) -> tuple[Bounds, TdescAttr]:
    """How a block is cut into 1D messages, and the settings of their descriptors."""
    pieces, attr = _line_pieces(access)
    return access.bounds(1, pieces), attr


def _line_desc(access: _Access, part: _Part, attr: TdescAttr) -> ir.Value:
    low = access.low
    source, rest = _line(low, access.tensor, access.start(part), part.columns, access.desc, True)
    kind = TensorDesc((part.columns,), access.desc.element, attr)
    made: ir.Value = low.build(xegpu.create_nd_tdesc, source, [rest], tdesc=kind, mode="vc")
    return made


def _flat(low: Rewriter, value: ir.Value) -> ir.Value:
    shape = shape_of(value)
    assert shape
    if len(shape) == 1:
        return value
    return low.emit("vector.shape_cast", [low.vector((math.prod(shape),), value)], [value]).results[0]


def _cast(low: Rewriter, value: ir.Value, box: Box, desc: TensorDesc) -> ir.Value:
    text = vector_text(tuple(n for _, n in box), desc.element)
    return value if str(value.type) == text else low.emit("vector.shape_cast", [text], [value]).results[0]


def _zeros(low: Rewriter, lanes: int, element: str) -> ir.Value:
    kind = vector_text((lanes,), element)
    zero = "0.0" if is_float(element) else "0"
    return low.emit("arith.constant", [kind], [], {"value": ir.Attribute.parse(f"dense<{zero}> : {kind}")}).results[0]


def _padded(low: Rewriter, value: ir.Value, lanes: int, element: str) -> ir.Value:
    """A vector with zeros behind it."""
    shape = shape_of(value)
    assert shape
    if shape[0] == lanes:
        return value
    zeros, i64 = _zeros(low, lanes, element), ir.IntegerType.get_signless(64)
    attributes = {name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n)]) for name, n in (("offsets", 0), ("strides", 1))}
    return low.emit("vector.insert_strided_slice", [zeros.type], [value, zeros], attributes).results[0]


def limit(plan: Plan, op: ir.Operation, grain: int) -> None:
    """Cut the vector that is stored into pieces of about `grain` bytes, where messages end."""
    value, desc = op.opview.value, TensorDesc.of(op.opview.tdesc)
    shape = shape_of(value)
    assert shape
    rows, columns = _steps(desc, shape[-1], _most_lanes(desc, plan.target, "lsc_store"))
    each = max(grain * 8 // (shape[-1] * desc.bits) // rows, 1) * rows
    for d in range(len(shape) - 2):
        plan.cut(value, d, range(shape[d]))
    plan.cut(value, len(shape) - 2, range(0, shape[-2], each))
    if each == rows:
        plan.cut(value, len(shape) - 1, range(0, shape[-1], columns))
