"""Fused multiply-add against exact rationals."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from effort import examples

from xegpu_py.numerics import fma

from .exact import FORMATS, nearest, value

DTYPES = {"hf": np.float16, "bf": ml_dtypes.bfloat16, "f": np.float32, "df": np.float64}
WORDS = {"hf": np.uint16, "bf": np.uint16, "f": np.uint32, "df": np.uint64}
NANS = {"hf": 0x7E00, "bf": 0x7FC0, "f": 0x7FC00000, "df": 0x7FF8 << 48}
NAMES = list(DTYPES)


def expected(a: int, b: int, c: int, fmt: str) -> int:
    x, y, z = (value(bits, fmt) for bits in (a, b, c))
    top = sum(FORMATS[fmt][:2])
    numbers = [float(n) if isinstance(n, float) else n for n in (x, y, z)]
    special = [isinstance(n, float) and n != 0 for n in numbers]
    product_negative = (a ^ b) >> top & 1
    if any(special):
        if any(s and math.isnan(n) for s, n in zip(special, numbers, strict=True)):
            return NANS[fmt]
        infinity = ((1 << FORMATS[fmt][0]) - 1) << FORMATS[fmt][1]
        if special[0] or special[1]:
            if x == 0 or y == 0 or (special[2] and product_negative != c >> top):
                return NANS[fmt]
            return infinity | product_negative << top
        return infinity | (c >> top) << top
    total = Fraction(x) * Fraction(y) + Fraction(z)
    if total == 0:
        negative = product_negative and c >> top and (x == 0 or y == 0) and z == 0
        return int(bool(negative)) << top
    return nearest(total, fmt)


def check(a: np.ndarray, b: np.ndarray, c: np.ndarray, fmt: str) -> None:
    found = fma(a, b, c, fmt)
    assert found.dtype == DTYPES[fmt]
    words = found.view(WORDS[fmt])
    want = [expected(*terms, fmt) for terms in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]
    np.testing.assert_array_equal(words, np.array(want, WORDS[fmt]))


def random_bits(rng: np.random.Generator, fmt: str, count: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Random patterns of either sign, with exponents in a part of their range."""
    exponent, fraction, _ = FORMATS[fmt]
    top = (1 << exponent) - 1
    fields = rng.integers(int(low * top), int(high * top) + 1, count).astype(np.uint64)
    mantissas = rng.integers(0, 1 << fraction, count).astype(np.uint64)
    # Runs of zeros and ones, which make sums exact or put them into the middle between two numbers.
    lengths = rng.integers(0, fraction + 1, count).astype(np.uint64)
    run = (np.uint64(1) << lengths) - np.uint64(1)
    kind = rng.integers(0, 3, count)
    mantissas = np.where(kind == 0, mantissas, np.where(kind == 1, mantissas & ~run, mantissas | run))
    signs = rng.integers(0, 2, count).astype(np.uint64)
    return (signs << np.uint64(exponent + fraction) | fields << np.uint64(fraction) | mantissas).astype(WORDS[fmt])


