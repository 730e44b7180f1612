"""Scales and scaled elements: numbers in f8E8M0FNU and f4E2M1FN, `arith.scaling_extf` and `arith.scaling_truncf`."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import xegpu_py

E8M0, E2M1 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn
TYPES = {
    "i8": np.int8,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E8M0FNU": E8M0,
}


def run(body, results, *arrays):
    """What a kernel of one work item stores of vectors of 16 elements; the reference and the engines give the same."""
    names = [{v: k for k, v in TYPES.items()}[a.dtype.type] for a in arrays]
    kinds = [*names, *results]
    arguments = ", ".join(f"%p{i}: memref<16x{t}>" for i, t in enumerate(kinds))
    loads = [f"%a{i} = vector.load %p{i}[%z] : memref<16x{t}>, vector<16x{t}>" for i, t in enumerate(names)]
    stores = [
        f"vector.store %r{i}, %p{len(names) + i}[%z] : memref<16x{t}>, vector<16x{t}>" for i, t in enumerate(results)
    ]
    text = "\n".join(["%z = arith.constant 0 : index", *loads, body, *stores])
    found = []
    kernel = f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{\n{text}\ngpu.return }} }}"
    for engine in ("reference", "both"):
        made = xegpu_py.compile(kernel, engine=engine, cache="off")
        outs = []
        for start in range(0, len(arrays[0]), 16):
            given = [a[start : start + 16].copy() for a in arrays]
            into = [np.zeros(16, TYPES[t]) for t in results]
            made(*given, *into, block=1)
            outs.append(into)
        found.append([np.concatenate(column) for column in zip(*outs)])
    for a, b in zip(*found):
        assert a.tobytes() == b.tobytes()
    return found[0]


def same(found, expected):
    """Equal bits, but for the NaN's."""
    expected = np.asarray(expected).astype(found.dtype)
    nan = np.isnan(found)
    assert (nan == np.isnan(expected)).all()
    assert found[~nan].tobytes() == expected[~nan].tobytes()


def test_scales_are_numbers():
    scales = np.arange(256, dtype=np.uint8).view(E8M0)
    kinds = ("f32", "bf16", "f16", "f64")
    body = "\n".join(f"%r{i} = arith.extf %a0 : vector<16xf8E8M0FNU> to vector<16x{t}>" for i, t in enumerate(kinds))
    with np.errstate(over="ignore"):
        for found, kind in zip(run(body, kinds, scales), kinds):
            same(found, scales.astype(np.float64).astype(TYPES[kind]))


@pytest.mark.parametrize("kind", ["f32", "bf16", "f16", "f64"])
def test_a_number_rounds_to_the_power_of_two_below_it(kind):
    random = np.random.default_rng(0)
    numbers = np.ldexp(random.uniform(1, 2, 240), random.integers(-126 if kind != "f16" else -24, 15, 240))
    exact = [0.0, -1.5, 1.0, 2.0, 1.9999, 0.5, 3.0, 4.0, 65504.0, 1e-30, 5e-39, -0.0, np.inf, -np.inf, np.nan, 1.25]
    with np.errstate(over="ignore"):
        numbers = np.concatenate([numbers, exact]).astype(TYPES[kind])
    (found,) = run(f"%r0 = arith.truncf %a0 : vector<16x{kind}> to vector<16xf8E8M0FNU>", ["f8E8M0FNU"], numbers)
    for number, code in zip(numbers.astype(np.float64), found.view(np.uint8)):
        if not np.isfinite(number):
            assert code == 255
            continue
        size, power = abs(Fraction(number)), Fraction(2) ** (int(code) - 127)
        assert power <= size < 2 * power or (code == 0 and size < power), number


@pytest.mark.parametrize(("element", "kind"), [("f8E5M2", "bf16"), ("f8E4M3FN", "f16"), ("f8E5M2", "f32")])
def test_scaled_elements_are_products_and_quotients(element, kind):
    random = np.random.default_rng(1)
    elements = random.integers(0, 256, 256).astype(np.uint8).view(TYPES[element])
    scales = random.integers(110, 144, 256).astype(np.uint8)
    scales[7::16] = 255
    numbers = np.ldexp(random.normal(size=256), random.integers(-10, 10, 256)).astype(TYPES[kind])
    body = f"""
      %r0 = arith.scaling_extf %a0, %a2 : vector<16x{element}>, vector<16xf8E8M0FNU> to vector<16x{kind}>
      %r1 = arith.scaling_truncf %a1, %a2 : vector<16x{kind}>, vector<16xf8E8M0FNU> to vector<16x{element}>"""
    wide, narrow = run(body, [kind, element], elements, numbers, scales.view(E8M0))
    with np.errstate(all="ignore"):
        factor = scales.view(E8M0).astype(np.float64).astype(TYPES[kind]).astype(np.float64)
        same(wide, (elements.astype(np.float64) * factor).astype(TYPES[kind]))
        # A power of two divides f32 and more, and the quotient is rounded to the format of the number first.
        same(narrow, (numbers.astype(np.float64) / factor).astype(TYPES[kind]).astype(TYPES[element]))


@pytest.mark.parametrize("kind", ["f32", "bf16", "f16"])
def test_elements_of_four_bits(kind):
    """All codes of f4E2M1FN by all of some scales, and numbers back to codes: saturated, and NaN the greatest."""
    codes = np.tile(np.arange(16, dtype=np.int8), 8)
    scales = np.repeat(np.arange(123, 131, dtype=np.uint8), 16)
    body = f"""
      %b = arith.trunci %a0 : vector<16xi8> to vector<16xi4>
      %f = arith.bitcast %b : vector<16xi4> to vector<16xf4E2M1FN>
      %r0 = arith.scaling_extf %f, %a2 : vector<16xf4E2M1FN>, vector<16xf8E8M0FNU> to vector<16x{kind}>
      %n = arith.scaling_truncf %a1, %a2 : vector<16x{kind}>, vector<16xf8E8M0FNU> to vector<16xf4E2M1FN>
      %r1 = arith.extf %n : vector<16xf4E2M1FN> to vector<16xf32>"""
    numbers = np.random.default_rng(2).normal(scale=4, size=128).astype(TYPES[kind])
    numbers[:3] = np.inf, -np.inf, np.nan
    wide, back = run(body, [kind, "f32"], codes, numbers, scales.view(E8M0))
    factor = np.ldexp(1.0, scales.astype(int) - 127)
    same(wide, codes.view(np.uint8).view(E2M1).astype(np.float64) * factor)
    quotients = (numbers.astype(np.float64) / factor).astype(TYPES[kind]).astype(np.float32)
    expected = np.clip(quotients, -6, 6).astype(E2M1).astype(np.float32)
    expected[np.isnan(quotients)] = 6
    same(back, expected)
