"""Directed rounding: arithmetic and conversions that round up, down or toward zero.

A result is the nearest number and, where that lies on the wrong side of the exact result, its neighbour. Results of f,
hf and bf come from f64 numbers that are rounded to odd, so that they still say on which side the exact result lies.
Those of df are compared with exact fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from xegpu_py.deferred import deferred
from xegpu_py.numerics.elementary import div, sqrt
from xegpu_py.numerics.formats import TYPES, Array, Format, as_format, bits_of, broadcast
from xegpu_py.numerics.rounding import convert, fma, round_to_odd, two_product, two_sum

if TYPE_CHECKING:
    import fractions
else:
    fractions = deferred("fractions")

Direction = Literal["even", "up", "down", "zero"]
"""How results are rounded: to nearest even, toward an infinity, or toward zero (IEEE 754-2019, 4.3)."""


def stepped(nearest: Array, side: Array, fmt: Format, direction: Direction) -> Array:
    """The directed results.

    Args:
        nearest: the results rounded to nearest, in the storage type of `fmt`; NaNs and exact infinities stay.
        side: numbers with the sign of what the exact results are greater by; 0 where nothing is lost.
        direction: "up", "down" or "zero".
    """
    bits = bits_of(np.ascontiguousarray(nearest)).astype(np.int64)
    negative = np.signbit(nearest)
    if direction == "zero":
        wrong = np.where(negative, side > 0, side < 0)
    else:
        wrong = side > 0 if direction == "up" else side < 0
    # A zero that is to become the least number of the other sign is rounded from a number of that sign.
    outward = negative == (side < 0)
    step = np.where(wrong & ~np.isnan(nearest), np.where(outward, 1, -1), 0)
    return (bits + step).astype(f"u{fmt.bytes}").view(fmt.dtype)


def narrowed(values: Array, error: Array, fmt: str, direction: Direction) -> Array:
    """The sums `values + error` in a format.

    Args:
        values: f64, the nearest numbers to the exact ones.
        error: numbers with the signs of the errors of `values`; 0 where it is exact.
        fmt: vISA's name of the format.
    """
    form = TYPES[fmt]
    if fmt == "df":
        return stepped(values, error, form, direction)
    odd = round_to_odd(np.ascontiguousarray(values), error)
    nearest = convert(odd, "df", fmt)
    with np.errstate(invalid="ignore"):
        side = np.where(np.isinf(odd), 0.0, odd - nearest.astype(np.float64))
    return stepped(nearest, side, form, direction)


def directed(name: str, operands: tuple[Array, ...], fmt: str, direction: Direction) -> Array:
    """The result of `add`, `mul`, `mad`, `div` or `sqrt` in a format, rounded in a direction.

    Args:
        operands: numbers in the storage type of `fmt`, of shapes that broadcast.
        fmt: hf, f or df.
    """
    if name not in _PAIRS or fmt not in ("hf", "f", "df"):
        raise ValueError(
            f"'name' must be one of {', '.join(_PAIRS)} and 'fmt' hf, f or df, but got {name!r} and {fmt!r}"
        )
    if len(operands) != _OPERANDS[name]:
        raise ValueError(f"'operands' must be {_OPERANDS[name]} numbers for {name}, but got {len(operands)}")
    arrays = broadcast(*(as_format(v, TYPES[fmt], "operands") for v in operands))
    with np.errstate(all="ignore"):
        if fmt == "df":
            nearest = _NEAREST[name](*arrays)
            error = _side(name, arrays, nearest)
            found = stepped(nearest, error, TYPES[fmt], direction)
        else:
            nearest, error = _PAIRS[name](*(a.astype(np.float64) for a in arrays))
            found = narrowed(nearest, error, fmt, direction)
        if direction != "down" or name not in ("add", "mad"):
            return found
        # A sum of exactly zero is negative, unless both numbers are +0; others keep the sign (IEEE 754-2019, 6.3).
        *factors, addend = arrays
        negative = np.logical_xor.reduce([np.signbit(f) for f in factors])
        zeros = np.logical_or.reduce([f == 0 for f in factors]) & (addend == 0) & ~negative & ~np.signbit(addend)
        positive = zeros | (nearest > 0) | ((nearest == 0) & (error > 0))
        return np.where((found == 0) & ~positive, -np.zeros((), found.dtype), found)


def _quotient(a: Array, b: Array) -> tuple[Array, Array]:
    found = a / b
    product, error = two_product(found, b)
    rest = np.where(np.isfinite(found) & np.isfinite(b) & (b != 0), ((a - product) - error) * np.sign(b), 0.0)
    return found, rest


def _root(a: Array) -> tuple[Array, Array]:
    found = np.sqrt(a)
    product, error = two_product(found, found)
    return found, np.where(np.isfinite(found), (a - product) - error, 0.0)


_PAIRS: dict[str, Callable[..., tuple[Array, Array]]] = {
    "add": two_sum,
    "mul": lambda a, b: (a * b, np.zeros(a.shape)),
    "mad": lambda a, b, c: two_sum(a * b, c),
    "div": _quotient,
    "sqrt": _root,
}
"""The nearest f64 number and its error, of operands that are f64 numbers of at most 24 bits."""

_OPERANDS = {"add": 2, "mul": 2, "mad": 3, "div": 2, "sqrt": 1}

_NEAREST: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "mad": lambda a, b, c: fma(a, b, c, "df"),
    "div": lambda a, b: div(a, b, "df"),
    "sqrt": lambda a: sqrt(a, "df"),
}

_EXCESS: dict[str, Callable[..., fractions.Fraction]] = {
    "add": lambda r, a, b: a + b - r,
    "mul": lambda r, a, b: a * b - r,
    "mad": lambda r, a, b, c: a * b + c - r,
    "div": lambda r, a, b: a / b - r,
    "sqrt": lambda r, a: a - r * r,
}
"""By how much the exact result, or its square, is greater than a number."""


def _side(name: str, operands: Sequence[Array], nearest: Array) -> Array:
    found = np.zeros(nearest.shape)
    finite = np.logical_and.reduce([np.isfinite(a) for a in operands])
    if name == "div":
        finite &= operands[1] != 0
    for at in zip(*np.nonzero(finite & ~np.isnan(nearest))):
        numbers = [fractions.Fraction(float(a[at])) for a in operands]
        if np.isinf(nearest[at]):
            # The exact result is finite.
            found[at] = -np.sign(nearest[at])
            continue
        excess = _EXCESS[name](fractions.Fraction(float(nearest[at])), *numbers)
        found[at] = (excess > 0) - (excess < 0)
    return found


def convert_directed(values: Array, src: str, dst: str, direction: Direction, *, saturate: bool = False) -> Array:
    """Convert numbers as `convert` does, but round to floats in a direction.

    Args:
        values: numbers in the storage type of `src`.
        src: vISA's name of their type.
        dst: the type of the result.
        direction: "up", "down" or "zero".
        saturate: whether the instruction saturates.
    """
    source, target = TYPES[src], TYPES[dst]
    nearest = convert(values, src, dst, saturate=saturate)
    if not target.is_float or source is target or (source.is_float and source.bits < target.bits):
        return nearest
    with np.errstate(invalid="ignore"):
        if source.is_float or source.bits < 64:
            wide, error = values.astype(np.float64), np.zeros(values.shape)
        else:
            low = (values & values.dtype.type(0xFFFFFFFF)).astype(np.float64)
            wide, error = two_sum((values >> values.dtype.type(32)).astype(np.float64) * 2.0**32, low)
        found = narrowed(wide, error, dst, direction)
    return convert(found, dst, dst, saturate=True) if saturate else found
