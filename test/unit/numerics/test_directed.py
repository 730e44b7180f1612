"""Directed rounding against fractions, whose multiples of the last place are counted."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf, isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xegpu_py.numerics.directed import convert_directed, directed
from xegpu_py.numerics.formats import TYPES, Array

DIRECTIONS = ("up", "down", "zero")
FORMATS = {"hf": np.float16, "f": np.float32, "df": np.float64}


def rounded(x: Fraction, fmt: str, direction: str) -> float:
    """The number of a format next to a number that is not zero, in a direction."""
    mantissa, bias = TYPES[fmt].mantissa, (1 << TYPES[fmt].exponent - 1) - 1
    exponent = 0
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(x) < Fraction(2) ** exponent and exponent > 1 - bias:
        exponent -= 1
    place = Fraction(2) ** (exponent - mantissa)
    way = {"up": ceil, "down": floor, "zero": int}[direction]
    found = way(x / place) * place
    greatest = (2 - Fraction(2) ** -mantissa) * Fraction(2) ** bias
    if abs(found) > greatest:
        outward = (direction == "up" and x > 0) or (direction == "down" and x < 0)
        return (inf if outward else float(greatest)) * (1 if x > 0 else -1)
    return float(found)


def finite(fmt: str) -> st.SearchStrategy[float]:
    width = TYPES[fmt].bits
    any_bits = st.floats(width=width, allow_nan=False, allow_infinity=False)  # type: ignore[call-overload]
    near_one = st.integers(-(1 << 9), 1 << 9).map(lambda n: n / 64)
    least = float(np.finfo(FORMATS[fmt]).smallest_subnormal)
    return st.one_of(any_bits, near_one, st.sampled_from([0.0, -0.0, least, -least]))


def factors_of_tiny_products(fmt: str) -> st.SearchStrategy[tuple[float, float, float]]:
    """Two numbers whose product is about the least number, above or below, and what may be added to it."""
    least = float(np.finfo(FORMATS[fmt]).smallest_subnormal)
    root = float(FORMATS[fmt](2.0 ** (np.log2(least) // 2)))
    factor = st.builds(lambda m, e: m * root * 2.0**e, st.sampled_from([1.0, -1.0, 1.25, -1.5]), st.integers(-3, 3))
    return st.tuples(factor, factor, st.sampled_from([0.0, -0.0, least, -least]))


def one(value: float, fmt: str) -> Array:
    return np.array([value], FORMATS[fmt])


@pytest.mark.each_value
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("fmt", FORMATS)
@given(st.data())
def test_arithmetic(fmt: str, direction: str, data: st.DataObject) -> None:
    tiny = data.draw(st.lists(factors_of_tiny_products(fmt), min_size=8, max_size=8))
    for a, b, c in (data.draw(st.tuples(*[finite(fmt)] * 3)), *tiny):
        check_arithmetic(a, b, c, fmt, direction)


def check_arithmetic(a: float, b: float, c: float, fmt: str, direction: str) -> None:
    """Each operation on numbers gives the exact result's neighbour in a direction."""
    x, y, z = map(Fraction, (a, b, c))
    cases = {"add": (x + y, (a, b)), "mul": (x * y, (a, b)), "mad": (x * y + z, (a, b, c))}
    if b:
        cases["div"] = (x / y, (a, b))
    for name, (exact, operands) in cases.items():
        [found] = directed(name, tuple(one(v, fmt) for v in operands), fmt, direction)
        if exact:
            assert float(found) == rounded(exact, fmt, direction), name
            assert np.signbit(found) == (exact < 0), name
        else:
            assert found == 0
            if name in ("add", "mad") and direction == "down":
                first = operands[0] if name == "add" else np.copysign(1.0, a) * np.copysign(1.0, b)
                signs = [np.signbit(first), np.signbit(operands[-1])]
                assert np.signbit(found) == (any(signs) or operands[-1] != 0), name
    if a > 0:
        scale = 1 << 400
        low = Fraction(isqrt(int(x * scale * scale * scale * scale)), scale * scale)
        [found] = directed("sqrt", (one(a, fmt),), fmt, direction)
        wanted = {rounded(low, fmt, direction), rounded(low + Fraction(1, scale * scale), fmt, direction)}
        if low * low == x:
            wanted = {rounded(low, fmt, direction)}
        assert float(found) in wanted


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dst", ["hf", "bf", "f", "df"])
@given(st.data())
def test_conversions(dst: str, direction: str, data: st.DataObject) -> None:
    src = data.draw(st.sampled_from(["d", "ud", "q", "uq", "f", "df"]))
    if src in FORMATS:
        value: float | int = data.draw(finite(src))
        given_ = one(value, src)
    else:
        info = np.iinfo(TYPES[src].dtype)
        value = data.draw(st.integers(int(info.min), int(info.max)))
        given_ = np.array([value], TYPES[src].dtype)
    [found] = convert_directed(given_, src, dst, direction)
    wanted = rounded(Fraction(value), dst, direction) if value else 0.0
    assert float(found) == wanted


