"""Functions of CUDA's libdevice by their symbols, such as `__nv_expf`: those of Triton's `libdevice`.

The meaning of each is that of CUDA's Math API. Functions with an op of `math` are that op; special functions are
formulas in f64 (`numerics.special_functions`), also those of f32.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable
from functools import partial

import numpy as np

from xegpu_py.extensions.triton.lowering.values import applied, chosen, signed, unsigned
from xegpu_py.ir.builtin import FORMULA, call_external
from xegpu_py.numerics.libdevice import LIBDEVICE_OPS, ROUNDINGS
from xegpu_py.numerics.rounding import error_of_sum
from xegpu_py.numerics.special_functions import SPECIAL_FUNCTIONS
from xegpu_py.tiles.element_types import DType, float32, float64, int32, int64, integer_of, uint32, uint64
from xegpu_py.tiles.functions import fma, maximum, minimum, umulhi
from xegpu_py.tiles.tile_values import Value, constant
from xegpu_py.tiles.value_base import matrix_shape

Function = Callable[..., Value]


def _special(name: str, *values: Value) -> Value:
    """A formula in f64, rounded to f32 for values of f32."""
    wide = [v.to(float64) for v in values]
    kind = float64.vector(matrix_shape(wide[0].shape))
    return wide[0]._made(call_external(f"{FORMULA}.{name}", kind, *(v.ir for v in wide))).to(values[0].dtype)


# Patterns of numbers.

_MANTISSA = {32: (23, 127), 64: (52, 1023)}
"""The bits of the mantissa and the bias of a format, by its bits."""


def _bits(value: Value) -> Value:
    return value.bitcast(integer_of(value.dtype.bits, signed=True))


def _number(bits: Value) -> Value:
    return bits.bitcast(float32 if bits.dtype.bits == 32 else float64)


def _is_negative(value: Value) -> Value:
    return _bits(value) < 0


def _is_finite(value: Value) -> Value:
    return abs(value) < math.inf


def _filled(value: Value, number: float) -> Value:
    return constant(value.dtype, number)


def _op(name: str, *values: Value) -> Value:
    return applied(name, values[0].dtype, *values)


# Functions of numbers and exponents.


def _power(x: Value, n: Value) -> Value:
    return _op("math.powf", x.to(float64), n.to(float64)).to(x.dtype)


_LOG2_10 = math.log2(10)


def _exp10(x: Value) -> Value:
    """10 to the power x; of f32 as `exp` is computed, so that targets without division of f64 have it."""
    if x.dtype == float64:
        return _op("math.powf", _filled(x, 10.0), x)
    high = float(np.float32(_LOG2_10))
    scaled = x * high
    lost = fma(x, _filled(x, _LOG2_10 - high), fma(x, _filled(x, high), -scaled))
    power = _op("math.exp2", scaled)
    corrected = fma(power * math.log(2), lost, power)
    # Infinities have no correction.
    return chosen(corrected.equals(corrected), corrected, power)


def _exponent(x: Value) -> tuple[Value, Value]:
    """The exponents of finite numbers other than zero, int32, and these numbers times powers of two, from 1 to 2."""
    mantissa, bias = _MANTISSA[x.dtype.bits]
    is_small = abs(x) < 2.0 ** (1 - bias)
    bits = _bits(chosen(is_small, x * 2.0**mantissa, x))
    exponent = (bits >> mantissa & (2 * bias + 1)).to(int32) - bias
    sign_and_mantissa = bits.dtype.limits[0] | (1 << mantissa) - 1
    return chosen(is_small, exponent - mantissa, exponent), _number(bits & sign_and_mantissa | bias << mantissa)


def _ilogb(x: Value) -> Value:
    least, most = int32.limits
    exponent = chosen(_is_finite(x), _exponent(x)[0], constant(int32, most))
    return chosen(x.equals(0.0) | x.differs(x), constant(int32, least), exponent)


def _logb(x: Value) -> Value:
    found = chosen(_is_finite(x), _exponent(x)[0].to(x.dtype), abs(x))
    return chosen(x.equals(0.0), _filled(x, -math.inf), found)


def _scaled(x: Value, n: Value) -> Value:
    """x times 2^n, rounded once: a number from 1 to 2 times two powers, of which the first product is exact."""
    mantissa, bias = _MANTISSA[x.dtype.bits]
    exponent, unit = _exponent(x)
    # Greater exponents give zero or infinity for all numbers.
    total = minimum(maximum(n, -3 * bias), 3 * bias) + exponent
    first = minimum(maximum(total, 1 - bias), bias)
    second = minimum(maximum(total - first, 1 - bias), bias)
    integer = integer_of(x.dtype.bits, signed=True)
    powers = [_number((part + bias).to(integer) << mantissa) for part in (first, second)]
    return chosen(_is_finite(x) & x.differs(0.0), unit * powers[0] * powers[1], x)


def _next(x: Value, toward: Value) -> Value:
    """The neighbour of x in the direction of another number."""
    bits = _bits(x)
    moved = _number(chosen((toward > x) ^ _is_negative(x), bits + 1, bits - 1))
    least = chosen(_is_negative(toward), constant(bits.dtype, bits.dtype.limits[0] + 1), constant(bits.dtype, 1))
    moved = chosen(x.equals(0.0), _number(least), moved)
    moved = chosen(x.equals(toward), toward, moved)
    return chosen(x.equals(x) & toward.equals(toward), moved, _filled(x, math.nan))


def _remainder(x: Value, y: Value) -> Value:
    """x less the nearest multiple of y, by IEEE 754; of two nearest ones the even multiple."""
    rest, by = abs(x), abs(y)
    # The remainder by a double that is infinite is the number itself.
    rest = chosen((by + by < math.inf) | ~_is_finite(rest), _op("arith.remf", rest, by + by), rest)
    # Neither the double of a small number nor the half of a large one loses bits.
    is_small = by < 1.0
    rest = chosen(chosen(is_small, rest + rest > by, rest > by * 0.5), rest - by, rest)
    rest = chosen(chosen(is_small, rest + rest >= by, rest >= by * 0.5), rest - by, rest)
    # A rest of zero has the sign of x, as all others.
    rest = chosen(_is_negative(x), -rest, rest)
    return chosen(by.equals(by) & by.differs(0.0), rest, _filled(x, math.nan))


def _positive_difference(x: Value, y: Value) -> Value:
    return chosen(x <= y, _filled(x, 0.0), x - y)


def _saturated(x: Value) -> Value:
    return chosen(x.equals(x), minimum(maximum(x, 0.0), 1.0), _filled(x, 0.0))


# Arithmetic that is rounded in one direction: the nearest number, and the sign of the exact result less it.

_TINY, _RAISED = 2.0**-900, 2.0**540


def _sum(a: Value, b: Value) -> tuple[Value, Value]:
    total, (x, y) = a + b, (a.to(float64), b.to(float64))
    wide = x + y
    return total, (wide - total.to(float64)) + error_of_sum(x, y, wide)


def _difference(a: Value, b: Value) -> tuple[Value, Value]:
    return _sum(a, -b)


def _product(a: Value, b: Value) -> tuple[Value, Value]:
    nearest, (x, y) = a * b, (a.to(float64), b.to(float64))
    raised = chosen(abs(nearest.to(float64)) < _TINY, constant(float64, _RAISED), constant(float64, 1.0))
    # Neither a product of small numbers nor its error is lost.
    scaled = nearest.to(float64) * raised * raised
    return nearest, fma(x * raised, y * raised, -scaled)


def _quotient(a: Value, b: Value) -> tuple[Value, Value]:
    nearest, (x, y) = a / b, (a.to(float64), b.to(float64))
    raised = chosen(abs(x) < _TINY, constant(float64, 2.0**200), constant(float64, 1.0))
    rest = chosen(nearest.equals(0.0), x, fma(-nearest.to(float64), y * raised, x * raised))
    return nearest, chosen(_is_negative(y), -rest, rest)


def _reciprocal(a: Value) -> tuple[Value, Value]:
    return _quotient(_filled(a, 1.0), a)


def _root(a: Value) -> tuple[Value, Value]:
    nearest, x = _op("math.sqrt", a), a.to(float64)
    is_tiny, one = x < _TINY, constant(float64, 1.0)
    root = nearest.to(float64) * chosen(is_tiny, constant(float64, 2.0**200), one)
    return nearest, fma(-root, root, x * chosen(is_tiny, constant(float64, 2.0**400), one))


def _product_and_sum(a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """Of f32, whose products f64 holds."""
    nearest, product, addend = fma(a, b, c), a.to(float64) * b.to(float64), c.to(float64)
    wide = product + addend
    return nearest, (wide - nearest.to(float64)) + error_of_sum(product, addend, wide)


def _directed(function: Callable[..., tuple[Value, Value]], direction: str) -> Function:
    def apply(*values: Value) -> Value:
        nearest, error = function(*values)
        finite = functools.reduce(operator.and_, map(_is_finite, values))
        if function in (_quotient, _reciprocal):
            finite = finite & values[-1].differs(0.0)
        error = chosen(_is_finite(nearest), error, -nearest.to(float64))
        # Of other operands the result is exact.
        return _towards(nearest, chosen(finite, error, constant(float64, 0.0)), direction)

    return apply


def _towards(nearest: Value, error: Value, direction: str) -> Value:
    """The nearest number, or its neighbour if the exact result is on the other side.

    Args:
        error: a number with the sign of the exact result less the nearest number.
        direction: "rn" to nearest, "ru" up, "rd" down, "rz" toward zero.
    """
    if direction == "rn":
        return nearest
    bits, is_zero = _bits(nearest), nearest.equals(0.0)
    negative, sign = bits < 0, bits.dtype.limits[0]
    above = chosen(is_zero, constant(bits.dtype, 1), chosen(negative, bits - 1, bits + 1))
    below = chosen(is_zero, constant(bits.dtype, sign + 1), chosen(negative, bits + 1, bits - 1))
    moves_up, moves_down = error > 0.0, error < 0.0
    if direction == "rz":
        return _number(
            chosen(moves_up & negative & ~is_zero, above, chosen(moves_down & ~negative & ~is_zero, below, bits))
        )
    return _number(chosen(moves_up, above, bits) if direction == "ru" else chosen(moves_down, below, bits))


# Conversions.

_TYPES = {"float": float32, "double": float64, "int": int32, "uint": uint32, "ll": int64, "ull": uint64}


def _conversion(symbol: str) -> Function | None:
    """A conversion such as `float2int_rz`."""
    match = re.fullmatch(r"(float|double|u?int|u?ll)2(float|double|u?int|u?ll)_(r[nzud])", symbol)
    if not match:
        return None
    source, target, direction = _TYPES[match[1]], _TYPES[match[2]], match[3]
    if source.is_float:
        return lambda x: x.to(target, ROUNDINGS[direction])
    return partial(_of_integer, source=source, target=target, direction=direction)


def _of_integer(n: Value, source: DType, target: DType, direction: str) -> Value:
    number = n.to(source)
    nearest = number.to(target)
    if direction == "rn":
        return nearest
    # Numbers beyond the type's greatest integer are above it.
    limit = 2.0 ** (source.bits - source.is_signed)
    back = chosen(nearest < limit, nearest, _filled(nearest, 0.0)).to(source)
    error = chosen(
        number > back, constant(float64, 1.0), chosen(number < back, constant(float64, -1.0), constant(float64, 0.0))
    )
    return _towards(nearest, chosen(nearest < limit, error, constant(float64, -1.0)), direction)


# Integers.


def high_product(a: Value, b: Value) -> Value:
    """The upper half of the product of integers of 32 or 64 bits."""
    if a.dtype.kind == "uint":
        return umulhi(a, b)
    high = signed(umulhi(unsigned(a), unsigned(b)))
    zero = constant(a.dtype, 0)
    return high - chosen(a < 0, b, zero) - chosen(b < 0, a, zero)


def reversed_bits(n: Value) -> Value:
    """The bits in opposite order."""
    width, n = n.dtype.bits, unsigned(n)
    full, step = (1 << width) - 1, width // 2
    while step:
        mask = full // ((1 << step) + 1)
        n = (n >> step & mask) | (n & mask) << step
        step //= 2
    return signed(n)


def _permuted(a: Value, b: Value, selector: Value) -> Value:
    """Four of the eight bytes of two integers, by the lowest three bits of the selector's half-bytes."""
    both = unsigned(a).to(uint64) | unsigned(b).to(uint64) << 32
    chosen_bytes = ((both >> (unsigned(selector) >> 4 * n & 7).to(uint64) * 8 & 255) << 8 * n for n in range(4))
    return signed(functools.reduce(operator.or_, chosen_bytes).to(uint32))


