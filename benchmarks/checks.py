"""The cost of checks in native code: kernels with --check=uninit and --check=races against the same without checks. The
same of counting what a kernel does, as --profile does.

Times are medians of the processor time of one thread. Memory is the increase of the process's peak while a kernel runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("XEGPU_PY_CACHE", "off")

import ml_dtypes
import numpy as np
from row_kernels import KERNELS, cases
from support.gemm_kernel import GemmKernel

import xegpu_py
from xegpu_py.extensions.profile.launches import launched
from xegpu_py.runtime.kernel import Kernel

CHECKS = {"uninit": 5, "races": 5}
"""The checks, and the greatest allowed ratio of times for each."""

COUNTING = 10
"""The greatest allowed ratio for counting."""

ADD = """
gpu.module @m {
  gpu.func @add(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>) kernel {
    %c64 = arith.constant 64 : index
    %group = gpu.block_id x
    %i = arith.muli %group, %c64 : index
    %x = vector.load %a[%i] : memref<?xf32>, vector<64xf32>
    %y = vector.load %b[%i] : memref<?xf32>, vector<64xf32>
    %z = arith.addf %x, %y : vector<64xf32>
    vector.store %z, %c[%i] : memref<?xf32>, vector<64xf32>
    gpu.return
  }
}
"""

Work = tuple[str, Callable[..., xegpu_py.CompiledKernel], list[np.ndarray], dict[str, object]]


def works(size: int) -> list[Work]:
    """Kernels: the name, a function that compiles the kernel, the arguments, and the launch."""
    gemm = GemmKernel("bf16", size)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (size, size)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    found: list[Work] = [
        (
            f"bf16 GEMM {size}",
            lambda **options: xegpu_py.compile(gemm.text(), target=gemm.target, registers=256, **options),
            [a, b, c],
            {"grid": gemm.grid, "block": gemm.block},
        )
    ]
    for case in cases(2048):
        file = KERNELS / case.file
        launch = {"grid": len(case.arguments[0]) // case.rows, "block": case.block}
        found.append(
            (
                case.name,
                lambda file=file, **options: xegpu_py.compile(file, registers=256, **options),
                case.arguments,
                launch,
            )
        )
    numbers = [rng.standard_normal(1 << 20, np.float32) for _ in range(3)]
    a, b, c = numbers
    for name, arguments in (("addition", [a, b, c]), ("in place", [a, b, a])):
        found.append((name, lambda **options: xegpu_py.compile(ADD, **options), arguments, {"grid": 1 << 14}))
    return found


def refuse(*_: object) -> None:
    raise AssertionError("the interpreter was asked")


def memory(field: str) -> int:
    """The present size of the process in bytes ("VmRSS"), or the peak since the last reset ("VmHWM")."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def measured(kernel: xegpu_py.CompiledKernel, work: Work, times: int) -> tuple[float, int]:
    """The median time of a launch in seconds, and the bytes that the first launch allocates."""
    _, _, arguments, launch = work
    assert kernel.executor.jit
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    kernel(*arguments, **launch)
    taken, more = [], memory("VmHWM") - before
    for _ in range(times):
        start = time.process_time()
        kernel(*arguments, **launch)
        taken.append(time.process_time() - start)
    return statistics.median(taken), more


def counting(kernel: xegpu_py.CompiledKernel, work: Work, times: int) -> float:
    """The median time in which a launch is counted, in seconds."""
    _, _, arguments, launch = work
    taken = []
    for _ in range(times):
        start = time.process_time()
        launched(kernel, arguments, **launch, trace_limit=1 << 20)
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="of the GEMM")
    parser.add_argument("--times", type=int, default=5, help="launches, of which the median counts")
    args = parser.parse_args()
    worst, interpreted = 0.0, Kernel._run_interpreted
    for work in works(args.size):
        name, make, arguments, _ = work
        Kernel._run_interpreted = refuse
        plain, more = measured(make(engine="jit", threads=1), work, args.times)
        given = sum(array.nbytes for array in arguments)
        print(f"{name:16} {plain * 1e3:7.2f} ms, {more / 1e6:6.2f} MB beside {given / 1e6:6.2f} MB of arrays")
        for check, most in CHECKS.items():
            taken, more = measured(make(engine="jit", threads=1, check=check), work, args.times)
            worst = max(worst, taken / plain / most)
            print(f"  {check:14} {taken * 1e3:7.2f} ms, {more / 1e6:6.2f} MB, {taken / plain:5.2f} times as long")
        Kernel._run_interpreted = interpreted
        taken = counting(make(engine="jit", threads=1), work, args.times)
        worst = max(worst, taken / plain / COUNTING)
        print(f"  {'counting':14} {taken * 1e3:7.2f} ms, {taken / plain:5.2f} times as long")
    print(f"the worst share of what a check may take: ratio {worst:.2f}")


if __name__ == "__main__":
    main()
