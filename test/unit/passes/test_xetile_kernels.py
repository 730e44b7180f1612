"""Kernels of XeTile, lowered and run, against numpy models that know nothing of tiles."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.numerics.rounding import fma_f32

FOLDER = Path(__file__).parents[2] / "run"
BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def wide(x):
    return x.astype(np.float64)


def product(a, b, c=None):
    """A x B + C, each product added in increasing k with one rounding to f32: what the systolic array computes."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32) if c is None else c
    for k in range(a.shape[1]):
        total = fma_f32(np.outer(wide(a[:, k]), wide(b[k])), total)
    return total


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def gelu(z):
    return z / 2 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))


def layer_norm(x, gamma, beta):
    off = x - x.mean(1, keepdims=True)
    return off / np.sqrt((off**2).mean(1, keepdims=True) + 1e-5) * gamma + beta


def fused(a, scale, b, by, bias, out):
    left = (a.astype(np.float32) * scale).astype(BF16)
    right = (b.astype(np.float32) * by).astype(BF16)
    return gelu(wide(left) @ wide(right) + bias)


def scattered_add(where, what, out):
    found = np.zeros_like(out)
    np.add.at(found, where[where != 0], what[where != 0])
    return found


def column_major(a, b, c):
    return product(a.T, b.T, c.T.copy()).T


A, B = normal(256, 64, dtype=BF16), normal(64, 512, dtype=BF16)
RAGGED_A, RAGGED_B = normal(300, 88, dtype=BF16), normal(88, 280, dtype=BF16)
HALF = [normal(64, 64, dtype=np.float16) for _ in range(4)]
BATCH = normal(3, 64, 32, dtype=BF16), normal(3, 32, 64, dtype=BF16)
INTEGERS = [RNG.integers(-8, 9, s).astype(BF16) for s in ((64, 128), (128, 64))]
TALL, BROAD = normal(192, 64, dtype=BF16), normal(64, 256, dtype=BF16)
FUSED = [
    normal(100, 88, dtype=BF16),
    normal(100, 1),
    RNG.integers(-100, 100, (88, 144)).astype(np.int8),
    normal(1, 144) / 100,
    normal(1, 144),
]
MATRIX, SQUARE, WIDE = normal(64, 128), normal(64, 64), normal(70, 100)
ROWS, GAMMA, BETA = normal(64, 256) + 3, normal(1, 256), normal(1, 256)
QUERIES, KEYS, VALUES = (normal(n, 64, dtype=BF16) for n in (128, 256, 256))
WHERE, WHAT = RNG.integers(0, 300, 256).astype(np.int32), RNG.integers(-8, 9, 256).astype(np.float32)


def empty(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


# file: arguments, grid, block, model of the last ones, tolerance
KERNELS = {
    "gemm": ([A, B, empty(256, 512)], (1, 2), 32, lambda a, b, c: [product(a, b)], 0),
    "gemm ragged": ([RAGGED_A, RAGGED_B, empty(300, 280)], (2, 2), 32, lambda a, b, c: [product(a, b)], 0),
    "gemm_transposed": ([HALF[0], HALF[1], empty(64, 64)], 1, 4, lambda a, b, c: [product(a.T, b.T)], 0),
    "gemm_column_major": (
        [HALF[0], HALF[1], SQUARE.copy()],
        1,
        4,
        lambda a, b, c: [column_major(a, b, c)],
        0,
    ),
    "gemm_batch": (
        [*BATCH, empty(3, 64, 64)],
        (1, 1, 3),
        4,
        lambda a, b, c: [np.stack([product(x, y) for x, y in zip(a, b)])],
        0,
    ),
    "gemm_fused": ([*FUSED, empty(100, 144, dtype=BF16)], (2, 3), 4, lambda *a: [fused(*a)], 1e-2),
    "gemm_split_k": ([*INTEGERS, empty(64, 64)], (1, 1, 4), 4, lambda a, b, c: [wide(a) @ wide(b)], 0),
    "gemm_persistent": ([TALL, BROAD, empty(192, 256)], 5, 4, lambda a, b, c: [product(a, b)], 0),
    "reductions": (
        [MATRIX, empty(64, 1), empty(1, 128), empty(64, 16)],
        1,
        8,
        lambda x, *_: [x.sum(1, keepdims=True), x.max(0, keepdims=True), x.reshape(64, 16, 8).sum(2)],
        1e-5,
    ),
    "softmax": ([WIDE, empty(70, 100)], 3, 8, lambda x, y: [softmax(wide(x))], 1e-6),
    "layer_norm": ([ROWS, GAMMA, BETA, empty(64, 256)], 2, 8, lambda x, g, b, y: [layer_norm(wide(x), g, b)], 1e-5),
    "attention": (
        [QUERIES, KEYS, VALUES, empty(128, 64)],
        2,
        8,
        lambda q, k, v, o: [softmax(wide(q) @ wide(k).T / 8) @ wide(v)],
        5e-3,
    ),
    "slm": ([SQUARE, empty(64, 64), empty(64, 64)], 1, 4, lambda x, *_: [x, x.T], 0),
    "scattered_add": ([WHERE, WHAT, empty(300)], 2, 4, lambda *a: [scattered_add(*a)], 0),
}


def file_of(name):
    return FOLDER / f"xetile_{name.split()[0]}.mlir"


def test_every_file_is_tried():
    # Only target any multiplies f64, and numbers are arguments of the other; those files' own RUN lines check them.
    files = set(FOLDER.glob("xetile_*.mlir")) - {FOLDER / f"xetile_{n}.mlir" for n in ("gemm_f64", "given_surface")}
    assert files == {file_of(name) for name in KERNELS}


@pytest.mark.each_value
@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name, prefetch):
    arguments, grid, block, model, tolerance = KERNELS[name]
    given = [a.copy() for a in arguments]
    kernel = xegpu_py.compile(file_of(name), registers=256, check=["uninit", "races"], prefetch=prefetch)
    expected = model(*[a.copy() for a in arguments])
    kernel(*given, grid=grid, block=block)
    for found, wanted in zip(given[-len(expected) :], expected, strict=True):
        np.testing.assert_allclose(wide(found), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["gemm ragged", "gemm_persistent", "attention"])
def test_kernel_that_loads_ahead_leaves_the_same_bits(name):
    arguments, grid, block, *_ = KERNELS[name]
    left, loads = [], []
    for ahead in (False, True):
        given = [a.copy() for a in arguments]
        kernel = xegpu_py.compile(file_of(name), registers=256, load_ahead=ahead)
        kernel(*given, grid=grid, block=block)
        left.append(given[-1].tobytes())
        loads.append(kernel.ir("xegpu").count("xegpu.load_nd"))
    assert left[0] == left[1]
    # Those before the loop are additional.
    assert loads[0] < loads[1]


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_assembles_without_spills(name, native_of):
    # GenX_IR-2024 crashes on gemm_column_major for pvc, not for pvcxt or bmg.
    target = "pvcxt" if native_of.name == "GenX_IR-2024" else "pvc"
    kernel = xegpu_py.compile(file_of(name), target=target, registers=256)
    native = native_of(kernel.asm, target, registers=256)
    assert native.instructions > 0
    assert native.spill_bytes == 0