def _first_set(n: Value) -> Value:
    """The number of the lowest bit that is set, from 1 on, or 0."""
    return chosen(n.equals(0), constant(int32, 0), _op("math.cttz", n).to(int32) + 1)


def _low_24(n: Value) -> Value:
    return n << 8 >> 8


def _averaged(a: Value, b: Value, up: int) -> Value:
    """The half of a sum that does not overflow."""
    wide = integer_of(64, signed=a.dtype.is_signed)
    return (a.to(wide) + b.to(wide) + up >> 1).to(a.dtype)


def _distance(a: Value, b: Value, c: Value) -> Value:
    """|a - b| + c; it wraps around."""
    return chosen(a > b, a - b, b - a) + c


def _without_sign(function: Function) -> Function:
    return lambda *values: signed(function(*map(unsigned, values)))


def _truth(function: Function) -> Function:
    return lambda x: function(x).to(int32)


_OF_BOTH: dict[str, Function] = {
    **{name: partial(_op, op) for name, op in LIBDEVICE_OPS.items()},
    **{name: partial(_special, name) for name in SPECIAL_FUNCTIONS},
    "exp10": _exp10,
    "fdim": _positive_difference,
    "ilogb": _ilogb,
    "ldexp": _scaled,
    "llrint": lambda x: x.to(int64, "nearest"),
    "llround": lambda x: _op("math.round", x).to(int64),
    "logb": _logb,
    "nextafter": _next,
    "powi": _power,
    "remainder": _remainder,
    "scalbn": _scaled,
}

