"""The meaning of arith, index and math."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py import numerics
from xegpu_py.ir.builtin import rounding_problem
from xegpu_py.numerics import div, double_functions, expansions, integers, maximum_number, minimum_number
from xegpu_py.numerics.formats import E8M0, Array, bits_of
from xegpu_py.reference.machine import Node, decoded, evaluates
from xegpu_py.reference.storage import ElementType, UnsupportedOp, element_of, from_integers, to_float, to_integers

# `arith`, `index` and `ub`: arithmetic on numbers, and on vectors element by element.
#
# Sources: MLIR's documentation of the dialects, and docs/numerics.md where it is silent: the bits of floats, and
# shifts by more than the width. Divisions by zero are undefined; they give zero here.


@evaluates("arith.constant", "index.constant", "index.bool.constant")
def constant(node: Node) -> Array:
    """A number, or a vector of numbers."""
    return node.memo("value", lambda: _constant(node))


def _constant(node: Node) -> Array:
    element, shape = node.element, node.shape
    raw = node.op.attributes["value"]
    if isinstance(raw, ir.DenseElementsAttr):
        return dense_numbers(raw, element).reshape(shape)
    return np.full(shape, number_of(raw, element), element.dtype)


def dense_numbers(attr: ir.DenseElementsAttr, element: ElementType) -> Array:
    """The numbers of a dense constant, in one dimension."""
    if attr.is_splat:
        return np.full(len(attr), number_of(attr.get_splat_value(), element), element.dtype)
    return np.array([number_of(a, element) for a in decoded(attr)], element.dtype)


def number_of(attribute: ir.Attribute, element: ElementType) -> Any:
    """The number of an attribute."""
    if not element.is_float:
        if isinstance(attribute, ir.BoolAttr):
            return element.wrap(np.asarray(int(attribute.value)))[()]
        return element.wrap(np.asarray(ir.IntegerAttr(attribute).value & (1 << 64) - 1, np.uint64).view(np.int64))[()]
    value = float(ir.FloatAttr(attribute).value)
    if value != value:
        return _nan(str(attribute), element)
    return to_float(np.asarray(value), element_of("f64"), element)[()]


def _nan(text: str, element: ElementType) -> Any:
    """A NaN with the bits of its text."""
    assert element.format
    bits = int(text.split()[0], 16) if text.startswith("0x") else element.format.nan
    return np.asarray(bits, f"u{element.dtype.itemsize}").view(element.dtype)[()]


@evaluates("ub.poison")
def poison(node: Node) -> Array:
    """Any value; zeros here."""
    return np.zeros(node.shape, node.element.dtype)


@evaluates("arith.shli", "arith.shrsi", "arith.shrui", "index.shl", "index.shrs", "index.shru")
def shift(node: Node, a: Array, b: Array) -> Array:
    """Shift left, or right and insert copies of the sign, or zeros, by the lowest 5 or 6 bits of the count."""
    is_unsigned, is_left = node.name in ("arith.shrui", "index.shru"), node.name in ("arith.shli", "index.shl")
    wide = np.dtype(f"{'u' if is_unsigned else 'i'}{8 if node.element.bits > 32 else 4}")
    value = np.asarray(node.element.unsigned(a) if is_unsigned else a).astype(wide)
    count = (np.asarray(b) & (8 * wide.itemsize - 1)).astype(wide)
    return node.element.wrap(value << count if is_left else value >> count)


@evaluates("arith.addui_extended")
def addui_extended(node: Node, a: Array, b: Array) -> tuple[Array, Array]:
    """A sum and its carry."""
    total = node.element.wrap(node.element.signed(a) + node.element.signed(b))
    return total, node.element.unsigned(total) < node.element.unsigned(a)


@evaluates("arith.mulsi_extended", "arith.mului_extended")
def extended(node: Node, a: Array, b: Array) -> tuple[Array, Array]:
    """The lower and the upper half of a product."""
    read = node.element.signed if node.name == "arith.mulsi_extended" else node.element.unsigned
    product = np.asarray(read(a), object) * np.asarray(read(b), object)
    low, high = (np.asarray(product >> n & (1 << 64) - 1).astype(np.uint64) for n in (0, node.element.bits))
    return node.element.wrap(low), node.element.wrap(high)


def wide_floats(values: Array, element: ElementType) -> Array:
    """Floats in a type wide enough that rounding numpy's result to the format equals rounding once."""
    return np.asarray(values).astype(np.float32) if element.bits < 32 else np.asarray(values)


