"""Rows with mean 0 and variance 1, times weights and plus a bias."""

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, y_ptr, n, EPS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < n
    at = tl.program_id(0) * n + column
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, 0) / n, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / n + EPS)
    weight, bias = tl.load(weight_ptr + column, mask=inside), tl.load(bias_ptr + column, mask=inside)
    tl.store(y_ptr + at, centred * scale * weight + bias, mask=inside)


rng = np.random.default_rng(0)
x, weight, bias = (rng.standard_normal(shape, np.float32) for shape in ((32, 100), 100, 100))
y = np.zeros_like(x)
layer_norm[(32,)](*map(xegpu_py.triton.wrap, (x, weight, bias, y)), 100, EPS=1e-5, BLOCK=128)
normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
print(f"largest difference from numpy: {abs(y - (normal * weight + bias)).max():.1g}")
