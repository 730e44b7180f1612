"""Lowers the kernel of examples/gemm_bf16.mlir from XeGPU to vISA, runs it, and checks every bit of the result."""

from pathlib import Path

import ml_dtypes
import numpy as np

import xegpu_py
from xegpu_py.numerics.rounding import fma_f32
from xegpu_py.runtime.launch import statistics_table
from xegpu_py.visa.finalizer import available, finalize

SIZE = 512
LINES = 12


def show(title: str, text: str, skip_to: str = "") -> None:
    """Print the first lines of a text, starting at the line that contains `skip_to`."""
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if skip_to in line), 0)
    print(f"\n== {title}")
    for line in lines[start : start + LINES]:
        print(line[:128])
    print(f"   ... {len(lines)} lines in all")


def model(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A x B, accumulated as in the systolic array: each product in increasing k, with one rounding to f32."""
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = fma_f32(np.multiply.outer(wide_a[:, k], wide_b[k]), total)
    return total


def main() -> None:
    """Run the demonstration."""
    gemm = xegpu_py.compile(Path(__file__).parent / "gemm_bf16.mlir", "gemm", target="pvcxt", strict_grf=True)
    show("XeGPU", gemm.ir("xegpu"), "scf.for")
    show("vISA", gemm.ir("visa"), "visa.label")
    show("vISA assembly", gemm.asm, "For1:")
    if available("pvcxt"):
        native = finalize(gemm.asm, "pvcxt")
        show("Xe native ISA, by Intel's finalizer", native.text, "load_block2d")
        print(f"   {native.instructions} instructions, {native.spill_bytes} bytes spilled")
    else:
        print("\n== Xe native ISA: Intel's finalizer is not installed (`make oracles` installs it)")

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((SIZE, SIZE), np.float32)
    done = gemm(a, b, c, grid=(4, 4), block=(4, 4))
    print(f"\n== Run on {SIZE}x{SIZE}x{SIZE} numbers")
    print(statistics_table(gemm.program, done))
    error = np.abs(c - a.astype(np.float64) @ b.astype(np.float64)).max()
    print(f"greatest error against float64: {error:.3g}")
    print(f"equal in every bit to the f32 model, one rounding a product: {bool((c == model(a, b)).all())}")


if __name__ == "__main__":
    main()
