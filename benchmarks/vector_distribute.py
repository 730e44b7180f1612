"""Microseconds an op of vector-distribute, on growing chains of elementwise ops, against iree-opt's distribution."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import xegpu_py

LAYOUT = (
    "#iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [2], outer_tile = [1], thread_tile = [16], "
    "element_tile = [1], subgroup_strides = [0], thread_strides = [1]>"
)
WORKGROUP = (
    "#iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> "
    "workgroup_size = [16, 1, 1] subgroup_size = 16>"
)
SIZES = (500, 2000, 8000)
IREE_OPT = Path(sys.executable).with_name("iree-opt")


def text(ops: int, attributes: str = "") -> str:
    lines = [f"  %v{i + 1} = arith.addf %v{i}, %v0 : vector<32xf32>" for i in range(ops)]
    return "\n".join(
        [
            f"func.func @f(%m: memref<32xf32>) {attributes} {{",
            "  %c0 = arith.constant 0 : index",
            "  %zero = arith.constant 0.0 : f32",
            "  %v = vector.transfer_read %m[%c0], %zero {in_bounds = [true]} : memref<32xf32>, vector<32xf32>",
            f"  %v0 = iree_vector_ext.to_layout %v to layout({LAYOUT}) : vector<32xf32>",
            *lines,
            f"  vector.transfer_write %v{ops}, %m[%c0] {{in_bounds = [true]}} : vector<32xf32>, memref<32xf32>",
            "  return",
            "}",
        ]
    )


def ours(ops: int) -> float:
    module = xegpu_py.parse(text(ops))
    start = time.perf_counter()
    xegpu_py.run_pipeline(module, "builtin.module(vector-distribute)")
    return time.perf_counter() - start


def theirs(ops: int) -> float:
    """A whole process: reading and printing too, of which IREE tells no times."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as f:
        f.write(text(ops, f"attributes {{translation_info = {WORKGROUP}}}"))
        f.flush()
        pipeline = "--pass-pipeline=builtin.module(func.func(iree-llvmgpu-vector-distribute))"
        start = time.perf_counter()
        subprocess.run([IREE_OPT, f.name, pipeline, "-o", "/dev/null"], check=True)
        return time.perf_counter() - start


def main() -> None:
    per_op = {}
    for ops in SIZES:
        per_op[ops] = statistics.median(ours(ops) for _ in range(5)) / ops * 1e6
        print(f"vector-distribute, {ops:5} ops {per_op[ops]:10.1f} microseconds per op")
    small, large = SIZES[0], SIZES[-1]
    if not IREE_OPT.exists():
        print(f"{large} ops against {small}, per op: ratio {per_op[large] / per_op[small]:.2f}")
        return
    few, many = (statistics.median(theirs(ops) for _ in range(5)) for ops in (small, large))
    peer = (many - few) / (large - small) * 1e6
    print(f"iree-opt, the whole process    {peer:10.1f} microseconds per op")
    print(f"vector-distribute against iree-opt per op: ratio {per_op[large] / peer:.2f}")


if __name__ == "__main__":
    main()
