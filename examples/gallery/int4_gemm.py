"""A product with weights of 4 bits, two in a byte, and a scale for each 32 rows of a column."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def int4_gemm(A, Q, SCALES, C):
    m, n = xl.program_id(0) * 16, xl.program_id(1) * 32
    c = xl.zeros((16, 32))
    for k in range(0, A.shape[1], 32):
        packed = Q.tile((16, 32), at=(k // 2, n)).load().to(xl.int32)
        low, high = ((packed & 15) - 8).to(xl.bfloat16), ((packed >> 4) - 8).to(xl.bfloat16)
        part = A.tile((16, 16), at=(m, k)).load() @ low + A.tile((16, 16), at=(m, k + 16)).load() @ high
        c += part * SCALES.tile((1, 32), at=(k // 32, n)).load()
    C.tile((16, 32), at=(m, n)).store(c)


rng = np.random.default_rng(0)
a, w = rng.integers(-4, 5, (32, 64)).astype(xl.bfloat16), rng.integers(-8, 8, (64, 64))
halves = (w + 8).reshape(2, 2, 16, 64)
q = (halves[:, 0] | halves[:, 1] << 4).reshape(32, 64).astype(np.uint8)
scales = (2.0 ** rng.integers(-2, 3, (2, 64))).astype(np.float32)
arguments = a, q, scales, np.zeros((32, 64), np.float32)
launch = int4_gemm[2, 2]
launch(*arguments)
print("equal to numpy:", (arguments[3] == a.astype(float) @ (w * np.repeat(scales, 32, 0))).all())
