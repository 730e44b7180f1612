"""Elementwise mathematical functions of the tile language: those of Triton's `tl.math`, and a few more.

Functions of floating-point numbers convert integers to float32. docs/numerics.md says which are correctly rounded, and
gives the algorithms of the others.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from xegpu_py.language import types
from xegpu_py.language.functions import where
from xegpu_py.language.held import static_extent
from xegpu_py.language.values import Product, Value, both, value_of


def cdiv(a: Any, b: Any) -> Any:
    """The quotient rounded up, of numbers and of values."""
    return -(-a // b) if not isinstance(a, Value) else (a + (b - 1)) // b


def next_power_of_2(n: int) -> int:
    """The least power of two that is not less than a number, which is known at compile time.

    Raises:
        TypeError: if it is known only at run time, or no integer.
    """
    count = static_extent(n, "the number of next_power_of_2")
    return 1 << max(count - 1, 0).bit_length()


def _unary(name: str, title: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        given = value_of(value)
        if not given.dtype.is_float:
            given = given.to(types.float32)
        return given._op(f"math.{name}")

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{title} of each element; float32 of integers."
    return apply


exp, exp2, log, log2 = (
    _unary("exp", "e to the power"),
    _unary("exp2", "2 to the power"),
    _unary("log", "The natural logarithm"),
    _unary("log2", "The logarithm to base 2"),
)
sin, cos, tanh = (
    _unary("sin", "The sine"),
    _unary("cos", "The cosine"),
    _unary("tanh", "The hyperbolic tangent"),
)
sqrt, rsqrt, erf = (
    _unary("sqrt", "The square root"),
    _unary("rsqrt", "The reciprocal of the square root"),
    _unary("erf", "The error function"),
)
floor, ceil, round_ = (
    _unary("floor", "The greatest whole number that is not greater"),
    _unary("ceil", "The least whole number that is not less"),
    _unary("roundeven", "The nearest whole number, ties to even,"),
)


def tan(value: Any) -> Value:
    """The tangent of each element: the quotient of the sine and the cosine; float32 of integers."""
    return sin(value) / cos(value)


def sigmoid(value: Any) -> Value:
    """1 / (1 + exp(-x)) of each element."""
    given = value_of(value)
    return 1 / (1 + exp(-given))


def abs_(value: Any) -> Any:
    """The absolute value of each element."""
    return abs(value)


def fma(a: Any, b: Any, c: Any) -> Value:
    """a * b + c with one rounding, of floating-point values of one type.

    Raises:
        TypeError: for integers.
    """
    x, y = value_of(a)._both(b)
    x, z = x._both(c)
    y = y.to(x.dtype).broadcast(x.shape)
    if not x.dtype.is_float:
        raise TypeError(f"fma needs floating-point values, not {x.dtype}")
    return x._op("math.fma", y, z)


class PropagateNan(enum.Enum):
    """What `minimum`, `maximum` and `clamp` do with NaN: NONE gives the other operand, ALL gives NaN."""

    NONE = "none"
    ALL = "all"


def _chosen(a: Any, b: Any, name: str, propagate_nan: PropagateNan) -> Any:
    if not isinstance(a, (Value, Product)) and not isinstance(b, (Value, Product)):
        return {"min": min, "max": max}[name](a, b)
    one, other = both(a, b)
    if one.dtype.kind == "bool":
        return one._op("arith.andi" if name == "min" else "arith.ori", other)
    real = "imumf" if propagate_nan is PropagateNan.ALL else "numf"
    kind = real if one.dtype.is_float else "si" if one.dtype.is_signed else "ui"
    return one._op(f"arith.{name}{kind}", other)


def minimum(a: Any, b: Any, propagate_nan: PropagateNan = PropagateNan.ALL) -> Any:
    """The lesser of two numbers, element by element; NaN where one is NaN, as numpy's."""
    return _chosen(a, b, "min", propagate_nan)


def maximum(a: Any, b: Any, propagate_nan: PropagateNan = PropagateNan.ALL) -> Any:
    """The greater of two numbers, element by element; NaN where one is NaN, as numpy's."""
    return _chosen(a, b, "max", propagate_nan)


