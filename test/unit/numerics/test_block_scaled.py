"""BDPAS and the conversion to block-scaled elements, against rational arithmetic and the definition of the formats."""

from bisect import bisect_left
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import inf, isfinite, isnan, nan

import ml_dtypes
import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from xegpu_py.numerics import bdpas, dpas, multiply_scaled, pack_a, pack_b, pack_scales, quantize, truncate
from xegpu_py.numerics.formats import PRECISIONS, TYPES

from .exact import FORMATS, nearest, value
from .test_dpas import FLUSHED, field, kept, operands, product, rounded, width

PAIRS = [("bf", "bf"), ("hf", "hf"), ("e2m1", "e2m1"), *((w, a) for w in ("bf8", "hf8") for a in ("bf8", "hf8"))]
DEPTHS = {"bf": 16, "hf": 16, "bf8": 32, "hf8": 32, "e2m1": 64}
MODELS = ("fma", "stage", "exact")


def types_of(precision: str) -> tuple[str, str]:
    return ("f", "hf" if precision == "hf" else "bf")


def scaled(x: Fraction | float, pattern: int | None) -> Fraction | float:
    """A number times its scale."""
    if pattern is None:
        return x
    if pattern == 255:
        return nan
    return x * Fraction(2) ** (pattern - 127) if isinstance(x, Fraction) else x


CHECKED = (0, 5)
"""Rows that are computed in rationals."""


def expected(W, A, acc, src1, src2, src3, src4, dst_type, src0_type, model, flushed=()) -> list[int]:
    size = width(src0_type)
    sums = [
        [value(kept(field(acc, i, size), src0_type, flushed), src0_type) if acc is not None else Fraction(0)]
        for i in range(128)
    ]
    ops = DEPTHS[W] // 8
    for r, i, d, pairs in operands(W, A, 8, 8, 16, src1, src2):
        if r not in CHECKED:
            continue
        terms = sums[r * 16 + i]
        for j, (a, b) in enumerate(pairs):
            block = (d * ops + j) // 32
            x = scaled(value(kept(a, A, flushed), A), None if src4 is None else src4[32 * block + r])
            y = scaled(value(kept(b, W, flushed), W), None if src3 is None else src3[32 * block + i])
            terms.append(product(x, y))
            if model == "fma":
                terms[:] = [value(rounded(terms, "f"), "f")]
        if model == "stage":
            terms[:] = [value(rounded(terms, "f"), "f")]
    out = []
    for terms in (sums[r * 16 + i] for r in CHECKED for i in range(16)):
        bits = rounded(terms, "f")
        bits = bits if dst_type == "f" else rounded([value(bits, "f")], dst_type)
        out.append(kept(bits, dst_type, flushed))
    return out


def check(W, A, acc, src1, src2, src3, src4, dst_type, src0_type, model, flushed=()) -> None:
    def array(data):
        return None if data is None else np.frombuffer(data, np.uint8)

    types = {"W": W, "A": A, "dst_type": dst_type, "src0_type": src0_type, "model": model}
    found = bdpas(*map(array, (acc, src1, src2, src3, src4)), **types, flushed=flushed)
    patterns = found.view(f"u{TYPES[dst_type].bytes}").reshape(8, 16)[list(CHECKED)]
    assert patterns.ravel().tolist() == expected(
        acc=acc, src1=src1, src2=src2, src3=src3, src4=src4, **types, flushed=flushed
    )


