"""Arithmetic that elements do not have, by wider elements or step by step, with the bits that it would give."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from mlir import ir
from xegpu_py.passes.common.builders import (
    binary,
    compare,
    constant,
    create,
    integer_type,
    like,
    make,
    select,
    with_element,
    with_shape,
)
from xegpu_py.passes.common.scaling import SCALING, expand_scaling
from xegpu_py.passes.common.values import bits_of, element_of, shape_of
from xegpu_py.passes.xegpu_legalize.forms import Forms, form

from xegpu_py.numerics.formats import E8M0, FLOATS, Format

_WIDE = {"bf16": "f32", "f8E5M2": "f16", "f8E4M3FN": "f16"}
"""Formats that have no arithmetic, and those in which theirs is done."""

_STEPS = {
    "bf16": ("f64", "f32", "bf16"),
    "tf32": ("f64", "f32", "tf32"),
    "f8E5M2": ("f64", "f32", "f16", "f8E5M2"),
    "f8E4M3FN": ("f64", "f32", "f16", "f8E4M3FN"),
}
"""The formats by which a wide number becomes a narrow one: each is converted to the next by the hardware."""


def _format(value: ir.Value) -> str:
    """The name of a value's element type."""
    return str(element_of(value))


def _in(kind: ir.Type, element: str) -> ir.Type:
    """A type with elements of another format."""
    return with_element(kind, ir.Type.parse(element))


def converted(value: ir.Value, element: str) -> ir.Value:
    """A float in another format."""
    own = _format(value)
    if own == element:
        return value
    kind = _in(value.type, element)
    if bits_of(element_of(value)) < bits_of(element_of(kind)):
        return make("arith.extf", kind, value)
    if own in _STEPS.get(element, ()):
        return narrow(value, element)
    return make("arith.truncf", kind, value)


@form(
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf", "arith.maxnumf",
    "arith.minnumf", "arith.remf",
)  # fmt: skip
def exact(forms: Forms, op: ir.Operation) -> None:
    """Ops whose result, rounded first to f32 (or f16) and then to bf16 (or 8 bits), is that of one rounding.

    The wider format has at least twice as many bits and two more, so that a sum, product or quotient that is no tie of
    the narrow one is none of the wide one either.
    """
    element = _format(op.operands[0])
    if element in _WIDE:
        _by_wider(forms, op, _WIDE[element])


@form(
    "math.exp", "math.exp2", "math.expm1", "math.log", "math.log2", "math.log10", "math.log1p", "math.sqrt",
    "math.sin", "math.cos", "math.tanh", "math.erf", "math.powf", "vector.reduction", "vector.multi_reduction",
)  # fmt: skip
def by_single(forms: Forms, op: ir.Operation) -> None:
    """Functions, and reductions, of narrow formats: those of f32."""
    if _format(op.operands[0]) in _WIDE:
        _by_wider(forms, op, "f32")


def _by_wider(forms: Forms, op: ir.Operation, wide: str) -> None:
    made = like(op, [_in(op.results[0].type, wide)], [converted(v, wide) for v in op.operands])
    forms.replace(op, converted(made.results[0], _format(op.results[0])))


@form("arith.cmpf")
def comparison(forms: Forms, op: ir.Operation) -> None:
    """Comparisons of narrow formats: those of wider ones."""
    element = _format(op.operands[0])
    if element in _WIDE:
        operands = [converted(v, _WIDE[element]) for v in op.operands]
        forms.replace(op, like(op, [op.results[0].type], operands).results[0])


@form("arith.fptosi", "arith.fptoui")
def to_integer(forms: Forms, op: ir.Operation) -> None:
    """Integers of floats of 8 bits are those of f16."""
    if bits_of(element_of(op.operands[0])) == 8:
        forms.replace(op, like(op, [op.results[0].type], [converted(op.operands[0], "f16")]).results[0])


@form("arith.truncf")
def narrow_once(forms: Forms, op: ir.Operation) -> None:
    """Conversions that the hardware makes in two steps, with the bits of one rounding, and those to scales."""
    element = _format(op.results[0])
    if element == E8M0.mlir:
        forms.replace(op, _exponent(op.operands[0], op.results[0].type))
        return
    if _format(op.operands[0]) in _STEPS.get(element, ())[:-2]:
        forms.replace(op, narrow(op.operands[0], element))


