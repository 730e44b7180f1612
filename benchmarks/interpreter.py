"""The interpreter: a bf16 GEMM in hand-written vISA against numpy's float32 matmul, and time by number of threads."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
from support.calls import median_seconds

from xegpu_py import Kernel
from xegpu_py.numerics.rounding import fma_f32

GEMM = Path(__file__).parents[1] / "examples" / "gemm.visaasm"
ROWS, COLUMNS = 32, 64
RNG = np.random.default_rng(0)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product as dpas rounds it: one rounding after each of the products, in increasing k."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    found = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(len(b)):
        found = fma_f32(np.outer(left[:, k], right[k]), found)
    return found


def gemm_seconds(kernel: Kernel, m: int, n: int, k: int) -> float:
    """The time that the kernel takes. Its result is compared with the reference bit by bit."""
    a, b = (
        RNG.standard_normal((m, k)).astype(ml_dtypes.bfloat16),
        RNG.standard_normal((k, n)).astype(ml_dtypes.bfloat16),
    )
    c = np.zeros((m, n), np.float32)
    seconds = median_seconds(lambda: kernel(a, b, c, m, n, k, grid=(n // COLUMNS, m // ROWS)), 7)
    assert np.array_equal(c, reference(a, b))
    return seconds


def main() -> None:
    kernel = Kernel.from_file(GEMM, registers=256, engine="interpreter")
    found = {}
    for threads in (32, 128, 512, 2048):
        # The grid of tiles is square, so that the operands grow more slowly than the number of operations.
        side = int((threads / 2) ** 0.5) * COLUMNS
        found[threads] = gemm_seconds(kernel, side, side, 64)
        each = found[threads] / threads * 1e6
        print(f"{threads:5} threads, K = 64 {found[threads]:10.3f} s {each:8.1f} us a thread")
    growth = found[2048] / found[32]
    print(f"64 times the threads take longer by ratio {growth:.2f}")
    left, right = (RNG.standard_normal((256, 256)).astype(np.float32) for _ in range(2))
    peer = median_seconds(lambda: left @ right, 101)
    seconds = gemm_seconds(kernel, 256, 256, 256)
    print(f"numpy float32 matmul 256^3  {peer:10.6f} s")
    print(f"bf16 GEMM of vISA    256^3  {seconds:10.6f} s, {256**3 / seconds / 1e6:.0f} MMAC/s")
    print(f"bf16 GEMM of vISA against numpy float32 matmul: ratio {seconds / peer:.1f}")


if __name__ == "__main__":
    main()