def rounded(values: Array, element: ElementType) -> Array:
    """A result in the type of `wide_floats`, rounded to the format."""
    if element.bits < 32 or element.name == "tf32":
        return to_float(np.asarray(values, np.float32), element_of("f32"), element)
    return element.finish(values)


def _or_nan(choose: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """The function that chooses a number, or NaN if either is; -0 is less than +0."""
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, choose(a, b)).astype(a.dtype)


def _quotient(a: Array, b: Array) -> Array:
    return div(a, b, "df" if a.dtype == np.float64 else "f")


_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "addf": operator.add, "subf": operator.sub, "mulf": operator.mul, "divf": _quotient, "remf": np.fmod,
    "maxnumf": maximum_number, "minnumf": minimum_number,
    "maximumf": _or_nan(maximum_number), "minimumf": _or_nan(minimum_number),
}  # fmt: skip
"""The functions of floats in the type of `wide_floats`, whose results are rounded once, by the names of arith."""


def binary(name: str, element: ElementType, a: Array, b: Array) -> Array:
    """The op of arith of a name on two numbers, or element by element. Of integers the lowest bits are kept."""
    if element.is_float:
        return rounded(_FLOATS[name](wide_floats(a, element), wide_floats(b, element)), element)
    function, read = integers.SIGNED.get(name), element.signed
    if function is None:
        function, read = integers.UNSIGNED[name], element.unsigned
    return element.wrap(np.asarray(function(read(np.asarray(a)), read(np.asarray(b)))))


def _define(name: str, *ops: str) -> None:
    @evaluates(*ops)
    def rule(node: Node, a: Array, b: Array) -> Array:
        return binary(name, node.element, a, b)


for _name in _FLOATS:
    _define(_name, f"arith.{_name}")
for _name in (*integers.SIGNED, *integers.UNSIGNED):
    _define(_name, f"arith.{_name}", f"index.{_name.removesuffix('i')}")


def with_bits(values: Array, change: Callable[[Array, Any], Array]) -> Array:
    """Floats whose bit patterns are changed by a function, which also gets the sign bit."""
    pattern = bits_of(np.asarray(values))
    sign = pattern.dtype.type(1 << 8 * pattern.dtype.itemsize - 1)
    return np.asarray(change(pattern, sign)).view(values.dtype)


@evaluates("arith.negf")
def negf(node: Node, a: Array) -> Array:
    """Invert the sign, also of a NaN."""
    return with_bits(a, lambda bits, sign: bits ^ sign)


INTEGER_CONDITIONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


@evaluates("arith.cmpi", "index.cmp")
def cmpi(node: Node, a: Array, b: Array) -> Array:
    """A comparison of integers, signed or not."""
    name = node.word("pred") if node.name == "index.cmp" else INTEGER_CONDITIONS[node.attribute("predicate")]
    element = node.operand_kind(0).element
    read = element.unsigned if name.startswith("u") else element.signed
    return np.asarray(_COMPARED[name if name in ("eq", "ne") else name[1:]](read(a), read(b)))


FLOAT_CONDITIONS = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


@evaluates("arith.cmpf")
def cmpf(node: Node, a: Array, b: Array) -> Array:
    """A comparison of floats: ordered ones are false with a NaN, unordered ones true."""
    name = FLOAT_CONDITIONS[node.attribute("predicate")]
    x, y = (wide_floats(v, node.operand_kind(0).element) for v in (a, b))
    unordered = np.isnan(x) | np.isnan(y)
    if name in ("false", "true"):
        return np.full(node.shape, name == "true")
    if name in ("ord", "uno"):
        return np.asarray(unordered == (name == "uno"))
    result = _COMPARED[name[1:]](x, y)
    return np.asarray(result | unordered if name[0] == "u" else result & ~unordered)


