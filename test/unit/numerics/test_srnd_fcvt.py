"""SRND and FCVT, against exact rationals and against ml_dtypes; HF to BF8 for every half and every random byte."""

from fractions import Fraction
from math import isinf, isnan

import ml_dtypes
import numpy as np
import pytest
from effort import some

from xegpu_py.numerics import fcvt, srnd

from .exact import nearest, truncated, value

HALVES = np.arange(1 << 16, dtype=np.uint16)
RANDOM = np.random.default_rng(1)


def expected_srnd(bits: int, random: int, source: str, target: str, width: int) -> int:
    """By the text of SRND.md: add at mantissa bit 0, then truncate."""
    sign, magnitude = bits >> (width - 1), bits & ((1 << (width - 1)) - 1)
    found = value(magnitude, source)
    target_sign = sign << (15 if target == "hf" else 7)
    nan_pattern, infinity = (0x7E00, 0x7C00) if target == "hf" else (0x7E, 0x7C)
    if isnan(found):
        return nan_pattern
    if isinf(found):
        return target_sign | infinity
    moved = value(magnitude + random, source)
    # The greatest numbers and the random bits together pass the pattern of infinity.
    if not isinstance(moved, Fraction):
        return target_sign | infinity
    return target_sign | truncated(Fraction(moved), target)


def test_srnd_of_every_half_and_every_byte() -> None:
    # The pattern of the sum is among 65,536, each of which is looked up in a table made from rationals.
    magnitudes = range(1 << 15)
    table = np.array([expected_srnd(m, 0, "hf", "bf8", 16) for m in magnitudes], np.uint8)
    random = np.array(some(range(256), 1 / 5), np.uint16)
    for halves in np.array_split(HALVES, 100):
        magnitude = (halves & 0x7FFF).astype(np.int64)[:, None]
        special = magnitude >= 0x7C00
        expected = table[np.where(special, magnitude, np.minimum(magnitude + random, 0x7C00))]
        negative = (halves[:, None] >> 15).astype(bool) & ~(magnitude > 0x7C00)
        expected = expected | np.where(negative, 0x80, 0).astype(np.uint8)
        found = srnd(halves[:, None].view(np.float16), random, "bf8")
        assert found.dtype == ml_dtypes.float8_e5m2
        np.testing.assert_array_equal(found.view(np.uint8), expected)


def test_mean_of_halves_is_exact() -> None:
    """HF to BF8: of every half up to the greatest BF8, over all random bytes, in units of the least half."""
    for halves in np.array_split(HALVES[: np.float16(57344).view(np.uint16) + 1].view(np.float16), 100):
        found = srnd(halves[:, None], np.arange(256, dtype=np.uint16), "bf8")
        total = (found.astype(np.float64) * 2.0**24).astype(np.int64).sum(axis=1)
        np.testing.assert_array_equal(total, 256 * (halves.astype(np.float64) * 2.0**24).astype(np.int64))


@pytest.mark.parametrize("exponent", range(-25, 3))
def test_mean_of_floats(exponent: int) -> None:
    """F to HF over all random words: exact for normal results; of subnormal ones only the highest go up."""
    mantissas = np.unique([0, 1, 0x1FFF, 0x2000, 0x7FFFFF, *RANDOM.integers(0, 1 << 23, 60)]).astype(np.uint32)
    bits = np.uint32(exponent + 127 << 23) | mantissas
    words = np.arange(1 << 13, dtype=np.uint32)
    found = srnd(bits[:, None], words, "hf")
    extra = max(-14 - exponent, 0)
    # In units of the float's last place: the mantissa with its leading bit, and steps of the result.
    whole, step = mantissas.astype(np.int64) + (1 << 23), 1 << 13 + extra
    steps = (found.astype(np.float64) * 2.0 ** (23 - exponent)).astype(np.int64) // step
    below = whole // step
    up = (steps - below[:, None]).sum(axis=1)
    np.testing.assert_array_equal(up, np.maximum(whole % step - (step - (1 << 13)), 0))
    if not extra:
        np.testing.assert_array_equal(steps.sum(axis=1) * step, whole << 13)


def test_srnd_uses_the_lowest_bits_only() -> None:
    words = RANDOM.integers(0, 1 << 16, 4096).astype(np.uint16)
    np.testing.assert_array_equal(
        srnd(HALVES[:4096], words, "bf8").view(np.uint8), srnd(HALVES[:4096], words & 0xFF, "bf8").view(np.uint8)
    )
    floats = RANDOM.integers(0, 1 << 32, 4096).astype(np.uint32)
    words = RANDOM.integers(0, 1 << 32, 4096).astype(np.uint32)
    np.testing.assert_array_equal(
        srnd(floats, words, "hf").view(np.uint16), srnd(floats, words & 0x1FFF, "hf").view(np.uint16)
    )


def interesting_floats() -> np.ndarray:
    """Patterns around every half, around powers of two, subnormals, the overflow boundary, infinities and NaNs."""
    halves = HALVES.view(np.float16).astype(np.float32).view(np.uint32)
    powers = (np.arange(256, dtype=np.uint32) << 23)[:, None] + np.array([0, 1, 2, 0x1FFF, 0x2000, 0x7FFFFF], np.uint32)
    around = [halves[::7] + np.uint32(d) for d in (-0x2000 & 0xFFFFFFFF, -1 & 0xFFFFFFFF, 0, 1, 0xFFF, 0x1000, 0x1FFF)]
    patterns = np.concatenate([powers.ravel(), *around, RANDOM.integers(0, 1 << 32, 20_000).astype(np.uint32)])
    return np.concatenate([patterns, patterns | np.uint32(0x80000000)])


