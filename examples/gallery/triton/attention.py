"""Attention of a head, with the softmax of a row computed while its blocks of keys arrive."""

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, n, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    d, block = tl.arange(0, D), tl.arange(0, BLOCK)
    rows = (tl.program_id(0) * BLOCK + block)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + rows)
    greatest = tl.full((BLOCK,), -float("inf"), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, D), tl.float32)
    for i in range(0, n, BLOCK):
        at = (i + block)[:, None] * D + d[None, :]
        scores = tl.dot(q, tl.load(k_ptr + at).T) * scale
        new = tl.maximum(greatest, tl.max(scores, 1))
        shrunk, powers = tl.exp(greatest - new), tl.exp(scores - new[:, None])
        total = tl.dot(powers.to(tl.float16), tl.load(v_ptr + at), total * shrunk[:, None])
        sums, greatest = sums * shrunk + tl.sum(powers, 1), new
    tl.store(out_ptr + rows, total / sums[:, None])


rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((64, 32), np.float32).astype(np.float16) for _ in range(3))
out = np.zeros((64, 32), np.float32)
attention[(2,)](*map(xegpu_py.triton.wrap, (q, k, v, out)), 64, 32**-0.5, D=32, BLOCK=32)
scores = q.astype(np.float32) @ k.T.astype(np.float32) * 32**-0.5
powers = np.exp(scores - scores.max(1, keepdims=True))
wanted = powers / powers.sum(1, keepdims=True) @ v.astype(np.float32)
print(f"largest difference from numpy: {abs(out - wanted).max():.1g}")
