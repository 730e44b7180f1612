"""Kernels that access memory by pointers: processor time to compile them cold, and a GEMM beside one of tiles."""

import time

import ml_dtypes
import numpy as np
from support.calls import median_seconds

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr

N = 512
BF16 = ml_dtypes.bfloat16


@xegpu_py.jit(cache="off")
def add(X, Y, Z, n, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    xl.store(Z + i, xl.load(X + i, mask=i < n) + xl.load(Y + i, mask=i < n), mask=i < n)


@xegpu_py.jit(cache="off")
def by_pointers(A, B, C, M, N, K, pitch_a, pitch_b, pitch_c, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    m, n, k = xl.program_id(0) * BM, xl.program_id(1) * BN, xl.arange(0, BK)
    rows, columns = m + xl.arange(0, BM), n + xl.arange(0, BN)
    a = A + (rows % M)[:, None] * pitch_a + k[None, :]
    b = B + k[:, None] * pitch_b + (columns % N)[None, :]
    total = xl.zeros((BM, BN), dtype=xl.float32)
    for start in range(0, K, BK):
        left = xl.load(a, mask=k[None, :] < K - start, other=0)
        total = xl.dot(left, xl.load(b, mask=k[:, None] < K - start, other=0), total)
        a += BK
        b += BK * pitch_b
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    xl.store(C + rows[:, None] * pitch_c + columns[None, :], total, mask=mask)


@xegpu_py.jit(cache="off")
def by_tiles(A, B, C, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    m, n = xl.program_id(0) * BM, xl.program_id(1) * BN
    total = xl.zeros((BM, BN), dtype=xl.float32)
    for k in range(0, A.shape[1], BK):
        total += A.tile((BM, BK), at=(m, k)).load() @ B.tile((BK, BN), at=(k, n)).load()
    C.tile((BM, BN), at=(m, n)).store(total)


def main() -> None:
    x = np.arange(4 * 8192, dtype=np.float32)
    z = np.empty_like(x)
    # What the process does once is no part of a kernel's time.
    add[1](x, x, z, 64, BLOCK=64)
    begun = time.process_time()
    add[4](x, x, z, len(x), BLOCK=8192)
    print(f"vector addition of 8192, first call: {time.process_time() - begun:.2f} s of processor time")
    assert (z == 2 * x).all()
    rng = np.random.default_rng(0)
    a, b = (xegpu_py.zeros_aligned((N, N), BF16) for _ in range(2))
    a[:], b[:] = rng.integers(-8, 9, (2, N, N))
    c = xegpu_py.zeros_aligned((N, N), np.float32)
    blocks, grid = {"BM": 128, "BN": 128, "BK": 32}, (N // 128, N // 128)
    found = {}
    for name, call in (
        ("pointers", lambda: by_pointers[grid](a, b, c, N, N, N, N, N, N, **blocks)),
        ("tiles", lambda: by_tiles[grid](a, b, c, **blocks)),
    ):
        begun = time.process_time()
        call()
        compiled = time.process_time() - begun
        assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
        found[name] = median_seconds(call, 9)
        print(f"GEMM of 128x128x32 by {name}, first call: {compiled:.2f} s of processor time")
    ratio = found["pointers"] / found["tiles"]
    print(f"GEMM {N}^3 by pointers: {found['pointers'] * 1e3:.2f} ms, ratio {ratio:.2f} to that by tiles")


if __name__ == "__main__":
    main()
