"""Arithmetic without a vISA instruction: 64-bit multiplication, division, and combining functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from xegpu_py.ir.builtin import CombiningKind
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.analysis.ir_queries import unsigned
from xegpu_py.passes.xegpu_to_visa.emitter import Emitter
from xegpu_py.passes.xegpu_to_visa.register_values import (
    NARROW,
    Const,
    Dense,
    KnownMask,
    Mask,
    Numbers,
    Reg,
    Value,
    bounds_of,
    const,
    is_whole_variable,
    value_parts,
    with_value_parts,
)
from xegpu_py.visa.operands import Destination, Flag, Region

_SCALE_64 = 0x5F7FFFF0
"""2^64 * (1 - 2^-20) as f32: the margin exceeds the error of the reciprocal, so the result is never too large."""

_SCALE_32 = 0x4F7FFFF8
"""2^32 * (1 - 2^-21), for the same reason."""


class _Half(Struct, frozen=True):
    """The lower or upper halves of 64-bit integers in place: every second 32-bit element.

    Attributes:
        whole: the integers.
        upper: whether these are the upper halves.
    """

    whole: Reg
    upper: bool


def _apply(emit: Emitter, name: str, into: Reg | _Half, count: int, *sources: Numbers | _Half) -> None:
    """Emit an instruction on integers and halves of integers."""
    operands = [o.whole if isinstance(o, _Half) else o for o in (into, *sources)]
    for start, lanes in emit.chunks(count, operands):
        values: dict[str, Any] = {}
        for i, source in enumerate(sources):
            if isinstance(source, _Half):
                numbers, is_scalar = emit.as_type(source.whole, "ud"), source.whole.count == 1
                row, col = emit.register_and_element(numbers, (0 if is_scalar else 2 * start) + source.upper)
                stride = 0 if is_scalar or lanes == 1 else 2
                values[f"src{i}"] = Region(numbers.var, row, col, stride, 1, 0)
            else:
                values[f"src{i}"] = emit.source(source, start)
        if isinstance(into, _Half):
            numbers = emit.as_type(into.whole, "ud")
            row, col = emit.register_and_element(numbers, 2 * start + into.upper)
            emit.emit(name, lanes, dst=Destination(numbers.var, row, col, 2 if lanes > 1 else 1), **values)
        else:
            emit.emit(name, lanes, dst=emit.destination(into, start), **values)


def _apply_to_halves(emit: Emitter, name: str, type_name: str, count: int, *sources: Numbers | _Half) -> Reg:
    result = emit.reg(type_name, count)
    _apply(emit, name, result, count, *sources)
    return result


def low_half(emit: Emitter, numbers: Numbers, count: int) -> Numbers:
    """The lowest 32 bits of integers, ud."""
    if isinstance(numbers, Const):
        return Const(numbers.bits & 0xFFFFFFFF, "ud", numbers.count)
    if numbers.format.bits == 32 or numbers.count == 1:
        # The lower half of a 64-bit element is a 32-bit element.
        return emit.as_type(numbers, "ud")
    return emit.apply("mov", "ud", count, numbers)


def _lower(emit: Emitter, numbers: Numbers) -> Numbers | _Half:
    if isinstance(numbers, Reg) and numbers.format.bits == 64:
        return _Half(numbers, False)
    return low_half(emit, numbers, numbers.count)


def _upper(emit: Emitter, numbers: Numbers) -> Numbers | _Half | None:
    """The upper halves of integers; those of 32-bit integers are their sign. None if they are zero."""
    low, high = bounds_of(numbers)
    if low >= 0 and high >> 32 == 0:
        return None
    if isinstance(numbers, Const):
        return const(numbers.value >> 32, "ud", numbers.count)
    if numbers.format.bits == 64:
        return _Half(numbers, True)
    return emit.as_type(emit.apply("asr", "d", numbers.count, emit.as_type(numbers, "d"), const(31, "uw")), "ud")


def half_of_64_bits(emit: Emitter, numbers: Reg, upper: bool) -> Reg:
    """The lower or the upper 32 bits of 64-bit integers, ud."""
    return _apply_to_halves(emit, "mov", "ud", numbers.count, _Half(numbers, upper))


def product(emit: Emitter, a: Numbers, b: Numbers, count: int) -> Reg:
    """The lowest 64 bits of a product, q, from the products of 32-bit halves.

    Args:
        a, b: integers of 32 (signed) or 64 bits, one or `count`.
    """
    if isinstance(a, Const):
        a, b = b, a
    if isinstance(a, Const):
        a = emit.in_registers(a)
    if a.format.bits == 32 and b.format.bits == 32:
        if min(bounds_of(a)[0], bounds_of(b)[0]) < 0:
            return emit.apply("mul", "q", count, a, b)
        # A non-negative operand may be an id, which the hardware gives as ud.
        return emit.as_type(emit.apply("mul", "uq", count, *(emit.as_type(n, "ud") for n in (a, b))), "q")
    if isinstance(b, Const) and b.value > 0 and b.value & (b.value - 1) == 0:
        wide = emit.in_registers(a, "q") if a.format.bits == 32 else a
        return emit.apply("shl", "q", count, wide, const(b.value.bit_length() - 1, "uw"))
    lower = [_lower(emit, n) for n in (a, b)]
    result = _apply_to_halves(emit, "mul", "uq", count, *lower)
    for factor, other_half in ((a, lower[1]), (b, lower[0])):
        upper = _upper(emit, factor)
        if upper is not None:
            operands = (other_half, upper) if isinstance(upper, Const) else (upper, other_half)
            cross = _apply_to_halves(emit, "mul", "ud", count, *operands)
            _apply(emit, "add", _Half(result, True), count, _Half(result, True), cross)
    return emit.as_type(result, "q")


def high_product(emit: Emitter, a: Reg, b: Reg, count: int) -> Reg:
    """The highest 64 bits of a product of unsigned 64-bit integers."""
    al, ah, bl, bh = (_Half(n, upper) for n in (a, b) for upper in (False, True))
    low, mid, cross, high = (
        _apply_to_halves(emit, "mul", "uq", count, x, y) for x, y in ((al, bl), (ah, bl), (al, bh), (ah, bh))
    )
    # Neither sum overflows: a product of halves is at most (2^32 - 1)^2.
    mid = _apply_to_halves(emit, "add", "uq", count, mid, _Half(low, True))
    cross = _apply_to_halves(emit, "add", "uq", count, cross, _Half(mid, False))
    for part in (mid, cross):
        high = _apply_to_halves(emit, "add", "uq", count, high, _Half(part, True))
    return high


def with_sign(emit: Emitter, magnitude: Reg, source: Reg) -> Reg:
    """Numbers whose sign bit is clear, with the sign bits of others."""
    bits, count = unsigned(magnitude.type), magnitude.count
    sign = const(1 << magnitude.format.bits - 1, bits)
    signs = emit.apply("and", bits, count, emit.as_type(source, bits), sign)
    return emit.as_type(emit.apply("or", bits, count, emit.as_type(magnitude, bits), signs), magnitude.type)


def _subtract(emit: Emitter, a: Numbers, b: Numbers, name: str, count: int) -> Reg:
    return emit.apply("add", name, count, emit.in_registers(b), a, modifiers=("-",))


def _reciprocal(emit: Emitter, y: Reg, count: int) -> Reg:
    """A lower bound of 2^64 / y for unsigned 64-bit y, such that a quotient computed with it is too small by at most 2.

    It starts from the reciprocal in f32. Each of two Newton iterations, `z + z * (-y * z)`, squares the relative error.
    With Z = 2^64 / y the error is at most Z * 2^-19 + 1, then Z * 2^-38 + 1 + 1 / Z, and finally less than 1 + 2 / Z.
    """
    halves = [_apply_to_halves(emit, "mov", "f", count, _Half(y, upper)) for upper in (True, False)]
    real = emit.apply("mad", "f", count, halves[0], emit.in_registers(const(2.0**32, "f")), halves[1])
    scaled = emit.apply("mul", "f", count, emit.apply("inv", "f", count, real), Const(_SCALE_64, "f"))
    above = emit.apply("rndz", "f", count, emit.apply("mul", "f", count, scaled, const(2.0**-32, "f")))
    below = emit.apply("mad", "f", count, above, emit.in_registers(const(-(2.0**32), "f")), scaled)
    parts = [emit.apply("mov", "ud", count, n) for n in (above, below)]
    z = emit.reg("uq", count)
    for half, upper in zip(parts, (True, False)):
        _apply(emit, "mov", _Half(z, upper), count, half)
    negative = emit.as_type(emit.apply("mov", "q", count, emit.as_type(y, "q"), modifiers=("-",)), "uq")
    for _ in range(2):
        error = emit.as_type(product(emit, negative, z, count), "uq")
        z = emit.apply("add", "uq", count, z, high_product(emit, z, error, count))
    return z


def _divide_64(emit: Emitter, x: Reg, y: Reg, count: int) -> tuple[Reg, Reg]:
    """Quotient and remainder of unsigned 64-bit integers, uq."""
    quotient = high_product(emit, x, _reciprocal(emit, y, count), count)
    remainder = _subtract(emit, x, emit.as_type(product(emit, y, quotient, count), "uq"), "uq", count)
    return _correct_quotient(emit, quotient, remainder, y, "uq", count)


def _divide_32(emit: Emitter, x: Reg, y: Reg, count: int) -> tuple[Reg, Reg]:
    """Quotient and remainder of unsigned 32-bit integers, ud, by the same method with one iteration."""
    real = emit.apply("inv", "f", count, emit.apply("mov", "f", count, y))
    z = emit.apply("mov", "ud", count, emit.apply("mul", "f", count, real, Const(_SCALE_32, "f")))
    error = emit.apply("mul", "d", count, emit.as_type(z, "d"), emit.as_type(y, "d"))
    error = emit.as_type(emit.apply("mov", "d", count, error, modifiers=("-",)), "ud")
    z = emit.apply("add", "ud", count, z, emit.apply("mulh", "ud", count, z, error))
    quotient = emit.apply("mulh", "ud", count, x, z)
    remainder = _subtract(emit, x, emit.apply("mul", "ud", count, quotient, y), "ud", count)
    return _correct_quotient(emit, quotient, remainder, y, "ud", count)


def _correct_quotient(emit: Emitter, quotient: Reg, remainder: Reg, y: Reg, name: str, count: int) -> tuple[Reg, Reg]:
    """Correct a quotient that is too small by up to 2, and its remainder."""
    for _ in range(2):
        too_small = emit.compare("ge", count, remainder, y)
        quotient = emit.select(
            too_small, name, count, emit.apply("add", name, count, quotient, const(1, name)), quotient
        )
        remainder = emit.select(too_small, name, count, _subtract(emit, remainder, y, name, count), remainder)
    return quotient, remainder


def divide(emit: Emitter, a: Numbers, b: Numbers, count: int, kind: str, signed: bool) -> Reg:
    """Integer division without f64 division; the result for a divisor of 0 is unspecified.

    Args:
        a, b: integers of one type of 32 or 64 bits, one or `count`.
        kind: "div" (toward zero), "floor", "ceil" or "rem".
        signed: whether they are signed.
    """
    unsigned_type = unsigned(a.type)
    signed_type = {"ud": "d", "uq": "q"}[unsigned_type]
    x, y = (emit.broadcast(emit.in_registers(emit.as_type(n, signed_type)), count) for n in (a, b))
    signs = (
        [emit.apply("asr", signed_type, count, n, const(TYPES[signed_type].bits - 1, "uw")) for n in (x, y)]
        if signed
        else []
    )
    # The magnitude is (x xor s) - s, where the sign s is 0 or -1.
    x_size, y_size = (
        (emit.as_type(_negate_by_sign(emit, n, s, signed_type, count), unsigned_type) for n, s in zip((x, y), signs))
        if (signed)
        else (emit.as_type(n, unsigned_type) for n in (x, y))
    )
    divided = _divide_64 if unsigned_type == "uq" else _divide_32
    quotient, remainder = (emit.as_type(n, signed_type) for n in divided(emit, x_size, y_size, count))
    if kind == "rem":
        return _negate_by_sign(emit, remainder, signs[0], signed_type, count) if signed else remainder
    opposite = emit.apply("xor", signed_type, count, *signs) if signed else None
    result = _negate_by_sign(emit, quotient, opposite, signed_type, count) if opposite else quotient
    if kind == "div":
        return result
    inexact = emit.compare("ne", count, remainder, const(0, signed_type))
    if opposite:
        rounds = emit.compare("ne" if kind == "floor" else "eq", count, opposite, const(0, signed_type))
        inexact = emit.flags("and", count, inexact, rounds)
    step = emit.select(
        inexact, signed_type, count, const(-1 if kind == "floor" else 1, signed_type), const(0, signed_type)
    )
    return emit.apply("add", signed_type, count, result, step)


def _negate_by_sign(emit: Emitter, numbers: Reg, sign: Reg, name: str, count: int) -> Reg:
    """Negate numbers whose sign is -1; keep those whose sign is 0."""
    return _subtract(emit, emit.apply("xor", name, count, numbers, sign), sign, name, count)


Combine = Callable[[Reg, Reg], Reg]
"""A function that combines two numbers elementwise."""


def combiner(emit: Emitter, kind: CombiningKind, name: str) -> Combine:
    """The function that combines numbers of a vISA type."""
    if name == "bf":
        # vISA has no minimum of bf, and computes its sums and products in f.
        wide = combiner(emit, kind, "f")
        return lambda a, b: emit.in_registers(wide(emit.in_registers(a, "f"), emit.in_registers(b, "f")), name)
    if kind == CombiningKind.MUL and name in ("q", "uq"):
        return lambda a, b: emit.as_type(product(emit, a, b, a.count), name)
    instruction = kind.value[:3] if kind.value.startswith(("min", "max")) else kind.value
    compute_type = unsigned(name) if kind in (CombiningKind.MINUI, CombiningKind.MAXUI) else name

    def combine(a: Reg, b: Reg) -> Reg:
        lhs, rhs = emit.as_type(a, compute_type), emit.as_type(b, compute_type)
        result = emit.as_type(emit.apply(instruction, compute_type, a.count, lhs, rhs), name)
        if kind not in (CombiningKind.MINIMUMF, CombiningKind.MAXIMUMF):
            return result
        # vISA's min and max return the other operand if one is NaN.
        numbers = emit.flags("and", a.count, *(emit.compare("eq", a.count, n, n) for n in (a, b)))
        return emit.select(numbers, name, a.count, result, Const(TYPES[name].nan, name, a.count))

    return combine


@cache
def iota(count: int) -> Dense:
    """0, 1, 2 and so on."""
    return Dense(tuple(const(i, NARROW) for i in range(count)))


def constants_in_registers(emit: Emitter, numbers: tuple[Const, ...]) -> Reg:
    """Registers with these constants; for 0, 1, 2 and so on the first ones of longer registers, if there are any."""
    count, available = len(numbers), emit.is_available
    if not available(("dense", numbers)) and numbers == iota(count).numbers:
        longer = (n for n in (16, 32) if n > count and available(("dense", iota(n).numbers)))
        numbers = iota(next(longer, count)).numbers

    return emit.memoized(("dense", numbers), lambda: _store_constants(emit, numbers)).slice(0, count)


def _store_constants(emit: Emitter, numbers: Sequence[Const]) -> Reg:
    """Registers with constants, by few instructions."""
    name, result = numbers[0].type, emit.reg(numbers[0].type, len(numbers))
    additions = [] if numbers[0].format.is_float else _doublings([n.value for n in numbers])
    # Instructions by the number of constants that are stored before the first addition.
    costs = {len(numbers): _PackedConstants(emit, numbers, result).cost}
    for first in (1, 2, 4, 8) if additions else ():
        if first < len(numbers):
            packed = _PackedConstants(emit, numbers[:first], result.slice(0, first))
            costs[first] = packed.cost + sum(known_count >= first for known_count, _, _ in additions)
    first = min(costs, key=lambda n: costs[n])
    _PackedConstants(emit, numbers[:first], result.slice(0, first)).store()
    for known_count, size, by in additions:
        if known_count >= first:
            emit.apply("add", name, size, result.slice(0, size), const(by, name), into=result.slice(known_count, size))
    return result


def _doublings(values: Sequence[int]) -> list[tuple[int, int, int]]:
    """The additions that compute integers whose second half is the first half plus a constant, recursively.

    Each is the number of known integers, the number of integers that the addition computes from the first of them, and
    the constant. The list is empty if the integers do not have this form.
    """
    additions, known_count = [], 1
    while known_count < len(values):
        size, by = min(known_count, len(values) - known_count), values[known_count] - values[0]
        if by == 0 or any(values[known_count + i] != values[i] + by for i in range(size)):
            return []
        additions.append((known_count, size, by))
        known_count += size
    return additions


class _PackedConstants:
    """Constants that are moved to registers, several in one constant of 64 bits if this takes fewer instructions.

    Attributes:
        cost: the number of instructions.
    """

    def __init__(self, emit: Emitter, numbers: Sequence[Const], into: Reg) -> None:
        self._emit, self._numbers, self._into = emit, numbers, into
        fmt = numbers[0].format
        width, self._type = fmt.bytes, unsigned(fmt.name)
        if not fmt.is_float:
            width = next((n for n in (1, 2, 4) if all(-1 << 8 * n - 1 <= v.value < 1 << 8 * n - 1 for v in numbers)), 8)
            width = min(width, fmt.bytes)
            self._type = {1: "b", 2: "w", 4: "d", 8: "q"}[width]
        self._width, self._narrow = width, width < fmt.bytes
        self._each = _WORD // width
        words = -(-len(numbers) // self._each)
        runs = sum(i == 0 or n != numbers[i - 1] for i, n in enumerate(numbers))
        moves = -(-len(numbers) // 32) if self._narrow else 0
        fits = self._narrow or into.count % self._each == 0
        self._packs = fits and fmt.bytes < _WORD and words + moves < runs
        self.cost = words + moves if self._packs else runs

    def store(self) -> None:
        """Emit the instructions."""
        emit, numbers, into = self._emit, self._numbers, self._into
        if not self._packs:
            from_numbers(emit, numbers, into)
            return
        mask, each, bits = (1 << 8 * self._width) - 1, self._each, 8 * self._width
        packed = [
            Const(sum((n.bits & mask) << bits * i for i, n in enumerate(numbers[at : at + each])), "q")
            for at in range(0, len(numbers), each)
        ]
        if self._narrow:
            words = emit.reg("q", len(packed))
            from_numbers(emit, packed, words)
            emit.apply("mov", into.type, into.count, emit.as_type(words, self._type).slice(0, into.count), into=into)
        else:
            from_numbers(emit, packed, emit.as_type(into, "q"))


_WORD = 8
"""Bytes of the largest constant that an instruction can have."""


def from_numbers(emit: Emitter, numbers: Sequence[Numbers], into: Reg | None = None) -> Reg:
    """Registers with these scalars side by side."""
    result = into or emit.reg(numbers[0].type, len(numbers))
    for i, number in enumerate(numbers):
        if i and number == numbers[i - 1]:
            continue
        run = 1
        while i + run < len(numbers) and numbers[i + run] == number:
            run += 1
        emit.apply("mov", result.type, run, number, into=result.slice(i, run))
    return result


def bf_as_f(number: Const) -> Const:
    """A bf constant as an f constant, because vISA has no bf immediates."""
    return Const(number.bits << 16, "f", number.count)


def copy_to_new_registers(emit: Emitter, value: Value, fixed: Sequence[bool] = ()) -> Value:
    """New registers initialized with a value. Parts that are `fixed` keep their registers."""
    parts: list[Reg | Mask | Const | KnownMask] = []
    for i, part in enumerate(value_parts(value)):
        if fixed and fixed[i]:
            parts.append(part)
        elif isinstance(part, (Mask, KnownMask)):
            parts.append(emit.mask(part.count))
            assign(emit, parts[-1], part)
        else:
            parts.append(_registers_like(emit, part))
            assign(emit, parts[-1], part)
    return with_value_parts(value, parts)


def _registers_like(emit: Emitter, part: Reg | Const) -> Reg:
    """New registers of the size of the whole variable, so that both can be coalesced."""
    if isinstance(part, Reg) and is_whole_variable(part):
        var = emit.variable(part.type, part.var.count)
        return Reg(var, 0, part.count)
    return emit.reg(part.type, part.count)


def assign(emit: Emitter, target: Value, value: Value) -> None:
    """Copy a value to carried registers."""
    pairs: list[tuple[Value, Value]] = [(t, v) for t, v in zip(value_parts(target), value_parts(value)) if t != v]
    # If a target is another one's source, as in a swap, all sources are read before any target is written.
    targets = [t.var.root[0] for t, _ in pairs if isinstance(t, Reg)]
    clash = any(isinstance(v, Reg) and v.var.root[0] in targets for _, v in pairs) and len(pairs) > 1
    if clash:
        pairs = [(t, copy_to_new_registers(emit, v) if isinstance(v, Reg) else v) for t, v in pairs]
    for t, v in pairs:
        if isinstance(t, Mask):
            if isinstance(v, KnownMask):
                emit.set_flags(v, t)
            elif isinstance(v, Mask):
                for a, b in zip(t.predicates, v.predicates):
                    emit.emit("and", a.count, dst=Flag(a), src0=Flag(b), src1=Flag(b))
        elif isinstance(t, Reg) and isinstance(v, (Reg, Const)):
            emit.copy(t, v)
