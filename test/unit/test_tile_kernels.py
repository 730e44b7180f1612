"""The kernels of test/run/xetile_*.mlir, written in Python, against numpy."""

import math

import ml_dtypes
import numpy as np
import pytest

from xegpu_py import language

BF16, F16, F32, I8, I32 = ml_dtypes.bfloat16, np.float16, np.float32, np.int8, np.int32
RNG = np.random.default_rng(0)
SQUARE, ROWS = language.WgMap((2, 2), (16, 16)), language.WgMap((4, 1), (8, 32))


def whole(*shape, dtype=F32):
    return RNG.integers(-8, 9, shape).astype(dtype)


def normal(*shape, dtype=F32):
    return RNG.standard_normal(shape).astype(dtype)


def wide(x):
    return x.astype(np.float64)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@language.tile_kernel((F16, (None, None)), (F16, (None, None)), (F32, (32, 32)), (F32, (32, 32)))
def transposed(At, Bt, C, Ct):
    """A and B are given transposed: one is transposed by an op, the other by its layout. So is the result."""
    a, b = At.tile((32, 32), at=(0, 0)), Bt.T.tile((32, 32), at=(0, 0))
    c = language.zeros((32, 32), map=SQUARE)
    for _ in language.range_(0, At.shape[0], 32):
        c += a.load().T @ b.load()
        a.advance(rows=32)
        b.advance(rows=32)
    C.tile((32, 32), at=(0, 0)).store(c)
    Ct.T.tile((32, 32), at=(0, 0)).store(c)


@language.tile_kernel((BF16, (3, None, 32)), (BF16, (3, 32, 32)), (F32, (3, 32, 32)))
def batch(A, Bt, C):
    """A product for each workgroup of z."""
    z = language.block_id("z")
    a, b = A.tile((32, 32), at=(z, 0, 0)).load(), Bt.T.tile((32, 32), at=(z, 0, 0)).load()
    C.tile((32, 32), at=(z, 0, 0), map=SQUARE).store(a @ b)


@language.tile_kernel((BF16, (32, 64)), (BF16, (64, 32)), (F32, (32, 32)))
def split_k(A, B, C):
    """Each workgroup of z has a part of K, and adds its product to the result."""
    k = language.block_id("z") * 32
    a, b = A.tile((32, 32), at=(0, k)).load(), B.tile((32, 32), at=(k, 0)).load()
    C.tile((32, 32), at=(0, 0), map=SQUARE).add(a @ b)


