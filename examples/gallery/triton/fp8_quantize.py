"""Rows as 8-bit floats, each scaled so that its greatest number is the greatest of the format."""

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def quantize(x_ptr, q_ptr, scales_ptr, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + column, mask=column < n, other=0.0)
    scale = tl.div_rn(tl.max(tl.abs(x), 0), 448.0)
    tl.store(q_ptr + row * n + column, tl.div_rn(x, scale).to(tl.float8e4nv), mask=column < n)
    tl.store(scales_ptr + row, scale)


x = np.random.default_rng(0).standard_normal((32, 100), np.float32)
q, found = np.zeros(x.shape, ml_dtypes.float8_e4m3fn), np.zeros(32, np.float32)
quantize[(32,)](xegpu_py.triton.wrap(x), xegpu_py.triton.wrap(q), xegpu_py.triton.wrap(found), 100, BLOCK=128)
scales = abs(x).max(1) / np.float32(448)
quantized = (x / scales[:, None]).astype(ml_dtypes.float8_e4m3fn)
print("equal to numpy and ml_dtypes:", (found == scales).all() and (q == quantized).all())
