"""A GEMM of bf16 through `xegpu_py.compile` in the interpreter: seconds, and the ratio to numpy's product in f32."""

import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np

import xegpu_py

KERNEL = Path(__file__).parents[1] / "examples" / "gemm_bf16.mlir"
WRITTEN_FOR = 512
TILE = 128
"""Rows and columns of C that a workgroup of 4 x 4 subgroups computes."""


def main(size: int = 1024) -> None:
    text = KERNEL.read_text().replace(str(WRITTEN_FOR), str(size))
    rng = np.random.default_rng(0)
    # Whole numbers, so that every order of summation gives the same bits.
    a, b = (rng.integers(-8, 9, (size, size)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    start = time.perf_counter()
    gemm = xegpu_py.compile(text, "gemm", target="pvcxt", strict_grf=True, engine="interpreter")
    compiled = time.perf_counter() - start
    start = time.perf_counter()
    done = gemm(a, b, c, grid=(size // TILE, size // TILE), block=(4, 4))
    ran = time.perf_counter() - start
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    start = time.perf_counter()
    expected = wide_a @ wide_b
    numpy = time.perf_counter() - start
    assert (c == expected).all()
    print(f"{size}^3 bf16: compiled in {compiled:.2f} s, run in {ran:.2f} s by {done.threads} threads of the GPU")
    print(f"{2e-9 * size**3 / ran:.2f} GFLOP/s; numpy's float32 product takes {numpy:.4f} s, ratio {ran / numpy:,.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
