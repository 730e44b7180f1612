"""Conversions of mov against exact rationals, for every pattern of the types up to 16 bits and many of the others."""

from fractions import Fraction
from math import floor, isinf, isnan, trunc

import ml_dtypes
import numpy as np
import pytest

from xegpu_py.numerics import convert

from .exact import FORMATS, nearest, value

INTEGERS = {
    "ub": (0, 8),
    "b": (1, 8),
    "uw": (0, 16),
    "w": (1, 16),
    "ud": (0, 32),
    "d": (1, 32),
    "uq": (0, 64),
    "q": (1, 64),
}
FLOATS = {"hf": 16, "bf": 16, "f": 32, "df": 64}
NANS = {"hf": 0x7E00, "bf": 0x7FC0, "f": 0x7FC00000, "df": 0x7FF8 << 48}
ALL = [*INTEGERS, *FLOATS]
RANDOM = np.random.default_rng(5)


def width(name: str) -> int:
    return FLOATS.get(name) or INTEGERS[name][1]


def meaning(bits: int, name: str) -> Fraction | float:
    if name in FLOATS:
        return value(bits, name)
    signed, n = INTEGERS[name]
    return Fraction(bits - (1 << n) if signed and bits >> (n - 1) else bits)


def expected(bits: int, src: str, dst: str, saturate: bool) -> int:
    number = meaning(bits, src)
    special = isinstance(number, float) and number != 0
    if dst in INTEGERS:
        signed, n = INTEGERS[dst]
        low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if signed else (0, (1 << n) - 1)
        if special and isnan(number):
            return 0
        if special:
            result = high if number > 0 else low
        elif src in INTEGERS and not saturate:
            result = int(number)
        else:
            result = min(max(trunc(number), low), high)
        return result % (1 << n)
    top = width(dst) - 1
    exponent_bits, mantissa_bits, _ = FORMATS[dst]
    if saturate:
        if (special and isnan(number)) or number <= 0:
            return 0
        one = ((1 << (exponent_bits - 1)) - 1) << mantissa_bits
        return one if number >= 1 else min(nearest(Fraction(number), dst), one)
    if src == dst:
        return bits
    if special and isnan(number):
        return NANS[dst]
    if special:
        return ((1 << exponent_bits) - 1) << mantissa_bits | int(number < 0) << top
    return 1 << top if isinstance(number, float) else nearest(number, dst)


def sample(name: str) -> np.ndarray:
    """Patterns: all up to 16 bits; else powers of two, their neighbours, ties of narrower formats, random ones."""
    n = width(name)
    if n <= 16:
        return np.arange(1 << n, dtype=f"u{n // 8}")
    dtype = np.dtype(f"u{n // 8}")
    found = [0, 1, (1 << n) - 1]
    for i in range(n):
        found += [(1 << i) + d for d in (-1, 0, 1)]
        found += [(3 << i) + d & ((1 << n) - 1) for d in (-1, 0, 1)]
    if name in FLOATS:
        for form in ("hf", "bf", "f"):
            if FLOATS[form] < n:
                for bits in RANDOM.integers(0, 1 << FLOATS[form], 200):
                    number = value(int(bits), form)
                    if isinstance(number, Fraction):
                        at = nearest(number, name)
                        half = 1 << (FORMATS[name][1] - FORMATS[form][1] - 1)
                        found += [at + d for d in (half - 1, half, half + 1, 0)]
        for scale in (2**31, 2**32, 2**63, 2**64, 2**15, 2**16, 2**7, 2**8):
            at = nearest(Fraction(scale), name)
            found += [at, at - 1, at + 1, at | 1 << (n - 1), (at - 1) | 1 << (n - 1), (at + 1) | 1 << (n - 1)]
    else:
        for i in range(9, n - 1):
            for bits in (8, 11, 24, 53):
                if i > bits:
                    tie = (1 << i) + (1 << (i - bits))
                    found += [tie, tie + 1, tie - 1, (1 << n) - tie, (1 << n) - tie - 1]
    random = RANDOM.integers(0, 1 << 63, 600, np.uint64) * 2 + RANDOM.integers(0, 2, 600).astype(np.uint64)
    found += [int(r) >> (64 - n) for r in random]
    return np.array([f & ((1 << n) - 1) for f in found], np.uint64).astype(dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("dst", ALL)
@pytest.mark.parametrize("src", ALL)
def test_against_rationals(src: str, dst: str, saturate: bool) -> None:
    patterns = sample(src)
    result = convert(patterns, src, dst, saturate=saturate)
    found = result.view(f"u{width(dst) // 8}")
    # Every pattern is converted; every fifth of the 65,536 is checked with rationals, with another start for each pair.
    start = (ALL.index(src) + ALL.index(dst)) % 5
    chosen = slice(start, None, 5) if len(patterns) == 1 << 16 else slice(None)
    want = [expected(int(b), src, dst, saturate) for b in patterns[chosen]]
    np.testing.assert_array_equal(found[chosen], np.array(want, found.dtype))


@pytest.mark.parametrize(
    ("src", "dst", "theirs"),
    [
        ("hf", "bf", lambda x: x.astype(np.float32).astype(ml_dtypes.bfloat16)),
        ("bf", "hf", lambda x: x.astype(np.float32).astype(np.float16)),
        ("hf", "f", lambda x: x.astype(np.float32)),
        ("bf", "f", lambda x: x.astype(np.float32)),
        ("hf", "df", lambda x: x.astype(np.float64)),
        ("w", "bf", lambda x: x.astype(np.float32).astype(ml_dtypes.bfloat16)),
        ("uw", "hf", lambda x: x.astype(np.float16)),
    ],
)
def test_every_pattern_against_ml_dtypes(src: str, dst: str, theirs) -> None:
    dtypes = {"hf": np.float16, "bf": ml_dtypes.bfloat16, "w": np.int16, "uw": np.uint16}
    numbers = np.arange(1 << 16, dtype=np.uint16).view(dtypes[src])
    with np.errstate(over="ignore", invalid="ignore"):
        want = theirs(numbers)
        usable = ~np.isnan(want.astype(np.float64))
    found = convert(numbers, src, dst)
    bits = f"u{want.dtype.itemsize}"
    np.testing.assert_array_equal(found.view(bits)[usable], want.view(bits)[usable])
    assert set(found.view(bits)[~usable].tolist()) <= {NANS[dst]}


def test_arguments() -> None:
    with pytest.raises(ValueError, match="'dst' must be one of ub, b, uw"):
        convert(np.zeros(3, np.float32), "f", "float")
    with pytest.raises(TypeError, match="'values' must be float32 or its bit patterns, u32, but got float64"):
        convert(np.zeros(3), "f", "d")
    assert convert(np.zeros((2, 0, 3), np.float32), "f", "q").shape == (2, 0, 3)
    assert floor(float(convert(np.float64(3.7), "df", "d"))) == 3
    assert not isinf(float(convert(np.uint32(65519), "ud", "hf")))
