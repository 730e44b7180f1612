"""A matrix product in float16, with descriptors of the matrices, which read zeros beyond their edges."""

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for i in range(0, k, BK):
        total = tl.dot(a.load([row, i]), b.load([i, column]), total)
    c.store([row, column], total)


rng = np.random.default_rng(0)
a, b = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((72, 104), (104, 80)))
c = np.zeros((72, 80), np.float32)
gemm[(3, 3)](*map(xegpu_py.triton.wrap, (a, b, c)), 72, 80, 104, BM=32, BN=32, BK=32)
print("equal to numpy:", (c == a.astype(np.float32) @ b.astype(np.float32)).all())
