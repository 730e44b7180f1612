"""`cf.assert` and `gpu.printf`: records in the print buffer."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from mlir import ir
from msgspec import Struct

from xegpu_py.ir.printf import check_format
from xegpu_py.passes.common.messages import atomic_shape
from xegpu_py.passes.common.registers import shape_and_element, unsigned
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.gpu import THREAD_WORD
from xegpu_py.passes.xegpu_to_visa.lines import store_line
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import MASK_LANES, Const, KnownMask, Mask, Numbers, Reg
from xegpu_py.visa.operands import BUILTINS, Guard, Raw
from xegpu_py.visa.printing import HEADER_WORDS, STOPS, text_bytes, text_words
from xegpu_py.visa.spec import DataShape

_NOWHERE = 0
"""An address outside all arrays: an access to it stops the kernel with an error."""


@pattern("cf.assert")
def assert_(low: Lowering, op: ir.Operation) -> None:
    """If the condition is false, write a record with the message, and stop by a store to an invalid address."""
    condition = low.value(op.operands[0])
    if isinstance(condition, KnownMask) and condition.value:
        return
    emit, end = low.emit, low.emit.label("Holds")
    message = ir.StringAttr(op.attributes["msg"]).value.replace("%", "%%")
    with emit.scope():
        if isinstance(condition, Mask):
            emit.jump(end, when=condition)
        print_record(low, message, [], [], stops=True)
        place, number = emit.whole("uq", 1), emit.whole("ud", 1)
        for register in (place, number):
            emit.apply("mov", register.type, 1, const(_NOWHERE, register.type), into=register)
        _store(low, _Lanes(place, 1, None), 0, number)
    emit.place(end)


@pattern("gpu.printf")
def printf(low: Lowering, op: ir.Operation) -> None:
    """A record."""
    text, elements = ir.StringAttr(op.attributes["format"]).value, [str(v.type) for v in op.operands]
    print_record(low, text, elements, list(op.operands))


class _Lanes(Struct, frozen=True):
    """Lanes that access memory together.

    Attributes:
        addresses: an address for each lane.
        count: the number of lanes.
        guard: the mask of active lanes.
    """

    addresses: Reg
    count: int
    guard: Guard | None


def print_record(
    low: Lowering,
    text: str,
    elements: Sequence[str],
    values: Sequence[ir.Value],
    lanes: int = 1,
    mask: ir.Value | None = None,
    stops: bool = False,
) -> None:
    """Write a record for each lane; `visa.printing` defines its format.

    Args:
        text: the format.
        elements: MLIR's types of the numbers.
        values: for each type a number, or a vector with a number for each lane.
        lanes: the number of lanes.
        mask: vector of i1, the lanes that print; None for all.
        stops: whether this is the message of an assertion.

    Raises:
        ValueError: if the format does not match the elements.
    """
    check_format(text, elements)
    emit, buffer = low.emit, low.print_buffer()
    words, length = text_words(elements, text), len(text_bytes(elements, text))
    size = 8 * (HEADER_WORDS + len(words) + len(values))
    numbers = [_bits(low, v, lanes) for v in values]
    last = emit.whole("ud", 1)
    base = emit.apply("mov", "uq", 1, buffer, into=emit.whole("uq", 1))
    emit.message("lsc_load", DataShape("d32"), base, offset=4, dst=emit.raw(last))
    # Signed: negative if the record is larger than the buffer.
    last = emit.apply("add", "d", 1, emit.as_type(last, "d"), const(-size, "d"))
    place = [Reg(BUILTINS[f"%group_id_{d}"], 0, 1) for d in "xyz"]
    thread = Reg(BUILTINS["%r0"], THREAD_WORD, 1)
    for first in range(0, lanes, MASK_LANES):
        count = min(MASK_LANES, lanes - first)
        known = None if mask is None else low.value(mask)
        if isinstance(known, KnownMask) and not known.value:
            continue
        own = known.predicates[first // MASK_LANES] if isinstance(known, Mask) else None
        everywhere = emit.apply("mov", "uq", count, buffer, into=emit.whole("uq", count))
        used, sizes = emit.whole("ud", count), emit.whole("ud", count)
        emit.apply("mov", "ud", count, const(size, "ud"), into=sizes)
        emit.apply("mov", "ud", count, const(0, "ud"), into=used)
        guard, none = Guard(own) if own else None, Raw(None)
        old, added = emit.raw(used), emit.raw(sizes)
        emit.message(
            "lsc_atomic_iadd", atomic_shape(32), everywhere, lanes=count, guard=guard, dst=old, src0=added, src1=none
        )
        here = emit.compare("le", count, emit.as_type(used, "d"), last)
        if own:
            here = emit.flags("and", count, here, Mask((own,), count))
        addresses = emit.apply("add", "uq", count, everywhere, used, into=emit.whole("uq", count))
        to = _Lanes(addresses, count, Guard(here.predicates[0]))
        header: list[Numbers] = [const(size, "ud"), thread, *place]
        header += [_lane_numbers(low, first, count, stops), const(length, "ud"), const(0, "ud")]
        held: list[Numbers] = [const(w, "uq") for w in words]
        held += [n if isinstance(n, Const) or n.count == 1 else n.part(first, count) for n in numbers]
        if lanes == 1:
            _store_line(low, to, header, held)
            continue
        for i, number in enumerate(header):
            _store(low, to, 4 * i, emit.apply("mov", "ud", count, number, into=emit.whole("ud", count)))
        for i, number in enumerate(held):
            whole = emit.apply("mov", "uq", count, number, into=emit.whole("uq", count))
            _store(low, to, 8 * (HEADER_WORDS + i), whole)


def _lane_numbers(low: Lowering, first: int, count: int, stops: bool) -> Numbers:
    """Write the dwords of the records that are not the lanes' numbers, each by its own instruction."""
    numbers = [const(first + lane | (STOPS if stops else 0), "ud") for lane in range(count)]
    if count == 1:
        return numbers[0]
    made = low.emit.whole("ud", count)
    for lane, number in enumerate(numbers):
        low.emit.apply("mov", "ud", 1, number, into=Reg(made.var, lane, 1))
    return made


