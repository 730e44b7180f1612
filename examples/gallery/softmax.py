"""Softmax of rows, eight to a workgroup."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def softmax(X, Y):
    row = xl.program_id(0) * 8
    x = X.tile((8, 128), at=(row, 0)).load()
    powers = xl.exp(x - x.max(axis=1, keep_dims=True))
    Y.tile((8, 128), at=(row, 0)).store(powers / powers.sum(axis=1, keep_dims=True))


x = np.random.default_rng(0).standard_normal((32, 128), np.float32)
arguments = x, np.zeros_like(x)
launch = softmax[4]
launch(*arguments)
powers = np.exp(x - x.max(1, keepdims=True))
print(f"largest difference from numpy: {abs(arguments[1] - powers / powers.sum(1, keepdims=True)).max():.1g}")
