"""A whole GEMM, exact to the bit, against numpy's float32 `A @ B`, and torch's matmul in the same type where it is.

The kernel is XeGPU with workgroup tiles of 256x256, lowered by this project's pipeline.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

if "--cpu-time" in sys.argv:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from support.gemm_kernel import BITS, GemmKernel

import xegpu_py
from xegpu_py.runtime.arguments import DTYPES
from xegpu_py.runtime.launch import ENGINES

CLOCK = time.process_time if "--cpu-time" in sys.argv else time.perf_counter


def seconds(run: Callable[[], object]) -> float:
    # The threads of numpy's BLAS wait actively for some time after each product.
    time.sleep(0.1)
    start = CLOCK()
    run()
    return CLOCK() - start


def matrices(dtype: str, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    if dtype == "i8":
        return [rng.integers(-128, 128, (size, size), np.int8) for _ in range(2)]
    kind = np.dtype(np.float32) if dtype == "tf32" else DTYPES[dtype]
    return [rng.standard_normal((size, size), np.float32).astype(kind) for _ in range(2)]


def torch_seconds(dtype: str, a: np.ndarray, b: np.ndarray, times: int) -> float | None:
    """The median time of torch's matmul in the same type; None where there is no torch, or no such type."""
    try:
        import torch
    except ImportError:
        return None
    name = {"bf16": "bfloat16", "f16": "float16", "tf32": "float32"}.get(dtype)
    if name is None:
        return None
    left, right = (torch.from_numpy(x.astype(np.float32)).to(getattr(torch, name)) for x in (a, b))
    torch.matmul(left, right)
    return statistics.median(seconds(lambda: torch.matmul(left, right)) for _ in range(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="M, N and K, a multiple of 256")
    parser.add_argument("--dtype", choices=BITS, default="bf16")
    parser.add_argument("--engine", choices=ENGINES[:2], default="jit")
    parser.add_argument("--model", choices=("fma", "stage", "exact"), default="fma")
    parser.add_argument("--threads", type=int)
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="one thread each, and the time that it spends on a processor: other work on the machine counts less",
    )
    parser.add_argument("--times", type=int, default=9, help="runs, of which the median counts")
    args = parser.parse_args()
    if args.cpu_time:
        args.threads = 1
    kernel, flops = GemmKernel(args.dtype, args.size), 2 * args.size**3
    start = time.perf_counter()
    compiled = xegpu_py.compile(
        kernel.text(), engine=args.engine, model=args.model, threads=args.threads,
        target="any" if args.dtype.startswith("f8") else "pvcxt", registers=256,
    )  # fmt: skip
    lowered = time.perf_counter()
    if args.engine == "jit":
        assert compiled.kernel.launcher.jit
    ready = time.perf_counter()
    a, b = matrices(args.dtype, args.size)
    c = np.zeros((args.size, args.size), np.int32 if args.dtype == "i8" else np.float32)
    wide = [x.astype(np.float32) for x in (a, b)]

    def run() -> None:
        compiled(a, b, c, grid=kernel.grid, block=kernel.block)

    first = seconds(run)
    peer_first = seconds(lambda: np.matmul(*wide))
    print(
        f"parse and lower {lowered - start:.3f} s, compile {ready - lowered:.3f} s, first run {first:.3f} s "
        f"(numpy {peer_first:.3f} s)"
    )
    ours, peer = [], []
    # In turns, so that both see the same machine.
    for _ in range(args.times):
        ours.append(seconds(run))
        peer.append(seconds(lambda: np.matmul(*wide)))
    reference = wide[0].astype(np.float64) @ wide[1].astype(np.float64)
    error = np.abs(c - reference).max() / np.abs(reference).max()
    own, other = statistics.median(ours), statistics.median(peer)
    print(f"greatest error against float64, relative to the greatest number: {error:.1e}")
    torch = torch_seconds(args.dtype, a, b, args.times)
    if torch is not None:
        print(f"torch matmul, {args.dtype}: {flops / torch / 1e9:.1f} GFLOP/s")
    print(f"numpy float32 matmul: {flops / other / 1e9:.1f} GFLOP/s")
    print(f"fastest runs: {flops / min(ours) / 1e9:.1f} and {flops / min(peer) / 1e9:.1f} GFLOP/s")
    name = f"{args.engine} {args.dtype} {args.model} {args.size}^3"
    print(f"{name}: {flops / own / 1e9:.1f} GFLOP/s, ratio {other / own:.2f}")


if __name__ == "__main__":
    main()
