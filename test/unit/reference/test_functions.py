"""The algorithms of `numerics.expansions` are close to the functions, and kernels compute with them."""

import math

import numpy as np
import pytest

import xegpu_py
import xegpu_py.runtime.host_arrays
from xegpu_py import reference
from xegpu_py.numerics.expansions import evaluate

NAMES = {
    "exp": math.exp,
    "log": math.log,
    "log10": math.log10,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "tanh": math.tanh,
    "erf": math.erf,
}
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    -1.0,
    0.5,
    0.25,
    -0.25,
    1e-40,
    1e-30,
    88.0,
    89.0,
    -104.0,
    3e38,
    -2.5,
    2.5,
]


def numbers():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 2048 - len(SPECIAL), np.uint32).view(np.float32)
    usual = (rng.standard_normal(2048) * 3).astype(np.float32)
    return np.concatenate([np.array(SPECIAL, np.float32), bits, usual])


@pytest.mark.parametrize("name", NAMES)
def test_near_the_function(name):
    x = np.abs(np.random.default_rng(1).standard_normal(500).astype(np.float32)) + np.float32(0.01)
    expected = np.array([NAMES[name](float(v)) for v in x])
    assert np.all(np.abs(evaluate(f"math.{name}", x) - expected) <= np.maximum(3e-7, 4e-7 * np.abs(expected)))


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_kernels_compute_with_them(kind):
    """Every function on numbers of all sizes: the bytes of the JIT."""
    ops = [
        *NAMES,
        "round",
        "exp2",
        "log2",
        "sin",
        "cos",
        "sqrt",
        "rsqrt",
        "floor",
        "ceil",
        "roundeven",
        "trunc",
        "absf",
    ]
    n = 1024
    body = "".join(
        f"""
    %c{i} = arith.constant {n * i} : index
    %y{i} = math.{op} %x : vector<32x{kind}>
    %p{i} = arith.addi %at, %c{i} : index
    vector.store %y{i}, %out[%p{i}] : memref<?x{kind}>, vector<32x{kind}>"""
        for i, op in enumerate(ops)
    )
    text = f"""
gpu.module @kernels {{
  gpu.func @f(%in: memref<?x{kind}>, %out: memref<?x{kind}>) kernel {{
    %c32 = arith.constant 32 : index
    %b = gpu.block_id x
    %at = arith.muli %b, %c32 : index
    %x = vector.load %in[%at] : memref<?x{kind}>, vector<32x{kind}>{body}
    gpu.return
  }}
}}"""
    dtype = xegpu_py.runtime.host_arrays.DTYPES[kind]
    with np.errstate(all="ignore"):
        given = numbers().astype(dtype)
    # Special numbers, those of any bits, and usual ones.
    given = np.concatenate([given[: n // 2], given[-n // 2 :]])
    found, expected = np.zeros(n * len(ops), dtype), np.zeros(n * len(ops), dtype)
    reference.run(xegpu_py.parse(text), None, [given, found], grid=n // 32)
    xegpu_py.compile(text, cache="off")(given, expected, grid=n // 32)
    bits = f"u{dtype.itemsize}"
    for i, op in enumerate(ops):
        part = slice(n * i, n * i + n)
        wrong = np.flatnonzero(found.view(bits)[part] != expected.view(bits)[part])
        assert not len(wrong), (op, given[wrong[0]], found[part][wrong[0]], expected[part][wrong[0]], len(wrong))


def test_exponentials_beyond_the_range():
    """Also arguments whose product with log2(e) is infinite."""
    x = np.array([-3.4e38, -2.7e38, -104, 89, 2.7e38, 3.4e38, -np.inf, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(evaluate("math.exp", x), [0, 0, 0, np.inf, np.inf, np.inf, 0, np.inf, np.nan])
