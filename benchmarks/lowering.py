"""Lowering of an unrolled GEMM from XeGPU to vISA: time of each pass, growth with size, and upstream's own lowering."""

import re
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from support import gemm_text
from support.processes import mlir_opt
from xegpu_py.passes.xegpu_to_visa_pipeline import XeGPUToVisaPipeline

import xegpu_py

SIZES = {500: 9, 5_000: 3, 50_000: 1}
"""Ops, and how often each is timed."""

BOUND = 1.5
"""What the time of an op may grow by from 5,000 to 50,000 ops."""

UPSTREAM = "xegpu-op-level=subgroup"


def passes(ops: int) -> dict[str, float]:
    """Processor seconds of each pass of the pipeline on a module of about so many ops, its verification included."""
    module = xegpu_py.parse(gemm_text.ours(ops))
    taken = {}
    for step in re.split(r",(?![^{]*\})", XeGPUToVisaPipeline(target="pvcxt").steps()):
        start = time.process_time()
        xegpu_py.run_pipeline(module, f"builtin.module({step})")
        taken[step.partition("{")[0]] = time.process_time() - start
    return taken


def upstream(ops: int) -> str:
    """How fast mlir-opt lowers the same kernel to XeVM, or why it does not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gemm.mlir"
        path.write_text(gemm_text.upstream(ops))
        start = time.perf_counter()
        command = [mlir_opt(), path, f"--gpu-lower-to-xevm-pipeline={UPSTREAM}", "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True)
        taken = time.perf_counter() - start
    if done.returncode:
        reason = next((line.partition("error: ")[2] for line in done.stderr.split("\n") if "error: " in line), "")
        return f"does not lower it: {reason or f'exit status {done.returncode}'}"
    return f"{ops / taken:10,.0f} ops a second"


def main() -> None:
    per_op = {}
    for ops, runs in SIZES.items():
        found = [passes(ops) for _ in range(runs)]
        per_op[ops] = {name: median(run[name] for run in found) / ops * 1e6 for name in found[0]}
    print(f"{'microseconds per op':<24}" + "".join(f"{ops:>13,} ops" for ops in SIZES))
    for name in per_op[500]:
        print(f"  {name:<22}" + "".join(f"{per_op[ops][name]:17.1f}" for ops in SIZES))
    totals = {ops: sum(times.values()) for ops, times in per_op.items()}
    print(f"  {'whole pipeline':<22}" + "".join(f"{total:17.1f}" for total in totals.values()))
    print(f"  {'ops a second':<22}" + "".join(f"{1e6 / total:17,.0f}" for total in totals.values()))
    growth = totals[50_000] / totals[5_000]
    print(f"an op takes {growth:.2f} times as long among 50,000 as among 5,000 (bound {BOUND})")
    print(f"mlir-opt, its own XeGPU to XeVM: {upstream(500)}")


if __name__ == "__main__":
    main()