def _store_line(low: Lowering, to: _Lanes, header: Sequence[Numbers], words: Sequence[Numbers]) -> None:
    """Store a record of one lane, which is contiguous in registers and in memory."""
    emit, count = low.emit, HEADER_WORDS + len(words)
    whole = emit.whole("uq", count)
    halves = emit.as_type(whole, "ud")
    for i, number in enumerate(header):
        emit.apply("mov", "ud", 1, number, into=halves.part(i, 1))
    for i, number in enumerate(words):
        emit.apply("mov", "uq", 1, number, into=Reg(whole.var, HEADER_WORDS + i, 1))
    store_line(low, (to.addresses, 0), False, "", whole, to.guard)


def _bits(low: Lowering, value: ir.Value, lanes: int) -> Numbers:
    """The bits of numbers as uq; an index is sign-extended."""
    emit, found = low.emit, low.value(value)
    if isinstance(found, (Mask, KnownMask)):
        return emit.choose(low.mask(value), "uq", found.count, const(1, "uq"), const(0, "uq"))
    numbers = low.numbers(value)
    if isinstance(numbers, Const):
        bits = numbers.bits
        if shape_and_element(value.type)[1] == "index":
            bits = int.from_bytes(struct.pack("<q", numbers.value), "little")
        return const(bits, "uq")
    if shape_and_element(value.type)[1] == "index":
        return emit.as_type(low.typed(numbers, "q"), "uq")
    return emit.in_registers(emit.as_type(numbers, unsigned(numbers.type)), "uq")


def _store(low: Lowering, to: _Lanes, offset: int, numbers: Reg) -> None:
    """Store a number for each lane."""
    data, source = DataShape("d64" if numbers.type == "uq" else "d32"), low.emit.raw(numbers)
    low.emit.message("lsc_store", data, to.addresses, lanes=to.count, offset=offset, guard=to.guard, src0=source)
