"""Arithmetic that needs wider formats or several steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import scf

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.ir.diagnostics import emit_error, remark
from xegpu_py.numerics.expansions import EXPANSIONS, Number
from xegpu_py.numerics.formats import E8M0, FLOATS, Format
from xegpu_py.passes.facts.integer_forms import transposes_in_message
from xegpu_py.passes.facts.surfaces import Surfaces
from xegpu_py.passes.facts.target_messages import hints_of, plain_shape, transformed
from xegpu_py.passes.facts.value_facts import bits_of, constant_of, element_of, is_desc, shape_of, splat_of
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import (
    SCALING,
    binary,
    combine_subgroups,
    compare,
    constant,
    expand_scaling,
    if_,
    index_type,
    integer_type,
    kind_of,
    like,
    make,
    replace_op,
    require_nearest,
    select,
    shape_cast,
    with_element,
    with_shape,
    zero,
)
from xegpu_py.passes.rewriting.rewriter import Rewriter, Rule, Rules
from xegpu_py.target import Target

# Exact expansions of arithmetic that no instruction does: in wider formats, or in several steps.

_WIDE = {"bf16": "f32", "tf32": "f32", "f8E5M2": "f16", "f8E4M3FN": "f16"}
"""Formats without arithmetic, and the wider format in which it is computed."""

_STEPS = {
    "bf16": ("f64", "f32", "bf16"),
    "tf32": ("f64", "f32", "tf32"),
    "f8E5M2": ("f64", "f32", "f16", "f8E5M2"),
    "f8E4M3FN": ("f64", "f32", "f16", "f8E4M3FN"),
}
"""The chains of hardware conversions from a wide to a narrow format."""


def _format(value: ir.Value) -> str:
    """The name of a value's element type."""
    return str(element_of(value))


def _in(kind: ir.Type, element: str) -> ir.Type:
    """A type with elements of another format."""
    return build.with_element(kind, ir.Type.parse(element))


def converted(value: ir.Value, element: str) -> ir.Value:
    """A float in another format."""
    own = _format(value)
    if own == element:
        return value
    kind = _in(value.type, element)
    # A tf32 number takes as many bits as an f32 number, and is one.
    if bits_of(element_of(value)) < bits_of(element_of(kind)) or (own, element) == ("tf32", "f32"):
        return build.make("arith.extf", kind, value)
    if own in _STEPS.get(element, ()):
        return narrow(value, element)
    return build.make("arith.truncf", kind, value)


# Rewrites of single ops into other ops, before values are split.

rule: Rules[Rule[Forms]] = Rules()
"""The rules by op name."""


@rule(
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf", "arith.maxnumf",
    "arith.minnumf", "arith.remf", "arith.cmpf",
)  # fmt: skip
def exact(forms: Forms, op: ir.Operation) -> None:
    """Ops for which rounding to f32 (or f16) and then to bf16 (or 8 bits) equals rounding once.

    This holds because the wider format has at least 2p + 2 bits of precision, where p is that of the narrow format.
    """
    element = _format(op.operands[0])
    if element in _WIDE:
        _by_wider(forms, op, _WIDE[element])


@rule(
    "math.exp", "math.exp2", "math.expm1", "math.log", "math.log2", "math.log10", "math.log1p", "math.sqrt",
    "math.sin", "math.cos", "math.tanh", "math.erf", "math.powf", "vector.reduction", "vector.multi_reduction",
)  # fmt: skip
def by_single(forms: Forms, op: ir.Operation) -> None:
    """Compute functions and reductions of narrow formats in f32."""
    if _format(op.operands[0]) in _WIDE:
        _by_wider(forms, op, "f32")


@rule("arith.fptosi", "arith.fptoui")
def to_integer(forms: Forms, op: ir.Operation) -> None:
    """Convert floats of 8 bits to integers by way of f16."""
    if bits_of(element_of(op.operands[0])) == 8:
        _by_wider(forms, op, "f16")