@settings(max_examples=examples(60))
@given(st.data())
def test_bits(data):
    W, A = data.draw(st.sampled_from(PAIRS))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dst_type, src0_type = (data.draw(st.sampled_from(types_of(W))) for _ in range(2))
    narrow = data.draw(st.booleans())

    def numbers(precision: str, count: int) -> bytes:
        """All patterns, or those without infinities and NaNs."""
        bits = width(precision)
        if bits == 4:
            return rng.bytes(count // 2)
        patterns = rng.integers(0, 1 << bits, count)
        if narrow:
            exponent_bits, mantissa_bits, _ = FORMATS[precision]
            top = ((1 << exponent_bits) - 1) << mantissa_bits
            patterns = np.where(patterns & top == top, patterns ^ (1 << mantissa_bits), patterns)
        return patterns.astype(f"u{bits // 8}").tobytes()

    def scales(count: int) -> bytes | None:
        if data.draw(st.integers(0, 4)) == 0:
            return None
        low, high = data.draw(st.sampled_from([(120, 134), (0, 255), (0, 256), (0, 4), (250, 255)]))
        return rng.integers(low, high, count).astype(np.uint8).tobytes()

    K = DEPTHS[W]
    acc = None if data.draw(st.booleans()) else numbers(src0_type, 128)
    src1, src2 = numbers(W, 16 * K), numbers(A, 8 * K)
    model, flushed = data.draw(st.sampled_from(MODELS)), data.draw(st.lists(st.sampled_from(FLUSHED), unique=True))
    check(W, A, acc, src1, src2, scales(48), scales(40), dst_type, src0_type, model, flushed)


@pytest.mark.each_value
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("W, A", PAIRS)
def test_scales_beyond_f32(W, A, model):
    """Scaled products exceed the range of f32 on both sides, and their sum is within it."""
    K = DEPTHS[W]
    ones = pack_a(np.ones((8, K)).astype(PRECISIONS[A].dtype), A).tobytes()
    matrix = np.where(np.arange(K)[:, None] % 3 == 0, -1.5, 1.0) * np.ones((1, 16))
    src1 = pack_b(matrix.astype(PRECISIONS[W].dtype), W).tobytes()
    for rows, columns in ((254, 254), (0, 0), (0, 254), (254, 1), (1, 127), (255, 0)):
        check(W, A, None, src1, ones, bytes([columns] * 48), bytes([rows] * 40), "f", "f", model)


@pytest.mark.parametrize("W, A", PAIRS)
@pytest.mark.parametrize("model", MODELS)
def test_without_scales_is_dpas(W, A, model):
    rng = np.random.default_rng(1)
    K = DEPTHS[W]
    src1, src2 = (np.frombuffer(rng.bytes(n * K * width(W) // 8), np.uint8) for n in (16, 8))
    plain = dpas(None, src1, src2, W=W, A=A, SD=8, RC=8, exec_size=16, dst_type="f", src0_type="f", model=model)
    for scale in (None, np.full(48, 127, np.uint8)):
        found = bdpas(None, src1, src2, scale, scale, W=W, A=A, dst_type="f", src0_type="f", model=model)
        assert np.array_equal(found, plain)


@pytest.mark.parametrize("W, A", PAIRS)
def test_whole_matrices(W, A):
    """Matrices of any size have the results of the instructions, one after the other."""
    rng = np.random.default_rng(2)
    K, steps = DEPTHS[W], 4
    a = (
        truncate(rng.standard_normal((8, steps * K)).astype(np.float32), "f", A)
        if A in ("bf8", "hf8", "e2m1")
        else (rng.standard_normal((8, steps * K)).astype(PRECISIONS[A].dtype))
    )
    b = (
        truncate(rng.standard_normal((steps * K, 16)).astype(np.float32), "f", W)
        if W in ("bf8", "hf8", "e2m1")
        else (rng.standard_normal((steps * K, 16)).astype(PRECISIONS[W].dtype))
    )
    scale_a = rng.integers(100, 150, (8, steps * K // 32)).astype(np.uint8)
    scale_b = rng.integers(100, 150, (steps * K // 32, 16)).astype(np.uint8)
    narrow = types_of(W)[1]
    found = multiply_scaled(None, a, b, scale_a, scale_b, W=W, A=A, dst_type=narrow, src0_type=narrow)
    total = None
    for k in range(0, steps * K, K):
        blocks = slice(k // 32, max((k + K) // 32, k // 32 + 1))
        total = bdpas(
            total,
            pack_b(b[k : k + K], W),
            pack_a(a[:, k : k + K], A),
            pack_scales(scale_b[blocks]),
            pack_scales(scale_a[:, blocks].T),
            W=W,
            A=A,
            dst_type=narrow,
            src0_type=narrow,
        )
    assert np.array_equal(found.reshape(-1).view(np.uint8), total)


def test_what_is_refused():
    zeros = np.zeros(1024, np.uint8)
    with pytest.raises(ValueError, match="W = bf8 and A = e2m1 cannot be multiplied"):
        bdpas(None, zeros, zeros, zeros, zeros, W="bf8", A="e2m1", dst_type="f", src0_type="f")
    with pytest.raises(ValueError, match="'dst_type' must be f or bf with precision hf8, but got 'hf'"):
        bdpas(None, zeros, zeros, zeros, zeros, W="hf8", A="hf8", dst_type="hf", src0_type="f")
    with pytest.raises(ValueError, match="'src3' must have 48 bytes, but has 16"):
        bdpas(None, zeros, zeros, zeros[:16], zeros, W="e2m1", A="e2m1", dst_type="f", src0_type="f")
    with pytest.raises(ValueError, match=r"'scale_a' must have the shape \(8, 2\), not \(8, 1\)"):
        a, b = np.zeros((8, 64), np.float16), np.zeros((64, 16), np.float16)
        multiply_scaled(None, a, b, zeros[:8, None], None, W="hf", A="hf", dst_type="f", src0_type="f")
    with pytest.raises(TypeError, match="'scales' must be float8_e8m0fnu"):
        pack_scales(np.zeros((1, 16), np.float32))


@cache
def finite_elements(name: str) -> list[tuple[Fraction, int]]:
    """The finite elements without a sign, in order, and their patterns."""
    elements = [(value(p, name), p) for p in range(1 << (width(name) - 1))]
    return [(Fraction(x), p) for x, p in elements if isfinite(float(x))]


def nearest_element(x: Fraction | float, name: str) -> int:
    """The element nearest to a number, ties to an even pattern."""
    bits, patterns = width(name), finite_elements(name)
    most = patterns[-1][1]
    if isinstance(x, float) and isnan(x):
        return {"bf8": 0x7E, "hf8": 0x7F, "e2m1": 7}[name]
    sign = (x < 0 or (isinstance(x, float) and x == 0)) << (bits - 1)
    if isinstance(x, float):
        return sign | (most if x in (inf, -inf) else 0)
    above = bisect_left(patterns, (abs(x), 0))
    return sign | min(patterns[max(above - 1, 0) : above + 1], key=lambda vp: (abs(vp[0] - abs(x)), vp[1] & 1))[1]


@pytest.mark.each_value
@pytest.mark.parametrize("dst", ["bf8", "hf8", "e2m1"])
@pytest.mark.parametrize("src", ["f", "hf", "bf"])
def test_truncation(src, dst):
    rng = np.random.default_rng(3)
    bits = width(src)
    # Middles between elements, and their neighbours.
    elements = [value(p, dst) for p in range(1 << (width(dst) - 1))]
    finite = sorted(Fraction(e) for e in elements if isfinite(float(e)))
    middles = [nearest((x + y) / 2, src) for x, y in pairwise(finite)]
    near = [p + n for p in middles for n in (-1, 0, 1) if p + n >= 0]
    special = [0, 1, ((1 << FORMATS[src][0]) - 1) << FORMATS[src][1], (1 << (bits - 1)) - 1]
    positive = [*near, *special, *rng.integers(0, 1 << (bits - 1), 50).tolist()]
    patterns = [p | s << (bits - 1) for p in positive for s in (0, 1)]
    found = truncate(np.array(patterns, np.uint64).astype(f"u{bits // 8}"), src, dst).view(np.uint8)
    assert found.tolist() == [nearest_element(value(p, src), dst) for p in patterns]


@pytest.mark.parametrize("dst, most", [("bf8", 15), ("hf8", 8), ("e2m1", 2)])
def test_quantize(dst, most):
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((6, 64)) * 2.0 ** rng.integers(-140, 120, (6, 1))).astype(np.float32)
    x[0, :32], x[1, 5], x[2, 40] = 0, np.inf, np.nan
    elements, scales = quantize(x, dst)
    assert scales.dtype == ml_dtypes.float8_e8m0fnu
    for row in range(6):
        for block in range(2):
            numbers = [float(v) for v in x[row, 32 * block : 32 * block + 32]]
            code = int(scales.view(np.uint8)[row, block])
            if not all(map(isfinite, numbers)):
                assert code == 255
                continue
            greatest = max(map(abs, numbers))
            exponent = int(np.floor(np.log2(greatest))) - most if greatest else -127
            assert code == max(exponent + 127, 0)
            scale = Fraction(2) ** (code - 127)
            want = [nearest_element(-0.0 if v == 0 and np.signbit(v) else Fraction(v) / scale, dst) for v in numbers]
            assert elements.view(np.uint8)[row, 32 * block : 32 * block + 32].tolist() == want


def test_packing_of_e2m1():
    """Two elements a byte, from the lowest bits on."""
    matrix = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)
    assert pack_a(matrix.reshape(2, 8), "e2m1").tolist() == [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]
    column = np.repeat(matrix.reshape(16, 1), 16, axis=1)
    words = pack_b(column, "e2m1").view("<u4")
    assert words.tolist() == [0x76543210] * 16 + [0xFEDCBA98] * 16
