"""Attention: forward and backward, causal and not, one query of many heads."""

import numpy as np

import xegpu_py.language as xl
from xegpu_py import Constexpr, cdiv

from .suite import BF16, F32, Run, normal, run, softmax_of


def forward(
    Q, K, V, OUT, LSE, scale, BM: Constexpr, BN: Constexpr, D: Constexpr, CAUSAL: Constexpr, SUBGROUPS: Constexpr
):
    """Flash attention; LSE is the logarithm of each row's sum of powers."""
    m, n = xl.program_id(0) * BM, K.shape[0]
    q = Q.tile((BM, D), at=(m, 0), map=xl.WgMap((SUBGROUPS, 1), (BM // SUBGROUPS, D))).load()
    top, total, out = xl.full((BM, 1), -1e30), xl.zeros((BM, 1)), xl.zeros((BM, D))
    rows = m + xl.arange(0, BM)[:, None]
    last = min(m + BM, n) if CAUSAL else n
    for start in range(0, last, BN):
        columns = start + xl.arange(0, BN)[None, :]
        scores = (q @ K.tile((BN, D), at=(start, 0)).load().T) * scale
        visible = (columns < n) & (rows >= columns) if CAUSAL else columns < n
        scores = xl.where(visible, scores, -1e30)
        new = xl.maximum(top, scores.max(axis=1, keep_dims=True))
        powers, kept = xl.exp(scores - new), xl.exp(top - new)
        total = total * kept + powers.sum(axis=1, keep_dims=True)
        out = out * kept + powers.to(xl.bfloat16) @ V.tile((BN, D), at=(start, 0)).load()
        top = new
    OUT.tile((BM, D), at=(m, 0)).store(out / total)
    LSE.tile((BM, 1), at=(m, 0)).store(top + xl.log(total))


def scores_of(q, k, causal):
    scores = q.astype(F32) @ k.astype(F32).T * q.shape[1] ** -0.5
    return np.where(np.tril(np.ones(scores.shape)) > 0, scores, -1e30) if causal else scores


def _forward(rng, n, d, causal, block):
    q, k, v = normal(rng, 3, n, d, dtype=BF16)
    scores = scores_of(q, k, causal)
    top = scores.max(1, keepdims=True)
    lse = np.log(np.exp(scores - top).sum(1, keepdims=True)) + top
    arguments = [q, k, v, np.zeros((n, d), F32), np.zeros((n, 1), F32), d**-0.5]
    # A subgroup's part of the output has at most 64 registers.
    constants = {"BM": 16, "BN": block, "D": d, "CAUSAL": causal, "SUBGROUPS": d // 64}
    expected = {3: softmax_of(scores) @ v.astype(F32), 4: lse}
    return Run(forward, arguments, expected, cdiv(n, 16), constants, 2e-2)


@run
def attention_64(rng):
    return _forward(rng, 37, 64, False, 16)


@run
def attention_64_causal(rng):
    return _forward(rng, 37, 64, True, 16)


@run
def attention_128(rng):
    return _forward(rng, 21, 128, False, 16)


@run
def attention_128_causal(rng):
    return _forward(rng, 35, 128, True, 16)


def backward_keys(
    Q,
    K,
    V,
    DO,
    LSE,
    DELTA,
    DK,
    DV,
    scale,
    BM: Constexpr,
    BN: Constexpr,
    D: Constexpr,
    CAUSAL: Constexpr,
    SUBGROUPS: Constexpr,
):
    """The gradients of a block of keys and values, from all queries that see them."""
    n, length = xl.program_id(0) * BN, Q.shape[0]
    k, v = K.tile((BN, D), at=(n, 0)).load(), V.tile((BN, D), at=(n, 0)).load()
    by_rows = xl.WgMap((SUBGROUPS, 1), (BN // SUBGROUPS, D))
    dk, dv = xl.zeros((BN, D), map=by_rows), xl.zeros((BN, D), map=by_rows)
    columns = n + xl.arange(0, BN)[None, :]
    for m in range(n // BM * BM if CAUSAL else 0, length, BM):
        q, do = Q.tile((BM, D), at=(m, 0)).load(), DO.tile((BM, D), at=(m, 0)).load()
        rows = m + xl.arange(0, BM)[:, None]
        visible = (rows < length) & (rows >= columns) if CAUSAL else rows < length
        lse, delta = LSE.tile((BM, 1), at=(m, 0)).load(), DELTA.tile((BM, 1), at=(m, 0)).load()
        p = xl.where(visible, xl.exp((q @ k.T) * scale - lse), 0.0)
        dv = xl.dot(p.to(xl.bfloat16).T, do, dv)
        ds = p * (xl.dot(do, v.T) - delta) * scale
        dk = xl.dot(ds.to(xl.bfloat16).T, q, dk)
    DK.tile((BN, D), at=(n, 0)).store(dk)
    DV.tile((BN, D), at=(n, 0)).store(dv)


def backward_queries(
    Q,
    K,
    V,
    DO,
    LSE,
    DELTA,
    DQ,
    scale,
    BM: Constexpr,
    BN: Constexpr,
    D: Constexpr,
    CAUSAL: Constexpr,
    SUBGROUPS: Constexpr,
):
    """The gradient of a block of queries."""
    m, length = xl.program_id(0) * BM, K.shape[0]
    by_rows = xl.WgMap((SUBGROUPS, 1), (BM // SUBGROUPS, D))
    q, do = Q.tile((BM, D), at=(m, 0), map=by_rows).load(), DO.tile((BM, D), at=(m, 0), map=by_rows).load()
    lse, delta = LSE.tile((BM, 1), at=(m, 0)).load(), DELTA.tile((BM, 1), at=(m, 0)).load()
    rows, dq = m + xl.arange(0, BM)[:, None], xl.zeros((BM, D))
    for n in range(0, min(m + BM, length) if CAUSAL else length, BN):
        k, v = K.tile((BN, D), at=(n, 0)).load(), V.tile((BN, D), at=(n, 0)).load()
        columns = n + xl.arange(0, BN)[None, :]
        visible = (columns < length) & (rows >= columns) if CAUSAL else columns < length
        p = xl.where(visible, xl.exp((q @ k.T) * scale - lse), 0.0)
        ds = p * (xl.dot(do, v.T) - delta) * scale
        dq = xl.dot(ds.to(xl.bfloat16), k, dq)
    DQ.tile((BM, D), at=(m, 0)).store(dq)


def _backward(rng, n, d, causal, of):
    q, k, v, do = normal(rng, 4, n, d, dtype=BF16)
    scale, scores = d**-0.5, scores_of(q, k, causal)
    p = softmax_of(scores)
    top = scores.max(1, keepdims=True)
    lse = np.log(np.exp(scores - top).sum(1, keepdims=True)) + top
    dp = do.astype(F32) @ v.astype(F32).T
    delta = (p * dp).sum(1, keepdims=True)
    ds = p * (dp - delta) * scale
    arguments = [q, k, v, do, lse.astype(F32), delta.astype(F32)]
    constants = {"BM": 16, "BN": 16, "D": d, "CAUSAL": causal, "SUBGROUPS": d // 32}
    if of == "queries":
        constants["SUBGROUPS"] = 2
    elif d == 128:
        constants["BM"] = 8
    zero = np.zeros((n, d), F32)
    if of == "queries":
        expected = {6: ds @ k.astype(F32)}
        return Run(backward_queries, [*arguments, zero, scale], expected, cdiv(n, 16), constants, 5e-2)
    expected = {6: ds.T @ q.astype(F32), 7: p.T @ do.astype(F32)}
    return Run(backward_keys, [*arguments, zero, zero.copy(), scale], expected, cdiv(n, 16), constants, 5e-2)


@run
def gradient_of_keys(rng):
    return _backward(rng, 37, 64, False, "keys")


@run
def gradient_of_keys_causal(rng):
    return _backward(rng, 37, 128, True, "keys")


@run
def gradient_of_queries(rng):
    return _backward(rng, 21, 128, False, "queries")


@run
def gradient_of_queries_causal(rng):
    return _backward(rng, 37, 64, True, "queries")


def decode(Q, K, V, OUT, LENGTHS, scale, D: Constexpr, HEADS: Constexpr, BN: Constexpr):
    """One query of a group of heads that share keys, of sequences of different lengths."""
    z = xl.program_id(0)
    length = LENGTHS[z]
    q = Q.tile((HEADS, D), at=(z, 0, 0)).load()
    top, total, out = xl.full((HEADS, 1), -1e30), xl.zeros((HEADS, 1)), xl.zeros((HEADS, D))
    for start in range(0, length, BN):
        scores = (q @ K.tile((BN, D), at=(z, start, 0)).load().T) * scale
        scores = xl.where(start + xl.arange(0, BN)[None, :] < length, scores, -1e30)
        new = xl.maximum(top, scores.max(axis=1, keep_dims=True))
        powers, kept = xl.exp(scores - new), xl.exp(top - new)
        total = total * kept + powers.sum(axis=1, keep_dims=True)
        out = out * kept + powers.to(xl.bfloat16) @ V.tile((BN, D), at=(z, start, 0)).load()
        top = new
    OUT.tile((HEADS, D), at=(z, 0, 0)).store(out / total)


@run
def decoding_with_grouped_heads(rng):
    lengths = np.array([5, 40, 17], np.int32)
    q, (k, v) = normal(rng, 3, 8, 64, dtype=BF16), normal(rng, 2, 3, 40, 64, dtype=BF16)
    out = [
        softmax_of(q[z].astype(F32) @ k[z, :n].astype(F32).T / 8) @ v[z, :n].astype(F32) for z, n in enumerate(lengths)
    ]
    arguments = [q, k, v, np.zeros((3, 8, 64), F32), lengths, 0.125]
    return Run(decode, arguments, {3: np.stack(out)}, 3, {"D": 64, "HEADS": 8, "BN": 16}, 2e-2)