def _by_wider(forms: Forms, op: ir.Operation, wide: str) -> None:
    """Apply the op to a wider format, and convert its result back if it has the narrow format."""
    kind, narrow = op.results[0].type, _format(op.operands[0])
    is_narrow = str(element_of(kind)) == narrow
    made = build.like(op, [_in(kind, wide) if is_narrow else kind], [converted(v, wide) for v in op.operands])
    forms.replace(op, converted(made.results[0], narrow) if is_narrow else made.results[0])


@rule("math.isnan", "math.isinf", "math.isfinite")
def classify(forms: Forms, op: ir.Operation) -> None:
    """Compare with the number itself, and its magnitude with infinity, which reads as NaN in formats without it."""
    value = op.operands[0]
    tests = []
    if op.name != "math.isinf":
        tests.append(build.compare("uno" if op.name == "math.isnan" else "ord", value, value))
    if op.name != "math.isnan":
        infinity = build.constant(value.type, float("inf"))
        size = build.make("math.absf", value.type, value)
        tests.append(build.compare("oeq" if op.name == "math.isinf" else "une", size, infinity))
    forms.replace(op, tests[0] if len(tests) == 1 else build.binary("andi", *tests), made=tests)


@rule("math.isnormal")
def is_normal(forms: Forms, op: ir.Operation) -> None:
    """Compare the magnitude with the least normal number, and with infinity, NaN in formats without it."""
    value = op.operands[0]
    size, fmt = build.make("math.absf", value.type, value), FLOATS[_format(value)]
    least = build.compare("oge", size, build.constant(value.type, 2.0 ** (2 - (1 << fmt.exponent - 1))))
    finite = build.compare("une", size, build.constant(value.type, float("inf")))
    forms.replace(op, build.binary("andi", least, finite), made=[least, finite])


@rule("math.clampf")
def clamp(forms: Forms, op: ir.Operation) -> None:
    """The lesser of the upper bound and the greater of the number and the lower bound; NaN if an operand is."""
    value, least, most = op.operands
    above = build.binary("maximumf", value, least)
    held = build.binary("minimumf", above, most)
    forms.replace(op, held, made=[above, held])


@rule("math.sincos")
def sincos(forms: Forms, op: ir.Operation) -> None:
    """Both functions."""
    both = [build.make(name, op.operands[0].type, op.operands[0]) for name in ("math.sin", "math.cos")]
    forms.replace(op, *both, made=both)


@rule(*EXPANSIONS)
def formula(forms: Forms, op: ir.Operation) -> None:
    """Apply the formula of `numerics.expansions` in f32."""
    _in_single(forms, op, lambda *values: _by_formula(op.name, *values))


def _by_formula(name: str, *operands: ir.Value) -> ir.Value:
    single = operands[0].type

    def apply(name: str, *given: Any) -> ir.Value:
        values = [build.constant(single, v) if isinstance(v, float) else v for v in given]
        if name in build.FLOAT_PREDICATES:
            return build.compare(name, *values)
        return build.make(name, single, *values)

    found: ir.Value = EXPANSIONS[name](*(Number(v, apply) for v in operands)).value
    return found


def _in_single(forms: Forms, op: ir.Operation, function: Callable[..., ir.Value]) -> None:
    """Replace an op by a function of its floating-point operands in f32.

    Raises:
        DiagnosticError: if they are f64.
    """
    element = _format(op.results[0])
    if element == "f64":
        emit_error(op, "of f64 has no vISA instruction", "compute it in f32")
    operands = [converted(v, "f32") if _format(v) == element else v for v in op.operands]
    forms.replace(op, converted(function(*operands), element))