def clamp(x: Any, min: Any, max: Any, propagate_nan: PropagateNan = PropagateNan.ALL) -> Any:
    """The elements limited to the range from `min` to `max`."""
    return minimum(maximum(x, min, propagate_nan), max, propagate_nan)


def fdiv(a: Any, b: Any, ieee_rounding: bool = False) -> Any:
    """a / b of floating-point values, always correctly rounded: Triton's `ieee_rounding` has no effect.

    Raises:
        TypeError: if neither is a floating-point value.
    """
    if not any(
        isinstance(v, float) or (isinstance(v, (Value, Product)) and value_of(v).dtype.is_float) for v in (a, b)
    ):
        raise TypeError("fdiv needs floating-point values")
    return a / b


def div_rn(a: Any, b: Any) -> Any:
    """a / b rounded to nearest even, as `/` is."""
    return fdiv(a, b, True)


def sqrt_rn(value: Any) -> Value:
    """The square root rounded to nearest even, as `sqrt` is."""
    return sqrt(value)


def add(a: Any, b: Any, sanitize_overflow: bool = True) -> Any:
    """a + b. Integers wrap around; Triton's `sanitize_overflow` has no effect."""
    return a + b


def sub(a: Any, b: Any, sanitize_overflow: bool = True) -> Any:
    """a - b; see `add`."""
    return a - b


def mul(a: Any, b: Any, sanitize_overflow: bool = True) -> Any:
    """a * b; see `add`."""
    return a * b


def umulhi(a: Any, b: Any) -> Value:
    """The upper half of the product of unsigned integers of 32 or 64 bits; signed ones are taken as unsigned.

    Raises:
        TypeError: for other types.
    """
    one, other = both(a, b)
    if one.dtype.kind not in ("int", "uint") or one.dtype.bits not in (32, 64):
        raise TypeError(f"umulhi needs integers of 32 or 64 bits, not {one.dtype}")
    x, y = one.to(types.integer_of(one.dtype.bits, signed=False)), other
    y = y.to(x.dtype)
    if x.dtype.bits == 32:
        return (x.to(types.uint64) * y.to(types.uint64) >> 32).to(types.uint32).to(one.dtype)
    low, (x1, y1) = 0xFFFFFFFF, (x >> 32, y >> 32)
    x0, y0 = x & low, y & low
    first, second = x0 * y1, x1 * y0
    carry = ((x0 * y0 >> 32) + (first & low) + (second & low)) >> 32
    return (x1 * y1 + (first >> 32) + (second >> 32) + carry).to(one.dtype)


def softmax(value: Any, dim: int | None = None, *, keep_dims: bool | None = None, ieee_rounding: bool = False) -> Value:
    """exp(x - max) divided by its sum along a dimension, by default the first, as in Triton.

    Args:
        value: the numbers.
        dim: the dimension.
        keep_dims, ieee_rounding: Triton's, without effect: the shape is kept, and the division is correctly rounded.
    """
    given = value_of(value)
    axis = 0 if dim is None else dim
    raised = exp(given - given.max(axis, keep_dims=True))
    return raised / raised.sum(axis, keep_dims=True)


def minimum_of(*values: Any) -> Any:
    """Python's `min` of several numbers and values."""
    return functools.reduce(minimum, _several(values, "min"))


def maximum_of(*values: Any) -> Any:
    """Python's `max` of several numbers and values."""
    return functools.reduce(maximum, _several(values, "max"))


def _several(values: tuple[Any, ...], name: str) -> Any:
    """The arguments of Python's `min` and `max`, or the elements of their only argument."""
    if len(values) == 1 and not isinstance(values[0], (tuple, list)):
        raise TypeError(f"{name}() compares several values or those in a list; the elements of one value have {name}()")
    return values[0] if len(values) == 1 else values


# Functions of Triton's `libdevice` that are not functions of the language itself.


def _binary(name: str, title: str) -> Callable[[Any, Any], Value]:
    def apply(x: Any, y: Any) -> Value:
        one, other = both(x, y)
        if not one.dtype.is_float:
            one, other = one.to(types.float32), other.to(types.float32)
        return one._op(name, other)

    apply.__doc__ = f"{title}; float32 of integers."
    return apply