def to_bits(numbers: np.ndarray, fmt: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return numbers.astype(DTYPES[fmt]).view(WORDS[fmt])


@pytest.mark.parametrize("fmt", NAMES)
def test_random(fmt: str) -> None:
    rng = np.random.default_rng(1)
    ranges = [(0, 1), (0.4, 0.6), (0.48, 0.52)]
    terms = [[random_bits(rng, fmt, examples(4000, 0.25), *limits) for limits in ranges] for _ in range(3)]
    a, b, c = (np.concatenate(parts) for parts in terms)
    check(a, b, c, fmt)


@pytest.mark.parametrize("fmt", NAMES)
def test_cancellation(fmt: str) -> None:
    """Addends that are the negative product, rounded, or next to that."""
    rng = np.random.default_rng(2)
    a, b = (random_bits(rng, fmt, examples(3000, 0.25), *limits) for limits in ((0.3, 0.7), (0.1, 0.9)))
    with np.errstate(all="ignore"):
        product = a.view(DTYPES[fmt]).astype(np.float64) * b.view(DTYPES[fmt]).astype(np.float64)
    c = to_bits(-product, fmt)
    near = c.astype(np.int64) + rng.integers(-2, 3, len(c))
    for addend in (c, near.astype(WORDS[fmt])):
        check(a, b, addend, fmt)


@pytest.mark.parametrize("fmt", NAMES)
def test_subnormals(fmt: str) -> None:
    """Products that are near or below the least number, with addends of like size, and normal ones."""
    rng = np.random.default_rng(3)
    for limits in ((0.1, 0.4), (0.2, 0.3), (0.24, 0.27), (0.0, 0.2)):
        a, b = (random_bits(rng, fmt, examples(1200, 0.25), *limits) for _ in range(2))
        for high in (0.0, 0.05, 0.5):
            check(a, b, random_bits(rng, fmt, examples(1200, 0.25), 0.0, high), fmt)


@pytest.mark.parametrize("fmt", NAMES)
def test_overflow(fmt: str) -> None:
    rng = np.random.default_rng(4)
    for limits in ((0.6, 0.99), (0.72, 0.78), (0.9, 0.999)):
        a, b = (random_bits(rng, fmt, examples(1200, 0.25), *limits) for _ in range(2))
        for low in (0.5, 0.9, 0.995):
            check(a, b, random_bits(rng, fmt, examples(1200, 0.25), low, 0.999), fmt)


# Factors whose product is next to a power of two: one less, one more, and the power itself.
ALMOST = {
    "hf": [(2**10 - 1, 2**10 + 1, 20), (2**9 + 2**5 + 1, 2**9 - 2**5 + 1, 18), (2, 2, 2)],
    "bf": [(2**7 - 1, 2**7 + 1, 14), (145, 113, 14), (2, 2, 2)],
    "f": [(2**23 - 1, 2**23 + 1, 46), (2**23 + 2**12 + 1, 2**23 - 2**12 + 1, 46), (2, 2, 2)],
    "df": [(2**52 - 1, 2**52 + 1, 104), (2**51 + 2**26 + 1, 2**51 - 2**26 + 1, 102), (2, 2, 2)],
}


@pytest.mark.parametrize("fmt", NAMES)
def test_middles(fmt: str) -> None:
    """Sums in the middle between two numbers, or off it by less than twice the bits can tell, at all sizes."""
    exponent, fraction, _ = FORMATS[fmt]
    bias = (1 << (exponent - 1)) - 1
    least = 1 - bias
    rng = np.random.default_rng(5)
    found = []
    for i in range(examples(6000, 0.25)):
        # Each second one from the least to beyond the greatest numbers, the others subnormal, or next to the ends.
        lead = int(rng.choice([rng.integers(least, bias + 1), rng.choice([least - 1, least, least + 1, bias])]))
        quantum = max(lead, least) - fraction
        first = 0 if lead < least else 1 << fraction
        end = 1 << (fraction + (lead >= least))
        steps = int(rng.choice([rng.integers(first, end), first, end - 1, first + 1, end - 2]))
        # The addend has the steps, and the product half of one, more or less.
        x, y, power = ALMOST[fmt][i % 3]
        assert x * y - 2**power == (-1, 1, 0)[i % 3]
        total = quantum - 1 - power
        low, high = (
            max(least - fraction, total - bias + x.bit_length()),
            min(bias - fraction, total + bias + fraction - 1),
        )
        if low > high:
            continue
        shift = int(rng.integers(low, high + 1))
        terms = [Fraction(x) * Fraction(2) ** shift, Fraction(y) * Fraction(2) ** (total - shift)]
        addend = steps * Fraction(2) ** quantum
        if max(terms) >= 2 ** (bias + 1):
            continue
        bits = [nearest(number, fmt) for number in (*terms, addend)]
        assert all(value(b, fmt) == n for b, n in zip(bits, (*terms, addend), strict=True))
        signs = [int(s) << (exponent + fraction) for s in rng.integers(0, 2, 3)]
        found.append([b | s for b, s in zip(bits, signs, strict=True)])
        # The product is the middle, and the addend is tiny.
        odd = 2 * steps + 1
        for divisor in (3, 5, 7, 9, 11, 13):
            if odd % divisor == 0 and quantum - 1 >= least - fraction:
                a = nearest(Fraction(odd // divisor) * Fraction(2) ** (quantum - 1), fmt)
                found.append([a | signs[0], nearest(Fraction(divisor), fmt), int(rng.integers(0, 2)) | signs[2]])
                break
    a, b, c = (np.array(terms, WORDS[fmt]) for terms in zip(*found, strict=True))
    assert len(a) > examples(3000, 0.25)
    check(a, b, c, fmt)


@pytest.mark.parametrize("fmt", NAMES)
def test_special_values(fmt: str) -> None:
    exponent, fraction, _ = FORMATS[fmt]
    top = 1 << (exponent + fraction)
    infinity = ((1 << exponent) - 1) << fraction
    one = ((1 << (exponent - 1)) - 1) << fraction
    positive = [0, 1, 1 << fraction, one, one + 1, infinity - 1, infinity, infinity + 1, NANS[fmt] | 5]
    numbers = np.array([*positive, *(p | top for p in positive)], WORDS[fmt])
    a, b, c = (axis.ravel() for axis in np.meshgrid(numbers, numbers, numbers))
    check(a, b, c, fmt)


@pytest.mark.parametrize("fmt", ["hf", "bf"])
def test_many_against_python_floats(fmt: str) -> None:
    """Sums that are exact in f64, rounded once from there by their definition."""
    rng = np.random.default_rng(6)
    numbers = [rng.integers(-255, 256, 200_000) * 2.0 ** rng.integers(-4, 5, 200_000) for _ in range(3)]
    a, b, c = (n.astype(DTYPES[fmt]) for n in numbers)
    total = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    fraction = FORMATS[fmt][1]
    least = -14 if fmt == "hf" else -126
    scale = np.maximum(np.frexp(total)[1] - 1, least) - fraction
    want = np.ldexp(np.rint(np.ldexp(total, -scale)), scale)
    if fmt == "hf":
        want = np.where(np.abs(want) >= 65536, np.copysign(np.inf, want), want)
    np.testing.assert_array_equal(fma(a, b, c, fmt).astype(np.float64), want)


def test_f_in_f64_and_rationals() -> None:
    """A million usual numbers. A rounded f64 sum is right unless it is next to a midpoint; then rationals decide."""
    rng = np.random.default_rng(7)
    a, b, c = (rng.standard_normal(1 << 20).astype(np.float32) for _ in range(3))
    total = a.astype(np.float64) * b + c
    found = fma(a, b, c, "f")
    rest = total.view(np.int64) % (1 << 29)
    near = np.abs(rest - (1 << 28)) < 4
    np.testing.assert_array_equal(found[~near], total.astype(np.float32)[~near])
    check(a[near].view(np.uint32), b[near].view(np.uint32), c[near].view(np.uint32), "f")
    hard = np.argsort(np.abs(rest - (1 << 28)))[:500]
    check(a[hard].view(np.uint32), b[hard].view(np.uint32), c[hard].view(np.uint32), "f")


def test_shapes_and_arguments() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = fma(a[:, None], np.float32(2), a[0], "f")
    np.testing.assert_array_equal(found, a[:, None] * 2 + a[0])
    assert found.shape == (3, 1, 4)
    assert fma(np.float64(2), np.float64(3), np.float64(4), "df").shape == ()
    assert fma(np.zeros((0, 3), np.float16), np.float16(1), np.float16(1), "hf").shape == (0, 3)
    with pytest.raises(ValueError, match="'fmt' must be one of hf, bf, f, df, but got 'd'"):
        fma(a, a, a, "d")
    with pytest.raises(TypeError, match="'c' must be float32 or its bit patterns, u32, but got float64"):
        fma(a, a, a.astype(np.float64), "f")
    with pytest.raises(ValueError, match="shape"):
        fma(a, a, np.zeros(5, np.float32), "f")