@rule("math.fpowi")
def float_to_integer_power(forms: Forms, op: ir.Operation) -> None:
    """powf of the magnitude and the exponent in f32, with the base's sign if the exponent is odd."""

    def power(base: ir.Value, exponent: ir.Value) -> ir.Value:
        kind = base.type
        real = build.make("arith.sitofp", kind, exponent)
        found = build.make("math.powf", kind, build.make("math.absf", kind, base), real)
        odd = build.compare("ne", build.binary("andi", exponent, 1), build.zero(exponent.type))
        return build.select(odd, build.make("math.copysign", kind, found, base), found)

    _in_single(forms, op, power)


@rule("math.ipowi")
def integer_power(forms: Forms, op: ir.Operation) -> None:
    """Squares and products; of a negative exponent the reciprocal, rounded toward zero."""
    base, exponent = op.operands
    kind, bits = base.type, bits_of(element_of(base))
    splat = splat_of(exponent)
    number = splat.value if isinstance(splat, ir.IntegerAttr) else constant_of(exponent)
    one, none = build.constant(kind, 1), build.zero(kind)
    if number is not None and number >= 0:
        found, square = one, base
        for bit in range(number.bit_length()):
            square = build.binary("muli", square, square) if bit else base
            found = build.binary("muli", found, square) if number >> bit & 1 else found
    else:
        first, last, step = map(build.index, (0, max(bits - 1, 1), 1))
        loop = scf.ForOp(first, last, step, [one, base, exponent])
        with ir.InsertionPoint(loop.body):
            found, square, rest = loop.inner_iter_args
            taken = build.compare("ne", build.binary("andi", rest, 1), none)
            found = build.select(taken, build.binary("muli", found, square), found)
            scf.yield_([found, build.binary("muli", square, square), build.binary("shrui", rest, 1)])
        # The powers of 1 and -1 are their own reciprocals; others are less than 1.
        kept = build.compare("sge", exponent, none)
        for unit in (1, -1):
            kept = build.binary("ori", kept, build.compare("eq", base, build.constant(kind, unit)))
        found = build.select(kept, loop.results[0], none)
    forms.replace(op, found)


@rule("arith.truncf")
def narrow_once(forms: Forms, op: ir.Operation) -> None:
    """Narrowing that the hardware does in two steps, with the result of one rounding; and conversions to scales."""
    require_nearest(op)
    element = _format(op.results[0])
    if element == E8M0.mlir:
        forms.replace(op, _exponent(op.operands[0], op.results[0].type))
        return
    value = op.operands[0]
    if _format(value) in ("bf16", "tf32"):
        value = converted(value, "f32")
    if _format(value) in _STEPS.get(element, ())[:-2]:
        forms.replace(op, narrow(value, element))


