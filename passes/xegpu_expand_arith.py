"""`xegpu-expand-arith`: ops without an instruction for any size of their operands become ops that have one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from mlir import ir

from xegpu_py.deferred import deferred
from xegpu_py.ir.builtin import FORMULA, element_type
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.numerics.expansions import EXPANSIONS, Number
from xegpu_py.numerics.formats import BYTE_FLOATS, E8M0, FLOATS, F, Format
from xegpu_py.numerics.narrow_floats import round_to
from xegpu_py.passes.analysis.ir_queries import (
    FLOAT_ARITHMETIC,
    FLOAT_FUNCTIONS,
    bits_of,
    check_elements,
    constant_of,
    element_of,
    integers,
    is_desc,
    shape_of,
    splat_of,
    subgroup_functions,
)
from xegpu_py.passes.analysis.target_rules import require_registers
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import zero
from xegpu_py.passes.rewriting.rewriter import Rewriter, Rule, Rules
from xegpu_py.target import Target

if TYPE_CHECKING:
    from mlir.dialects import scf

    from xegpu_py.numerics import double_functions, special_functions
else:
    scf = deferred("mlir.dialects.scf")
    double_functions = deferred("xegpu_py.numerics.double_functions")
    special_functions = deferred("xegpu_py.numerics.special_functions")

# Exact expansions of arithmetic that no instruction does: in wider formats, or in several steps.

_WIDE = {"bf16": "f32", "tf32": "f32", **dict.fromkeys(BYTE_FLOATS, "f16")}
"""Formats without arithmetic, and the wider format in which it is computed."""

_STEPS = {name: ("f64", "f32", *(["f16"] if wide == "f16" else []), name) for name, wide in _WIDE.items()}
"""The chains of hardware conversions from a wide to a narrow format."""


def _format(value: ir.Value) -> str:
    return str(element_of(value))


def _in(kind: ir.Type, element: str) -> ir.Type:
    return build.with_element(kind, element_type(element))


def converted(value: ir.Value, element: str) -> ir.Value:
    """A float in another format."""
    value_format = _format(value)
    if value_format == element:
        return value
    kind = _in(value.type, element)
    # A tf32 number takes as many bits as an f32 number, and is one.
    if bits_of(element_of(value)) < bits_of(element_of(kind)) or (value_format, element) == ("tf32", "f32"):
        return build.make("arith.extf", kind, value)
    if value_format in _STEPS.get(element, ()):
        return narrow(value, element)
    return build.make("arith.truncf", kind, value)


# Rewrites of single ops into other ops, before values are split.

rule: Rules[Rule[Expansion]] = Rules()
"""The rules by op name."""


@rule(*FLOAT_ARITHMETIC)
def exact(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Ops for which rounding to f32 (or f16) and then to bf16 (or 8 bits) equals rounding once.

    This holds because the wider format has at least 2p + 2 bits of precision, where p is that of the narrow format.
    """
    element = _format(op.operands[0])
    return _by_wider(low, op, _WIDE[element]) if element in _WIDE else None


