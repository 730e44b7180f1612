"""A GEMM of XeTile, 1024^3 in bf16 by workgroup tiles of 256x256: lowering it, and running it on both engines."""

import time
from functools import partial

import ml_dtypes
import numpy as np
from support.calls import median_seconds

import xegpu_py
from xegpu_py import language

N = 1024
BF16 = ml_dtypes.bfloat16
MAP = language.WgMap(sg_layout=(8, 4), sg_data=(32, 64))


def gemm() -> language.TileKernel:
    @language.tile_kernel((BF16, (N, N)), (BF16, (N, N)), (np.float32, (N, N)))
    def kernel(A, B, C):
        m, n = language.block_id("x") * 256, language.block_id("y") * 256
        a, b = A.tile((256, 32), at=(m, 0)), B.tile((32, 256), at=(0, n))
        c = language.zeros((256, 256), map=MAP)
        for _ in language.range_(0, N, 32):
            c += a.load() @ b.load()
            a.advance(columns=32)
            b.advance(rows=32)
        C.tile((256, 256), at=(m, n)).store(c)

    return kernel


def main() -> None:
    kernel = gemm()
    start = time.perf_counter()
    kernel.compile(registers=256)
    print(f"building and lowering: {time.perf_counter() - start:.2f} s")
    rng = np.random.default_rng(0)
    # Whole numbers, so that every order of summation gives the same bits.
    a, b = (xegpu_py.zeros_aligned((N, N), BF16) for _ in range(2))
    a[:], b[:] = rng.integers(-8, 9, (2, N, N))
    left, right = a.astype(np.float32), b.astype(np.float32)
    wanted = left @ right
    peer = median_seconds(lambda: left @ right)
    print(f"numpy float32 matmul: {peer:.4f} s, {N**3 / peer / 1e9:.1f} GMAC/s")
    for engine, ahead, times in (("interpreter", False, 1), ("jit", False, 5), ("jit", True, 5)):
        compiled = kernel.compile(registers=256, engine=engine, load_ahead=ahead)
        c = xegpu_py.zeros_aligned((N, N), np.float32)
        own = median_seconds(partial(compiled, a, b, c, grid=(N // 256, N // 256), block=32), times)
        assert (c == wanted).all()
        how = f"{engine}{', loading ahead' if ahead else ''}"
        print(f"xetile gemm {N}^3, {how}: {own:.4f} s, {N**3 / own / 1e9:.3f} GMAC/s, ratio {own / peer:.2f} to numpy")


if __name__ == "__main__":
    main()
