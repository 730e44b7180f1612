"""Sums of all elements so far, block after block, with what is carried from one block to the next."""

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def scan(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    carried = 0
    for i in range(0, n, BLOCK):
        column = i + tl.arange(0, BLOCK)
        at = tl.program_id(0) * n + column
        x = tl.load(x_ptr + at, mask=column < n, other=0)
        tl.store(out_ptr + at, tl.cumsum(x, 0) + carried, mask=column < n)
        carried += tl.sum(x, 0)


x = np.random.default_rng(0).integers(-100, 100, (4, 250)).astype(np.int32)
out = np.zeros_like(x)
scan[(4,)](xegpu_py.triton.wrap(x), xegpu_py.triton.wrap(out), 250, BLOCK=64)
print("equal to numpy:", (out == np.cumsum(x, axis=1)).all())
