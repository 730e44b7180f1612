"""Rules for blocks of elements of 2 and 4 bits, for single elements, and for what computes with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.ir.bindings import AtomicRMWKind
from xegpu_py.ir.builtin import CombiningKind
from xegpu_py.ir.diagnostics import remark
from xegpu_py.passes.analysis.integer_analysis import divisor
from xegpu_py.passes.analysis.ir_queries import (
    attributes_of,
    constant_of,
    defining_op,
    desc_bits,
    memref_bits,
    moves_of,
    shape_of,
    view_numbers,
)
from xegpu_py.passes.analysis.target_messages import apply_load_transform, hints_of, untransformed_shape
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.memory_access import Transfer
from xegpu_py.passes.rewriting.rewriter import Results
from xegpu_py.passes.xegpu_emulate_narrow_types.packed_elements import (
    Emulation,
    bits_of,
    extended,
    masked,
    rule,
    signed_of,
)
from xegpu_py.passes.xegpu_emulate_narrow_types.packed_elements import (
    emulate as emulate,
)

# `xegpu`: blocks of elements of 2 and 4 bits.


def _numbers(e: Emulation, values: Any) -> list[build.Index]:
    return [n if isinstance(n, int) else build.fold_index(e.replacement(n)) for n in values]


@rule("xegpu.create_nd_tdesc")
def create_nd_tdesc(e: Emulation, op: ir.Operation) -> Results:
    """Create a descriptor of bytes; if blocks may begin within a byte, create two."""
    view: Any = op.opview
    each, kind = e.each(view.tdesc.type), e.desc_type(view.tdesc.type)
    offsets, shape, strides = (_numbers(e, v) for v in (view.offsets, view.shape, view.strides))
    attributes: dict[str, Any] = {}
    if strides and strides[-1] != 1:
        e.fail("has an innermost stride that is not known to be 1, so that elements do not fill bytes")
    if shape:
        for quantity, values in (("shape", shape[-1:]), ("strides", strides[:-1])):
            bad = next((n for n in values if divisor(n) % each), None)
            if bad is not None and len(shape) > 1:
                which = f"of {bad} elements, which do not fill" if isinstance(bad, int) else "not known to be whole"
                e.fail(f"has {quantity} {which} bytes", f"let it be a multiple of {each}")
        attributes = {
            "shape": [*shape[:-1], bytes_before(build.add(shape[-1], each - 1), each)],
            "strides": [*(bytes_before(n, each) for n in strides[:-1]), strides[-1]],
        }
    source = e.replacement(view.source)

    def at(column: build.Index) -> ir.Value:
        return xegpu.create_nd_tdesc(source, [*offsets[:-1], column], tdesc=kind, mode=view.mode, **attributes)

    first = at(bytes_before(offsets[-1], each))
    if not e.shifted:
        return first
    behind = at(bytes_before(build.add(offsets[-1], each - 1), each))
    return [first, behind, build.index(place_in_byte(offsets[-1], each))]


@rule("xegpu.update_nd_offset")
def update_nd_offset(e: Emulation, op: ir.Operation) -> Results:
    """Move the descriptors by bytes, and update the number of the first element in its byte."""
    view: Any = op.opview
    each = e.each(view.tdesc.type)
    *outer, by = _numbers(e, view.offsets)
    packed_desc = e.get(view.tdesc)

    def moved(desc: ir.Value, column: build.Index) -> ir.Value:
        return xegpu.update_nd_offset(desc, [*outer, column], result=desc.type, mode=view.mode)

    if not e.shifted:
        return moved(packed_desc[0], bytes_before(by, each))
    first, behind, bit_offset = packed_desc
    total = build.add(bit_offset, by)
    ends = bytes_before(build.add(total, each - 1), each), bytes_before(build.add(bit_offset, each - 1), each)
    further = build.make("arith.subi", bit_offset.type, build.index(ends[0]), build.index(ends[1]))
    return [moved(first, bytes_before(total, each)), moved(behind, further), build.index(place_in_byte(total, each))]


@rule("xegpu.prefetch_nd")
def prefetch_nd(e: Emulation, op: ir.Operation) -> None:
    """Prefetch the bytes in which the block's rows begin."""
    view: Any = op.opview
    xegpu.prefetch_nd(e.get(view.tdesc)[0], mode=view.mode, memory_scope=view.memory_scope, **hints_of(view))
    e.erase(op)