@evaluates("arith.select")
def select(node: Node, condition: Array, a: Any, b: Any) -> Any:
    """Select one of two values, element by element if the condition is a vector."""
    if not isinstance(a, (np.ndarray, np.generic)) or not np.shape(condition):
        return a if condition else b
    return np.where(condition, a, b)


_ZERO_EXTENDED = ("arith.extui", "arith.index_castui", "index.castu", "arith.uitofp")


def _integer(node: Node, a: Array) -> Array:
    """The number that is converted, signed or not."""
    element = node.operand_kind(0).element
    return element.unsigned(a) if node.name in _ZERO_EXTENDED else element.signed(a)


@evaluates(
    "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui",
    "index.casts", "index.castu",
)  # fmt: skip
def resized(node: Node, a: Array) -> Array:
    """An integer that is extended by its sign or by zeros, or its lowest bits."""
    return node.element.wrap(_integer(node, a))


@evaluates("arith.sitofp", "arith.uitofp")
def from_integer(node: Node, a: Array) -> Array:
    """An integer as a float, rounded once."""
    return from_integers(_integer(node, a), node.element)


@evaluates("arith.fptosi", "arith.fptoui")
def to_integer(node: Node, a: Array) -> Array:
    """A float rounded toward zero to an integer; out of range the nearest limit, and 0 for NaN."""
    return to_integers(a, node.element, signed=node.name == "arith.fptosi")


def _require_nearest(node: Node) -> None:
    problem = node.memo("rounding", lambda: rounding_problem(node.op))
    if problem:
        raise UnsupportedOp(*problem)


@evaluates("arith.extf", "arith.truncf", "arith.convertf")
def convertf(node: Node, a: Array) -> Array:
    """A float in another format, rounded once to nearest even; f32 holds the bits of tf32 as they are."""
    _require_nearest(node)
    if (node.operand_kind(0).element.name, node.element.name) == ("tf32", "f32"):
        return a
    return to_float(a, node.operand_kind(0).element, node.element)


@evaluates("arith.scaling_extf")
def scaling_extf(node: Node, a: Array, scale: Array) -> Array:
    """MLIR: the product of the element and its scale, each as a number of the result's format."""
    wide = to_float(a, node.operand_kind(0).element, node.element)
    return binary("mulf", node.element, wide, _factor(node, scale, node.element))


@evaluates("arith.scaling_truncf")
def scaling_truncf(node: Node, a: Array, scale: Array) -> Array:
    """MLIR: the quotient of the number and its scale, in the format of the number, and then in that of the result."""
    _require_nearest(node)
    wide = node.operand_kind(0).element
    return to_float(binary("divf", wide, a, _factor(node, scale, wide)), wide, node.element)


def _factor(node: Node, scale: Array, element: ElementType) -> Array:
    """A scale, of which only the exponent is used, as a number of a format."""
    exponent = element_of(E8M0.mlir)
    return to_float(to_float(scale, node.operand_kind(1).element, exponent), exponent, element)


@evaluates("arith.bitcast")
def bitcast(node: Node, a: Array) -> Array:
    """The same bits as another type of the same width."""
    source, target = node.operand_kind(0).element, node.element
    bits = np.asarray(a).view(f"u{source.dtype.itemsize}") if source.is_float else source.unsigned(a)
    return bits.view(target.dtype) if target.is_float else target.wrap(bits)


@evaluates("index.sizeof")
def sizeof(node: Node) -> Array:
    """The bits of an index."""
    return np.asarray(64, np.int64)


# `math`: functions of numbers, element by element.
#
# Source: docs/numerics.md. Functions with a vISA instruction are rounded once; the others are the algorithms of
# `numerics.expansions`. bf16 and eight-bit floats are computed in f32 and rounded again; so is f16 for the algorithms.

_SINGLE, _DOUBLE = element_of("f32"), element_of("f64")


def _by_single(function: Callable[..., Array], element: ElementType, *operands: Array) -> Array:
    """A function that is computed in f32, for any narrower format."""
    result = function(*(to_float(v, element, _SINGLE) for v in operands))
    return to_float(np.asarray(result), _SINGLE, element)


