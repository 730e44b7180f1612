"""Atomic updates: messages, and compare-and-swap loops for updates without a message."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from msgspec import Struct

from xegpu_py.ir.builtin import is_float
from xegpu_py.ir.combining import CombiningKind
from xegpu_py.ir.diagnostics import remark
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.common.control_flow import yielded
from xegpu_py.passes.common.messages import atomic_message_of, atomic_shape
from xegpu_py.passes.common.registers import register_type, unsigned
from xegpu_py.passes.xegpu_to_visa.casts import byte_of, half_of
from xegpu_py.passes.xegpu_to_visa.emit import Emitter, const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.memref import address_of, memory
from xegpu_py.passes.xegpu_to_visa.scattered import guards, in_place, lanes_of, padded_row
from xegpu_py.passes.xegpu_to_visa.scf import assign
from xegpu_py.passes.xegpu_to_visa.values import MASK_LANES, KnownMask, Mask, Reg
from xegpu_py.passes.xegpu_to_visa.wide import Combine, combiner
from xegpu_py.visa.operands import Guard, Raw
from xegpu_py.visa.spec import DataShape


@pattern("xegpu.atomic_rmw")
def atomic_rmw(low: Lowering, op: ir.Operation) -> None:
    """Update each lane's element; the result is its old value."""
    desc, addresses, plus = lanes_of(low, op)
    lanes, chunk = desc.lanes, desc.chunk
    view, emit = op.opview, low.emit
    kind = view.kind.name
    name = register_type(desc.element)
    size = TYPES[name].bytes
    operation = atomic_message_of(view, desc.element, desc.in_slm, low.target)
    swaps = view.expected is not None
    loops = operation == "icas" and (size == 1 or not swaps)
    if loops and not swaps:
        remark(op, f"becomes a compare-and-swap loop: there is no atomic message for {kind} of {desc.element}")
    value = low.reg(view.value, name)
    shape = atomic_shape(8 * size)
    result = emit.whole(name, lanes * chunk)
    bits = unsigned(name)
    sources = [emit.as_type(v, bits) for v in ([low.reg(view.expected, name)] if swaps else []) + [value]]
    used = any(True for _ in op.results[0].uses)
    for first in range(chunk):
        for lane, count, guard in guards(low, op, lanes, MASK_LANES if operation == "icas" else 32):
            place = Place(addresses, lane, plus + first * size, shape, desc.in_slm)
            start = first * lanes + lane
            if loops:
                part = value.part(start, count)
                if size == 1:
                    combine = (
                        _swapped(emit, Reg(sources[0].var, sources[0].first + start, count))
                        if swaps
                        else byte_combiner(emit, kind, name, desc.element)
                    )
                    before = update_bytes(low, place, count, guard, part, combine)
                else:
                    before = update(low, place, count, guard, part, _combiner(emit, kind, name))
                emit.apply("mov", bits, count, emit.as_type(before, bits), into=_part(low, result, start, count, bits))
                continue
            row = padded_row(low, count, max(size, 4))
            operands = []
            for source in sources:
                held = in_place(low, source, start, lanes, count, shape)
                if not held:
                    held = emit.whole(place.register_type, row)
                    part = source.part(start, count)
                    emit.apply("mov", held.type, count, part, into=Reg(held.var, 0, count))
                operands.append(held)
            there = in_place(low, result, start, lanes, count, shape)
            old = (there or emit.whole(place.register_type, row)) if used else None
            if old and guard:
                # Lanes that the mask disables read zero.
                zeroed = emit.as_type(old.part(0, count), place.register_type)
                emit.apply("mov", zeroed.type, count, const(0, zeroed.type), into=zeroed)
            place.message(low, operation, count, guard, old, *operands)
            if old and not there:
                into = _part(low, result, start, count, bits)
                emit.apply("mov", bits, count, Reg(old.var, 0, count), into=into)
    low.set(op, result)


