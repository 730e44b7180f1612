"""Kernels as Triton's users write them, in the tile language, against numpy, by the reference and the JIT."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr

BF16, F32, I32 = ml_dtypes.bfloat16, np.float32, np.int32
ENGINES = ("reference", "jit")


def on_both(function, launch, outputs, exact=True):
    """The outputs of a kernel that runs on both engines.

    They must be equal in every byte, except for sums, whose order depends on how a kernel is lowered (docs/xetile.md).
    """
    found = []
    for engine in ENGINES:
        made = [np.zeros_like(o) for o in outputs]
        launch(xegpu_py.jit(function, engine=engine), *made)
        found.append(made)
    for a, b in zip(*found):
        if exact:
            assert a.tobytes() == b.tobytes()
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return found[0]


def matmul(A, B, C, BM: Constexpr, BN: Constexpr, BK: Constexpr, GROUP: Constexpr):
    """Workgroups in groups of rows, so that those that run together share more of B; leaky ReLU at the end."""
    pid = xl.program_id(0)
    M, K = A.shape
    N = B.shape[1]
    rows, columns = xl.cdiv(M, BM), xl.cdiv(N, BN)
    width = GROUP * columns
    first = pid // width * GROUP
    size = min(rows - first, GROUP)
    m, n = (first + (pid % width) % size) * BM, ((pid % width) // size) * BN
    acc = xl.zeros((BM, BN), map=xl.WgMap((2, 2), (BM // 2, BN // 2)))
    a, b = A.tile((BM, BK), at=(m, 0)), B.tile((BK, BN), at=(0, n))
    for _ in range(0, K, BK):
        acc = xl.dot(a.load(), b.load(), acc)
        a.advance(columns=BK)
        b.advance(rows=BK)
    C.tile((BM, BN), at=(m, n)).store(xl.where(acc > 0, acc, acc * 0.01))


def test_matmul_with_grouped_ordering():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (100, 70)).astype(BF16), rng.integers(-3, 4, (70, 90)).astype(BF16)

    def launch(kernel, c):
        grid = xegpu_py.cdiv(100, 64) * xegpu_py.cdiv(90, 64)
        kernel[grid](a, b, c, BM=64, BN=64, BK=32, GROUP=2)

    (c,) = on_both(matmul, launch, [np.zeros((100, 90), F32)])
    expected = a.astype(F32) @ b.astype(F32)
    np.testing.assert_array_equal(c, np.where(expected > 0, expected, expected * F32(0.01)))


def layer_norm(X, Y, W, B, n, eps, BLOCK: Constexpr):
    row = xl.program_id(0)
    columns = xl.arange(0, BLOCK)
    mask = columns < n
    x = xl.load(X + row * n + columns, mask=mask, other=0.0)
    off = xl.where(mask, x - xl.sum(x) / n, 0.0)
    scale = 1 / xl.sqrt(xl.sum(off * off) / n + eps)
    w, b = xl.load(W + columns, mask=mask), xl.load(B + columns, mask=mask)
    xl.store(Y + row * n + columns, off * scale * w + b, mask=mask)


def test_layer_norm():
    rng = np.random.default_rng(1)
    x, (w, b) = rng.standard_normal((9, 100)).astype(F32), rng.standard_normal((2, 100)).astype(F32)
    (y,) = on_both(layer_norm, lambda kernel, y: kernel[9](x, y, w, b, 100, 1e-5, BLOCK=128), [x], exact=False)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(y, expected, atol=1e-5)


def attention(Q, K, V, OUT, scale, BM: Constexpr, BN: Constexpr, D: Constexpr, CAUSAL: Constexpr):
    m = xl.program_id(0) * BM
    q = Q.tile((BM, D), at=(m, 0)).load()
    keys, values = K.tile((BN, D), at=(0, 0)), V.tile((BN, D), at=(0, 0))
    top, total, out = xl.full((BM, 1), -1e30), xl.zeros((BM, 1)), xl.zeros((BM, D))
    rows = m + xl.arange(0, BM)[:, None]
    last = min(m + BM, K.shape[0]) if CAUSAL else K.shape[0]
    for start in range(0, last, BN):
        scores = (q @ keys.load().T) * scale
        if CAUSAL:
            scores = xl.where(rows >= start + xl.arange(0, BN)[None, :], scores, -1e30)
        new = xl.maximum(top, scores.max(1))
        powers, kept = xl.exp(scores - new), xl.exp(top - new)
        total = total * kept + powers.sum(1)
        out = out * kept + powers.to(BF16) @ values.load()
        top = new
        keys.advance(rows=BN)
        values.advance(rows=BN)
    OUT.tile((BM, D), at=(m, 0)).store(out / total)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((64, 32)).astype(BF16) for _ in range(3))

    def launch(kernel, out):
        kernel[2](q, k, v, out, 32**-0.5, BM=32, BN=16, D=32, CAUSAL=causal)

    (out,) = on_both(attention, launch, [np.zeros((64, 32), F32)])
    scores = q.astype(F32) @ k.astype(F32).T * 32**-0.5
    if causal:
        scores = np.where(np.tril(np.ones((64, 64))) > 0, scores, -1e30)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True) @ v.astype(F32), atol=1e-2)


def histogram(X, COUNTS, n, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    x = xl.load(X + i, mask=i < n, other=0)
    xl.atomic_add(COUNTS + x, xl.full((BLOCK,), 1, I32), mask=i < n)


def test_histogram():
    x = np.random.default_rng(3).integers(0, 10, 1000).astype(I32)
    (counts,) = on_both(histogram, lambda kernel, h: kernel[16](x, h, 1000, BLOCK=64), [np.zeros(16, I32)])
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=16))


def collatz(N, STEPS):
    i = xl.program_id(0)
    n, steps = N[i], 0
    while n != 1:
        if steps == 1000:
            return
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    STEPS[i] = steps


def test_a_loop_with_a_way_out():
    n = np.array([1, 2, 3, 7, 27, 97, 0], np.int64)
    (steps,) = on_both(collatz, lambda kernel, steps: kernel[7](n, steps), [np.zeros(7, np.int64)])
    np.testing.assert_array_equal(steps, [0, 1, 7, 16, 111, 118, 0])


def newton(X, ROOTS, tolerance, BLOCK: Constexpr):
    """Square roots of lines, until the farthest element is near enough."""
    line = xl.arange(0, BLOCK) + xl.program_id(0) * BLOCK
    x = xl.load(X + line)
    root = x + 1
    for _ in range(50):
        better = 0.5 * (root + x / root)
        off = abs(better - root).max()
        root = better
        if off < tolerance:
            break
    else:
        root = root * 0
    xl.store(ROOTS + line, root)


def test_break_and_else():
    x = np.random.default_rng(4).random(64).astype(F32) * 100
    (roots,) = on_both(newton, lambda kernel, r: kernel[2](x, r, 1e-3, BLOCK=32), [x])
    np.testing.assert_allclose(roots, np.sqrt(x), rtol=1e-5)