_INSTRUCTIONS: dict[str, Callable[[Array, str], Array]] = {
    "math.exp2": numerics.exp,
    "math.log2": numerics.log,
    "math.sin": numerics.sin,
    "math.cos": numerics.cos,
    "math.sqrt": numerics.sqrt,
    "math.rsqrt": numerics.rsqrt,
    "math.floor": numerics.round_down,
    "math.ceil": numerics.round_up,
    "math.roundeven": numerics.round_even,
    "math.trunc": numerics.round_zero,
}


@evaluates(*_INSTRUCTIONS)
def instruction(node: Node, a: Array) -> Array:
    """A function with a vISA instruction, rounded once in f16, f32 and f64."""
    return _instruction(node.name, node.element, a)


def _instruction(name: str, element: ElementType, a: Array) -> Array:
    function = _INSTRUCTIONS[name]
    if element.name == "f64" and name == "math.rsqrt":
        return numerics.div(np.ones_like(a), numerics.sqrt(np.asarray(a), "df"), "df")
    if element.name == "f64" and name in double_functions.DOUBLE_FUNCTIONS:
        return double_functions.evaluate(name, a)
    if element.name in ("f16", "f64"):
        assert element.format
        return function(np.asarray(a), element.format.name)
    return _by_single(lambda x: function(x, "f"), element, a)


@evaluates(*expansions.EXPANSIONS, *expansions.ALGORITHMS)
def formula(node: Node, *operands: Array) -> Array:
    """A function that is a documented formula of other functions, in f64 for f64 and in f32 for others."""
    return _formula(node.name, node.element, *operands)


def _formula(name: str, element: ElementType, *operands: Array) -> Array:
    if element.name == "f64":
        return double_functions.evaluate(name, *operands)
    return _by_single(lambda *values: expansions.evaluate(name, *values), element, *operands)


def is_function(name: str) -> bool:
    """Whether `apply` knows the function of numbers of an op's name."""
    rule_tables = (_INSTRUCTIONS, expansions.EXPANSIONS, expansions.ALGORITHMS, ("math.fma", "math.absf"))
    return any(name in table for table in rule_tables) or name.removeprefix("arith.") in _FLOATS


def apply(name: str, element: ElementType, *operands: Array) -> Array:
    """The function of arith or math of floats of a type, by the name of the op."""
    if name.startswith("arith."):
        return binary(name.removeprefix("arith."), element, *operands)
    if name in _INSTRUCTIONS:
        return _instruction(name, element, *operands)
    if name == "math.fma":
        return multiply_add(element, *operands)
    if name == "math.absf":
        return with_bits(operands[0], lambda bits, sign: bits & ~sign)
    return _formula(name, element, *operands)


@evaluates("math.sincos")
def sincos(node: Node, a: Array) -> tuple[Array, Array]:
    """Sine and cosine, each rounded once."""
    return _instruction("math.sin", node.element, a), _instruction("math.cos", node.element, a)


@evaluates("math.fpowi")
def fpowi(node: Node, a: Array, n: Array) -> Array:
    """powf of the magnitude and the exponent, with the base's sign if the exponent is odd; in f32, or f64 for f64."""
    wide = _DOUBLE if node.element.name == "f64" else _SINGLE

    def power(x: Array) -> Array:
        exponent = node.operand_kind(1).element.signed(n)
        power_of_abs = _formula("math.powf", wide, np.abs(x), exponent.astype(x.dtype))
        odd = (exponent & exponent.dtype.type(1)) != 0
        return np.where(odd, np.copysign(power_of_abs, x), power_of_abs).astype(x.dtype)

    return power(a) if wide is _DOUBLE else _by_single(power, node.element, a)


@evaluates("math.ipowi")
def ipowi(node: Node, a: Array, n: Array) -> Array:
    """The lowest bits of the power; a negative exponent gives the reciprocal, rounded toward zero."""

    def power(base: int, exponent: int) -> int:
        if exponent >= 0 or base in (1, -1):
            return pow(base, abs(exponent), 1 << 64)
        return 0

    values = (np.asarray(node.element.signed(v)).astype(object) for v in (a, n))
    powers = np.frompyfunc(power, 2, 1)(*values)
    return node.element.wrap(np.asarray(np.asarray(powers, object).astype(np.uint64)))