def test_srnd_of_floats_against_rationals() -> None:
    patterns = RANDOM.choice(interesting_floats(), 30_000)
    random = RANDOM.choice(np.array([0, 1, 0xFFF, 0x1000, 0x1FFE, 0x1FFF, *range(0, 0x2000, 97)], np.uint32), 30_000)
    found = srnd(patterns, random, "hf").view(np.uint16)
    expected = [expected_srnd(int(b), int(r), "f", "hf", 32) for b, r in zip(patterns, random, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, np.uint16))


def test_srnd_of_millions_of_random_words() -> None:
    """Truncation of the sum, done by another way: numpy rounds halves to nearest, and those that went up come down."""
    patterns = RANDOM.integers(0, 1 << 32, 3_000_000).astype(np.uint32)
    random = RANDOM.integers(0, 1 << 13, len(patterns)).astype(np.uint32)
    magnitude = patterns & 0x7FFFFFFF
    moved = np.minimum(magnitude + random, 0x7F800000).view(np.float32)
    with np.errstate(over="ignore"):
        rounded = moved.astype(np.float16)
        up = rounded.astype(np.float32) > moved
    bits = rounded.view(np.uint16) - up
    bits = np.where(moved >= 65536, np.uint16(0x7C00), bits)
    bits = bits | (patterns >> 16).astype(np.uint16) & 0x8000
    bits = np.where(magnitude > 0x7F800000, np.uint16(0x7E00), bits)
    np.testing.assert_array_equal(srnd(patterns, random, "hf").view(np.uint16), bits)


@pytest.mark.parametrize(("source", "target", "random_bits"), [("hf", "bf8", 8), ("f", "hf", 13)])
def test_srnd_is_unbiased_in_the_mean(source: str, target: str, random_bits: int) -> None:
    """Over all random words the mean of the results is the number itself, for normal results that do not overflow."""
    random = np.arange(1 << random_bits)
    for _ in range(50):
        if source == "hf":
            number = np.array([RANDOM.integers(0x0400, 0x7700)], np.uint16)
            results = srnd(number, random.astype(np.uint16), target)
        else:
            number = np.array([RANDOM.integers(0x38800000, 0x47000000)], np.uint32)
            results = srnd(number, random.astype(np.uint32), target)
        values, counts = np.unique(results, return_counts=True)
        mean = sum(Fraction(float(v)) * int(n) for v, n in zip(values, counts)) / len(random)
        assert mean == value(int(number[0]), source)


def test_srnd_arguments() -> None:
    with pytest.raises(TypeError, match="'src0' must be float32"):
        srnd(np.zeros(3, np.float64), np.zeros(3, np.uint32), "hf")
    with pytest.raises(TypeError, match="'src1' must be float16"):
        srnd(np.zeros(3, np.float16), np.zeros(3, np.int64), "bf8")
    with pytest.raises(ValueError, match="'dst_type' must be 'hf' or 'bf8', but got 'bf'"):
        srnd(np.zeros(3, np.float16), np.zeros(3, np.uint16), "bf")
    assert srnd(np.zeros((2, 3), np.float16), np.zeros(3, np.uint16), "bf8").shape == (2, 3)
    assert srnd(np.float16(1), np.uint16(0), "bf8").shape == ()


def test_fcvt_of_every_half_to_bf8() -> None:
    found = fcvt(HALVES.view(np.float16), "bf8")
    np.testing.assert_array_equal(found.view(np.uint8), fcvt(HALVES, "bf8").view(np.uint8))
    expected = []
    for bits in range(1 << 16):
        number, sign = value(bits & 0x7FFF, "hf"), bits >> 8 & 0x80
        expected.append(0x7E if isnan(number) else sign | (0x7C if isinf(number) else nearest(Fraction(number), "bf8")))
    np.testing.assert_array_equal(found.view(np.uint8), np.array(expected, np.uint8))
    with np.errstate(invalid="ignore"):
        theirs = HALVES.view(np.float16).astype(ml_dtypes.float8_e5m2)
    same = ~np.isnan(theirs.astype(np.float32))
    np.testing.assert_array_equal(found.view(np.uint8)[same], theirs.view(np.uint8)[same])


def test_fcvt_of_every_bf8_to_half_is_exact() -> None:
    bits = np.arange(256, dtype=np.uint8)
    found = fcvt(bits, "hf")
    for b, h in zip(bits, found.view(np.uint16), strict=True):
        number = value(int(b), "bf8")
        assert (h == 0x7E00) if isnan(number) else (value(int(h), "hf") == number and h >> 15 == b >> 7)
    finite = ~np.isnan(found)
    np.testing.assert_array_equal(fcvt(found, "bf8").view(np.uint8)[finite], bits[finite])


def test_fcvt_to_tf32() -> None:
    patterns = RANDOM.choice(interesting_floats(), 60_000)
    found = fcvt(patterns, "tf32").view(np.uint32)
    assert not (found & 0x1FFF).any()
    for bits, result in zip(patterns[:20_000], found, strict=False):
        number = value(int(bits), "f")
        sign = int(bits) & 0x80000000
        if isnan(number):
            assert result == 0x7FC00000
        elif isinf(number):
            assert result == bits
        elif bits & 0x7F800000 == 0:
            assert result == sign
        else:
            assert result == sign | nearest(abs(Fraction(number)), "tf32") << 13


def test_fcvt_arguments() -> None:
    with pytest.raises(TypeError, match="'src0' must be float16"):
        fcvt(np.zeros(3, np.float32), "bf8")
    with pytest.raises(TypeError, match="'src0' must be float8_e5m2"):
        fcvt(np.zeros(3, np.float16), "hf")
    with pytest.raises(ValueError, match="'dst_type' must be 'bf8', 'hf' or 'tf32', but got 'f'"):
        fcvt(np.zeros(3, np.float32), "f")
