"""Functions with exact results: remainders, counts of bits, and integral f64, against Python's own numbers."""

import math

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.runtime.host_arrays import parse_argument

KERNEL = """
gpu.module @m {{
  gpu.func @k(%x: memref<64x{t}>, %y: memref<64x{t}>, %out: memref<64x{to}>, %one: memref<1x{to}>) kernel {{
    %c0 = arith.constant 0 : index
    %c63 = arith.constant 63 : index
    %a = vector.load %x[%c0] : memref<64x{t}>, vector<64x{t}>
    %b = vector.load %y[%c0] : memref<64x{t}>, vector<64x{t}>
    %r = {vector}
    vector.store %r, %out[%c0] : memref<64x{to}>, vector<64x{to}>
    %c = memref.load %x[%c63] : memref<64x{t}>
    %d = memref.load %y[%c63] : memref<64x{t}>
    %s = {scalar}
    memref.store %s, %one[%c0] : memref<1x{to}>
    gpu.return
  }}
}}
"""
DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
}


def run(text, t, x, y=None, to=""):
    """What an op gives for 64 elements, of which the last is computed as a scalar too."""
    to = to or t
    ops = [text.format(a=a, b=b, t=f"vector<64x{t}>" if v else t, to=f"vector<64x{to}>" if v else to)
           for a, b, v in (("%a", "%b", True), ("%c", "%d", False))]  # fmt: skip
    kernel = KERNEL.format(t=t, to=to, vector=ops[0], scalar=ops[1])
    dtype = {"tf32": np.float32}.get(to) or DTYPES.get(to) or f"i{int(to[1:]) // 8}"
    out, one = np.zeros(64, dtype), np.zeros(1, dtype)
    xegpu_py.compile(kernel, engine="both")(x, x if y is None else y, out, one)
    width = f"u{out.itemsize}"
    assert out.view(width)[63] == one.view(width)[0]
    return out


def equal(found, wanted):
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    number = ~np.isnan(found)
    np.testing.assert_array_equal(found[number], wanted[number])
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))


def remainder(x: float, y: float) -> float:
    return math.nan if math.isinf(x) or y == 0 else math.fmod(x, y)


@pytest.mark.parametrize("t", DTYPES)
def test_remainder(t):
    x, y = (parse_argument(f"bits:{t}:64:seed={n}") for n in (0, 50))
    near = np.random.default_rng(0).integers(0, 4, 64) == 0
    y = np.where(near, (x.astype(np.float64) / 3).astype(x.dtype), y)
    with np.errstate(all="ignore"):
        wanted = np.array([remainder(float(a), float(b)) for a, b in zip(x, y)]).astype(x.dtype)
    equal(run("arith.remf {a}, {b} : {t}", t, x, y).astype(np.float64), wanted.astype(np.float64))


def test_remainder_of_the_most_unlike_numbers():
    """Each bit of the longest quotient is one iteration."""
    x = np.full(64, np.finfo(np.float32).max)
    y = np.arange(1, 65, dtype=np.uint32).view(np.float32)
    equal(run("arith.remf {a}, {b} : {t}", "f32", x, y), np.array([math.fmod(a, b) for a, b in zip(x, y)], np.float32))


COUNTS = {
    "ctpop": lambda n, bits: n.bit_count(),
    "ctlz": lambda n, bits: bits - n.bit_length(),
    "cttz": lambda n, bits: (n & -n).bit_length() - 1 if n else bits,
}


@pytest.mark.each_value
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_bits(name, bits):
    rng = np.random.default_rng(bits)
    powers = [1 << int(n) for n in rng.integers(0, bits, 20)]
    numbers = [0, (1 << bits) - 1, *powers, *((1 << bits) - p for p in powers)]
    numbers += [int(n) & (1 << bits) - 1 for n in rng.integers(0, 1 << 63, 64 - len(numbers))]
    x = np.array(numbers, f"u{bits // 8}").view(f"i{bits // 8}")
    wanted = [COUNTS[name](n, bits) for n in numbers]
    np.testing.assert_array_equal(run(f"math.{name} {{a}} : {{t}}", f"i{bits}", x), wanted)


ROUNDINGS = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "round": lambda x: np.where(np.abs(x) < 2.0**52, np.copysign(np.floor(np.abs(x) + 0.5), x), x),
}


@pytest.mark.parametrize("name", ROUNDINGS)
def test_integral_numbers_of_f64(name):
    rng = np.random.default_rng(1)
    special = [0.0, 0.5, 1.5, 2.5, 1.0, 1e-300, 5e-324, 2.0**52 - 0.5, 2.0**51 + 0.5, 2.0**53, 1e300, np.inf, np.nan]
    x = np.array([s * v for v in special for s in (1, -1)])
    x = np.concatenate([x, rng.standard_normal(64 - len(x)) * 2.0 ** rng.integers(-3, 54, 64 - len(x))])
    with np.errstate(all="ignore"):
        equal(run(f"math.{name} {{a}} : {{t}}", "f64", x), ROUNDINGS[name](x))


def test_reciprocal_roots_of_f64():
    x = parse_argument("bits:f64:64")
    with np.errstate(all="ignore"):
        equal(run("math.rsqrt {a} : {t}", "f64", x), 1 / np.sqrt(x))


@pytest.mark.parametrize("to", ["tf32", "f8E5M2", "f8E4M3FN"])
def test_f64_is_rounded_once(to):
    """Numbers a little beside the middle between two of the narrow ones, of which f32 would make a tie."""
    bits = {"tf32": 10, "f8E5M2": 2, "f8E4M3FN": 3}[to]
    step = 2.0**-bits
    middle = 1 + step * (np.arange(64) % (1 << bits) + 0.5)
    x = middle * (1 + np.resize([2.0**-52, -(2.0**-52), 0.0], 64) * 2)
    places = np.floor((x - 1) / step)
    rest = (x - 1) / step - places
    wanted = 1 + step * (places + ((rest > 0.5) | ((rest == 0.5) & (places % 2 == 1))))
    found = run("arith.truncf {a} : {t} to {to}", "f64", x, to=to)
    np.testing.assert_array_equal(found.astype(np.float64), wanted)
