"""Softmax of rows, one to a program."""

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def softmax(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + column
    x = tl.load(x_ptr + at, mask=column < n, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + at, powers / tl.sum(powers, 0), mask=column < n)


x = np.random.default_rng(0).standard_normal((32, 100), np.float32)
y = np.zeros_like(x)
softmax[(32,)](xegpu_py.triton.wrap(x), xegpu_py.triton.wrap(y), 100, BLOCK=128)
powers = np.exp(x - x.max(1, keepdims=True))
print(f"largest difference from numpy: {abs(y - powers / powers.sum(1, keepdims=True)).max():.1g}")