@evaluates("math.clampf")
def clampf(node: Node, a: Array, least: Array, upper: Array) -> Array:
    """The lesser of the upper bound and the greater of the number and the lower bound; NaN if an operand is."""
    return binary("minimumf", node.element, binary("maximumf", node.element, a, least), upper)


@evaluates("math.isnormal")
def isnormal(node: Node, a: Array) -> Array:
    """Whether numbers are neither zero, subnormal, infinite nor NaN."""
    element = node.operand_kind(0).element
    assert element.format
    size = np.abs(wide_floats(a, element))
    return np.asarray((size >= 2.0 ** (2 - (1 << element.format.exponent - 1))) & (size < np.inf))


@evaluates("math.round")
def round_(node: Node, a: Array) -> Array:
    """The nearest integral number; ties are rounded away from zero."""
    if node.element.name != "f64":
        return _by_single(lambda x: expansions.evaluate("math.round", x), node.element, a)
    x = np.asarray(a)
    truncated = np.trunc(x)
    with np.errstate(invalid="ignore"):
        up = np.abs(x - truncated) >= 0.5
    return np.asarray(node.element.finish(np.where(up, truncated + np.copysign(1.0, x), truncated)))


@evaluates("math.fma", "vector.fma")
def fma(node: Node, a: Array, b: Array, c: Array) -> Array:
    """A product and a sum, rounded once."""
    return multiply_add(node.element, a, b, c)


def multiply_add(element: ElementType, a: Array, b: Array, c: Array) -> Array:
    """Products and sums of floats, each rounded once."""
    assert element.format
    if element.format.name in ("hf", "bf", "f", "df"):
        return numerics.fma(np.asarray(a), np.asarray(b), np.asarray(c), element.format.name)
    # Products and sums of eight-bit floats are exact in f64.
    wide = element_of("f64")
    x, y, z = (to_float(v, element, wide) for v in (a, b, c))
    return to_float(np.asarray(numerics.fma(x, y, z, "df")), wide, element)


@evaluates("math.absf")
def absf(node: Node, a: Array) -> Array:
    """The sign cleared, that of a NaN too."""
    return with_bits(a, lambda bits, sign: bits & ~sign)


_CLASSES: dict[str, Callable[[Array], Array]] = {
    "math.isnan": np.isnan,
    "math.isinf": np.isinf,
    "math.isfinite": np.isfinite,
}


@evaluates(*_CLASSES)
def classify(node: Node, a: Array) -> Array:
    """Whether numbers are NaN, infinite or neither."""
    return np.asarray(_CLASSES[node.name](wide_floats(a, node.operand_kind(0).element)))


@evaluates("math.copysign")
def copysign(node: Node, a: Array, b: Array) -> Array:
    """The first number with the sign of the second."""
    signs = np.signbit(np.asarray(b).astype(np.float64))
    return with_bits(a, lambda bits, sign: bits & ~sign | np.where(signs, sign, sign.dtype.type(0)))


@evaluates("math.absi")
def absi(node: Node, a: Array) -> Array:
    """The magnitude; the least integer is unchanged."""
    return node.element.wrap(np.abs(node.element.signed(a)))


@evaluates("math.ctpop", "math.ctlz", "math.cttz")
def bit_count(node: Node, a: Array) -> Array:
    """The number of set bits, of leading zeros, or of trailing zeros."""
    width, values = node.element.bits, np.asarray(node.element.unsigned(a)).astype(object)
    count: dict[str, Callable[[int], int]] = {
        "math.ctpop": int.bit_count,
        "math.ctlz": lambda n: width - n.bit_length(),
        "math.cttz": lambda n: width if n == 0 else (n & -n).bit_length() - 1,
    }
    return node.element.wrap(np.asarray(np.frompyfunc(count[node.name], 1, 1)(values), np.int64))
