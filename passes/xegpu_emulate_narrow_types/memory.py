"""Memory of elements of 2 and 4 bits: views, single elements, and the vector dialect's accesses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import Index
from xegpu_py.passes.common.divisors import divisor
from xegpu_py.passes.common.elements import memref_bits
from xegpu_py.passes.common.values import attributes_of, constant_of, shape_of
from xegpu_py.passes.xegpu_emulate_narrow_types.emulation import Emulation, bits_of, extended, masked, pattern

_UNKNOWN = ir.ShapedType.get_dynamic_size()


def bytes_before(number: Index, each: int) -> Index:
    """The number of the byte that contains an element; it may be negative."""
    if isinstance(number, int):
        return number // each
    return build.binary("shrsi", number, each.bit_length() - 1)


def place_in_byte(number: Index, each: int) -> Index:
    """The number of an element in its byte."""
    if isinstance(number, int):
        return number % each
    return build.binary("andi", number, each - 1)


# Views.


@pattern("memref.alloc", "memref.alloca", "memref.cast", "memref.memory_space_cast", "memref.collapse_shape",
         "memref.dealloc")  # fmt: skip
def same(e: Emulation, op: ir.Operation) -> None:
    """Build the same op on bytes."""
    if op.name.startswith("memref.alloc") and len(op.operands):
        e.fail("has extents of elements of less than a byte that are not known")
    kinds = [e.memref(v.type, op) for v in op.results]
    made = ir.Operation.create(op.name, kinds, [e.one(v) for v in op.operands], attributes_of(op))
    e.replace(op, *((v,) for v in made.results))


@pattern("memref.prefetch")
def prefetch(e: Emulation, op: ir.Operation) -> None:
    """Remove the op, which is a hint."""
    e.replace(op)


@pattern("memref.expand_shape")
def expand_shape(e: Emulation, op: ir.Operation) -> None:
    """Divide the innermost extent by the number of elements in a byte."""
    source, *extents = op.operands
    attributes = attributes_of(op)
    shape = list(ir.DenseI64ArrayAttr(attributes["static_output_shape"]))
    each = e.each(source.type)
    if shape[-1] == _UNKNOWN:
        *extents, last = extents
        extents.append(build.index(bytes_before(e.one(last), each)))
    else:
        shape[-1] //= each
    attributes["static_output_shape"] = build.i64_array(shape)
    made = ir.Operation.create(op.name, [e.memref(op.results[0].type, op)], [e.one(source), *extents], attributes)
    e.replace(op, (made.results[0],))


@pattern("memref.subview", "memref.reinterpret_cast")
def subview(e: Emulation, op: ir.Operation) -> None:
    """Convert offsets, extents and strides to bytes."""
    source, *rest = op.operands
    each, attributes, waiting = e.each(source.type), attributes_of(op), iter(rest)
    offsets, sizes, strides = (
        [e.one(next(waiting)) if n == _UNKNOWN else n for n in ir.DenseI64ArrayAttr(attributes[f"static_{name}"])]
        for name in ("offsets", "sizes", "strides")
    )
    if strides and strides[-1] != 1:
        e.fail("has an innermost stride that is not known to be 1, so that elements do not fill bytes")
    # The strides of a subview multiply those of its source; the strides of the other op are numbers of elements.
    in_elements = {"offsets": offsets[-1:], "strides": strides[:-1] if op.name == "memref.reinterpret_cast" else []}
    for what, found in in_elements.items():
        if any(divisor(n) % each for n in found):
            e.fail(f"has {what} that are not known to be whole bytes", f"let them be multiples of {each} elements")
    offsets[-1:] = [bytes_before(n, each) for n in offsets[-1:]]
    sizes[-1:] = [bytes_before(build.add(n, each - 1), each) for n in sizes[-1:]]
    if op.name == "memref.reinterpret_cast":
        strides[:-1] = [bytes_before(n, each) for n in strides[:-1]]
    operands = [e.one(source)]
    for name, found in (("offsets", offsets), ("sizes", sizes), ("strides", strides)):
        attributes[f"static_{name}"] = build.i64_array([n if isinstance(n, int) else _UNKNOWN for n in found])
        operands += [n for n in found if not isinstance(n, int)]
    made = ir.Operation.create(op.name, [e.memref(op.results[0].type, op)], operands, attributes)
    e.replace(op, (made.results[0],))


@pattern("memref.dim")
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
        extent = build.make(op.name, build.index_type(), e.one(source), e.one(which))
        found = build.index(build.multiply(extent, e.each(source.type) if number == kind.rank - 1 else 1))
    op.results[0].replace_all_uses_with(found)
    e.erase(op)


@pattern("memref.extract_aligned_pointer_as_index")
def pointer(e: Emulation, op: ir.Operation) -> None:
    """The address does not change."""
    e.keep(op)


# Single elements.


class _Element:
    """The location of an element: the memref of bytes, the indices of its byte, and the element's shift in the byte."""

    def __init__(self, e: Emulation, memref: ir.Value, indices: Sequence[Index]) -> None:
        self.bits = memref_bits(memref.type)
        self.memref = e.one(memref)
        each = 8 // self.bits
        places = list(indices)
        self.shift: ir.Value = build.constant(build.integer_type(8), 0)
        if places:
            inside = build.index(build.multiply(place_in_byte(places[-1], each), self.bits))
            self.shift = build.make("arith.index_cast", build.integer_type(8), inside)
            places[-1] = bytes_before(places[-1], each)
        self.indices = [build.index(p) for p in places]

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
        old = build.atomic_update(self.memref, self.indices, byte, lambda b: self.put(b, change(self.taken(b))))
        return self.taken(old)

    def combine(self, kind: str, value: ir.Value) -> ir.Value:
        """Combine the element with a value by a compare-and-swap loop, and return its old value."""
        name, sign = _KINDS[kind]
        return self.update(lambda old: build.binary(name, *(extended(v, self.bits, sign) for v in (old, value))))

    def assign(self, value: ir.Value) -> ir.Value:
        """Write the element and return its old value; the loop keeps what other threads write to its byte."""
        return self.update(lambda old: value)


