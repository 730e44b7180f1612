"""`arith`: conversions between number types."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.registers import INDEX, shape_and_element, unsigned
from xegpu_py.passes.xegpu_to_visa.arith import as_type, as_unsigned, bf_as_f, result_of
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import Const, KnownMask, Mask, Numbers, Reg

from xegpu_py.ir.builtin import bit_width, is_float
from xegpu_py.numerics.formats import TF32, TYPES


def _convert(low: Lowering, op: ir.Operation, source: Numbers, saturate: bool = False) -> None:
    count, _, name = result_of(low, op)
    if isinstance(source, Const) and source.type == "bf":
        source = bf_as_f(source)
    low.set(op, convert(low, source, name, count, saturate))


def _check_bytes(low: Lowering, op: ir.Operation) -> None:
    """Registers hold floats of 8 bits as bytes, which no conversion takes for numbers."""
    for value in (op.operands[0], op.results[0]):
        _, element = shape_and_element(value.type)
        if is_float(element) and bit_width(element) == 8:
            low.fail(
                f"converts between integers and {element}, which no instruction does", "xegpu-legalize rewrites it"
            )


def convert(low: Lowering, source: Numbers, name: str, count: int, saturate: bool = False) -> Reg:
    """Numbers converted to another type, by way of f where bf takes part."""
    if "bf" in (source.type, name) and "f" not in (source.type, name) and source.type != name:
        source = low.emit.apply("mov", "f", count, source)
    return low.emit.apply("mov", name, count, source, saturate=saturate)


@pattern("arith.extsi", "arith.trunci", "arith.index_cast", "index.casts", "arith.sitofp")
def convert_signed(low: Lowering, op: ir.Operation) -> None:
    """Conversions from signed integers, and truncation."""
    _check_bytes(low, op)
    count, element, name = result_of(low, op)
    source = low.value(op.operands[0])
    if isinstance(source, (Mask, KnownMask)):
        _from_mask(low, op, -1)
        return
    numbers = low.numbers(op.operands[0])
    if element == "i1":
        bit = low.emit.apply("and", numbers.type, count, low.emit.in_registers(numbers), const(1, numbers.type))
        low.set(op, low.emit.compare("ne", count, bit, const(0, numbers.type)))
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
    _check_bytes(low, op)
    count, _, name = result_of(low, op)
    source = low.value(op.operands[0])
    if isinstance(source, (Mask, KnownMask)):
        _from_mask(low, op, 1)
        return
    numbers = low.numbers(op.operands[0])
    if shape_and_element(op.operands[0].type)[1] == "index" and TYPES[name].bits == 64:
        numbers = low.typed(numbers, INDEX)
    numbers = as_unsigned(low, numbers)
    if isinstance(numbers, Const) and not TYPES[name].is_float:
        low.set(op, const(numbers.bits, name, count))
        return
    if numbers.format.bits == TYPES[name].bits and not TYPES[name].is_float:
        low.set(op, as_type(low, numbers, name))
        return
    _convert(low, op, numbers)


def _from_mask(low: Lowering, op: ir.Operation, one: int) -> None:
    count, _, name = result_of(low, op)
    known = low.value(op.operands[0])
    if isinstance(known, KnownMask):
        low.set(op, const(one if known.value else 0, name, count))
        return
    first = "f" if name == "bf" else name
    found = low.emit.choose(low.mask(op.operands[0]), first, count, const(one, first), const(0, first))
    low.set(op, found if first == name else low.emit.in_registers(found, name))


@pattern("arith.extf")
def extf(low: Lowering, op: ir.Operation) -> None:
    """Widening of floats; of f8E5M2 by fcvt."""
    count, _, name = result_of(low, op)
    numbers = low.numbers(op.operands[0])
    element = shape_and_element(op.operands[0].type)[1]
    if bit_width(element) == 8:
        if element != "f8E5M2":
            low.fail(f"there is no conversion from {element}")
        half = low.emit.apply("fcvt", "hf", count, low.reg(op.operands[0]), most=16)
        low.set(op, half if name == "hf" else convert(low, half, name, count))
        return
    _convert(low, op, numbers)


@pattern("arith.truncf")
def truncf(low: Lowering, op: ir.Operation) -> None:
    """Narrowing of floats, rounded to nearest even; to f8E5M2 by fcvt, and to tf32 where fcvt does that."""
    count, element, _ = result_of(low, op)
    numbers = low.numbers(op.operands[0])
    if element == "f8E5M2":
        half = numbers if numbers.type == "hf" else _half_to_odd(low, numbers, count)
        low.set(op, low.emit.apply("fcvt", "ub", count, low.emit.in_registers(half), most=16))
        return
    if element == "tf32":
        if numbers.type == "df":
            low.fail("from f64 has no instruction", "xegpu-legalize rewrites it")
        low.set(op, _to_tf32(low, low.emit.spread(low.emit.in_registers(numbers), count)))
        return
    if bit_width(element) == 8:
        low.fail(f"there is no conversion to {element}")
    _convert(low, op, numbers)


def _to_tf32(low: Lowering, numbers: Reg) -> Reg:
    """Numbers of f rounded to tf32 as fcvt does: to nearest even, subnormal numbers to zeros of their sign."""
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


def _half_to_odd(low: Lowering, numbers: Numbers, count: int) -> Reg:
    """Numbers rounded to hf so that rounding them once more gives what rounding once does.

    Of the two neighbours of an inexact number that is the one whose lowest bit is set.
    """
    emit = low.emit
    if numbers.type == "df":
        low.fail("from f64 has no instruction", "xegpu-legalize rewrites it")
    exact = emit.spread(emit.in_registers(numbers, "f"), count)
    half = emit.apply("mov", "hf", count, exact)
    bits = emit.as_type(half, "uw")
    size = emit.apply("mov", "f", count, exact, modifiers=("abs",))
    rounded = emit.apply("mov", "f", count, emit.apply("mov", "f", count, half), modifiers=("abs",))
    even = emit.compare("eq", count, emit.apply("and", "uw", count, bits, const(1, "uw")), const(0, "uw"))
    for condition, step in (("gt", -1), ("lt", 1)):
        beside = emit.flags("and", count, even, emit.compare(condition, count, rounded, size))
        bits = emit.choose(beside, "uw", count, emit.apply("add", "uw", count, bits, const(step, "w")), bits)
    return emit.as_type(bits, "hf")


@pattern("arith.fptosi")
def fptosi(low: Lowering, op: ir.Operation) -> None:
    """Toward zero."""
    _check_bytes(low, op)
    _convert(low, op, low.numbers(op.operands[0]))


@pattern("arith.fptoui")
def fptoui(low: Lowering, op: ir.Operation) -> None:
    """Toward zero, to unsigned integers."""
    _check_bytes(low, op)
    count, _, name = result_of(low, op)
    source = low.numbers(op.operands[0])
    found = convert(
        low, bf_as_f(source) if isinstance(source, Const) and source.type == "bf" else source, unsigned(name), count
    )
    low.set(op, as_type(low, found, name))
