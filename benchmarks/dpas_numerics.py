"""DPAS in numpy: multiply-adds a second for each precision and rounding model, against numpy's float32 matmul."""

from __future__ import annotations

import numpy as np
from support.calls import median_seconds

from xegpu_py.numerics import dpas

THREADS, RC, SD, N = 512, 8, 8, 16
CASES = [
    ("bf", "fma"),
    ("hf", "fma"),
    ("tf32", "fma"),
    ("bf8", "fma"),
    ("bf", "stage"),
    ("bf", "exact"),
    ("s8", "fma"),
    ("s4", "fma"),
]
DEPTH = {"tf32": 8, "bf": 16, "hf": 16, "bf8": 32, "s8": 32, "s4": 64}


def main() -> None:
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2))
    peer = 1024**3 / median_seconds(lambda: left @ right)
    print(f"{'numpy float32 matmul 1024^3':32}{peer / 1e9:10.2f} GMAC/s")
    first = 0.0
    for precision, model in CASES:
        kind = "d" if precision[0] == "s" else "f"
        acc = rng.integers(-1000, 1000, (THREADS, RC * N)).astype(np.int32 if kind == "d" else np.float32)
        # Bytes whose floats are ordinary numbers: the exponent's top bits are those of numbers near one.
        src1, src2 = (
            rng.integers(0x38, 0x3C, (THREADS, size), np.uint8)
            if kind == "f"
            else rng.integers(0, 256, (THREADS, size), np.uint8)
            for size in (512, 1024)
        )
        seconds = median_seconds(
            lambda precision=precision, model=model, acc=acc, src1=src1, src2=src2, kind=kind: dpas(
                acc.view(np.uint8), src1, src2, W=precision, A=precision, SD=SD, RC=RC, exec_size=N,
                dst_type=kind, src0_type=kind, model=model,
            )
        )  # fmt: skip
        rate = THREADS * RC * N * DEPTH[precision] / seconds
        first = first or rate
        print(f"{f'dpas {precision} {model}, {THREADS} threads':32}{rate / 1e9:10.3f} GMAC/s")
    print(f"dpas bf fma against numpy float32 matmul: ratio {first / peer:.4f}")


if __name__ == "__main__":
    main()