_KINDS: dict[str, tuple[str, bool | None]] = {
    **{name: (name, None) for name in ("addi", "muli", "andi", "ori", "xori")},
    "maxs": ("maxsi", True), "mins": ("minsi", True), "maxu": ("maxui", False), "minu": ("minui", False),
}  # fmt: skip
"""For each kind of atomic update, the op of arith that computes it, and how it extends its operands."""


@pattern("memref.load")
def load(e: Emulation, op: ir.Operation) -> None:
    """Load the byte, and shift it."""
    memref, *indices = op.operands
    e.replace(op, (_Element(e, memref, list(map(build.known, indices))).load(),))


@pattern("memref.store")
def store(e: Emulation, op: ir.Operation) -> None:
    """Update the byte atomically; its other elements do not change."""
    value, memref, *indices = op.operands
    _Element(e, memref, list(map(build.known, indices))).assign(e.one(value))
    e.erase(op)


@pattern("memref.atomic_rmw")
def atomic_rmw(e: Emulation, op: ir.Operation) -> None:
    """Update the byte atomically, and return the old element."""
    value, memref, *indices = op.operands
    kind = AtomicRMWKind(ir.IntegerAttr(op.attributes["kind"]).value).name
    if kind != "assign" and kind not in _KINDS:
        e.fail(f"{kind} of {memref.type} is not supported")
    element, own = _Element(e, memref, list(map(build.known, indices))), e.one(value)
    e.replace(op, (element.assign(own) if kind == "assign" else element.combine(kind, own),))


@pattern("memref.generic_atomic_rmw")
def generic_atomic_rmw(e: Emulation, op: ir.Operation) -> None:
    """Update the byte atomically by the op's region, and return the old element."""
    memref, *indices = op.operands
    body = op.regions[0].blocks[0]

    def change(old: ir.Value) -> ir.Value:
        e.define(body.arguments[0], (old,))
        return e.one(*e.inline(body))

    # Replaced ops are erased from last to first, and the ops inside, which may use the argument, before this op.
    e.erase(op)
    e.define(op.results[0], (_Element(e, memref, list(map(build.known, indices))).update(change),))


# Vectors.


def _elements(e: Emulation, memref: ir.Value, indices: Sequence[Index], shape: Sequence[int]) -> Iterator[_Element]:
    """The elements of a vector in memory, in row-major order."""
    lead = len(indices) - len(shape)
    for place in np.ndindex(*shape):
        yield _Element(e, memref, [*indices[:lead], *map(build.add, indices[lead:], place)])


