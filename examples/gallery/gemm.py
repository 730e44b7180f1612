"""A product of matrices: each workgroup computes 32x32 elements of C, and each of its four subgroups 16x16."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def gemm(A, B, C):
    m, n = xl.program_id(0) * 32, xl.program_id(1) * 32
    c = xl.zeros((32, 32), map=xl.WgMap(sg_layout=(2, 2), sg_data=(16, 16)))
    for k in range(0, A.shape[1], 32):
        c += A.tile((32, 32), at=(m, k)).load() @ B.tile((32, 32), at=(k, n)).load()
    C.tile((32, 32), at=(m, n)).store(c)


a, b = np.random.default_rng(0).integers(-4, 5, (2, 64, 64)).astype(xl.bfloat16)
arguments = a, b, np.zeros((64, 64), np.float32)
launch = gemm[2, 2]
launch(*arguments)
print("equal to numpy:", (arguments[2] == a.astype(np.float32) @ b.astype(np.float32)).all())
