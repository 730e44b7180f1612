"""Lowering of an unrolled GEMM from XeGPU to vISA: time of each pass, growth with size, and upstream's own lowering."""

import argparse
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from mlir import ir
from support import gemm_text
from support.processes import mlir_opt

import xegpu_py
from xegpu_py.ir.passes import Listener, Runner, Step, parse_pipeline

SIZES = {500: 9, 5_000: 3, 50_000: 1}
"""Numbers of ops, and the number of times that each is timed."""

BOUND = 1.5
"""The factor by which the time per op may grow from 5,000 to 50,000 ops."""

UPSTREAM = "xegpu-op-level=subgroup"


@dataclass
class _Watch(Listener):
    """The processor seconds of each pass."""

    taken: dict[str, float] = field(default_factory=dict)
    start: float = 0.0

    def before(self, step: Step, op: ir.Operation) -> None:
        self.start = time.process_time()

    def after(self, step: Step, op: ir.Operation, seconds: float) -> None:
        self.taken[step.name] = self.taken.get(step.name, 0.0) + time.process_time() - self.start


def passes(ops: int) -> dict[str, float]:
    """Processor seconds of each pass of the pipeline on a module of about so many ops, not verified in between."""
    module = xegpu_py.parse(gemm_text.ours(ops))
    watch = _Watch()
    pipeline = "builtin.module(xegpu-to-visa-pipeline{target=pvcxt})"
    Runner(verify_each=False, listeners=[watch]).run(parse_pipeline(pipeline), module)
    return watch.taken


def compiled(ops: int) -> float:
    """Processor seconds of `xegpu_py.compile` on such a module: all passes, verification, and register allocation."""
    module = xegpu_py.parse(gemm_text.ours(ops))
    start = time.process_time()
    xegpu_py.compile(module, cache="off")
    return time.process_time() - start


def upstream(tool: Path, ops: int) -> str:
    """The time that mlir-opt takes to lower the same kernel to XeVM, or the reason why it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gemm.mlir"
        path.write_text(gemm_text.upstream(ops))
        start = time.perf_counter()
        command = [tool, path, f"--gpu-lower-to-xevm-pipeline={UPSTREAM}", "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True)
        taken = time.perf_counter() - start
    if done.returncode:
        reason = next((line.partition("error: ")[2] for line in done.stderr.split("\n") if "error: " in line), "")
        return f"does not lower it: {reason or f'exit status {done.returncode}'}"
    return f"{ops / taken:10,.0f} ops a second"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=int, metavar="OPS", help="print the seconds of `compile` at this size, as JSON")
    args = parser.parse_args()
    if args.json:
        compiled(500)
        taken = min(compiled(args.json) for _ in range(SIZES.get(args.json, 1)))
        print(json.dumps({f"{args.json:,} ops, microseconds an op": taken / args.json * 1e6}))
        return
    tool = mlir_opt()
    per_op, whole = {}, {}
    for ops, runs in SIZES.items():
        found = [passes(ops) for _ in range(runs)]
        per_op[ops] = {name: median(run[name] for run in found) / ops * 1e6 for name in found[0]}
        whole[ops] = median(compiled(ops) for _ in range(runs)) / ops * 1e6
    print(f"{'microseconds per op':<24}" + "".join(f"{ops:>13,} ops" for ops in SIZES))
    for name in per_op[500]:
        print(f"  {name:<22}" + "".join(f"{per_op[ops][name]:17.1f}" for ops in SIZES))
    print(f"  {'all passes':<22}" + "".join(f"{sum(times.values()):17.1f}" for times in per_op.values()))
    print(f"  {'xegpu_py.compile':<22}" + "".join(f"{taken:17.1f}" for taken in whole.values()))
    print(f"  {'ops a second':<22}" + "".join(f"{1e6 / taken:17,.0f}" for taken in whole.values()))
    growth = whole[50_000] / whole[5_000]
    print(f"an op takes {growth:.2f} times as long among 50,000 as among 5,000 (bound {BOUND})")
    print(f"mlir-opt, its own XeGPU to XeVM: {upstream(tool, 500)}")


if __name__ == "__main__":
    main()