_OF_ONE: dict[str, Function] = {
    "abs": abs,
    "brev": reversed_bits,
    "brevll": reversed_bits,
    "byte_perm": _permuted,
    "clz": lambda n: _op("math.ctlz", n).to(int32),
    "clzll": lambda n: _op("math.ctlz", n).to(int32),
    "double2hiint": lambda x: (_bits(x) >> 32).to(int32),
    "double2loint": lambda x: _bits(x).to(int32),
    "double_as_longlong": _bits,
    "fast_exp10f": _exp10,
    "fast_fdividef": operator.truediv,
    **{
        f"fast_{name}f": partial(_op, LIBDEVICE_OPS[name])
        for name in ("cos", "exp", "log", "log10", "log2", "pow", "sin", "tan")
    },
    "ffs": _first_set,
    "ffsll": _first_set,
    "finitef": _truth(_is_finite),
    "float_as_int": _bits,
    "float_as_uint": _bits,
    "frsqrt_rn": partial(_op, "math.rsqrt"),
    "hadd": partial(_averaged, up=0),
    "hiloint2double": lambda high, low: (high.to(int64) << 32 | unsigned(low).to(int64)).bitcast(float64),
    "int_as_float": _number,
    "isfinited": _truth(_is_finite),
    **{f"isinf{t}": _truth(lambda x: abs(x).equals(math.inf)) for t in "fd"},
    **{f"isnan{t}": _truth(lambda x: x.differs(x)) for t in "fd"},
    "llabs": abs,
    "longlong_as_double": _number,
    "mul24": lambda a, b: _low_24(a) * _low_24(b),
    "mul64hi": high_product,
    "mulhi": high_product,
    "popc": lambda n: _op("math.ctpop", n).to(int32),
    "popcll": lambda n: _op("math.ctpop", n).to(int32),
    "rhadd": partial(_averaged, up=1),
    "sad": lambda a, b, c: _distance(a, b, c),
    "saturatef": _saturated,
    **{f"signbit{t}": _truth(_is_negative) for t in "fd"},
    "uhadd": _without_sign(partial(_averaged, up=0)),
    "uint_as_float": _number,
    "umul24": _without_sign(lambda a, b: _low_24(a) * _low_24(b)),
    "umul64hi": _without_sign(umulhi),
    "umulhi": _without_sign(umulhi),
    "urhadd": _without_sign(partial(_averaged, up=1)),
    "usad": _without_sign(_distance),
}

_DIRECTED: dict[str, Callable[..., tuple[Value, Value]]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "rcp": _reciprocal,
    "sqrt": _root,
}


def _arithmetic(name: str) -> Function | None:
    """Arithmetic with a rounding, such as `fadd_rd`."""
    if match := re.fullmatch(r"[fd](add|sub|mul|div|rcp|sqrt)_(r[nzud])", name):
        return _directed(_DIRECTED[match[1]], match[2])
    if match := re.fullmatch(r"fmaf_(r[nzud])", name):
        return _directed(_product_and_sum, match[1])
    return partial(_op, "math.fma") if name == "fma_rn" else None


def function_of(symbol: str) -> Function | None:
    """The function of a symbol, of values whose integers have a sign; None for one that is not known."""
    name = symbol.removeprefix("__nv_").removeprefix("__imf_")
    for known in (_OF_ONE.get(name), _OF_BOTH.get(name), _OF_BOTH.get(name.removesuffix("f"))):
        if known:
            return known
    return _conversion(name) or _arithmetic(name)
