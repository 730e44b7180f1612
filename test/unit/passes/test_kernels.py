"""Whole kernels: lowered, run, compared with numpy, and assembled by Intel's finalizer."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.numerics.rounding import fma_f32
from xegpu_py.runtime.arguments import DTYPES
from xegpu_py.visa.finalizer import available, finalize

from .gemms import Gemm

FOLDER = Path(__file__).parents[2] / "run"
BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def wide(x):
    return x.astype(np.float64)


def gelu(z):
    return z / 2 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))


ROWS, QUERIES, KEYS, VALUES = normal(32, 1024), *(normal(n, 64, dtype=BF16) for n in (64, 1024, 1024))
BYTES = RNG.integers(-128, 128, 1003).astype(np.int8)
LINE, RELAYED, MATRIX = normal(8192), normal(4, 64), normal(64, 48)
LEFT, RIGHT, BIAS = normal(100, 104, dtype=BF16), (normal(104, 136) / 10).astype(BF16), normal(144)
# name: inputs, output shape and type, grid, block, expected, tolerance
KERNELS = {
    "softmax": ([ROWS], (ROWS.shape, "f4"), 32, 1, softmax(wide(ROWS)), 1e-6),
    "attention": (
        [QUERIES, KEYS, VALUES],
        ((64, 64), "f4"),
        8,
        1,
        softmax(wide(QUERIES) @ wide(KEYS).T / 8) @ wide(VALUES),
        2e-3,
    ),
    "histogram": ([BYTES], ((256,), "i4"), 5, 1, np.bincount(BYTES.view(np.uint8), minlength=256), 0),
    "slm_sum": ([LINE], ((8,), "f4"), 8, 4, wide(LINE).reshape(8, 1024).sum(1), 1e-4),
    "nbarrier": ([RELAYED], ((4, 64), "f4"), 1, 2, 2 * RELAYED, 0),
    "collatz": ([], ((30,), "i4"), 30, 1, [collatz(n) for n in range(1, 31)], 0),
    "transpose": ([MATRIX], ((48, 64), "f4"), (4, 6), 1, MATRIX.T, 0),
    "gelu": (
        [LEFT, RIGHT, BIAS],
        ((100, 136), BF16),
        (13, 9),
        1,
        gelu(wide(LEFT) @ wide(RIGHT) + BIAS[:136]),
        2e-2,
    ),
}


def test_every_file_is_tried():
    assert {p.stem for p in FOLDER.glob("*.mlir") if not p.stem.startswith("xetile_")} <= set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name):
    inputs, (shape, dtype), grid, block, expected, tolerance = KERNELS[name]
    kernel = xegpu_py.compile(FOLDER / f"{name}.mlir", registers=256, check=["uninit"])
    out = np.zeros(shape, dtype)
    kernel(*inputs, out, grid=grid, block=block)
    np.testing.assert_allclose(out.astype(float), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(not available(), reason="the finalizer is not installed")
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_assembles(name):
    kernel = xegpu_py.compile(FOLDER / f"{name}.mlir", target="pvc")
    native = finalize(kernel.asm, "PVC")
    assert native.instructions > 0


GEMMS = [
    Gemm("bf16", "bf16", "f32"),
    Gemm("bf16", "bf16", "f32", rows=32, columns=32),
    Gemm("bf16", "bf16", "f32", rows=16, columns=48, m=96, n=96, fresh=True),
    Gemm("bf16", "bf16", "f32", rows=16, columns=32, transposed=True),
    Gemm("bf16", "bf16", "f32", m=100, n=104, k=88),
    Gemm("f16", "f16", "f32", rows=16, columns=16),
    Gemm("tf32", "tf32", "f32", rows=16, columns=32),
    Gemm("i8", "i8", "i32", rows=16, columns=32),
    Gemm("ui8", "i8", "i32", columns=64),
]


def operand(element, shape):
    dtype = DTYPES["f32" if element == "tf32" else element]
    if "i" in element:
        info = np.iinfo(dtype)
        return RNG.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    found = RNG.standard_normal(shape).astype(dtype)
    return (found.view("u4") & 0xFFFFE000).view("f4") if element == "tf32" else found


@pytest.mark.parametrize("gemm", GEMMS, ids=str)
def test_gemm(gemm):
    a = operand(gemm.a, (gemm.m, gemm.k))
    b = operand(gemm.b, (gemm.n, gemm.k) if gemm.transposed else (gemm.k, gemm.n))
    c = np.zeros((gemm.m, gemm.n), DTYPES[gemm.c])
    kernel = xegpu_py.compile(gemm.text(), registers=256, check=["uninit"], strict_grf=True)
    kernel(a, b, c, grid=(-(-gemm.m // gemm.rows), -(-gemm.n // gemm.columns)))
    right = b.T if gemm.transposed else b
    if gemm.c == "i32":
        expected = a.astype(np.int64) @ right.astype(np.int64)
    else:
        # Each product is added in increasing k with one rounding.
        expected = np.zeros((gemm.m, gemm.n), np.float32)
        for k in range(gemm.k):
            expected = fma_f32(np.outer(wide(a[:, k]), wide(right[k])), expected)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.skipif(not available(), reason="the finalizer is not installed")
@pytest.mark.parametrize("gemm", GEMMS, ids=str)
def test_gemms_do_not_spill(gemm):
    kernel = xegpu_py.compile(gemm.text(), target="pvc")
    native = finalize(kernel.asm, "PVC")
    assert native.spill_bytes == 0


@pytest.mark.parametrize("gemm", GEMMS, ids=str)
def test_gemms_move_nothing_in_their_loops(gemm):
    instructions = xegpu_py.compile(gemm.text()).kernel.program.instructions
    names = [i.name for i in instructions]
    start, end = names.index("label"), names.index("jmp")
    inside = instructions[start:end]
    assert "dpas" in names[start:end]
    assert not [i for i in inside if i.name == "mov"]