@pytest.mark.parametrize("fmt", FORMATS)
def test_products_below_the_least_number_keep_their_sign(fmt: str) -> None:
    least = float(np.finfo(FORMATS[fmt]).smallest_subnormal)
    for a, b, c in ((least, least, 0.0), (least, least, -0.0), (-least, -least, 0.0), (least, -least, 0.0)):
        operands = tuple(one(x, fmt) for x in (a, b, c))
        for direction in DIRECTIONS:
            [found] = directed("mad", operands, fmt, direction)
            exact = Fraction(a) * Fraction(b)
            assert float(found) == rounded(exact, fmt, direction) and np.signbit(found) == (exact < 0)
    [found] = directed("mad", (one(least, fmt), one(1.0, fmt), one(-least, fmt)), fmt, "down")
    assert found == 0 and np.signbit(found)


def test_zeros_nans_and_infinities() -> None:
    for fmt, kind in FORMATS.items():
        plus, minus = np.zeros(1, kind), -np.zeros(1, kind)
        one_, infinite = np.ones(1, kind), np.full(1, np.inf, kind)
        assert np.signbit(directed("add", (one_, -one_), fmt, "down"))
        assert not np.signbit(directed("add", (one_, -one_), fmt, "zero"))
        assert not np.signbit(directed("add", (plus, plus), fmt, "down"))
        assert np.signbit(directed("mad", (one_, one_, -one_), fmt, "down"))
        assert not np.signbit(directed("mul", (plus, plus), fmt, "down"))
        assert np.signbit(directed("mul", (minus, plus), fmt, "up"))
        assert np.isnan(directed("add", (infinite, -infinite), fmt, "zero"))
        assert directed("mul", (infinite, one_), fmt, "zero") == np.inf
        assert directed("div", (one_, plus), fmt, "zero") == np.inf


def test_what_cannot_be_rounded() -> None:
    x = np.ones(4, np.float32)
    for name, operands, fmt, message in (
        ("add", (x,), "f", "'operands' must be 2 numbers for add, but got 1"),
        ("add", (x, x, x), "f", "'operands' must be 2 numbers for add, but got 3"),
        ("mad", (x, x), "f", "'operands' must be 3 numbers for mad, but got 2"),
        ("add", (x, x[:3]), "f", r"shapes \[4\], \[3\] do not broadcast"),
        ("pow", (x, x), "f", "'name' must be one of .* and 'fmt' hf, f or df, but got 'pow' and 'f'"),
        ("add", (x, x), "bf", "but got 'add' and 'bf'"),
    ):
        with pytest.raises(ValueError, match=message):
            directed(name, operands, fmt, "up")
    assert directed("add", (x, x[:1]), "f", "up").tolist() == [2, 2, 2, 2]
