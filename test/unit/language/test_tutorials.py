"""Kernels in the form of Triton's ten tutorials, which differ from it in imports and devices only."""

import math
import warnings

import ml_dtypes
import numpy as np
import pytest

import xegpu_py as triton
import xegpu_py.language as tl
from xegpu_py.language import libdevice

F16, F32, F8 = np.float16, np.float32, ml_dtypes.float8_e5m2


@pytest.fixture(autouse=True)
def _without_warnings_of_registers():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* does not fit")
        yield


def numbers(*shape, dtype=F32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def stride(array, dim):
    return array.strides[dim] // array.itemsize


@triton.jit
def add(x_ptr, y_ptr, out_ptr, count_, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count_
    output = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, output, mask=mask)


def test_01_vector_addition():
    x, y = numbers(5001), numbers(5001, seed=1)
    output = np.empty_like(x)
    grid = lambda meta: (triton.cdiv(5001, meta["BLOCK"]),)  # noqa: E731
    add[grid](x, y, output, 5001, BLOCK=1024)
    np.testing.assert_array_equal(output, x + y)


@triton.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    start, step = tl.program_id(0), tl.num_programs(0)
    for row in tl.range(start, n_rows, step, num_stages=num_stages):
        columns = tl.arange(0, BLOCK)
        mask = columns < n_cols
        values = tl.load(in_ptr + row * in_stride + columns, mask=mask, other=-float("inf"))
        numerator = tl.exp(values - tl.max(values, axis=0))
        tl.store(out_ptr + row * out_stride + columns, numerator / tl.sum(numerator, axis=0), mask=mask)


@pytest.mark.parametrize("columns", [781, 512])
def test_02_softmax(columns):
    x = numbers(7, columns)
    y = np.empty_like(x)
    size = triton.next_power_of_2(columns)
    softmax[(3,)](y, x, stride(x, 0), stride(y, 0), 7, columns, BLOCK=size, num_stages=2, num_warps=8)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16, "GROUP": 2}, num_stages=3, num_warps=4),
        triton.Config({"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "GROUP": 2}, num_stages=2, num_warps=2),
    ],
    key=["M", "N", "K"],
    warmup=1,
    rep=1,
)
@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP * tiles_n
    first_m = (pid // in_group) * GROUP
    group_rows = min(tiles_m - first_m, GROUP)
    row_of_tiles = first_m + ((pid % in_group) % group_rows)
    column_of_tiles = (pid % in_group) // group_rows
    tl.assume(row_of_tiles >= 0)
    rows = (row_of_tiles * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (column_of_tiles * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    depths = tl.arange(0, BLOCK_K)
    at_a = a_ptr + (rows[:, None] * stride_am + depths[None, :] * stride_ak)
    at_b = b_ptr + (depths[:, None] * stride_bk + columns[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(at_a, mask=depths[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(at_b, mask=depths[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        at_a += BLOCK_K * stride_ak
        at_b += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        acc = leaky_relu(acc)
    c = acc.to(tl.float16)
    rows_c, columns_c = (
        row_of_tiles * BLOCK_M + tl.arange(0, BLOCK_M),
        column_of_tiles * BLOCK_N + tl.arange(0, BLOCK_N),
    )
    c_places = c_ptr + stride_cm * rows_c[:, None] + stride_cn * columns_c[None, :]
    tl.store(c_places, c, mask=(rows_c[:, None] < M) & (columns_c[None, :] < N))


@pytest.mark.parametrize("m, n, k", [(64, 16, 32), (39, 24, 21)])
def test_03_matrix_multiplication(m, n, k):
    a, b = numbers(m, k, dtype=F16), numbers(k, n, dtype=F16, seed=1)
    c = np.empty((m, n), F16)
    strides = (stride(a, 0), stride(a, 1), stride(b, 0), stride(b, 1), stride(c, 0), stride(c, 1))
    grid = lambda META: (triton.cdiv(m, META["BLOCK_M"]) * triton.cdiv(n, META["BLOCK_N"]),)  # noqa: E731
    matmul[grid](a, b, c, m, n, k, *strides, ACTIVATION="leaky_relu")
    wanted = a.astype(F32) @ b.astype(F32)
    np.testing.assert_allclose(c, np.where(wanted >= 0, wanted, 0.01 * wanted), rtol=2e-3, atol=2e-2)


@triton.jit
def dropout(x_ptr, out_ptr, count_, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count_
    x = tl.load(x_ptr + offsets, mask=mask)
    kept = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(kept, x / (1 - p), 0.0), mask=mask)


def test_04_dropout():
    x = np.ones(250, F32)
    outputs = np.empty((3, 250), F32)
    for output, seed in zip(outputs, (123, 123, 512)):
        dropout[(triton.cdiv(250, 64),)](x, output, 250, 0.5, seed, BLOCK=64)
    assert (outputs[0] == outputs[1]).all() and (outputs[0] != outputs[2]).any()
    assert set(np.unique(outputs)) == {0.0, 2.0} and 85 < (outputs[0] > 0).sum() < 165


@triton.jit
def normalize(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        sums += tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * tl.load(W + cols, mask=mask) + tl.load(B + cols, mask=mask)
        tl.store(Y + cols, y, mask=mask)


@triton.jit
def normalize_backward(DX, DY, DW, X, W, Mean, Rstd, Lock, stride, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    slot = row % GROUP
    Lock += slot
    Count = Lock + GROUP
    DW = DW + slot * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean, rstd = tl.load(Mean + row), tl.load(Rstd + row)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    weighted = tl.where(mask, w * dy, 0.0)
    along = tl.sum(normal * weighted, axis=0) / N
    offset = tl.sum(weighted, axis=0) / N
    tl.store(DX + cols, (weighted - (normal * along + offset)) * rstd, mask=mask)
    own = (dy * normal).to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        own += tl.load(DW, mask=mask)
    tl.store(DW, own, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


def test_05_layer_norm():
    rows, columns, groups = 6, 250, 2
    x, dy, w, b = numbers(rows, columns), numbers(rows, columns, seed=1), numbers(columns, seed=2), numbers(columns)
    y, dx = np.empty_like(x), np.empty_like(x)
    mean, rstd = np.empty(rows, F32), np.empty(rows, F32)
    normalize[(rows,)](x, y, w, b, mean, rstd, stride(x, 0), columns, 1e-5, BLOCK=128, num_warps=2)
    normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, normal * w + b, rtol=1e-4, atol=1e-5)
    dw, locks = np.zeros((groups, columns), F32), np.zeros(2 * groups, np.int32)
    normalize_backward[(rows,)](
        dx, dy, dw, x, w, mean, rstd, locks, stride(x, 0), columns, GROUP=groups, BLOCK=256, num_ctas=1
    )
    np.testing.assert_allclose(dw.sum(0), (dy * normal).sum(0), rtol=1e-4, atol=1e-5)
    weighted = w * dy
    wanted = weighted - (normal * (normal * weighted).mean(1, keepdims=True) + weighted.mean(1, keepdims=True))
    np.testing.assert_allclose(dx, wanted / np.sqrt(x.var(1, keepdims=True) + 1e-5), rtol=1e-3, atol=1e-4)


@triton.jit
def attend(
    acc, weight, top, q, keys, values_, first_row, dtype: tl.constexpr, block, scale, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, STAGE: tl.constexpr, of_rows, of_columns, N_CTX,
):  # fmt: skip
    if STAGE == 1:
        lo, hi = 0, block * BLOCK_M
    elif STAGE == 2:
        lo, hi = block * BLOCK_M, (block + 1) * BLOCK_M
        lo = tl.multiple_of(lo, BLOCK_M)
    else:
        lo, hi = 0, N_CTX
    row_of_k = first_row + lo
    for at in tl.range(lo, hi, BLOCK_N):
        at = tl.multiple_of(at, BLOCK_N)
        k = keys.load([row_of_k, 0]).T
        scores = tl.dot(q, k)
        if STAGE == 2:
            mask = of_rows[:, None] >= (at + of_columns[None, :])
            scores = scores * scale + tl.where(mask, 0, -1.0e6)
            new_top = tl.maximum(top, tl.max(scores, 1))
            scores -= new_top[:, None]
        else:
            new_top = tl.maximum(top, tl.max(scores, 1) * scale)
            scores = scores * scale - new_top[:, None]
        p = tl.math.exp2(scores)
        kept = tl.math.exp2(top - new_top)
        new_weight = tl.sum(p, 1)
        acc = acc * kept[:, None]
        v = values_.load([row_of_k, 0])
        acc = tl.dot(p.to(dtype), v, acc)
        weight = weight * kept + new_weight
        top = new_top
        row_of_k += BLOCK_N
    return acc, weight, top


@triton.jit
def attention(
    softness, M, Z, H, Q, K, V, OUT, N_CTX, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    STAGE: tl.constexpr,
):  # fmt: skip
    tl.static_assert(BLOCK_N <= HEAD_DIM)
    block, head = tl.program_id(0), tl.program_id(1)
    all_rows = Z * H * N_CTX
    queries = tl.make_tensor_descriptor(Q, [all_rows, HEAD_DIM], [HEAD_DIM, 1], [BLOCK_M, HEAD_DIM])
    keys = tl.make_tensor_descriptor(K, [all_rows, HEAD_DIM], [HEAD_DIM, 1], [BLOCK_N, HEAD_DIM])
    values_ = tl.make_tensor_descriptor(V, [all_rows, HEAD_DIM], [HEAD_DIM, 1], [BLOCK_N, HEAD_DIM])
    outputs = tl.make_tensor_descriptor(OUT, [all_rows, HEAD_DIM], [HEAD_DIM, 1], [BLOCK_M, HEAD_DIM])
    first_row = head * N_CTX
    row_of_q = first_row + block * BLOCK_M
    of_rows, of_columns = block * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    top = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    weight = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    scale = softness * 1.44269504
    q = queries.load([row_of_q, 0])
    if STAGE & 1:
        acc, weight, top = attend(
            acc, weight, top, q, keys, values_, first_row, tl.float16, block, scale, BLOCK_M, BLOCK_N, 4 - STAGE,
            of_rows, of_columns, N_CTX,
        )  # fmt: skip
    if STAGE & 2:
        acc, weight, top = attend(
            acc, weight, top, q, keys, values_, first_row, tl.float16, block, scale, BLOCK_M, BLOCK_N, 2,
            of_rows, of_columns, N_CTX,
        )  # fmt: skip
    top += tl.math.log2(weight)
    acc = acc / weight[:, None]
    tl.store(M + head * N_CTX + of_rows, top)
    outputs.store([row_of_q, 0], acc.to(tl.float16))


@pytest.mark.parametrize("causal", [False, True])
def test_06_fused_attention(causal):
    z, h, n, d = 1, 2, 64, 32
    q, k, v = (numbers(z, h, n, d, dtype=F16, seed=s) for s in range(3))
    o, m = np.empty_like(q), np.empty((z, h, n), F32)
    grid = (n // 32, z * h, 1)
    attention[grid](
        0.5, m, z, h, q, k, v, o, n, HEAD_DIM=d, BLOCK_M=32, BLOCK_N=32, STAGE=3 if causal else 1, num_warps=2
    )
    scores = (q.astype(F32) @ k.astype(F32).swapaxes(2, 3)) * 0.5
    if causal:
        scores = np.where(np.tril(np.ones((n, n))), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    # The rest of weight = 1 before the first block vanishes, since its weight is exp2(-inf).
    np.testing.assert_allclose(o, p / p.sum(-1, keepdims=True) @ v.astype(F32), atol=5e-3)


@triton.jit
def arcsine(x_ptr, y_ptr, count_, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count_
    tl.store(y_ptr + offsets, libdevice.asin(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


def test_07_functions_of_libraries():
    x = np.random.default_rng(0).random(500, F32)
    y = np.zeros_like(x)
    arcsine[(triton.cdiv(500, 256),)](x, y, 500, BLOCK=256)
    np.testing.assert_allclose(y, np.arcsin(x), rtol=1e-6)


@triton.jit
def grouped(
    lefts, rights, results, sizes, pitches, groups, WORKERS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    before = 0
    for g in range(groups):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        depth = tl.load(sizes + g * 3 + 2)
        down, across = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
        tiles = down * across
        while tile >= before and tile < before + tiles:
            k = depth
            lda, ldb, ldc = tl.load(pitches + g * 3), tl.load(pitches + g * 3 + 1), tl.load(pitches + g * 3 + 2)
            a_ptr = tl.load(lefts + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(rights + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(results + g).to(tl.pointer_type(tl.float16))
            inside = tile - before
            tile_m, tile_n = inside // across, inside % across
            rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
            columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
            depths = tl.arange(0, BLOCK_K)
            at_a = a_ptr + rows[:, None] * lda + depths[None, :]
            at_b = b_ptr + depths[:, None] * ldb + columns[None, :]
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for _ in range(tl.cdiv(k, BLOCK_K)):
                tl.multiple_of(at_a, [16, 16])
                tl.multiple_of(at_b, [16, 16])
                acc += tl.dot(tl.load(at_a), tl.load(at_b))
                at_a += BLOCK_K
                at_b += BLOCK_K * ldb
            c_places = c_ptr + ldc * rows[:, None] + columns[None, :]
            tl.store(c_places, acc.to(tl.float16))
            tile += WORKERS
        before = before + tiles


def test_08_grouped_matrix_multiplication():
    sizes = [(32, 16, 32), (16, 32, 16)]
    a = [numbers(m, k, dtype=F16) for m, _, k in sizes]
    b = [numbers(k, n, dtype=F16, seed=1) for _, n, k in sizes]
    c = [np.empty((m, n), F16) for m, n, _ in sizes]
    leading = [stride(x, 0) for group in zip(a, b, c) for x in group]
    tables = [triton.PointerTable(group) for group in (a, b, c)]
    arguments = (*tables, np.array(sizes, np.int32), np.array(leading, np.int32), len(sizes))
    grouped[(2,)](*arguments, WORKERS=2, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    for one, other, found in zip(a, b, c):
        np.testing.assert_allclose(found, one.astype(F32) @ other.astype(F32), rtol=2e-3, atol=2e-2)


@triton.jit
def place_in_group(tile, in_group, tiles_m, GROUP, WORKERS):
    group_ = tile // in_group
    first_m = group_ * GROUP
    group_rows = min(tiles_m - first_m, GROUP)
    return first_m + (tile % group_rows), (tile % in_group) // group_rows


@triton.jit
def persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, WORKERS: tl.constexpr,
):  # fmt: skip
    dtype = c_ptr.dtype.element_ty
    worker = tl.program_id(axis=0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    steps, tiles = tl.cdiv(K, BLOCK_K), tiles_m * tiles_n
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    in_group = GROUP * tiles_n
    for tile in tl.range(worker, tiles, WORKERS, flatten=True):
        row_of_tiles, column_of_tiles = place_in_group(tile, in_group, tiles_m, GROUP, WORKERS)
        rows, columns = row_of_tiles * BLOCK_M, column_of_tiles * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(steps):
            a = a_desc.load([rows, ki * BLOCK_K])
            b = b_desc.load([columns, ki * BLOCK_K])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([rows, columns], acc.to(dtype))


def test_09_persistent_matrix_multiplication():
    m, n, k = 96, 64, 64
    a, b = numbers(m, k, dtype=F16), numbers(n, k, dtype=F16, seed=1)
    c = np.empty((m, n), F16)
    persistent[(2,)](
        a, b, c, m, n, k, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP=2, WORKERS=2, num_stages=3, num_warps=4
    )
    np.testing.assert_allclose(c, a.astype(F32) @ b.astype(F32).T, rtol=2e-3, atol=2e-2)


@triton.jit
def block_scaled(
    a_ptr, a_scale, b_ptr, b_scale, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    pid = tl.program_id(axis=0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    of_rows = (pid % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    of_columns = (pid // tiles_m) * BLOCK_N + tl.arange(0, BLOCK_N)
    depths, of_scales = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_K // 32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptr + of_rows[:, None] * K + (k * BLOCK_K + depths)[None, :])
        b = tl.load(b_ptr + of_columns[:, None] * K + (k * BLOCK_K + depths)[None, :])
        scale_a = tl.load(a_scale + of_rows[:, None] * (K // 32) + (k * (BLOCK_K // 32) + of_scales)[None, :])
        scale_b = tl.load(b_scale + of_columns[:, None] * (K // 32) + (k * (BLOCK_K // 32) + of_scales)[None, :])
        acc = tl.dot_scaled(a, scale_a, "e5m2", b.T, scale_b, "e5m2", acc)
    tl.store(c_ptr + of_rows[:, None] * N + of_columns[None, :], acc)


def test_10_block_scaled_matrix_multiplication():
    m, n, k = 32, 32, 128
    rng = np.random.default_rng(0)
    a, b = numbers(m, k, dtype=F8), numbers(n, k, dtype=F8, seed=1)
    sa, sb = (rng.integers(125, 130, (rows, k // 32), np.uint8) for rows in (m, n))
    c = np.empty((m, n), F32)
    block_scaled[(triton.cdiv(m, 16) * triton.cdiv(n, 32),)](
        a, sa, b, sb, c, m, n, k, BLOCK_M=16, BLOCK_N=32, BLOCK_K=64
    )
    left, right = (x.astype(F32) * np.repeat(2.0 ** (s.astype(F32) - 127), 32, 1) for x, s in ((a, sa), (b, sb)))
    np.testing.assert_allclose(c, left @ right.T, rtol=1e-4, atol=1e-3)
    assert math.isfinite(c.sum())
