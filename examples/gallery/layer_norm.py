"""Layer norm: each row minus its mean, divided by its standard deviation, with a weight and a bias for each column."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def layer_norm(X, WEIGHT, BIAS, Y, eps: float):
    row = xl.program_id(0) * 8
    x = X.tile((8, 128), at=(row, 0)).load()
    centred = x - x.sum(axis=1, keep_dims=True) / 128
    variance = (centred * centred).sum(axis=1, keep_dims=True) / 128
    weight, bias = WEIGHT.tile((1, 128), at=(0, 0)).load(), BIAS.tile((1, 128), at=(0, 0)).load()
    Y.tile((8, 128), at=(row, 0)).store(centred / xl.sqrt(variance + eps) * weight + bias)


rng = np.random.default_rng(0)
x, (weight, bias) = rng.standard_normal((32, 128), np.float32), rng.standard_normal((2, 1, 128), np.float32)
arguments = x, weight, bias, np.zeros_like(x), 1e-5
launch = layer_norm[4]
launch(*arguments)
wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
print(f"largest difference from numpy: {abs(arguments[3] - wanted).max():.1g}")
