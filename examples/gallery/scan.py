"""Sums of all elements so far, block after block, with what is carried from one block to the next."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def scan(X, OUT):
    row = xl.program_id(0)
    carried = xl.zeros((1, 1), xl.int32)
    for n in range(0, X.shape[1], 64):
        x = X.tile((1, 64), at=(row, n)).load()
        OUT.tile((1, 64), at=(row, n)).store(xl.cumsum(x, axis=1) + carried)
        carried += x.sum(axis=1, keep_dims=True)


x = np.random.default_rng(0).integers(-100, 100, (4, 256)).astype(np.int32)
arguments = x, np.zeros_like(x)
launch = scan[4]
launch(*arguments)
print("equal to numpy:", (arguments[1] == np.cumsum(x, axis=1)).all())
