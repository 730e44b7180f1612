"""A step of the heat equation: the mean of four neighbours, and zero outside of the grid."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def heat(OLD, NEW):
    m, n = xl.program_id(0) * 8, xl.program_id(1) * 32
    above, below = OLD.tile((8, 32), at=(m - 1, n)).load(), OLD.tile((8, 32), at=(m + 1, n)).load()
    left, right = OLD.tile((8, 32), at=(m, n - 1)).load(), OLD.tile((8, 32), at=(m, n + 1)).load()
    NEW.tile((8, 32), at=(m, n)).store(0.25 * (above + below + (left + right)))


old = np.random.default_rng(0).standard_normal((32, 64), np.float32)
arguments = old, np.zeros_like(old)
launch = heat[4, 2]
launch(*arguments)
p = np.pad(old, 1)
wanted = np.float32(0.25) * (p[:-2, 1:-1] + p[2:, 1:-1] + (p[1:-1, :-2] + p[1:-1, 2:]))
print("equal to numpy:", (arguments[1] == wanted).all())