def _exponent(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The exponent's bits of numbers in f32, whose bias is that of f8E8M0FNU: this drops the sign and the mantissa."""
    f32 = _in(value.type, "f32")
    single = _to_odd(value, "f32", None) if _format(value) == "f64" else converted(value, "f32")
    bits = make("arith.bitcast", with_element(f32, integer_type(32)), single)
    shifted = make("arith.shrui", bits.type, bits, constant(bits.type, FLOATS["f32"].mantissa))
    return make("arith.bitcast", kind, make("arith.trunci", with_element(f32, integer_type(8)), shifted))


@form("arith.extf")
def from_scale(forms: Forms, op: ir.Operation) -> None:
    """Scales as numbers: the exponent's bits of f32, or of bf16; 2^-127 is a subnormal number of these."""
    value, kind = op.operands[0], op.results[0].type
    if _format(value) != E8M0.mlir:
        return
    fmt = FLOATS["bf16" if _format(op.results[0]) == "bf16" else "f32"]
    number = _in(kind, fmt.mlir)
    bits = with_element(kind, integer_type(fmt.bits))
    code = make("arith.extui", bits, make("arith.bitcast", with_element(kind, integer_type(8)), value))
    placed = make("arith.shli", bits, code, constant(bits, fmt.mantissa))
    least = select(compare("eq", code, constant(bits, 0)), constant(bits, 1 << fmt.mantissa - 1), placed)
    found = select(compare("eq", code, constant(bits, E8M0.nan)), constant(bits, fmt.nan), least)
    forms.replace(op, converted(make("arith.bitcast", number, found), _format(op.results[0])))


@form(*SCALING)
def scaling(forms: Forms, op: ir.Operation) -> None:
    """Multiplication by a scale, and division."""
    made = expand_scaling(op)
    forms.replace(op, made[-1].results[0])
    for inner in made:
        forms.op(inner)


@form("vector.fma", "math.fma")
def fma(forms: Forms, op: ir.Operation) -> None:
    """`a * b + c` rounded once: in f64, where the product is exact, and the sum with what it lost."""
    element = _format(op.results[0])
    if element not in _WIDE:
        return
    a, b, c = (converted(v, "f64") for v in op.operands)

    product = binary("mulf", a, b)
    total = binary("addf", product, c)
    # What the sum lost, exactly.
    part = binary("subf", total, product)
    lost_c = binary("subf", c, part)
    lost_product = binary("subf", product, binary("subf", total, part))
    forms.replace(op, narrow(total, element, binary("addf", lost_c, lost_product)))


def narrow(value: ir.Value, element: str, lost: ir.Value | None = None) -> ir.Value:
    """A float in a format that is converted to from another, wider one, with the bits of one rounding.

    Args:
        lost: what `value` is less than the number that is meant, far less than its last bit.
    """
    steps = _STEPS[element]
    for step in steps[steps.index(_format(value)) + 1 : -1]:
        value, lost = _to_odd(value, step, lost), None
    return make("arith.truncf", _in(value.type, element), value)


def _to_odd(value: ir.Value, step: str, lost: ir.Value | None) -> ir.Value:
    """A float in fewer bits, of the two neighbours the one whose last bit is set if it is neither.

    What is then rounded to still fewer bits is rounded as the number itself, since no tie was made. The nearest
    neighbour is taken; what the number is more or less than it says where the other one lies.
    """
    wide, kind = value.type, _in(value.type, step)
    bits = with_element(wide, integer_type(bits_of(element_of(kind))))
    near = make("arith.truncf", kind, value)
    rest = binary("subf", value, make("arith.extf", wide, near))
    zero = constant(wide, 0.0)
    if lost is not None:
        rest = select(compare("oeq", rest, zero), lost, rest)
    inexact = compare("one", rest, zero)
    one, none = constant(bits, 1), constant(bits, 0)
    pattern = make("arith.bitcast", bits, near)
    # One more in the bits is away from zero; the other neighbour lies toward it where the rest has the other sign.
    toward = binary("xori", compare("olt", rest, zero), compare("slt", pattern, none))
    by = select(toward, constant(bits, -1), one)
    even = compare("eq", binary("andi", pattern, one), none)
    moves = binary("andi", inexact, even)
    return make("arith.bitcast", kind, select(moves, binary("addi", pattern, by), pattern))


@form("arith.sitofp", "arith.uitofp")
def from_integer(forms: Forms, op: ir.Operation) -> None:
    """Integers to bf16 and floats of 8 bits, rounded once."""
    value, element = op.operands[0], _format(op.results[0])
    if bits_of(element_of(op.results[0])) == 8:
        held = _saturated(op, value)
    elif element == "bf16" and _format(value) == "i32":
        held = _with_sticky_bit(op, value)
    else:
        return
    single = like(op, [_in(op.results[0].type, "f32")], [held]).results[0]
    forms.replace(op, converted(single, element))


def _with_sticky_bit(op: ir.Operation, value: ir.Value) -> ir.Value:
    """Integers of 32 bits; those that f32 does not hold have what it would lose kept in a bit."""
    kind = value.type
    one, none, low = (constant(kind, n) for n in (256, 0, 255))
    lost = compare("ne", binary("andi", value, low), none)
    kept = binary("andi", value, -256)
    sticky = binary("ori", kept, select(lost, one, none))
    limit = constant(kind, 1 << 24)
    if op.name == "arith.sitofp":
        above, below = compare("sge", value, limit), compare("sle", value, constant(kind, -(1 << 24)))
        large = binary("ori", above, below)
    else:
        large = compare("uge", value, limit)
    return select(large, sticky, value)


def _saturated(op: ir.Operation, value: ir.Value) -> ir.Value:
    """Integers that f32 holds: floats of 8 bits are not nearly as large."""
    if _format(value) not in ("i32", "i64"):
        return value
    signed = op.name == "arith.sitofp"
    value = binary("minsi" if signed else "minui", value, 1 << 20)
    return binary("maxsi", value, -(1 << 20)) if signed else value


@form("xegpu.truncf")
def saturating(forms: Forms, op: ir.Operation) -> None:
    """Rounding to 8 and 4 bits, saturated: f16 to f8E5M2 by fcvt of what is in range, all else by integers."""
    value, kind = op.operands[0], op.results[0].type
    fmt = FLOATS[_format(op.results[0])]
    most = float(ml_dtypes.finfo(fmt.dtype).max)  # type: ignore[no-untyped-call]
    if (_format(value), fmt.mlir) == ("f16", "f8E5M2") and "fcvt" not in forms.target.absent:
        held = binary("minimumf", value, constant(value.type, most))
        held = binary("maximumf", held, constant(value.type, -most))
        forms.replace(op, make("arith.truncf", kind, held))
        return
    codes = _codes(converted(value, "f32"), fmt, most)
    if fmt.bits == 8:
        forms.replace(op, make("arith.bitcast", kind, codes))
        return
    *outer, columns = shape_of(codes)
    half = with_shape(codes.type, (*outer, columns // 2))
    low, high = create("vector.deinterleave", [half, half], [codes]).results
    pairs = binary("ori", low, binary("shli", high, 4))
    forms.replace(op, make("vector.bitcast", kind, pairs))


def _codes(value: ir.Value, fmt: Format, most: float) -> ir.Value:
    """The bit patterns of f32 numbers in a narrow format, in i8: rounded to nearest even, and saturated."""
    single, kind = value.type, with_element(value.type, integer_type(32))

    def number(n: int) -> ir.Value:
        return constant(kind, n)

    def pattern(x: float) -> int:
        return int(np.float32(x).view(np.int32))

    bias, dropped = (1 << fmt.exponent - 1) - 1, 23 - fmt.mantissa
    bits = make("arith.bitcast", kind, value)
    size = binary("andi", bits, 0x7FFFFFFF)
    held = binary("minui", size, pattern(most))
    # The exponent's bias is less, and bits are rounded off; a carry raises the exponent.
    odd = binary("andi", binary("shrui", held, dropped), 1)
    raised = binary("addi", binary("addi", held, (1 << dropped - 1) - 1), odd)
    normal = binary("subi", binary("shrui", raised, dropped), (127 - bias) << fmt.mantissa)
    # Subnormal numbers are multiples of the last place of this number, to which an addition rounds them.
    unit = 2.0 ** (24 - bias - fmt.mantissa)
    small = binary("addf", make("arith.bitcast", single, held), constant(single, unit))
    subnormal = binary("subi", make("arith.bitcast", kind, small), pattern(unit))
    code = select(compare("ult", held, number((128 - bias) << 23)), subnormal, normal)
    sign = binary("andi", binary("shrui", bits, 32 - fmt.bits), 1 << fmt.bits - 1)
    # A format without NaN gives its greatest number.
    nan = number(fmt.nan or (1 << fmt.bits - 1) - 1)
    found = select(compare("ugt", size, number(0x7F800000)), nan, binary("ori", code, sign))
    return make("arith.trunci", with_element(kind, integer_type(8)), found)
