"""A step of the heat equation: the mean of four neighbours, and zero outside of the grid."""

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def heat(old_ptr, new_ptr, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    old = tl.make_tensor_descriptor(old_ptr, [rows, columns], [columns, 1], [BM, BN])
    new = tl.make_tensor_descriptor(new_ptr, [rows, columns], [columns, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    beside = old.load([m, n - 1]) + old.load([m, n + 1])
    new.store([m, n], 0.25 * (old.load([m - 1, n]) + old.load([m + 1, n]) + beside))


old = np.random.default_rng(0).standard_normal((30, 60), np.float32)
new = np.zeros_like(old)
heat[(4, 2)](xegpu_py.triton.wrap(old), xegpu_py.triton.wrap(new), 30, 60, BM=8, BN=32)
p = np.pad(old, 1)
wanted = np.float32(0.25) * (p[:-2, 1:-1] + p[2:, 1:-1] + (p[1:-1, :-2] + p[1:-1, 2:]))
print("equal to numpy:", (new == wanted).all())
