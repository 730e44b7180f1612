"""A GEMM of bf16 matrices for workgroups of 8x4 subgroups, built, lowered, run and checked."""

import ml_dtypes
import numpy as np

from xegpu_py import language

BF16, F32 = ml_dtypes.bfloat16, np.float32
MAP = language.WgMap(sg_layout=(8, 4), sg_data=(32, 64))


@language.tile_kernel((BF16, (None, None)), (BF16, (None, None)), (F32, (None, None)))
def gemm(A, B, C):
    m, n = language.block_id("x") * 256, language.block_id("y") * 256
    a = A.tile((256, 32), at=(m, 0))
    b = B.tile((32, 256), at=(0, n))
    c = language.zeros((256, 256), F32, map=MAP)
    for k in language.range_(0, A.shape[1], 32):
        c += a.load() @ b.load()
        a.advance(columns=32)
        b.advance(rows=32)
    C.tile((256, 256), at=(m, n)).store(c)


def main():
    print(gemm.module)
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (512, 128)).astype(BF16)
    b = rng.integers(-4, 5, (128, 256)).astype(BF16)
    c = np.zeros((512, 256), F32)
    gemm(a, b, c, grid=(2, 1), block=32)
    print("equal to numpy:", bool((c == a.astype(F32) @ b.astype(F32)).all()))


if __name__ == "__main__":
    main()
