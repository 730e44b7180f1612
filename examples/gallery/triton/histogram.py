"""How often each byte occurs: counts of a block, added to those of all blocks by atomic operations."""

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def histogram(x_ptr, counts_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0).to(tl.int32)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=at < n))


x = np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8)
counts = np.zeros(256, np.int32)
histogram[(4,)](xegpu_py.triton.wrap(x), xegpu_py.triton.wrap(counts), 1000, BINS=256, BLOCK=256)
print("equal to numpy:", (counts == np.bincount(x, minlength=256)).all())