@pattern("memref.generic_atomic_rmw")
def generic_atomic_rmw(low: Lowering, op: ir.Operation) -> None:
    """Update one element by the ops of a region; the result is its old value."""
    target, *indices = op.operands
    mem = memory(low, target)
    name, block = register_type(mem.element), op.regions[0].blocks[0]
    size = TYPES[name].bytes
    at, plus = address_of(low, mem, indices)
    place = Place(at, 0, plus, atomic_shape(8 * size), mem.slm)

    def combine(before: Reg, _: Reg) -> Reg:
        low.values[block.arguments[0]] = before
        low.block(block)
        return low.reg(yielded(block)[0], name)

    way = update_bytes if size == 1 else update
    low.set(op, way(low, place, 1, None, low.emit.reg(name, 1), combine))


def _part(low: Lowering, numbers: Reg, start: int, count: int, type_name: str) -> Reg:
    return low.emit.as_type(numbers.part(start, count), type_name)


class Place(Struct, frozen=True):
    """The memory locations of the elements of an atomic message.

    Attributes:
        addresses: an address for each lane: uq, or ud in shared local memory.
        lane: the index of the first lane's address.
        offset: bytes from the addresses.
        data: the elements' size in memory and in registers.
        slm: whether they are in shared local memory.
    """

    addresses: Reg
    lane: int
    offset: int
    data: DataShape
    slm: bool

    @property
    def register_type(self) -> str:
        """The type of a lane's element in the registers of a message."""
        return {4: "ud", 8: "uq"}[self.data.register_bytes]

    def message(
        self, low: Lowering, operation: str, count: int, guard: Guard | None, old: Reg | None, *operands: Reg
    ) -> None:
        """One atomic message of `count` lanes."""
        src0, src1 = (low.emit.raw(operands[i]) if i < len(operands) else Raw(None) for i in range(2))
        low.emit.message(
            f"lsc_atomic_{operation}",
            self.data,
            Reg(self.addresses.var, self.addresses.first + self.lane, count),
            self.slm,
            lanes=count,
            offset=self.offset,
            guard=guard,
            dst=low.emit.raw(old) if old else Raw(None),
            src0=src0,
            src1=src1,
        )


def update(low: Lowering, place: Place, count: int, guard: Guard | None, value: Reg, combine: Combine) -> Reg:
    """Replace each lane's element by its combination with a value, in a compare-and-swap loop.

    Each iteration combines the expected contents of memory, which are 0 at first, with the value, and swaps in the
    result where memory has the expected contents. The other lanes take part in the next iteration and expect the
    contents that they read.

    Args:
        count: the number of lanes, at most 16.
        guard: the mask of active lanes; None for all.
        value: the second operand of `combine`, a number for each lane.
        combine: builds the combination of two numbers.

    Returns:
        The old value of each element, of the type of `value`.
    """
    emit, held = low.emit, place.register_type
    bits = unsigned(value.type)

    def read(word: Reg) -> Reg:
        return emit.as_type(emit.in_registers(word, bits), value.type)

    def write(word: Reg, found: Reg, into: Reg) -> None:
        emit.apply("mov", held, count, emit.as_type(found, bits), into=into)

    return _loop(low, place, count, guard, value, combine, read, write)


def update_bytes(low: Lowering, place: Place, count: int, guard: Guard | None, value: Reg, combine: Combine) -> Reg:
    """Update elements of 8 bits by compare and swap of the 32-bit words that contain them.

    A lane also retries if another lane or thread has changed other bytes of its word.
    """
    emit = low.emit
    kind = place.addresses.type
    addresses = Reg(place.addresses.var, place.addresses.first + place.lane, count)
    if place.offset:
        addresses = emit.apply("add", kind, count, addresses, const(place.offset, "d"))
    inside = emit.apply("and", "ud", count, emit.in_registers(addresses, "ud"), const(3, "ud"))
    aligned = emit.apply("add", kind, count, addresses, inside, modifiers=("", "-"), into=emit.whole(kind, count))
    around = Place(aligned, 0, 0, DataShape("d32"), place.slm)
    shift = emit.apply("shl", "ud", count, inside, const(3, "ud"))
    own = emit.apply("shl", "ud", count, emit.spread(const(0xFF, "ud"), count), shift)
    others = emit.apply("not", "ud", count, own)

    def read(word: Reg) -> Reg:
        return emit.as_type(emit.in_registers(emit.apply("shr", "ud", count, word, shift), "ub"), value.type)

    def write(word: Reg, found: Reg, into: Reg) -> None:
        placed = emit.apply("shl", "ud", count, emit.in_registers(emit.as_type(found, "ub"), "ud"), shift)
        emit.apply("or", "ud", count, emit.apply("and", "ud", count, word, others), placed, into=into)

    return _loop(low, around, count, guard, value, combine, read, write)


