"""`arith`: conversions between number types."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.builtin import bit_width
from xegpu_py.numerics.formats import HF, HF8, TF32, TYPES
from xegpu_py.passes.common.registers import INDEX, shape_and_element, unsigned
from xegpu_py.passes.xegpu_to_visa.arith import bf_as_f, result_of
from xegpu_py.passes.xegpu_to_visa.emit import Emitter, const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Const, KnownMask, Mask, Numbers, Reg


def _convert(low: Lowering, op: ir.Operation, source: Numbers) -> None:
    count, _, name = result_of(low, op)
    low.set(op, convert(low, source, name, count))


def convert(low: Lowering, source: Numbers, name: str, count: int) -> Reg:
    """Convert numbers to another type; conversions from and to bf go through f."""
    if isinstance(source, Const) and source.type == "bf":
        source = bf_as_f(source)
    if "bf" in (source.type, name) and "f" not in (source.type, name) and source.type != name:
        source = low.emit.apply("mov", "f", count, source)
    return low.emit.apply("mov", name, count, source)


@pattern("arith.extsi", "arith.trunci", "arith.index_cast", "index.casts", "arith.sitofp")
def convert_signed(low: Lowering, op: ir.Operation) -> None:
    """Conversions from signed integers, and truncation."""
    count, element, name = result_of(low, op)
    source = low.value(op.operands[0])
    if isinstance(source, (Mask, KnownMask)):
        _from_mask(low, op, -1)
        return
    numbers = low.numbers(op.operands[0])
    if element == "i1":
        low.set(op, _lowest_bit(low, numbers, count))
        return
    if isinstance(numbers, Const) and not TYPES[name].is_float:
        low.set(op, const(numbers.value, name, count))
        return
    if numbers.type == name or element == "index":
        low.set(op, numbers)
        return
    _convert(low, op, numbers)


@pattern("arith.extui", "arith.index_castui", "index.castu", "arith.uitofp")
def convert_unsigned(low: Lowering, op: ir.Operation) -> None:
    """Conversions from unsigned integers."""
    count, element, name = result_of(low, op)
    source = low.value(op.operands[0])
    if isinstance(source, (Mask, KnownMask)):
        _from_mask(low, op, 1)
        return
    numbers = low.numbers(op.operands[0])
    if element == "i1":
        low.set(op, _lowest_bit(low, numbers, count))
        return
    if shape_and_element(op.operands[0].type)[1] == "index" and TYPES[name].bits == 64:
        numbers = low.typed(numbers, INDEX)
    numbers = low.emit.as_unsigned(numbers)
    if isinstance(numbers, Const) and not TYPES[name].is_float:
        low.set(op, const(numbers.bits, name, count))
        return
    if numbers.format.bits == TYPES[name].bits and not TYPES[name].is_float:
        low.set(op, low.emit.as_type(numbers, name))
        return
    _convert(low, op, numbers)


def _lowest_bit(low: Lowering, numbers: Numbers, count: int) -> Mask:
    """Integers truncated to truth values."""
    bit = low.emit.apply("and", numbers.type, count, low.emit.in_registers(numbers), const(1, numbers.type))
    return low.emit.compare("ne", count, bit, const(0, numbers.type))


def _from_mask(low: Lowering, op: ir.Operation, one: int) -> None:
    count, _, name = result_of(low, op)
    known = low.value(op.operands[0])
    if isinstance(known, KnownMask):
        low.set(op, const(one if known.value else 0, name, count))
        return
    first = "f" if name == "bf" else name
    found = low.emit.choose(low.mask(op.operands[0]), first, count, const(one, first), const(0, first))
    low.set(op, low.emit.in_registers(found, name))


@pattern("arith.extf")
def extf(low: Lowering, op: ir.Operation) -> None:
    """Widening of floats; floats of 8 bits go through f16."""
    count, _, name = result_of(low, op)
    numbers = low.numbers(op.operands[0])
    element = shape_and_element(op.operands[0].type)[1]
    if bit_width(element) == 8:
        half = half_of(low.emit, element, low.reg(op.operands[0]))
        low.set(op, half if name == "hf" else convert(low, half, name, count))
        return
    _convert(low, op, numbers)


@pattern("arith.truncf")
def truncf(low: Lowering, op: ir.Operation) -> None:
    """Narrowing of floats, rounded to nearest even: to f8E5M2 by fcvt, and to tf32 where fcvt supports it."""
    count, element, _ = result_of(low, op)
    numbers = low.numbers(op.operands[0])
    if bit_width(element) == 8:
        low.set(op, byte_of(low.emit, element, low.emit.spread(low.emit.in_registers(numbers), count)))
        return
    if element == "tf32":
        low.set(op, _to_tf32(low, low.emit.spread(low.emit.in_registers(numbers), count)))
        return
    _convert(low, op, numbers)


def half_of(emit: Emitter, element: str, numbers: Reg) -> Reg:
    """Convert f8E5M2 or f8E4M3FN to hf exactly; NaN becomes the canonical NaN."""
    count = numbers.count
    if element == "f8E5M2":
        return emit.apply("fcvt", "hf", count, numbers, most=16)

    def word(value: int) -> Const:
        return const(value, "uw")

    # The shifted bits are an hf number whose exponent is too small by 8, also for subnormal numbers.
    bits = emit.in_registers(numbers, "uw")
    magnitude = emit.apply("and", "uw", count, bits, word(0x7F))
    sign = emit.apply("shl", "uw", count, emit.apply("and", "uw", count, bits, word(0x80)), word(8))
    placed = emit.apply("or", "uw", count, emit.apply("shl", "uw", count, magnitude, word(7)), sign)
    scaled = emit.apply("mul", "hf", count, emit.as_type(placed, "hf"), const(256, "hf"))
    number = emit.compare("ne", count, magnitude, word(0x7F))
    return emit.choose(number, "hf", count, scaled, Const(HF.nan, "hf", count))


def byte_of(emit: Emitter, element: str, numbers: Reg) -> Reg:
    """Round hf to nearest even to f8E5M2 or f8E4M3FN; numbers beyond the greatest f8E4M3FN become NaN."""
    count = numbers.count
    if element == "f8E5M2":
        return emit.apply("fcvt", "ub", count, numbers, most=16)

    def word(value: int) -> Const:
        return const(value, "uw")

    bits = emit.as_type(numbers, "uw")
    magnitude = emit.apply("and", "uw", count, bits, word(0x7FFF))
    # Half a unit less the lowest bit, so that ties go to even; a carry out of the mantissa raises the exponent.
    odd = emit.apply("and", "uw", count, emit.apply("shr", "uw", count, magnitude, word(7)), word(1))
    raised = emit.apply("add", "uw", count, emit.apply("add", "uw", count, magnitude, odd), word(0x3F))
    rounded = emit.apply("add", "w", count, emit.apply("shr", "uw", count, raised, word(7)), const(-64, "w"))
    # Numbers from 2 to 4 have the same last bit as subnormal results.
    size = emit.as_type(magnitude, "hf")
    shifted = emit.as_type(emit.apply("add", "hf", count, size, const(2, "hf")), "w")
    small = emit.apply("add", "w", count, shifted, const(-0x4000, "w"))
    normal = emit.compare("ge", count, magnitude, word(0x2400))
    found = emit.choose(normal, "w", count, emit.as_type(rounded, "w"), small)
    limited = emit.apply("min", "w", count, found, const(HF8.nan, "w"))
    sign = emit.apply("and", "uw", count, emit.apply("shr", "uw", count, bits, word(8)), word(0x80))
    signed = emit.apply("or", "uw", count, emit.as_type(limited, "uw"), sign)
    number = emit.compare("ne", count, limited, const(HF8.nan, "w"))
    return emit.in_registers(emit.choose(number, "uw", count, signed, word(HF8.nan)), "ub")


def _to_tf32(low: Lowering, numbers: Reg) -> Reg:
    """Round f to tf32 as fcvt does: to nearest even, and subnormal numbers to zeros of their sign."""
    emit, count = low.emit, numbers.count
    if low.target.tf32_conversion:
        return emit.as_type(emit.apply("fcvt", "ud", count, numbers, most=16), "f")

    def word(value: int) -> Const:
        return const(value, "ud")

    bits = emit.as_type(numbers, "ud")
    odd = emit.apply("and", "ud", count, emit.apply("shr", "ud", count, bits, word(13)), word(1))
    # Half a unit less the lowest bit, so that ties go to even; a carry out of the mantissa raises the exponent.
    raised = emit.apply("add", "ud", count, emit.apply("add", "ud", count, bits, odd), word(0xFFF))
    rounded = emit.apply("and", "ud", count, raised, word(0xFFFFE000))
    exponent = emit.apply("and", "ud", count, bits, word(0x7F800000))
    normal = emit.compare("ne", count, exponent, word(0))
    sign = emit.apply("and", "ud", count, bits, word(0x80000000))
    found = emit.choose(normal, "ud", count, rounded, sign)
    number = emit.compare("eq", count, numbers, numbers)
    return emit.as_type(emit.choose(number, "ud", count, found, word(TF32.nan)), "f")


def _to_truth(low: Lowering, op: ir.Operation) -> None:
    """Convert numbers to truth values: true is 1 unsigned and -1 signed."""
    numbers = low.numbers(op.operands[0])
    condition, limit = ("ge", 1.0) if op.name == "arith.fptoui" else ("le", -1.0)
    name = "f" if numbers.type in ("bf", "hf") else numbers.type
    values = low.emit.in_registers(numbers, name)
    low.set(op, low.emit.compare(condition, result_of(low, op)[0], values, const(limit, name)))


@pattern("arith.fptosi", "arith.fptoui")
def to_integer(low: Lowering, op: ir.Operation) -> None:
    """Toward zero."""
    if result_of(low, op)[1] == "i1":
        _to_truth(low, op)
        return
    count, _, name = result_of(low, op)
    found = convert(low, low.numbers(op.operands[0]), unsigned(name) if op.name == "arith.fptoui" else name, count)
    low.set(op, low.emit.as_type(found, name))
