"""A GEMM of XeTile, 1024^3 in bf16 by workgroup tiles of 256x256: lowering it, and running it in the interpreter."""

import time

import ml_dtypes
import numpy as np

from xegpu_py import build

N = 1024
BF16 = ml_dtypes.bfloat16
MAP = build.WgMap(sg_layout=(8, 4), sg_data=(32, 64))


def gemm() -> build.TileKernel:
    @build.tile_kernel((BF16, (N, N)), (BF16, (N, N)), (np.float32, (N, N)))
    def kernel(A, B, C):
        m, n = build.block_id("x") * 256, build.block_id("y") * 256
        a, b = A.tile((256, 32), at=(m, 0)), B.tile((32, 256), at=(0, n))
        c = build.zeros((256, 256), map=MAP)
        for _ in build.range_(0, N, 32):
            c += a.load() @ b.load()
            a.advance(columns=32)
            b.advance(rows=32)
        C.tile((256, 256), at=(m, n)).store(c)

    return kernel


def main() -> None:
    start = time.perf_counter()
    compiled = gemm().compile(registers=256, engine="interpreter")
    print(f"building and lowering: {time.perf_counter() - start:.2f} s")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((N, N)).astype(BF16) for _ in range(2))
    c = np.zeros((N, N), np.float32)
    start = time.perf_counter()
    compiled(a, b, c, grid=(N // 256, N // 256), block=32)
    own = time.perf_counter() - start
    left, right = a.astype(np.float32), b.astype(np.float32)
    peers = []
    for _ in range(5):
        start = time.perf_counter()
        wanted = left @ right
        peers.append(time.perf_counter() - start)
    peer = sorted(peers)[2]
    print(
        f"interpreter: {own:.2f} s, {N**3 / own / 1e9:.3f} GMAC/s; greatest difference {np.abs(c - wanted).max():.2g}"
    )
    print(f"numpy float32 matmul: {peer:.4f} s, {N**3 / peer / 1e9:.1f} GMAC/s")
    print(f"xetile gemm {N}^3 against numpy: ratio {own / peer:.2f}")


if __name__ == "__main__":
    main()
