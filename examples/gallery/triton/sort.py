"""Rows in ascending order."""

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def sort(x_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


x = np.random.default_rng(0).integers(-1000, 1000, (16, 32)).astype(np.int32)
out = np.zeros_like(x)
sort[(4,)](xegpu_py.triton.wrap(x), xegpu_py.triton.wrap(out), ROWS=4, N=32)
print("equal to numpy:", (out == np.sort(x, axis=1)).all())