def load_vector(e: Emulation, op: ir.Operation, memref: ir.Value, indices: Sequence[Index]) -> None:
    """Load consecutive rows: bytes if the vector begins at a byte; otherwise two vectors of bytes, joined by shifts."""
    kind = op.results[0].type
    each = e.each(kind)
    if not e.is_packed(kind):
        e.give(
            op, build.from_elements([x.load() for x in _elements(e, memref, indices, shape_of(kind))], shape_of(kind))
        )
        return
    held = e.held_type(kind)
    last = indices[-1]

    def at(column: Index) -> ir.Value:
        places = [build.index(i) for i in (*indices[:-1], column)]
        return build.make("vector.load", held, e.one(memref), *places)

    first = at(bytes_before(last, each))
    if divisor(last) % each == 0:
        e.replace(op, (first,))
        return
    behind = at(bytes_before(build.add(last, each - 1), each))
    e.replace(op, (joined(first, behind, place_in_byte(last, each), 8 // each),))


def joined(first: ir.Value, behind: ir.Value, place: Index, bits: int) -> ir.Value:
    """The bytes of elements that may begin within a byte.

    Args:
        first: the bytes in which the result's bytes begin.
        behind: the bytes after these; equal to `first` if the elements begin at a byte.
        place: the number of the first element in its byte.
        bits: the bits of an element.
    """
    wide = build.with_element(first.type, build.integer_type(16))
    low, high = (build.make("arith.extui", wide, v) for v in (first, behind))
    both = build.binary("ori", low, build.binary("shli", high, 8))
    by = build.make("arith.index_cast", build.integer_type(16), build.index(build.multiply(place, bits)))
    return build.make("arith.trunci", first.type, build.binary("shrui", both, build.broadcast(by, wide)))


def store_vector(e: Emulation, memref: ir.Value, indices: Sequence[Index], value: ir.Value) -> None:
    """Store consecutive rows: bytes if the vector begins at a byte; otherwise element by element."""
    kind, last = value.type, indices[-1]
    each = e.each(kind)
    if e.is_packed(kind) and divisor(last) % each == 0:
        places = [build.index(i) for i in (*indices[:-1], bytes_before(last, each))]
        ir.Operation.create("vector.store", [], [e.packed(value), e.one(memref), *places])
        return
    numbers, shape = e.unpacked(value), shape_of(kind)
    for place, element in zip(np.ndindex(*shape), _elements(e, memref, indices, shape)):
        element.assign(build.extract(numbers, place))


@pattern("vector.load")
def vector_load(e: Emulation, op: ir.Operation) -> None:
    """Load consecutive elements."""
    memref, *indices = op.operands
    load_vector(e, op, memref, list(map(build.known, indices)))


@pattern("vector.store")
def vector_store(e: Emulation, op: ir.Operation) -> None:
    """Store consecutive elements."""
    value, memref, *indices = op.operands
    store_vector(e, memref, list(map(build.known, indices)), value)
    e.erase(op)


def _transferred(
    e: Emulation, op: ir.Operation, memref: ir.Value, indices: Sequence[Index], vector: ir.Type, notes: tuple[str, str]
) -> list[ir.Value] | None:
    """The indices of the bytes that a transfer moves; None if it is in bounds, like vector.load and vector.store.

    Args:
        notes: alternatives to a transfer that is permuted or masked, and to one whose rows end within bytes.
    """
    rank, each, last = len(indices), e.each(vector), indices[-1]
    rows = ir.AffineMap.get_minor_identity(rank, len(shape_of(vector)))
    has_mask = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-1]
    if has_mask or ir.AffineMapAttr(op.attributes["permutation_map"]).value != rows:
        e.fail(f"of {memref.type} has a mask, or dimensions in another order", notes[0])
    if all(ir.BoolAttr(b).value for b in ir.ArrayAttr(op.attributes["in_bounds"])):
        return None
    extent = ir.MemRefType(memref.type).shape[-1]
    if divisor(last) % each or not e.is_packed(vector) or (extent != _UNKNOWN and extent % each):
        e.fail("may reach out of bounds, and does not begin and end at bytes", notes[1])
    return [*map(build.index, indices[:-1]), build.index(bytes_before(last, each))]


@pattern("vector.transfer_read")
def transfer_read(e: Emulation, op: ir.Operation) -> None:
    """Load the vector if it is in bounds; otherwise transfer bytes, whose padding repeats the element."""
    memref, *rest = op.operands
    kind, rank = op.results[0].type, ir.MemRefType(memref.type).rank
    indices = list(map(build.known, rest[:rank]))
    notes = "read bytes, or whole rows", "read rows that begin and end at bytes"
    places = _transferred(e, op, memref, indices, kind, notes)
    if places is None:
        load_vector(e, op, memref, indices)
        return
    element, bits = e.one(rest[rank]), bits_of(kind)
    padding = masked(element, bits)
    for j in range(1, e.each(kind)):
        padding = build.binary("ori", padding, build.binary("shli", masked(element, bits), bits * j))
    operands = [e.one(memref), *places, padding]
    e.replace(op, (ir.Operation.create(op.name, [e.held_type(kind)], operands, attributes_of(op)).results[0],))


@pattern("vector.transfer_write")
def transfer_write(e: Emulation, op: ir.Operation) -> None:
    """Store the vector if it is in bounds; otherwise transfer bytes."""
    value, memref, *rest = op.operands
    indices = list(map(build.known, rest[: ir.MemRefType(memref.type).rank]))
    aligned = f"rows of a store begin at bytes: let the column be a multiple of {e.each(value.type)}, for example by "
    notes = "write bytes, or whole rows", f"{aligned}arith.muli"
    places = _transferred(e, op, memref, indices, value.type, notes)
    if places is None:
        store_vector(e, memref, indices, value)
    else:
        ir.Operation.create(op.name, [], [e.packed(value), e.one(memref), *places], attributes_of(op))
    e.erase(op)
