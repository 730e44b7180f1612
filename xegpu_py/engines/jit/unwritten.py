"""Checks for reads of registers that were never written, in native code.

Each byte of a thread's registers has a shadow byte, which is nonzero once the register byte is written. An instruction
that reads an unwritten byte stops the thread. Its golden function then reports the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xegpu_py.engines.jit.code import Code, Value, vector
from xegpu_py.engines.jit.emitter import Emitter
from xegpu_py.engines.watch import OperandBytes, operand_bytes
from xegpu_py.visa.program import Instruction

_AT_ONCE = 64
"""The maximum number of bytes that are checked together."""

_WIDEST = 256
"""The maximum extent of these bytes in the register file, in bytes."""


def emit_checks(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Emit, before an instruction, checks of the bytes that it reads, and code that marks the bytes that it writes."""
    code = emitter.code
    reads, writes = (operand_bytes(inst, use, emitter.layout) for use in ("read", "write"))
    if not reads and not writes:
        return
    bits = emitter.acting(inst)
    missing: list[Value] = []
    for operand in reads:
        for places, lanes in _parts(operand):
            found = code.icmp("eq", _fetched(emitter, places), 0)
            if bits is not None:
                found = code.and_(found, _mask(code, bits, inst, lanes, len(operand.places)))
            missing.append(code.any(found))
    if missing:
        wrong = missing[0]
        for other in missing[1:]:
            wrong = code.or_(wrong, other)
        emitter.require(code.not_(wrong), at)
    for operand in writes:
        for places, lanes in _parts(operand):
            mask = None if bits is None else _mask(code, bits, inst, lanes, len(operand.places))
            _note(emitter, places, mask)


def _parts(operand: OperandBytes) -> Iterator[tuple[list[int], list[int]]]:
    """The bytes of an operand in parts that are checked together: places in the registers, and the lane of each."""
    each = sorted({(int(place), lane) for lane, row in enumerate(operand.places) for place in row})
    part: list[tuple[int, int]] = []
    for place, lane in each:
        if part and (len(part) == _AT_ONCE or place - part[0][0] >= _WIDEST):
            yield [p for p, _ in part], [n for _, n in part]
            part = []
        part.append((place, lane))
    if part:
        yield [p for p, _ in part], [n for _, n in part]


def _mask(code: Code, bits: Value, inst: Instruction, lanes: Sequence[int], count: int) -> Value:
    """Whether the lane of each byte acts, i1 each. An operand without lanes is accessed if any lane acts."""
    if count == 1:
        return code.splat(code.icmp("ne", bits, 0), len(lanes))
    own = code.bits_to_mask(bits, inst.exec_size)
    return code.shuffle(own, own, list(lanes))


def _span(places: Sequence[int]) -> tuple[int, str]:
    """The first place, and the type of a vector of all bytes from there to the last place."""
    return places[0], vector(places[-1] - places[0] + 1, "i8")


def _fetched(emitter: Emitter, places: Sequence[int]) -> Value:
    """The shadow bytes of registers, whose places are in increasing order."""
    code, (first, kind) = emitter.code, _span(places)
    whole = code.fetch(emitter.thread, emitter.frame.written + first, kind)
    if whole.lanes == len(places):
        return whole
    return code.shuffle(whole, whole, [place - first for place in places])


def _note(emitter: Emitter, places: Sequence[int], mask: Value | None) -> None:
    """Record that bytes of registers are written: those that a mask selects, or all."""
    code, (first, kind) = emitter.code, _span(places)
    at, where = emitter.frame.written + first, [-1] * (places[-1] - first + 1)
    for index, place in enumerate(places):
        where[place - first] = index
    if mask is None and -1 not in where:
        code.put(code.const(0xFF, kind), emitter.thread, at)
        return
    before = code.fetch(emitter.thread, at, kind)
    # For each byte: whether it is one of the places, and if so, whether the mask selects it.
    one = code.const(1, vector(len(places), "i1")) if mask is None else mask
    picks = [index if index >= 0 else len(places) for index in where]
    chosen = code.shuffle(one, code.const(0, one.type), picks)
    code.put(code.select(chosen, code.const(0xFF, kind), before), emitter.thread, at)
