"""Formulas of conversions between narrow floats and wider ones, exhaustively or at all ends, against ml_dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from xegpu_py.numerics import fcvt
from xegpu_py.numerics.formats import BF8, E2M1, HF, HF8, F, Format
from xegpu_py.numerics.narrow_floats import half_of, round_to, tf32_of

NARROW = [
    BF8,
    HF8,
    E2M1,
    Format("e2m3", 6, "f", "float6_e2m3fn", 0, 2, 3),
    Format("e3m2", 6, "f", "float6_e3m2fn", 0, 3, 2),
]
"""Formats of the project, and others of OCP's microscaling formats."""


def ops_on(source: Format):
    """The ops of the formulas on arrays of patterns of a format."""
    word, number = np.dtype(f"u{source.bytes}"), source.dtype

    def choose(truth, a, b):
        return np.where(truth, a, word.type(b).view(a.dtype) if isinstance(b, int) else b)

    return {
        "arith.andi": lambda a, b: a & word.type(b),
        "arith.ori": np.bitwise_or,
        "arith.shli": lambda a, b: a << word.type(b),
        "arith.shrui": lambda a, b: a >> word.type(b),
        "arith.addi": lambda a, b: a + word.type(b) if isinstance(b, int) else a + b,
        "arith.subi": lambda a, b: a - word.type(b),
        "arith.minui": lambda a, b: np.minimum(a, word.type(b)),
        "arith.addf": lambda a, b: a + number.type(b),
        "arith.mulf": lambda a, b: a * number.type(b),
        "arith.select": choose,
        "number": lambda bits: bits.view(number),
        "bits": lambda numbers: numbers.view(word),
        "ord": lambda bits: ~np.isnan(bits.view(number)),
        "ule": np.less_equal,
        "ult": np.less,
        "ne": np.not_equal,
    }


def patterns_of(source: Format):
    """All patterns of f16, or those of f32 whose lower half is at a tie, beside it, or at an end."""
    if source is HF:
        return np.arange(1 << 16, dtype=np.uint16)
    lower = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (np.arange(1 << 16, dtype=np.uint32)[:, None] << np.uint32(16) | lower).ravel()


@pytest.mark.parametrize("fmt", NARROW, ids=lambda fmt: fmt.name)
def test_narrow_floats_are_placed_in_halves(fmt: Format) -> None:
    patterns = np.arange(1 << fmt.bits, dtype=np.uint16)
    halves = half_of(patterns, fmt, ops_on(HF))
    exact = patterns.astype(np.uint8).view(fmt.dtype).astype(np.float16)
    exact[np.isnan(exact)] = np.uint16(HF.nan).view(np.float16)
    assert (halves.view(np.uint16) == exact.view(np.uint16)).all()
    if fmt is BF8:
        kept = half_of(patterns, fmt, ops_on(HF), canonical=False)
        assert (kept.view(np.uint16) == patterns << 8).all()


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
@pytest.mark.parametrize("source", [HF, F], ids=lambda source: source.mlir)
@pytest.mark.parametrize(
    ("fmt", "saturate"),
    [(fmt, saturate) for fmt in NARROW for saturate in (False, True) if fmt.nan or saturate],
    ids=lambda v: v.name if isinstance(v, Format) else ("infinite", "saturated")[v],
)
def test_rounding_to_narrow_floats(fmt: Format, saturate: bool, source: Format) -> None:
    patterns = patterns_of(source)
    codes = round_to(patterns, source, fmt, ops_on(source), saturate)
    numbers = patterns.view(source.dtype)
    is_nan = np.isnan(numbers)
    limited = np.clip(numbers, -fmt.finite, fmt.finite) if saturate else numbers
    expected = limited.astype(fmt.dtype)
    canonical = fmt.nan or (1 << fmt.bits - 1) - 1
    if fmt.nan:
        is_nan = np.isnan(expected.astype(np.float32))
    expected = np.where(is_nan, canonical, expected.view(np.uint8))
    np.testing.assert_array_equal(codes, expected)


def test_rounding_to_tf32() -> None:
    patterns = patterns_of(F)
    np.testing.assert_array_equal(tf32_of(patterns, ops_on(F)), fcvt(patterns.view(np.float32), "tf32").view(np.uint32))