@rule("math.sqrt", "vector.reduction", "vector.multi_reduction")
def by_single(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Compute reductions and square roots of narrow formats in f32."""
    return _by_wider(low, op, "f32") if _format(op.operands[0]) in _WIDE else None


@rule(*FLOAT_FUNCTIONS)
def by_single_or_formula(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Compute functions of narrow formats in f32, and those of f64 by their formulas."""
    if _format(op.operands[0]) == "f64":
        return _by_formula_of_double(double_functions.DOUBLE_FUNCTIONS[op.name], *op.operands)
    return by_single(low, op)


@rule("arith.fptosi", "arith.fptoui")
def to_integer(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Convert floats of 8 bits to integers by way of f16."""
    return _by_wider(low, op, "f16") if bits_of(element_of(op.operands[0])) == 8 else None


def _by_wider(low: Expansion, op: ir.Operation, wide: str) -> ir.Value:
    """Apply the op to a wider format, and convert its result back if it has the narrow format."""
    kind, narrow = op.results[0].type, _format(op.operands[0])
    is_narrow = str(element_of(kind)) == narrow
    widened = build.create_like(op, [_in(kind, wide) if is_narrow else kind], [converted(v, wide) for v in op.operands])
    return converted(widened.results[0], narrow) if is_narrow else widened.results[0]


@rule("math.isnan", "math.isinf", "math.isfinite")
def classify(low: Expansion, op: ir.Operation) -> None:
    """Compare with the number itself, and its magnitude with infinity, which reads as NaN in formats without it."""
    value = op.operands[0]
    tests = []
    if op.name != "math.isinf":
        tests.append(build.compare("uno" if op.name == "math.isnan" else "ord", value, value))
    if op.name != "math.isnan":
        infinity = build.constant(value.type, float("inf"))
        size = build.make("math.absf", value.type, value)
        tests.append(build.compare("oeq" if op.name == "math.isinf" else "une", size, infinity))
    low.replace(op, tests[0] if len(tests) == 1 else build.binary("andi", *tests), new_ops=tests)


@rule("math.isnormal")
def is_normal(low: Expansion, op: ir.Operation) -> None:
    """Compare the magnitude with the least normal number, and with infinity, NaN in formats without it."""
    value = op.operands[0]
    size, fmt = build.make("math.absf", value.type, value), FLOATS[_format(value)]
    least = build.compare("oge", size, build.constant(value.type, 2.0 ** (2 - (1 << fmt.exponent - 1))))
    finite = build.compare("une", size, build.constant(value.type, float("inf")))
    low.replace(op, build.binary("andi", least, finite), new_ops=[least, finite])


@rule("math.clampf")
def clamp(low: Expansion, op: ir.Operation) -> None:
    """The lesser of the upper bound and the greater of the number and the lower bound; NaN if an operand is."""
    value, least, most = op.operands
    above = build.binary("maximumf", value, least)
    clamped = build.binary("minimumf", above, most)
    low.replace(op, clamped, new_ops=[above, clamped])


@rule("math.sincos")
def sincos(low: Expansion, op: ir.Operation) -> None:
    """Both functions."""
    both = [build.make(name, op.operands[0].type, op.operands[0]) for name in ("math.sin", "math.cos")]
    low.replace(op, *both, new_ops=both)


@rule("vector.extract", "vector.insert")
def at_variable_position(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Choose among all parts of the vector, if the position is known only at run time."""
    static = integers(op.attributes["static_position"])
    if DYNAMIC not in static:
        return None
    is_insertion = op.name == "vector.insert"
    whole, *positions = list(op.operands)[is_insertion:]
    dynamic_positions = iter(positions)
    tests = []
    for extent, at in zip(shape_of(whole), static):
        if at == DYNAMIC:
            operand = next(dynamic_positions)
            tests.append([(n, [build.compare("eq", operand, n)]) for n in range(extent)])
        else:
            tests.append([(at, [])])
    result: ir.Value | None = None
    for position in itertools.product(*tests):
        index = [n for n, _ in position]
        here = reduce(partial(build.binary, "andi"), itertools.chain(*(test for _, test in position)))
        part = build.extract(whole, index)
        if is_insertion:
            whole = build.insert(build.select(here, op.operands[0], part), whole, index)
        else:
            result = part if result is None else build.select(here, part, result)
    return whole if is_insertion else result


@rule(*EXPANSIONS)
def formula(low: Expansion, op: ir.Operation) -> ir.Value:
    """Apply the formula of a function in f64 for f64, and in f32 for others."""
    if _format(op.results[0]) == "f64":
        return _by_formula_of_double(double_functions.DOUBLE_FUNCTIONS[op.name], *op.operands)
    return _in_single(low, op, partial(_by_formula, op.name))


def _by_formula(name: str, *operands: ir.Value) -> ir.Value:
    single = operands[0].type

    def apply(name: str, *given: Any) -> ir.Value:
        values = [build.constant(single, v) if isinstance(v, float) else v for v in given]
        if name in build.FLOAT_PREDICATES:
            return build.compare(name, *values)
        return build.make(name, single, *values)

    return EXPANSIONS[name](*(Number(v, apply) for v in operands)).value


@rule("func.call")
def special_function(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Apply the formula of which a call has the name, to operands of f64."""
    prefix, _, name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value.partition(f"{FORMULA}.")
    if prefix or not name:
        return None
    formula = special_functions.formula_of(name, [_format(v) for v in op.operands])
    if formula is None or len({v.type for v in (*op.operands, *op.results)}) > 1:
        names = ", ".join(special_functions.SPECIAL_FUNCTIONS)
        low.fail(
            f"calls '{FORMULA}.{name}', which is no function of f64 with these operands", f"such functions are {names}"
        )
    return _by_formula_of_double(formula, *op.operands)


_PART = 16
"""The elements of which a long expansion is written at once, or a multiple for vectors of more than `_MOST_PARTS`
parts: instructions of most targets have so many of 64 bits."""

_LEAST_PARTS, _MOST_PARTS = 4, 16
"""A vector of fewer parts has no loop. Each iteration moves all parts."""


def _parts(value: ir.Value) -> tuple[int, int]:
    """The number and size of the parts of a long vector; (0, 0) for other values."""
    elements = math.prod(shape_of(value))
    size = _PART * max(1, elements // (_PART * _MOST_PARTS))
    return (0, 0) if elements % size or elements < _LEAST_PARTS * size else (elements // size, size)


def _in_parts(function: Callable[..., ir.Value], *operands: ir.Value) -> ir.Value:
    """Apply a function whose expansion is long to vectors of one shape, to long ones in a loop over their parts.

    Each iteration replaces the first part of the first operand, and then rotates the parts.
    """
    shape, (count, size) = shape_of(operands[0]), _parts(operands[0])
    if not count:
        return function(*operands)
    # A constant is the same in all parts, and the first operand receives the results.
    splats = [None, *map(splat_of, operands[1:])]
    stacks = [build.shape_cast(v, (count, size)) for v, splat in zip(operands, splats) if splat is None]
    loop = scf.ForOp(
        *map(build.index, (0, count, 1)), [build.extract(stack, [i]) for stack in stacks for i in range(count)]
    )
    with ir.InsertionPoint(loop.body):
        carried = list(loop.inner_iter_args)
        firsts, kind = iter(carried[::count]), carried[0].type
        result = function(*(next(firsts) if splat is None else build.constant(kind, splat) for splat in splats))
        rotated = [carried[start + (i + 1) % count] for start in range(0, len(carried), count) for i in range(count)]
        rotated[count - 1] = result
        scf.yield_(rotated)
    whole = stacks[0]
    for i, part in enumerate(list(loop.results)[:count]):
        whole = build.insert(part, whole, [i])
    return build.shape_cast(whole, shape)


@rule("arith.remf")
def remainder(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Remainders of narrow formats in a wider one; of long vectors in a loop, since each is a long division."""
    narrow, operands = _format(op.operands[0]), list(op.operands)
    if narrow in _WIDE:
        return converted(_like(op, *(converted(v, _WIDE[narrow]) for v in operands)), narrow)
    return _like(op, *operands) if _parts(operands[0])[0] else None


@rule(*(f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")))
def quotient(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Divide long vectors of i64 in a loop. A divisor that all share may be a power of two, by which shifts divide."""
    is_long = _parts(op.results[0])[0] and str(element_of(op.results[0])) == "i64" and splat_of(op.operands[1]) is None
    return _like(op, *op.operands) if is_long else None


def _like(op: ir.Operation, *operands: ir.Value) -> ir.Value:
    """An op of this name and these operands, of long vectors in a loop."""

    def apply(*parts: ir.Value) -> ir.Value:
        return build.create_like(op, [parts[0].type], parts).results[0]

    return _in_parts(apply, *operands)


def _by_formula_of_double(function: Callable[..., Number], *operands: ir.Value) -> ir.Value:
    return _in_parts(partial(_formula_of_double, function), *operands)


def _formula_of_double(function: Callable[..., Number], *operands: ir.Value) -> ir.Value:
    double = operands[0].type
    pattern = build.with_element(double, build.integer_type(64))

    def apply(name: str, *given: Any) -> ir.Value:
        kinds = {float: double, int: pattern}
        values = [build.constant(kinds[type(v)], v) if type(v) in kinds else v for v in given]
        if name in DOUBLES:
            return DOUBLES[name](*values)
        if name == "not":
            return build.binary("xori", values[0], build.constant(values[0].type, 1))
        if name == "signbit":
            return build.compare("slt", build.make("arith.bitcast", pattern, values[0]), 0)
        if name in build.FLOAT_PREDICATES or name == "ne":
            return build.compare(name, *values)
        if name in ("bits", "number"):
            return build.make("arith.bitcast", pattern if name == "bits" else double, values[0])
        return build.make(name, values[1 if name == "arith.select" else 0].type, *values)

    value: ir.Value = double_functions.apply_formula(function, apply, *operands)
    return value


def _in_single(low: Expansion, op: ir.Operation, function: Callable[..., ir.Value]) -> ir.Value:
    """Replace an op by a function of its floating-point operands in f32."""
    element = _format(op.results[0])
    operands = [converted(v, "f32") if _format(v) == element else v for v in op.operands]
    return converted(function(*operands), element)


@rule("math.fpowi")
def float_to_integer_power(low: Expansion, op: ir.Operation) -> ir.Value:
    """powf of the magnitude and the exponent, with the base's sign if the exponent is odd; in f32, or f64 for f64."""
    is_double = _format(op.results[0]) == "f64"

    def power(base: ir.Value, exponent: ir.Value) -> ir.Value:
        kind = base.type
        real = build.make("arith.sitofp", kind, exponent)
        size = build.make("math.absf", kind, base)
        magnitude = (
            _by_formula_of_double(double_functions.powf, size, real)
            if is_double
            else build.make("math.powf", kind, size, real)
        )
        odd = build.compare("ne", build.binary("andi", exponent, 1), zero(exponent.type))
        return build.select(odd, build.make("math.copysign", kind, magnitude, base), magnitude)

    return power(*op.operands) if is_double else _in_single(low, op, power)


@rule("math.ipowi")
def integer_power(low: Expansion, op: ir.Operation) -> ir.Value:
    """Squares and products; of a negative exponent the reciprocal, rounded toward zero."""
    base, exponent = op.operands
    kind, bits = base.type, bits_of(element_of(base))
    splat = splat_of(exponent)
    number = splat.value if isinstance(splat, ir.IntegerAttr) else constant_of(exponent)
    one, none = build.constant(kind, 1), zero(kind)
    if number is not None and number >= 0:
        product, square = one, base
        for bit in range(number.bit_length()):
            square = build.binary("muli", square, square) if bit else base
            product = build.binary("muli", product, square) if number >> bit & 1 else product
    else:
        first, last, step = map(build.index, (0, max(bits - 1, 1), 1))
        loop = scf.ForOp(first, last, step, [one, base, exponent])
        with ir.InsertionPoint(loop.body):
            product, square, rest = loop.inner_iter_args
            is_odd = build.compare("ne", build.binary("andi", rest, 1), none)
            product = build.select(is_odd, build.binary("muli", product, square), product)
            scf.yield_([product, build.binary("muli", square, square), build.binary("shrui", rest, 1)])
        # The powers of 1 and -1 are their own reciprocals; others are less than 1.
        is_integral = build.compare("sge", exponent, none)
        for unit in (1, -1):
            is_integral = build.binary("ori", is_integral, build.compare("eq", base, build.constant(kind, unit)))
        product = build.select(is_integral, loop.results[0], none)
    return product


@rule("arith.truncf")
def narrow_once(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Narrowing that the hardware does in two steps, with the result of one rounding; and conversions to scales."""
    build.require_nearest(op)
    element = _format(op.results[0])
    if element == E8M0.mlir:
        return _exponent(op.operands[0], op.results[0].type)
    value = op.operands[0]
    if _format(value) in ("bf16", "tf32"):
        value = converted(value, "f32")
    return narrow(value, element) if _format(value) in _STEPS.get(element, ())[:-2] else None


def _exponent(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The exponent bits of f32 numbers, without sign and mantissa; f8E8M0FNU has the same bias."""
    f32 = _in(value.type, "f32")
    single = _to_odd(value, "f32", None) if _format(value) == "f64" else converted(value, "f32")
    bits = build.make("arith.bitcast", build.with_element(f32, build.integer_type(32)), single)
    shifted = build.binary("shrui", bits, FLOATS["f32"].mantissa)
    return build.make(
        "arith.bitcast", kind, build.make("arith.trunci", build.with_element(f32, build.integer_type(8)), shifted)
    )


@rule("arith.extf")
def from_scale(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Convert scales to numbers by placing them in the exponent bits of f32 or bf16; 2^-127 is subnormal there."""
    value, kind = op.operands[0], op.results[0].type
    if _format(value) != E8M0.mlir:
        return None
    fmt = FLOATS["bf16" if _format(op.results[0]) == "bf16" else "f32"]
    number = _in(kind, fmt.mlir)
    bits = build.with_element(kind, build.integer_type(fmt.bits))
    code = build.make(
        "arith.extui", bits, build.make("arith.bitcast", build.with_element(kind, build.integer_type(8)), value)
    )
    placed = build.binary("shli", code, fmt.mantissa)
    least = build.binary("maxsi", placed, 1 << fmt.mantissa - 1)
    scaled = build.select(
        build.compare("eq", code, build.constant(bits, E8M0.nan)), build.constant(bits, fmt.nan), least
    )
    return converted(build.make("arith.bitcast", number, scaled), _format(op.results[0]))


@rule(*build.SCALING)
def scaling(low: Expansion, op: ir.Operation) -> None:
    """Multiplication and division by a scale."""
    expanded = build.expand_scaling(op)
    low.replace(op, expanded[-1], new_ops=expanded)


@rule("vector.fma", "math.fma")
def fma(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """`a * b + c` rounded once, by way of f64: the product is exact, and the sum's rounding error is corrected for."""
    element = _format(op.results[0])
    if element not in _WIDE:
        return None
    a, b, c = (converted(v, "f64") for v in op.operands)

    product = build.binary("mulf", a, b)
    total = build.binary("addf", product, c)
    # The exact rounding error of the sum.
    part = build.binary("subf", total, product)
    lost_c = build.binary("subf", c, part)
    lost_product = build.binary("subf", product, build.binary("subf", total, part))
    return narrow(total, element, build.binary("addf", lost_c, lost_product))


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
def from_integer(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Convert integers to bf16, tf32 and floats of 8 bits with one rounding."""
    value, element = op.operands[0], _format(op.results[0])
    if bits_of(element_of(op.results[0])) == 8:
        clamped = _saturated(op, value)
    elif element in ("bf16", "tf32") and _format(value) in ("i32", "i64"):
        clamped = _rounded_to_odd(op, value, FLOATS[element])
    else:
        return None
    single = build.create_like(op, [_in(op.results[0].type, "f32")], [clamped]).results[0]
    return converted(single, element)


def _rounded_to_odd(op: ir.Operation, value: ir.Value, fmt: Format) -> ir.Value:
    """Integers for conversion to a format by way of f32, which holds the results; bits that it would lose become a
    sticky bit.
    """
    kind, most, source = value.type, 24, value
    bits = bits_of(element_of(kind))
    while most < bits:
        # At least 3 bits more than the mantissa remain, and at most 24.
        following = min(most + 22 - fmt.mantissa, bits)
        dropped = following - 24
        lost = build.compare("ne", build.binary("andi", source, (1 << dropped) - 1), build.constant(kind, 0))
        one, none = build.constant(kind, 1 << dropped), build.constant(kind, 0)
        sticky = build.binary("ori", build.binary("andi", source, -(1 << dropped)), build.select(lost, one, none))
        limit = build.constant(kind, 1 << most)
        if op.name == "arith.sitofp":
            below = build.compare("sle", source, build.constant(kind, -(1 << most)))
            large = build.binary("ori", build.compare("sge", source, limit), below)
        else:
            large = build.compare("uge", source, limit)
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
def saturating(low: Expansion, op: ir.Operation) -> ir.Value:
    """Saturating conversion to 8 and 4 bits: f16 to f8E5M2 by clamping and fcvt, others by integer arithmetic."""
    value, kind = op.operands[0], op.results[0].type
    fmt = FLOATS[_format(op.results[0])]
    most = fmt.finite
    if (_format(value), fmt.mlir) == ("f16", "f8E5M2") and "fcvt" not in low.target.absent:
        clamped = build.binary("minimumf", value, build.constant(value.type, most))
        clamped = build.binary("maximumf", clamped, build.constant(value.type, -most))
        return build.make("arith.truncf", kind, clamped)
    codes = _codes(converted(value, "f32"), fmt)
    if fmt.bits == 8:
        return build.make("arith.bitcast", kind, codes)
    *outer, columns = shape_of(codes)
    half = build.with_shape(codes.type, (*outer, columns // 2))
    even, odd = build.create("vector.deinterleave", [half, half], [codes]).results
    pairs = build.binary("ori", even, build.binary("shli", odd, 4))
    return build.make("vector.bitcast", kind, pairs)


def _codes(value: ir.Value, fmt: Format) -> ir.Value:
    """The bit patterns, in i8, of f32 numbers rounded to nearest even in a narrow format, and saturated."""
    kind = build.with_element(value.type, build.integer_type(32))
    names = ("andi", "ori", "shrui", "addi", "subi", "minui")
    ops: dict[str, Callable[..., ir.Value]] = {
        **{f"arith.{name}": partial(build.binary, name) for name in names},
        "arith.addf": lambda a, b: build.binary("addf", a, build.constant(a.type, b)),
        "arith.select": lambda truth, a, b: build.select(
            truth, a, build.constant(kind, b) if isinstance(b, int) else b
        ),
        "number": partial(build.make, "arith.bitcast", value.type),
        "bits": partial(build.make, "arith.bitcast", kind),
        "ord": lambda _: build.compare("ord", value, value),
        "ult": partial(build.compare, "ult"),
    }
    codes = round_to(build.make("arith.bitcast", kind, value), F, fmt, ops, saturate=True)
    return build.make("arith.trunci", build.with_element(kind, build.integer_type(8)), codes)


# Functions of f64 by f64 and integer arithmetic; vISA has only division and square root for f64.

_MANTISSA = (1 << 52) - 1

_SIGN = -(1 << 63)


def _with_sign(magnitude: ir.Value, x: ir.Value) -> ir.Value:
    return build.make("math.copysign", x.type, magnitude, x)


def _or_nan(x: ir.Value, result: ir.Value) -> ir.Value:
    """The result for a number; for a NaN the canonical NaN, which an addition gives."""
    nan = build.binary("addf", x, x)
    return build.select(build.compare("ord", x, x), result, nan)


def _truncated(x: ir.Value) -> ir.Value:
    """Clear the mantissa bits of weight less than 1: all bits of numbers below 1, none of numbers from 2^52 on."""
    kind = build.with_element(x.type, build.integer_type(64))

    bits = build.make("arith.bitcast", kind, x)
    exponent = build.binary("subi", build.binary("andi", build.binary("shrui", bits, 52), 0x7FF), 1023)
    shift = build.binary("minsi", build.binary("maxsi", exponent, 0), 63)
    kept_bits = build.binary("xori", build.binary("shrui", build.constant(kind, _MANTISSA), shift), -1)
    kept_bits = build.select(build.compare("slt", exponent, zero(kind)), build.constant(kind, _SIGN), kept_bits)
    return build.make("arith.bitcast", x.type, build.binary("andi", bits, kept_bits))


def _floor(x: ir.Value) -> ir.Value:
    whole = _truncated(x)
    less = build.binary("subf", whole, build.constant(x.type, 1.0))
    return _or_nan(x, build.select(build.compare("olt", x, whole), less, whole))


def _ceil(x: ir.Value) -> ir.Value:
    whole = _truncated(x)
    more = _with_sign(build.binary("addf", whole, build.constant(x.type, 1.0)), x)
    return _or_nan(x, build.select(build.compare("olt", whole, x), more, whole))


def _round(x: ir.Value) -> ir.Value:
    """Round toward zero, and add one to the magnitude where the fraction is at least a half."""
    whole = _truncated(x)
    rest = build.make("math.absf", x.type, build.binary("subf", x, whole))
    more = build.binary("addf", whole, _with_sign(build.constant(x.type, 1.0), x))
    return _or_nan(x, build.select(build.compare("oge", rest, build.constant(x.type, 0.5)), more, whole))


def _round_even(x: ir.Value) -> ir.Value:
    """Add 2^52, which rounds to nearest even since the sum has no bits below 1, and subtract it."""
    size, large = build.make("math.absf", x.type, x), build.constant(x.type, 2.0**52)
    whole = build.binary("subf", build.binary("addf", size, large), large)
    return _or_nan(x, build.select(build.compare("olt", size, large), _with_sign(whole, x), x))


DOUBLES: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.trunc": lambda x: _or_nan(x, _truncated(x)),
    "math.floor": _floor,
    "math.ceil": _ceil,
    "math.round": _round,
    "math.roundeven": _round_even,
    "math.rsqrt": lambda x: build.binary("divf", build.constant(x.type, 1.0), build.make("math.sqrt", x.type, x)),
}
"""The expansion of each function."""


@rule(*DOUBLES)
def integral(low: Expansion, op: ir.Operation) -> ir.Value | None:
    """Expand a function of f64. Narrow formats use the functions of f32."""
    if isinstance(element_of(op.operands[0]), ir.F64Type):
        return DOUBLES[op.name](op.operands[0])
    return by_single(low, op)


@register_pass("xegpu-expand-arith")
class XeGPUExpandArith(Pass):
    """Expand arithmetic that has no instruction.

    Arithmetic on bf16, tf32 and floats of 8 bits is computed in f32 and f16, with the bits of one rounding. Functions
    such as erf and powf become formulas of others (`numerics/expansions.py`), and functions of f64 integer arithmetic,
    which a loop computes for one part of a long vector after the other. `gpu.all_reduce` combines subgroups through
    shared local memory, a select of descriptors becomes a branch, and parts of vectors at variable positions are chosen
    among all. With `marked` only kernels that have a loop with the attribute `xetile.load_ahead` are changed.

        %c = arith.addf %a, %b : vector<32xbf16>

    becomes

        %wide_a = arith.extf %a : vector<32xbf16> to vector<32xf32>
        %wide_b = arith.extf %b : vector<32xbf16> to vector<32xf32>
        %sum = arith.addf %wide_a, %wide_b : vector<32xf32>
        %c = arith.truncf %sum : vector<32xf32> to vector<32xbf16>

    It is the first pass of xegpu-legalize, and refuses elements without addresses and vectors that are far larger than
    the registers, which no later pass can divide. Kernels with XeTile ops are not changed.
    """

    target: str = ""
    kernel: str = ""
    marked: bool = False

    def run(self, op: ir.Operation) -> None:
        for func, ops, gpu in subgroup_functions(op, self.target, self.kernel, self.marked):
            check_elements(ops)
            require_registers(ops, gpu)
            if _for_subgroups(ops):
                ops = walk(func)
            expansion = Expansion(gpu)
            for inner in ops:
                expansion.op(inner)


def _for_subgroups(ops: Sequence[ir.Operation]) -> bool:
    """Rewrite selects of descriptors as `scf.if`, which can carry the several values of a split descriptor, and
    `gpu.all_reduce` with shared local memory; in VC mode a work item is a subgroup.

    Returns whether there were any.

    Raises:
        DiagnosticError: at a `gpu.all_reduce` whose region is not one op of arith.
    """
    subgroup_ops = [
        op for op in ops if op.name == "gpu.all_reduce" or (op.name == "arith.select" and is_desc(op.results[0]))
    ]
    for op in subgroup_ops:
        with op.location, ir.InsertionPoint(op):
            if op.name == "arith.select":
                condition, *values = op.operands
                build.replace_op(
                    op, *build.if_(condition, [op.results[0].type], *(partial(list, [value]) for value in values))
                )
            else:
                kind = build.combining_kind(op)
                number, count = (
                    build.make(name, build.index_type()) for name in ("gpu.subgroup_id", "gpu.num_subgroups")
                )
                build.replace_op(op, build.combine_subgroups(op.operands[0], kind, number, count))
    return bool(subgroup_ops)


class Expansion(Rewriter):
    """Applies the rules to ops. A rule either leaves an op or calls `replace`."""

    rules = rule

    def __init__(self, target: Target) -> None:
        self.target = target

    def replace(self, op: ir.Operation, *values: ir.Value, new_ops: Sequence[ir.Value] = ()) -> None:
        """Replace an op's results by values, and then apply the rules of ops whose results are `made`."""
        build.replace_op(op, *values)
        for value in new_ops:
            self.op(value.owner)