@rule("xegpu.load_nd")
def load_nd(e: Emulation, op: ir.Operation) -> ir.Value | None:
    """Load bytes. The message does transforms that keep bytes whole; other transforms are done in registers."""
    view: Any = op.opview
    bits = desc_bits(view.tdesc.type)
    desc = TensorDesc.of(view.tdesc)
    result = view.value.type
    unit = view.transpose_bit_width or bits
    by_message = view.vnni_axis is None
    if view.transpose is not None:
        keeps_rows = view.transpose[-1] == len(view.transpose) - 1
        aligned = view.mode != Mode.VC or view.tdesc not in e.within_bytes
        by_message = keeps_rows or (unit >= 8 and aligned)
    attributes = hints_of(view)
    if by_message:
        if view.transpose is not None:
            attributes["transpose"] = view.transpose
            if unit > 8:
                attributes["transpose_bit_width"] = unit
        kind: ir.Type = e.held_type(result)
        return _loaded(e, view, kind, bits, attributes)
    if view.mode != Mode.VC:
        e.fail(
            f"moves single elements of {desc.element}, which work items do not have whole bytes of",
            "let the matrix be packed in memory as the product needs it, or load it in VC mode",
        )
    kind = e.held_type(build.vector_type(untransformed_shape(view), ir.VectorType(result).element_type))
    e.give(op, apply_load_transform(view, e.spread(_loaded(e, view, kind, bits, attributes), bits)))
    return None


def _loaded(e: Emulation, view: Any, kind: ir.Type, bits: int, attributes: dict[str, Any]) -> ir.Value:
    """Load the bytes of a block that may begin within a byte."""
    packed_desc = e.get(view.tdesc)
    parts = packed_desc[:2] if view.tdesc in e.within_bytes else packed_desc[:1]
    parts_loaded = [xegpu.load_nd(d, value=kind, mode=view.mode, **attributes) for d in parts]
    return parts_loaded[0] if len(parts_loaded) == 1 else joined(parts_loaded[0], parts_loaded[1], packed_desc[2], bits)


@rule("xegpu.store_nd")
def store_nd(e: Emulation, op: ir.Operation) -> None:
    """Store bytes."""
    view: Any = op.opview
    each = e.each(view.tdesc.type)
    if view.tdesc in e.within_bytes:
        _store_within_bytes(e, view, each)
    else:
        xegpu.store_nd(e.packed(view.value), e.get(view.tdesc)[0], mode=view.mode, **hints_of(view))
    e.erase(op)


def _place(desc: ir.Value) -> tuple[ir.Value, list[ir.Value | int]] | None:
    """The tensor of a descriptor, and the sums of its offsets; None if these are not known."""
    first, moves = moves_of(desc)
    op = defining_op(first)
    view: Any = op.opview if op is not None else None
    if not isinstance(view, xegpu.CreateNdTdescOp) or view.shape or not isinstance(view.source.type, ir.MemRefType):
        return None
    return view.source, [build.add(*terms) for terms in zip(view.offsets, *reversed(moves))]


