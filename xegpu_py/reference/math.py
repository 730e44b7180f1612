"""`math`: functions of numbers, element by element.

Source: docs/numerics.md. Functions with a vISA instruction are rounded once; the others are the algorithms of
`numerics.expansions`. bf16 and eight-bit floats are computed in f32 and rounded again; so is f16 for the algorithms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xegpu_py import numerics
from xegpu_py.numerics import expansions
from xegpu_py.numerics.formats import Array
from xegpu_py.reference.arith import maximumf, minimumf, rounded, wide_floats, with_bits
from xegpu_py.reference.elements import Element, element_of, to_float
from xegpu_py.reference.memory import Unknown
from xegpu_py.reference.program import Node, evaluates

_SINGLE = element_of("f32")


def _by_single(function: Callable[..., Array], element: Element, *operands: Array) -> Array:
    """A function that is computed in f32, for any format."""
    if element.bits > 32:
        raise Unknown(f"result of type {element.name} has no specified rounding", "compute in f32")
    found = function(*(to_float(v, element, _SINGLE) for v in operands))
    return to_float(np.asarray(found), _SINGLE, element)


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
_ALSO_F64 = ("math.sqrt", "math.floor", "math.ceil", "math.roundeven", "math.trunc")


@evaluates(*_INSTRUCTIONS)
def instruction(node: Node, a: Array) -> Array:
    """A function with a vISA instruction, rounded once in f16, f32 and f64."""
    return _instruction(node.name, node.element, a)


def _instruction(name: str, element: Element, a: Array) -> Array:
    function = _INSTRUCTIONS[name]
    if element.name == "f64" and name == "math.rsqrt":
        return numerics.div(np.ones_like(a), numerics.sqrt(np.asarray(a), "df"), "df")
    if element.name in ("f16", "f64"):
        if element.name == "f64" and name not in _ALSO_F64:
            raise Unknown("result of type f64 has no specified rounding", "compute in f32")
        assert element.format
        return function(np.asarray(a), element.format.name)
    return _by_single(lambda x: function(x, "f"), element, a)


@evaluates(*expansions.EXPANSIONS, *expansions.ALGORITHMS)
def formula(node: Node, *operands: Array) -> Array:
    """A function that is a documented formula of other functions, in f32."""
    return _by_single(lambda *values: expansions.evaluate(node.name, *values), node.element, *operands)


@evaluates("math.sincos")
def sincos(node: Node, a: Array) -> tuple[Array, Array]:
    """Sine and cosine, each rounded once."""
    return _instruction("math.sin", node.element, a), _instruction("math.cos", node.element, a)


@evaluates("math.fpowi")
def fpowi(node: Node, a: Array, n: Array) -> Array:
    """powf of the magnitude and the exponent, both in f32, with the base's sign if the exponent is odd."""

    def power(x: Array) -> Array:
        exponent = node.operand_kind(1).element.signed(n)
        found = expansions.evaluate("math.powf", np.abs(x), exponent.astype(np.float32))
        odd = (exponent & exponent.dtype.type(1)) != 0
        return np.where(odd, np.copysign(found, x), found).astype(np.float32)

    return _by_single(power, node.element, a)


@evaluates("math.ipowi")
def ipowi(node: Node, a: Array, n: Array) -> Array:
    """The lowest bits of the power; a negative exponent gives the reciprocal, rounded toward zero."""

    def power(base: int, exponent: int) -> int:
        if exponent >= 0 or base in (1, -1):
            return pow(base, abs(exponent), 1 << 64)
        return 0

    values = (np.asarray(node.element.signed(v)).astype(object) for v in (a, n))
    found = np.frompyfunc(power, 2, 1)(*values)
    return node.element.wrap(np.asarray(np.asarray(found, object).astype(np.uint64)))


@evaluates("math.clampf")
def clampf(node: Node, a: Array, least: Array, most: Array) -> Array:
    """The lesser of the upper bound and the greater of the number and the lower bound; NaN if an operand is."""
    value, low, high = (wide_floats(v, node.element) for v in (a, least, most))
    return rounded(minimumf(maximumf(value, low), high), node.element)


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
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):
        up = np.abs(x - whole) >= 0.5
    return np.asarray(node.element.finish(np.where(up, whole + np.copysign(1.0, x), whole)))


@evaluates("math.fma", "vector.fma")
def fma(node: Node, a: Array, b: Array, c: Array) -> Array:
    """A product and a sum, rounded once."""
    element = node.element
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


@evaluates("math.ctpop")
def ctpop(node: Node, a: Array) -> Array:
    """The number of set bits."""
    return _bits(node, a, int.bit_count)


@evaluates("math.ctlz")
def ctlz(node: Node, a: Array) -> Array:
    """The number of leading zeros."""
    return _bits(node, a, lambda n: node.element.bits - n.bit_length())


@evaluates("math.cttz")
def cttz(node: Node, a: Array) -> Array:
    """The number of trailing zeros."""
    return _bits(node, a, lambda n: (n & -n).bit_length() - 1 if n else node.element.bits)


def _bits(node: Node, a: Array, count: Callable[[int], int]) -> Array:
    values = np.asarray(node.element.unsigned(a))
    found = np.array([count(int(n)) for n in values.ravel()], np.int64).reshape(values.shape)
    return node.element.wrap(found)