def _counting(name: str, title: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        given = value_of(value)
        if not given.dtype.is_integer:
            raise TypeError(f"{name} needs integers, not {given.dtype}")
        return given._op(f"math.{name}").to(types.int32)

    apply.__doc__ = f"{title} of each element, int32."
    return apply


def _test(test: Callable[[Value], Value], title: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        given = value_of(value)
        return test(given if given.dtype.is_float else given.to(types.float32))

    apply.__doc__ = f"Where an element is {title}, bool."
    return apply


def _converted(dtype: types.DType, rounding: str) -> Callable[[Any], Value]:
    def apply(value: Any) -> Value:
        return value_of(value).to(dtype, rounding)

    apply.__doc__ = f"The numbers in {dtype}, rounded {rounding}."
    return apply


def _ffs(value: Any) -> Value:
    """The number of the lowest bit that is set, from 1 on, or 0 if none is: int32."""
    given = value_of(value)
    return where(given.equals(0), 0, _counting("cttz", "")(given) + 1)


def _negative(value: Value) -> Value:
    return value.bitcast(types.integer_of(value.dtype.bits, signed=True)) < 0


_EXPANDED = {
    "acos": "arc cosine",
    "asin": "arc sine",
    "atan": "arc tangent",
    "acosh": "inverse hyperbolic cosine",
    "asinh": "inverse hyperbolic sine",
    "atanh": "inverse hyperbolic tangent",
    "cbrt": "cube root",
    "cosh": "hyperbolic cosine",
    "sinh": "hyperbolic sine",
    "erfc": "complementary error function",
    "expm1": "exponential less 1",
    "log10": "logarithm to base 10",
    "log1p": "logarithm of 1 and the number",
    "trunc": "number without its fraction",
    "round": "nearest whole number, ties away from zero,",
}
_ROUNDINGS = {"rn": "nearest", "rz": "zero", "ru": "up", "rd": "down"}

libdevice: Any = SimpleNamespace(
    **{name: _unary(name, f"The {title}") for name, title in _EXPANDED.items()},
    **{f.__name__: f for f in (ceil, cos, erf, exp, exp2, floor, fma, log, log2, rsqrt, sin, sqrt, tan, tanh, div_rn)},
    **{f"float2int_{how}": _converted(types.int32, name) for how, name in _ROUNDINGS.items()},
    **{f"float2uint_{how}": _converted(types.uint32, name) for how, name in _ROUNDINGS.items()},
    abs=abs_,
    fabs=abs_,
    sqrt_rn=sqrt_rn,
    rint=round_,
    nearbyint=round_,
    atan2=_binary("math.atan2", "The angle of the point (y, x), whose first argument is y"),
    copysign=_binary("math.copysign", "The size of the first number with the sign of the second"),
    fmod=_binary("arith.remf", "The remainder, with the sign of the first number"),
    fmin=functools.partial(minimum, propagate_nan=PropagateNan.NONE),
    fmax=functools.partial(maximum, propagate_nan=PropagateNan.NONE),
    pow=_binary("math.powf", "The first number to the power of the second"),
    exp10=lambda value: _binary("math.powf", "")(10.0, value),
    isnan=_test(lambda x: x.differs(x), "NaN"),
    isinf=_test(lambda x: abs(x).equals(float("inf")), "infinite"),
    isfinited=_test(lambda x: abs(x) < float("inf"), "finite"),
    finitef=_test(lambda x: abs(x) < float("inf"), "finite"),
    signbit=_test(_negative, "negative, also -0 and NaN with a sign"),
    popc=_counting("ctpop", "The number of bits that are set"),
    clz=_counting("ctlz", "The number of leading bits that are not set"),
    ffs=_ffs,
    umulhi=umulhi,
    float_as_int=lambda value: value_of(value).bitcast(types.int32),
    int_as_float=lambda value: value_of(value).bitcast(types.float32),
    int2float_rn=lambda value: value_of(value).to(types.float32),
    saturatef=lambda value: where(libdevice.isnan(value), 0.0, clamp(value, 0.0, 1.0)),
)
"""The functions of Triton's `libdevice`; docs/numerics.md has their errors."""