def _store_within_bytes(e: Emulation, view: Any, each: int) -> None:
    """Store the whole bytes of a block by a block store, and update the partial bytes by compare and swap."""
    position = _place(view.tdesc)
    if position is None or view.mode != Mode.VC:
        e.fail(
            "stores a block that may begin within a byte, whose other elements it would have to leave",
            f"let its columns be multiples of {each}, for example by arith.muli",
            "or create its descriptor beside the store, in VC mode, from a memref without a shape",
        )
    remark(
        view.operation,
        "updates bytes shared with other elements by compare-and-swap loops: it may begin within a byte",
    )
    source, offsets = e.replacement(position[0]), _numbers(e, position[1])
    packed, byte = e.packed(view.value), bytes_before(offsets[-1], each)
    *rows, size = shape_of(packed)
    wide, i8 = build.with_element(packed.type, build.integer_type(16)), build.integer_type(8)
    inside = build.index(build.multiply(place_in_byte(offsets[-1], each), 8 // each))
    by = build.make("arith.index_cast", build.integer_type(16), inside)
    shifted = build.binary("shli", build.make("arith.extui", wide, packed), build.broadcast(by, wide))
    full = build.binary("shli", build.constant(build.integer_type(16), 0xFF), by)
    # `low` are the bits that stay in their byte after the shift, and `high` those that move into the next byte.
    low, high = (build.make("arith.trunci", packed.type, v) for v in (shifted, build.binary("shrui", shifted, 8)))
    masks = [build.make("arith.trunci", i8, v) for v in (full, build.binary("shrui", full, 8))]
    if size > 1:
        inner = (*rows, size - 1)
        first = [0] * len(rows)
        middle = build.binary(
            "ori", build.extract_slice(low, [*first, 1], inner), build.extract_slice(high, [*first, 0], inner)
        )
        kind = TensorDesc(inner, "i8", TensorDesc.of(view.tdesc).attr).to_ir()
        at = [*offsets[:-1], build.add(byte, 1)]
        desc = xegpu.create_nd_tdesc(source, at, tdesc=kind, mode=view.mode)
        xegpu.store_nd(middle, desc, mode=view.mode, **hints_of(view))
    lead = len(offsets) - len(rows) - 1
    for row in np.ndindex(*rows):
        at = [*offsets[:lead], *map(build.add, offsets[lead:-1], map(int, row))]
        _update_byte(source, [*at, byte], build.extract(low, [*map(int, row), 0]), masks[0])
        _update_byte(source, [*at, build.add(byte, size)], build.extract(high, [*map(int, row), size - 1]), masks[1])


def _update_byte(memref: ir.Value, place: list[build.Index], value: ir.Value, mask: ir.Value) -> None:
    """Write the bits of a byte that a mask selects, if it selects any and the byte is in bounds."""
    happens = build.compare("ne", mask, 0)
    indices = [build.index(i) for i in place]
    for d, at in enumerate(indices):
        extent = build.make("memref.dim", build.index_type(), memref, build.index(d))
        happens = build.binary("andi", happens, build.compare("ult", at, extent))

    def change(before: ir.Value) -> ir.Value:
        others = build.binary("andi", before, build.binary("xori", mask, -1))
        return build.binary("ori", others, build.binary("andi", value, mask))

    def update() -> Sequence[ir.Value]:
        build.atomic_update(memref, indices, value.type, change)
        return ()

    build.if_(happens, [], update)


# Memory of elements of 2 and 4 bits: views, single elements, and the vector dialect's accesses.

_UNKNOWN = ir.ShapedType.get_dynamic_size()


def bytes_before(number: build.Index, each: int) -> build.Index:
    """The number of the byte that contains an element; it may be negative."""
    if isinstance(number, int):
        return number // each
    return build.binary("shrsi", number, each.bit_length() - 1)


def place_in_byte(number: build.Index, each: int) -> build.Index:
    """The number of an element in its byte."""
    if isinstance(number, int):
        return number % each
    return build.binary("andi", number, each - 1)


# Views.


@rule("memref.alloc", "memref.alloca", "memref.cast", "memref.memory_space_cast", "memref.collapse_shape",
         "memref.dealloc")  # fmt: skip
def same(e: Emulation, op: ir.Operation) -> Results:
    """Build the same op on bytes."""
    if op.name.startswith("memref.alloc") and len(op.operands):
        e.fail("has extents of elements of less than a byte that are not known")
    kinds = [e.memref(v.type, op) for v in op.results]
    new_op = build.create_like(op, kinds, [e.replacement(v) for v in op.operands])
    return tuple(new_op.results)


@rule("memref.prefetch")
def prefetch(e: Emulation, op: ir.Operation) -> None:
    """Remove the op, which is a hint."""
    e.replace(op)


@rule("memref.expand_shape")
def expand_shape(e: Emulation, op: ir.Operation) -> ir.Value:
    """Divide the innermost extent by the number of elements in a byte."""
    source, *extents = op.operands
    attributes = attributes_of(op)
    shape = list(ir.DenseI64ArrayAttr(attributes["static_output_shape"]))
    each = e.each(source.type)
    if shape[-1] == _UNKNOWN:
        *extents, last = extents
        if divisor(last) % each:
            e.fail("has rows that are not known to be whole bytes", f"let them be multiples of {each} elements")
        extents.append(build.index(bytes_before(e.replacement(last), each)))
    else:
        shape[-1] //= each
    attributes["static_output_shape"] = build.i64_array(shape)
    new_op = build.create(op.name, [e.memref(op.results[0].type, op)], [e.replacement(source), *extents], attributes)
    return new_op.results[0]


@rule("memref.subview", "memref.reinterpret_cast")
def subview(e: Emulation, op: ir.Operation) -> ir.Value:
    """Convert offsets, extents and strides to bytes."""
    source = op.operands[0]
    each = e.each(source.type)
    offsets, sizes, strides = (
        [n if isinstance(n, int) else e.replacement(n) for n in group] for group in view_numbers(op)
    )
    if strides and strides[-1] != 1:
        e.fail("has an innermost stride that is not known to be 1, so that elements do not fill bytes")
    # The strides of a subview multiply those of its source; the strides of the other op are numbers of elements.
    in_elements = {"offsets": offsets[-1:], "strides": strides[:-1] if op.name == "memref.reinterpret_cast" else []}
    # The extent of rows in bytes replaces an extent that is not static.
    in_elements["sizes"] = [n for n in sizes[-1:] if not isinstance(n, int)]
    for quantity, values in in_elements.items():
        if any(divisor(n) % each for n in values):
            e.fail(f"has {quantity} that are not known to be whole bytes", f"let them be multiples of {each} elements")
    offsets[-1:] = [bytes_before(n, each) for n in offsets[-1:]]
    sizes[-1:] = [bytes_before(build.add(n, each - 1), each) for n in sizes[-1:]]
    if op.name == "memref.reinterpret_cast":
        strides[:-1] = [bytes_before(n, each) for n in strides[:-1]]
    return build.memref_view(op.name, e.replacement(source), offsets, sizes, strides, e.memref(op.results[0].type, op))


@rule("memref.dim")
def dim(e: Emulation, op: ir.Operation) -> None:
    """Convert the innermost extent to elements."""
    source, which = op.operands
    kind = ir.MemRefType(source.type)
    number = constant_of(which)
    if number is None:
        e.fail("requires a constant dimension")
    if kind.shape[number] != _UNKNOWN:
        found = build.index(kind.shape[number])
    else:
        extent = build.make(op.name, build.index_type(), e.replacement(source), e.replacement(which))
        found = build.index(build.multiply(extent, e.each(source.type) if number == kind.rank - 1 else 1))
    op.results[0].replace_all_uses_with(found)
    e.erase(op)


@rule("memref.extract_aligned_pointer_as_index")
def pointer(e: Emulation, op: ir.Operation) -> None:
    """The address does not change."""
    e.keep(op)


# Single elements.


class _Element:
    """The location of an element: the memref of bytes, the indices of its byte, and the element's shift in the byte."""

    def __init__(self, e: Emulation, memref: ir.Value, indices: Sequence[build.Index]) -> None:
        self.bits = memref_bits(memref.type)
        self.memref = e.replacement(memref)
        each = 8 // self.bits
        folded = list(map(build.fold_index, indices))
        self.shift: ir.Value = build.constant(build.integer_type(8), 0)
        if folded:
            inside = build.index(build.multiply(place_in_byte(folded[-1], each), self.bits))
            self.shift = build.make("arith.index_cast", build.integer_type(8), inside)
            folded[-1] = bytes_before(folded[-1], each)
        self.indices = [build.index(p) for p in folded]

    def load(self) -> ir.Value:
        """Load the element, in a byte whose upper bits are arbitrary."""
        return self.taken(build.make("memref.load", build.integer_type(8), self.memref, *self.indices))

    def taken(self, byte: ir.Value) -> ir.Value:
        """Extract the element from its byte."""
        return build.binary("shrui", byte, self.shift)

    def put(self, byte: ir.Value, value: ir.Value) -> ir.Value:
        """Replace the element in its byte."""
        mask = build.binary("shli", build.constant(build.integer_type(8), (1 << self.bits) - 1), self.shift)
        others = build.binary("andi", byte, build.binary("xori", mask, -1))
        return build.binary("ori", others, build.binary("shli", masked(value, self.bits), self.shift))

    def update(self, change: Callable[[ir.Value], ir.Value]) -> ir.Value:
        """Change the element by a compare-and-swap loop on its byte, and return its old value."""
        byte = build.integer_type(8)
        old_byte = build.atomic_update(self.memref, self.indices, byte, lambda b: self.put(b, change(self.taken(b))))
        return self.taken(old_byte)

    def combine(self, kind: CombiningKind, value: ir.Value) -> ir.Value:
        """Combine the element with a value by a compare-and-swap loop, and return its old value."""
        sign = signed_of(kind)
        return self.update(lambda old: kind.combine(*(extended(v, self.bits, sign) for v in (old, value))))

    def assign(self, value: ir.Value) -> ir.Value:
        """Write the element and return its old value; the loop keeps what other threads write to its byte."""
        return self.update(lambda old: value)


@rule("memref.load")
def load(e: Emulation, op: ir.Operation) -> ir.Value:
    """Load the byte, and shift it."""
    memref, *indices = op.operands
    return _Element(e, memref, indices).load()


@rule("memref.store")
def store(e: Emulation, op: ir.Operation) -> None:
    """Update the byte atomically; its other elements do not change."""
    value, memref, *indices = op.operands
    _Element(e, memref, indices).assign(e.replacement(value))
    e.erase(op)


@rule("memref.atomic_rmw")
def atomic_rmw(e: Emulation, op: ir.Operation) -> ir.Value:
    """Update the byte atomically, and return the old element."""
    value, memref, *indices = op.operands
    kind = AtomicRMWKind(ir.IntegerAttr(op.attributes["kind"]).value).name
    if kind.endswith("f"):
        e.fail(f"{kind} of {memref.type} is not supported")
    element, operand = _Element(e, memref, indices), e.replacement(value)
    return element.assign(operand) if kind == "assign" else element.combine(CombiningKind.of_atomic(kind), operand)


@rule("memref.generic_atomic_rmw")
def generic_atomic_rmw(e: Emulation, op: ir.Operation) -> None:
    """Update the byte atomically by the op's region, and return the old element."""
    memref, *indices = op.operands
    body = op.regions[0].blocks[0]

    def change(element: ir.Value) -> ir.Value:
        e.define(body.arguments[0], (element,))
        return e.replacement(*e.inline(body))

    # Replaced ops are erased from last to first, and the ops inside, which may use the argument, before this op.
    e.erase(op)
    e.define(op.results[0], (_Element(e, memref, indices).update(change),))


# Vectors.


def _elements(
    e: Emulation, memref: ir.Value, indices: Sequence[build.Index], shape: Sequence[int]
) -> Iterator[_Element]:
    """The elements of a vector in memory, in row-major order."""
    lead = len(indices) - len(shape)
    for element in np.ndindex(*shape):
        yield _Element(e, memref, [*indices[:lead], *map(build.add, indices[lead:], element)])


def load_vector(
    e: Emulation, op: ir.Operation, memref: ir.Value, indices_given: Sequence[build.Index]
) -> ir.Value | None:
    """Load consecutive rows: bytes if the vector begins at a byte; otherwise two vectors of bytes, joined by shifts."""
    kind, indices = op.results[0].type, list(map(build.fold_index, indices_given))
    each, shape = e.each(kind), shape_of(kind)
    if not e.is_packed(kind):
        e.give(op, build.from_elements([x.load() for x in _elements(e, memref, indices, shape)], shape))
        return None
    packed_type = e.held_type(kind)
    last = indices[-1]

    def at(column: build.Index) -> ir.Value:
        byte_indices = [build.index(i) for i in (*indices[:-1], column)]
        return build.make("vector.load", packed_type, e.replacement(memref), *byte_indices)

    first = at(bytes_before(last, each))
    if divisor(last) % each == 0:
        return first
    behind = at(bytes_before(build.add(last, each - 1), each))
    return joined(first, behind, place_in_byte(last, each), 8 // each)


def joined(first: ir.Value, behind: ir.Value, bit_offset: build.Index, bits: int) -> ir.Value:
    """The bytes of elements that may begin within a byte.

    Args:
        first: the bytes in which the result's bytes begin.
        behind: the bytes after these; equal to `first` if the elements begin at a byte.
        bit_offset: the number of the first element in its byte.
        bits: the bits of an element.
    """
    wide = build.with_element(first.type, build.integer_type(16))
    low, high = (build.make("arith.extui", wide, v) for v in (first, behind))
    both = build.binary("ori", low, build.binary("shli", high, 8))
    by = build.make("arith.index_cast", build.integer_type(16), build.index(build.multiply(bit_offset, bits)))
    return build.make("arith.trunci", first.type, build.binary("shrui", both, build.broadcast(by, wide)))


def store_vector(e: Emulation, memref: ir.Value, given: Sequence[build.Index], value: ir.Value) -> None:
    """Store consecutive rows: bytes if the vector begins at a byte; otherwise element by element."""
    kind, indices = value.type, list(map(build.fold_index, given))
    last = indices[-1]
    each = e.each(kind)
    if e.is_packed(kind) and divisor(last) % each == 0:
        byte_indices = [build.index(i) for i in (*indices[:-1], bytes_before(last, each))]
        build.create("vector.store", [], [e.packed(value), e.replacement(memref), *byte_indices])
        return
    numbers, shape = e.unpacked(value), shape_of(kind)
    for element_index, element in zip(np.ndindex(*shape), _elements(e, memref, indices, shape)):
        element.assign(build.extract(numbers, element_index))


@rule("vector.load")
def vector_load(e: Emulation, op: ir.Operation) -> ir.Value | None:
    """Load consecutive elements."""
    memref, *indices = op.operands
    return load_vector(e, op, memref, indices)


@rule("vector.store")
def vector_store(e: Emulation, op: ir.Operation) -> None:
    """Store consecutive elements."""
    value, memref, *indices = op.operands
    store_vector(e, memref, indices, value)
    e.erase(op)


def _transferred(e: Emulation, transfer: Transfer, notes: tuple[str, str]) -> list[ir.Value] | None:
    """The indices of the bytes that a transfer moves; None if it is in bounds, like vector.load and vector.store.

    Args:
        notes: alternatives to a transfer that is permuted or masked, and to one whose rows end within bytes.
    """
    memref, kind, indices = transfer.memref, transfer.vector.type, list(map(build.fold_index, transfer.indices))
    rank, each, last = len(indices), e.each(kind), indices[-1]
    if transfer.mask is not None or transfer.dimensions != list(range(rank - len(shape_of(kind)), rank)):
        e.fail(f"of {memref.type} has a mask, or dimensions in another order", notes[0])
    if all(transfer.in_bounds):
        return None
    extent = ir.MemRefType(memref.type).shape[-1]
    if divisor(last) % each or not e.is_packed(kind) or (extent != _UNKNOWN and extent % each):
        e.fail("may reach out of bounds, and does not begin and end at bytes", notes[1])
    return [*map(build.index, indices[:-1]), build.index(bytes_before(last, each))]


@rule("vector.transfer_read")
def transfer_read(e: Emulation, op: ir.Operation) -> ir.Value | None:
    """Load the vector if it is in bounds; otherwise transfer bytes, whose padding repeats the element."""
    transfer, kind = Transfer(op), op.results[0].type
    indices = _transferred(e, transfer, ("read bytes, or whole rows", "read rows that begin and end at bytes"))
    if indices is None:
        return load_vector(e, op, transfer.memref, transfer.indices)
    assert transfer.padding is not None
    element, bits = e.replacement(transfer.padding), bits_of(kind)
    padding = masked(element, bits)
    for j in range(1, e.each(kind)):
        padding = build.binary("ori", padding, build.binary("shli", masked(element, bits), bits * j))
    return build.create_like(op, [e.held_type(kind)], [e.replacement(transfer.memref), *indices, padding]).results[0]


@rule("vector.transfer_write")
def transfer_write(e: Emulation, op: ir.Operation) -> None:
    """Store the vector if it is in bounds; otherwise transfer bytes."""
    transfer = Transfer(op)
    each = e.each(transfer.vector.type)
    aligned = f"rows of a store begin at bytes: let the column be a multiple of {each}, for example by arith.muli"
    indices = _transferred(e, transfer, ("write bytes, or whole rows", aligned))
    if indices is None:
        store_vector(e, transfer.memref, transfer.indices, transfer.vector)
    else:
        build.create_like(op, [], [e.packed(transfer.vector), e.replacement(transfer.memref), *indices])
    e.erase(op)