def _exponent(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The exponent bits of f32 numbers, without sign and mantissa; f8E8M0FNU has the same bias."""
    f32 = _in(value.type, "f32")
    single = _to_odd(value, "f32", None) if _format(value) == "f64" else converted(value, "f32")
    bits = build.make("arith.bitcast", build.with_element(f32, build.integer_type(32)), single)
    shifted = build.make("arith.shrui", bits.type, bits, build.constant(bits.type, FLOATS["f32"].mantissa))
    return build.make(
        "arith.bitcast", kind, build.make("arith.trunci", build.with_element(f32, build.integer_type(8)), shifted)
    )


@rule("arith.extf")
def from_scale(forms: Forms, op: ir.Operation) -> None:
    """Convert scales to numbers by placing them in the exponent bits of f32 or bf16; 2^-127 is subnormal there."""
    value, kind = op.operands[0], op.results[0].type
    if _format(value) != E8M0.mlir:
        return
    fmt = FLOATS["bf16" if _format(op.results[0]) == "bf16" else "f32"]
    number = _in(kind, fmt.mlir)
    bits = build.with_element(kind, build.integer_type(fmt.bits))
    code = build.make(
        "arith.extui", bits, build.make("arith.bitcast", build.with_element(kind, build.integer_type(8)), value)
    )
    placed = build.make("arith.shli", bits, code, build.constant(bits, fmt.mantissa))
    least = build.select(
        build.compare("eq", code, build.constant(bits, 0)), build.constant(bits, 1 << fmt.mantissa - 1), placed
    )
    found = build.select(
        build.compare("eq", code, build.constant(bits, E8M0.nan)), build.constant(bits, fmt.nan), least
    )
    forms.replace(op, converted(build.make("arith.bitcast", number, found), _format(op.results[0])))


@rule(*SCALING)
def scaling(forms: Forms, op: ir.Operation) -> None:
    """Multiplication and division by a scale."""
    made = expand_scaling(op)
    forms.replace(op, made[-1], made=made)


@rule("vector.fma", "math.fma")
def fma(forms: Forms, op: ir.Operation) -> None:
    """`a * b + c` rounded once, by way of f64: the product is exact, and the sum's rounding error is corrected for."""
    element = _format(op.results[0])
    if element not in _WIDE:
        return
    a, b, c = (converted(v, "f64") for v in op.operands)

    product = build.binary("mulf", a, b)
    total = build.binary("addf", product, c)
    # The exact rounding error of the sum.
    part = build.binary("subf", total, product)
    lost_c = build.binary("subf", c, part)
    lost_product = build.binary("subf", product, build.binary("subf", total, part))
    forms.replace(op, narrow(total, element, build.binary("addf", lost_c, lost_product)))


def narrow(value: ir.Value, element: str, lost: ir.Value | None = None) -> ir.Value:
    """Convert a float through a chain of narrower formats, with the result of one rounding.

    Args:
        lost: the exact number less `value`, much smaller than the last bit of `value`.
    """
    steps = _STEPS[element]
    for step in steps[steps.index(_format(value)) + 1 : -1]:
        value, lost = _to_odd(value, step, lost), None
    return build.make("arith.truncf", _in(value.type, element), value)


def _to_odd(value: ir.Value, step: str, lost: ir.Value | None) -> ir.Value:
    """Round to odd: an inexact result is the one of the two neighbours whose last bit is set.

    Rounding the result to still fewer bits equals rounding the number itself, since rounding to odd makes no ties.
    The hardware gives the nearest neighbour; the sign of its error tells on which side the other one is.
    """
    wide, kind = value.type, _in(value.type, step)
    bits = build.with_element(wide, build.integer_type(bits_of(element_of(kind))))
    near = build.make("arith.truncf", kind, value)
    rest = build.binary("subf", value, build.make("arith.extf", wide, near))
    zero = build.constant(wide, 0.0)
    if lost is not None:
        rest = build.select(build.compare("oeq", rest, zero), lost, rest)
    inexact = build.compare("one", rest, zero)
    one, none = build.constant(bits, 1), build.constant(bits, 0)
    pattern = build.make("arith.bitcast", bits, near)
    # Adding 1 to the bits moves away from zero; the other neighbour is toward zero if the error has the other sign.
    toward = build.binary("xori", build.compare("olt", rest, zero), build.compare("slt", pattern, none))
    by = build.select(toward, build.constant(bits, -1), one)
    even = build.compare("eq", build.binary("andi", pattern, one), none)
    moves = build.binary("andi", inexact, even)
    return build.make("arith.bitcast", kind, build.select(moves, build.binary("addi", pattern, by), pattern))


@rule("arith.sitofp", "arith.uitofp")
def from_integer(forms: Forms, op: ir.Operation) -> None:
    """Convert integers to bf16, tf32 and floats of 8 bits with one rounding."""
    value, element = op.operands[0], _format(op.results[0])
    if bits_of(element_of(op.results[0])) == 8:
        held = _saturated(op, value)
    elif element in ("bf16", "tf32") and _format(value) in ("i32", "i64"):
        held = _rounded_to_odd(op, value, FLOATS[element])
    else:
        return
    single = build.like(op, [_in(op.results[0].type, "f32")], [held]).results[0]
    forms.replace(op, converted(single, element))


def _rounded_to_odd(op: ir.Operation, value: ir.Value, fmt: Format) -> ir.Value:
    """Integers for conversion to a format by way of f32, which holds the results; bits that it would lose become a
    sticky bit.
    """
    kind, most, given = value.type, 24, value
    bits = bits_of(element_of(kind))
    while most < bits:
        # At least 3 bits more than the mantissa remain, and at most 24.
        following = min(most + 22 - fmt.mantissa, bits)
        dropped = following - 24
        lost = build.compare("ne", build.binary("andi", given, (1 << dropped) - 1), build.constant(kind, 0))
        one, none = build.constant(kind, 1 << dropped), build.constant(kind, 0)
        sticky = build.binary("ori", build.binary("andi", given, -(1 << dropped)), build.select(lost, one, none))
        limit = build.constant(kind, 1 << most)
        if op.name == "arith.sitofp":
            below = build.compare("sle", given, build.constant(kind, -(1 << most)))
            large = build.binary("ori", build.compare("sge", given, limit), below)
        else:
            large = build.compare("uge", given, limit)
        value, most = build.select(large, sticky, value), following
    return value


def _saturated(op: ir.Operation, value: ir.Value) -> ir.Value:
    """Clamp integers to those that f32 holds exactly; floats of 8 bits are far smaller."""
    if _format(value) not in ("i32", "i64"):
        return value
    signed = op.name == "arith.sitofp"
    value = build.binary("minsi" if signed else "minui", value, 1 << 20)
    return build.binary("maxsi", value, -(1 << 20)) if signed else value


@rule("xegpu.truncf")
def saturating(forms: Forms, op: ir.Operation) -> None:
    """Saturating conversion to 8 and 4 bits: f16 to f8E5M2 by clamping and fcvt, others by integer arithmetic."""
    value, kind = op.operands[0], op.results[0].type
    fmt = FLOATS[_format(op.results[0])]
    most = fmt.finite
    if (_format(value), fmt.mlir) == ("f16", "f8E5M2") and "fcvt" not in forms.target.absent:
        held = build.binary("minimumf", value, build.constant(value.type, most))
        held = build.binary("maximumf", held, build.constant(value.type, -most))
        forms.replace(op, build.make("arith.truncf", kind, held))
        return
    codes = _codes(converted(value, "f32"), fmt, most)
    if fmt.bits == 8:
        forms.replace(op, build.make("arith.bitcast", kind, codes))
        return
    *outer, columns = shape_of(codes)
    half = build.with_shape(codes.type, (*outer, columns // 2))
    low, high = build.create("vector.deinterleave", [half, half], [codes]).results
    pairs = build.binary("ori", low, build.binary("shli", high, 4))
    forms.replace(op, build.make("vector.bitcast", kind, pairs))


def _codes(value: ir.Value, fmt: Format, most: float) -> ir.Value:
    """The bit patterns, in i8, of f32 numbers rounded to nearest even in a narrow format, and saturated."""
    single, kind = value.type, build.with_element(value.type, build.integer_type(32))

    def number(n: int) -> ir.Value:
        return build.constant(kind, n)

    def pattern(x: float) -> int:
        return int(np.float32(x).view(np.int32))

    bias, dropped = (1 << fmt.exponent - 1) - 1, 23 - fmt.mantissa
    bits = build.make("arith.bitcast", kind, value)
    size = build.binary("andi", bits, 0x7FFFFFFF)
    held = build.binary("minui", size, pattern(most))
    # Change the exponent's bias, and round the mantissa; a carry increments the exponent.
    odd = build.binary("andi", build.binary("shrui", held, dropped), 1)
    raised = build.binary("addi", build.binary("addi", held, (1 << dropped - 1) - 1), odd)
    normal = build.binary("subi", build.binary("shrui", raised, dropped), (127 - bias) << fmt.mantissa)
    # Adding this number rounds subnormal numbers to multiples of its last bit.
    unit = 2.0 ** (24 - bias - fmt.mantissa)
    small = build.binary("addf", build.make("arith.bitcast", single, held), build.constant(single, unit))
    subnormal = build.binary("subi", build.make("arith.bitcast", kind, small), pattern(unit))
    code = build.select(build.compare("ult", held, number((128 - bias) << 23)), subnormal, normal)
    sign = build.binary("andi", build.binary("shrui", bits, 32 - fmt.bits), 1 << fmt.bits - 1)
    # In a format without NaN, NaN converts to the greatest number.
    nan = number(fmt.nan or (1 << fmt.bits - 1) - 1)
    found = build.select(build.compare("ugt", size, number(0x7F800000)), nan, build.binary("ori", code, sign))
    return build.make("arith.trunci", build.with_element(kind, build.integer_type(8)), found)


# Functions of f64 by f64 and integer arithmetic; vISA has only division and square root for f64.

_MANTISSA = (1 << 52) - 1

_SIGN = -(1 << 63)


def _with_sign(magnitude: ir.Value, x: ir.Value) -> ir.Value:
    """A non-negative number with the sign of another."""
    return make("math.copysign", x.type, magnitude, x)


def _or_nan(x: ir.Value, found: ir.Value) -> ir.Value:
    """The result for a number; for a NaN the canonical NaN, which an addition gives."""
    nan = binary("addf", x, x)
    return select(compare("ord", x, x), found, nan)


def _truncated(x: ir.Value) -> ir.Value:
    """Clear the mantissa bits of weight less than 1: all bits of numbers below 1, none of numbers from 2^52 on."""
    kind = with_element(x.type, integer_type(64))

    bits = make("arith.bitcast", kind, x)
    exponent = binary("subi", binary("andi", binary("shrui", bits, 52), 0x7FF), 1023)
    places = binary("minsi", binary("maxsi", exponent, 0), 63)
    kept = binary("xori", binary("shrui", constant(kind, _MANTISSA), places), -1)
    kept = select(compare("slt", exponent, zero(kind)), constant(kind, _SIGN), kept)
    return make("arith.bitcast", x.type, binary("andi", bits, kept))


def _floor(x: ir.Value) -> ir.Value:
    whole = _truncated(x)
    less = binary("subf", whole, constant(x.type, 1.0))
    return _or_nan(x, select(compare("olt", x, whole), less, whole))


def _ceil(x: ir.Value) -> ir.Value:
    whole = _truncated(x)
    more = _with_sign(binary("addf", whole, constant(x.type, 1.0)), x)
    return _or_nan(x, select(compare("olt", whole, x), more, whole))


def _round(x: ir.Value) -> ir.Value:
    """Round toward zero, and add one to the magnitude where the fraction is at least a half."""
    whole = _truncated(x)
    rest = make("math.absf", x.type, binary("subf", x, whole))
    more = binary("addf", whole, _with_sign(constant(x.type, 1.0), x))
    return _or_nan(x, select(compare("oge", rest, constant(x.type, 0.5)), more, whole))


def _round_even(x: ir.Value) -> ir.Value:
    """Add 2^52, which rounds to nearest even since the sum has no bits below 1, and subtract it."""
    size, large = make("math.absf", x.type, x), constant(x.type, 2.0**52)
    whole = binary("subf", binary("addf", size, large), large)
    return _or_nan(x, select(compare("olt", size, large), _with_sign(whole, x), x))


DOUBLES: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.trunc": lambda x: _or_nan(x, _truncated(x)),
    "math.floor": _floor,
    "math.ceil": _ceil,
    "math.round": _round,
    "math.roundeven": _round_even,
    "math.rsqrt": lambda x: binary("divf", constant(x.type, 1.0), make("math.sqrt", x.type, x)),
}
"""The expansion of each function."""


@rule(*DOUBLES)
def integral(forms: Forms, op: ir.Operation) -> None:
    """Expand a function of f64. Narrow formats use the functions of f32."""
    if isinstance(element_of(op.operands[0]), ir.F64Type):
        forms.replace(op, DOUBLES[op.name](op.operands[0]))
    else:
        by_single(forms, op)


def branch_among_descriptors(ops: Sequence[ir.Operation]) -> bool:
    """Rewrite `arith.select` of descriptors as `scf.if`, which can carry the several values of a split descriptor.

    Returns whether there were any.
    """
    selects = [op for op in ops if op.name == "arith.select" and is_desc(op.results[0])]
    for op in selects:
        condition, *values = op.operands
        with op.location, ir.InsertionPoint(op):
            replace_op(op, *if_(condition, [op.results[0].type], *(partial(list, [value]) for value in values)))
    return bool(selects)


def combine_subgroups_through_memory(ops: Sequence[ir.Operation]) -> bool:
    """Rewrite `gpu.all_reduce` with shared local memory; in VC mode a work item is a subgroup.

    Returns whether there were any.

    Raises:
        DiagnosticError: at an op whose region is not one op of arith.
    """
    reductions = [op for op in ops if op.name == "gpu.all_reduce"]
    for op in reductions:
        kind = kind_of(op)
        with op.location, ir.InsertionPoint(op):
            number, count = (make(name, index_type()) for name in ("gpu.subgroup_id", "gpu.num_subgroups"))
            replace_op(op, combine_subgroups(op.operands[0], kind, number, count))
    return bool(reductions)


class Forms(Rewriter):
    """Replaces ops of a function that have no message or instruction for any size of their operands.

    A rule either leaves an op or calls `replace`.

    Attributes:
        replaced_loads: whether descriptors have other users than `surfaces` knows.
    """

    rules = rule

    def __init__(self, target: Target, surfaces: Surfaces) -> None:
        self.target, self.surfaces = target, surfaces
        self.replaced_loads = False

    def run(self, ops: Sequence[ir.Operation]) -> None:
        """Apply the rules to ops."""
        for op in ops:
            self.op(op)

    def replace(self, op: ir.Operation, *values: ir.Value, made: Sequence[ir.Value] = ()) -> None:
        """Replace an op's results by values, and then apply the rules of ops whose results are `made`."""
        replace_op(op, *values)
        for value in made:
            self.op(value.owner)


@rule("xegpu.load_nd")
def transform_in_registers(forms: Forms, op: ir.Operation) -> None:
    """Split a load whose transform no message does into a plain load and a transform in registers.

    Messages transpose blocks of two dimensions, in units of at least 32 bits that begin at a multiple of their size.
    """
    given, op = op, _with_units_side_by_side(op)
    forms.replaced_loads |= op is not given
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    if view.mode != Mode.VC or len(desc.shape) < 2:
        return
    gathered = forms.surfaces.problem(view.tdesc) is not None
    transposes = view.transpose is not None and tuple(view.transpose) != tuple(range(len(desc.shape)))
    limits = forms.target.block2d
    if transposes and limits and not gathered and len(desc.shape) == 2:
        if transposes_in_message(view, desc, limits):
            return
        remark(op, "transposes its block in registers: it is not known to begin at a multiple of a message's unit")
    if (gathered and view.vnni_axis is not None) or (transposes and (gathered or limits)):
        with op.location, ir.InsertionPoint(op):
            kind = with_shape(view.value.type, plain_shape(view))
            loaded = xegpu.load_nd(view.tdesc, value=kind, mode=view.mode, **hints_of(view))
            replace_op(op, transformed(view, loaded))
        forms.replaced_loads = True


def _with_units_side_by_side(op: ir.Operation) -> ir.Operation:
    """Rewrite a load whose result has a dimension for the elements of a transposed unit as one without it."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    shape = shape_of(view.value)
    if view.transpose_bit_width is None or len(shape) == len(desc.shape) or desc.attr.array_length > 1:
        return op
    with op.location, ir.InsertionPoint(op):
        made = like(op, [with_shape(view.value.type, (*shape[:-2], shape[-2] * shape[-1]))], op.operands)
        replace_op(op, shape_cast(made.results[0], shape))
    return made