@language.tile_kernel((BF16, (None, 32)), (BF16, (32, None)), (F32, (None, None)))
def persistent(A, B, C):
    """Three workgroups take turns at all tiles of C."""
    across = C.shape[1] // 32
    for t in language.range_(language.block_id("x"), C.shape[0] // 32 * across, language.grid_size("x")):
        m, n = t // across * 32, t % across * 32
        a, b = A.tile((32, 32), at=(m, 0)).load(), B.tile((32, 32), at=(0, n)).load()
        C.tile((32, 32), at=(m, n), map=SQUARE).store(a @ b)


@language.tile_kernel(
    (BF16, (32, 32)), (F32, (32, 1)), (I8, (32, 32)), (F32, (1, 32)), (F32, (1, 32)), (BF16, (32, 32))
)
def fused(A, scale, B, by, bias, C):
    """A is scaled and B is dequantised before the product; a bias and GELU follow."""
    a = A.tile((32, 32), at=(0, 0)).load().to(F32) * scale.tile((32, 1), at=(0, 0)).load()
    b = B.tile((32, 32), at=(0, 0)).load().to(F32) * by.tile((1, 32), at=(0, 0)).load()
    c = language.zeros((32, 32), map=SQUARE)
    c += a.to(BF16) @ b.to(BF16)
    z = c + bias.tile((1, 32), at=(0, 0)).load()
    C.tile((32, 32), at=(0, 0)).store((z * 0.5 * (1 + language.erf(z * 0.7071067811865476))).to(BF16))


@language.tile_kernel(
    (F32, (None, 32)), (F32, (1, 32)), (F32, (1, 32)), (F32, (None, 32)), (F32, (None, 32)), (F32, (None, 4))
)
def rows(X, gamma, beta, norm, soft, sums):
    """Layer norm, softmax, and sums of eight; elements beyond the last row are padding."""
    m = language.block_id("x") * 32
    x = X.tile((32, 32), at=(m, 0), map=ROWS).load(padding=1)
    off = x - x.sum(1, keep_dims=True) / 32
    scaled = off * language.rsqrt((off * off).sum(1, keep_dims=True) / 32 + 1e-5)
    norm.tile((32, 32), at=(m, 0)).store(
        scaled * gamma.tile((1, 32), at=(0, 0)).load() + beta.tile((1, 32), at=(0, 0)).load()
    )
    powers = language.exp(x - x.max(1, keep_dims=True))
    soft.tile((32, 32), at=(m, 0)).store(powers / powers.sum(1, keep_dims=True))
    sums.tile((32, 4), at=(m, 0)).store(x.sum(1, group=8))


@language.tile_kernel((BF16, (32, 32)), (BF16, (None, 32)), (BF16, (None, 32)), (F32, (32, 32)))
def attention(Q, K, V, result):
    """Flash attention, 32 keys at a time."""
    q = Q.tile((32, 32), at=(0, 0), map=ROWS).load()
    keys, values = K.tile((32, 32), at=(0, 0)), V.tile((32, 32), at=(0, 0))
    top, total = language.full((32, 1), -1e30), language.zeros((32, 1))
    out = language.zeros((32, 32), map=ROWS)
    for _ in language.range_(0, K.shape[0], 32):
        scores = (q @ keys.load().T) / 8
        new = language.maximum(top, scores.max(1, keep_dims=True))
        powers, kept = language.exp(scores - new), language.exp(top - new)
        total.assign(total * kept + powers.sum(1, keep_dims=True))
        out.assign(out * kept + powers.to(BF16) @ values.load())
        top.assign(new)
        keys.advance(rows=32)
        values.advance(rows=32)
    result.tile((32, 32), at=(0, 0)).store(out / total)


@language.tile_kernel((F32, (32, 32)), (F32, (32, 32)), (F32, (32, 32)))
def exchange(X, Y, T):
    """A copy through shared local memory, and a transpose between subgroups."""
    buffer = language.shared((32, 32))
    buffer.tile((32, 32), at=(0, 0), map=SQUARE).store(X.tile((32, 32), at=(0, 0)).load())
    language.barrier()
    x = buffer.tile((32, 32), at=(0, 0), map=ROWS).load()
    Y.tile((32, 32), at=(0, 0)).store(x)
    T.tile((32, 32), at=(0, 0), map=SQUARE).store(x.with_map(language.WgMap((1, 4), (32, 8))).T)


@language.tile_kernel((I32, (None,)), (F32, (None,)), (F32, (None,)))
def scattered_add(where, what, out):
    """Elements of place 0 are left out, and large ones are halved."""
    lines = language.WgMap((4,), (16,))
    here = language.arange(64, map=lines) + language.block_id("x").broadcast((64,)) * 64
    places, numbers = where.at(here, map=lines).load(), what.at(here, map=lines).load()
    numbers = language.where(numbers > 4, numbers / 2, language.minimum(numbers, 8))
    out.at(places, map=lines).add(numbers, (places > 0) & (places < 1000))


A, B = normal(96, 32, dtype=F16), normal(32, 96, dtype=F16)
BATCH = whole(3, 32, 32, dtype=BF16), whole(3, 32, 32, dtype=BF16)
SPLIT = whole(32, 64, dtype=BF16), whole(64, 32, dtype=BF16)
TALL, BROAD = whole(64, 32, dtype=BF16), whole(32, 96, dtype=BF16)
MIXED = [normal(32, 32, dtype=BF16), normal(32, 1), whole(32, 32, dtype=I8), normal(1, 32) / 10, normal(1, 32)]
LINES = [normal(50, 32) + 1, normal(1, 32), normal(1, 32)]
HEADS = [normal(n, 32, dtype=BF16) for n in (32, 64, 64)]
PLACES, NUMBERS = RNG.integers(0, 100, 128).astype(I32), whole(128)


def zeros(*shape, dtype=F32):
    return np.zeros(shape, dtype)


def fused_model(a, scale, b, by, bias):
    z = wide((a.astype(F32) * scale).astype(BF16)) @ wide((b.astype(F32) * by).astype(BF16)) + bias
    return z / 2 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))


def rows_model(x, gamma, beta):
    off = x - x.mean(1, keepdims=True)
    norm = off / np.sqrt((off**2).mean(1, keepdims=True) + 1e-5) * gamma + beta
    return norm, softmax(x), x.reshape(-1, 4, 8).sum(2)


def scattered_model(where, what):
    found = zeros(100)
    halved = np.where(what > 4, what / 2, np.minimum(what, 8))
    np.add.at(found, where[where > 0], halved[where > 0])
    return found


# kernel: inputs, outputs, grid, model, tolerance
CASES = {
    "transposed": (
        transposed,
        [A, B],
        [zeros(32, 32)] * 2,
        1,
        lambda a, b: (wide(a.T) @ wide(b.T), wide(b) @ wide(a)),
        1e-4,
    ),
    "batch": (batch, BATCH, [zeros(3, 32, 32)], (1, 1, 3), lambda a, b: (wide(a) @ wide(b).transpose(0, 2, 1),), 0),
    "split_k": (split_k, SPLIT, [zeros(32, 32)], (1, 1, 2), lambda a, b: (wide(a) @ wide(b),), 0),
    "persistent": (persistent, [TALL, BROAD], [zeros(64, 96)], 3, lambda a, b: (wide(a) @ wide(b),), 0),
    "fused": (fused, MIXED, [zeros(32, 32, dtype=BF16)], 1, lambda *a: (fused_model(*a),), 1e-2),
    "rows": (rows, LINES, [zeros(50, 32), zeros(50, 32), zeros(50, 4)], 2, rows_model, 1e-4),
    "attention": (
        attention,
        HEADS,
        [zeros(32, 32)],
        1,
        lambda q, k, v: (softmax(wide(q) @ wide(k).T / 8) @ wide(v),),
        1e-2,
    ),
    "exchange": (exchange, [whole(32, 32)], [zeros(32, 32)] * 2, 1, lambda x: (x, x.T), 0),
    "scattered_add": (scattered_add, [PLACES, NUMBERS], [zeros(100)], 2, lambda *a: (scattered_model(*a),), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_kernel(name):
    kernel, inputs, outputs, grid, model, tolerance = CASES[name]
    found = [o.copy() for o in outputs]
    kernel(*inputs, *found, grid=grid, block=4)
    for have, expected in zip(found, model(*inputs), strict=True):
        np.testing.assert_allclose(wide(have), wide(expected), rtol=tolerance, atol=tolerance)