def _combiner(emit: Emitter, kind: str, name: str) -> Combine:
    """A function that combines numbers of a vISA type by one of arith's `AtomicRMWKind`."""
    return (lambda _, b: b) if kind == "assign" else combiner(emit, CombiningKind.of_atomic(kind), name)


def byte_combiner(emit: Emitter, kind: str, name: str, element: str) -> Combine:
    """A function that combines elements of 8 bits: integers in 32 bits, floats in hf with a second rounding.

    The two roundings equal a single one (see `xegpu_legalize.numbers`).
    """
    if kind == "assign":
        return _combiner(emit, kind, name)
    if is_float(element):
        half = _combiner(emit, kind, "hf")

        def combine_floats(a: Reg, b: Reg) -> Reg:
            return byte_of(emit, element, half(half_of(emit, element, a), half_of(emit, element, b)))

        return combine_floats
    signed = not kind.endswith("u")
    narrow, wide = ("b", "d") if signed else ("ub", "ud")
    combine = _combiner(emit, kind, wide)

    def combine_bytes(a: Reg, b: Reg) -> Reg:
        left, right = (emit.in_registers(emit.as_type(n, narrow), wide) for n in (a, b))
        return emit.as_type(emit.in_registers(emit.as_type(combine(left, right), "ud"), "ub"), name)

    return combine_bytes


def _swapped(emit: Emitter, expected: Reg) -> Combine:
    """A function that gives the new value of an 8-bit compare and swap: `b` where `a` has the expected bits."""
    wanted = emit.in_registers(emit.as_type(expected, "ub"), "ud")

    def combine(a: Reg, b: Reg) -> Reg:
        same = emit.compare("eq", a.count, emit.in_registers(emit.as_type(a, "ub"), "ud"), wanted)
        wide = [emit.in_registers(emit.as_type(n, "ub"), "ud") for n in (b, a)]
        return emit.as_type(emit.in_registers(emit.choose(same, "ud", a.count, *wide), "ub"), b.type)

    return combine


def _loop(
    low: Lowering,
    place: Place,
    count: int,
    guard: Guard | None,
    value: Reg,
    combine: Combine,
    read: Callable[[Reg], Reg],
    write: Callable[[Reg, Reg, Reg], None],
) -> Reg:
    """Compare and swap until all lanes have succeeded.

    Args:
        read: extracts the element from the contents of memory.
        write: inserts an element into the contents of memory, in new registers.
    """
    emit, held = low.emit, place.register_type
    pending = emit.mask(count)
    assign(emit, pending, Mask((guard.var,), count) if guard else KnownMask(True, count))
    expected, new, seen = (emit.whole(held, count) for _ in range(3))
    emit.apply("mov", held, count, const(0, held), into=expected)
    begin = emit.label("Update")
    emit.place(begin)
    before = read(expected)
    write(expected, combine(before, value), new)
    emit.apply("mov", held, count, expected, into=seen)
    place.message(low, "icas", count, Guard(pending.predicates[0]), seen, expected, new)
    emit.compare("ne", count, seen, expected, into=pending)
    emit.apply("mov", held, count, seen, into=expected)
    more = emit.test(pending, "any") if count > 1 else pending
    emit.jump(begin, when=more)
    return before
