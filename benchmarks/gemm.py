"""A whole GEMM, exact to the bit, against numpy's float32 `A @ B`, and against torch's matmul if torch is installed.

The kernel is XeTile with workgroup tiles of 256x256, lowered by this project's pipelines.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.hosts import CORES, blas_core, clock, prepare

# Before numpy and the JIT are loaded, which look at these once.
if sys.argv[1:]:
    prepare(sys.argv)
# Kernels are compiled here and not read from a cache, unless a folder for the cache is given.
os.environ.setdefault("XEGPU_PY_CACHE", "off")

import numpy as np
from support.fma_peak import flops_of_one_core
from support.gemm_kernel import BITS, GemmKernel
from support.processes import missing

import xegpu_py
from xegpu_py.engines.jit.host import chosen_host
from xegpu_py.runtime.host_arrays import DTYPES
from xegpu_py.runtime.options import ENGINES

CLOCK = clock(sys.argv)
PLOTTED = (
    ("bf16", "fma"),
    ("f16", "fma"),
    ("tf32", "fma"),
    ("i8", "fma"),
    ("f8E5M2", "fma"),
    ("f8E4M3FN", "fma"),
    ("bf16", "stage"),
    ("bf16", "exact"),
)


def seconds(run: Callable[[], object]) -> float:
    """The time of the second of two calls."""
    # The threads of numpy's BLAS wait actively for a tenth of a second after each product.
    time.sleep(0.2)
    run()
    start = CLOCK()
    run()
    return CLOCK() - start


def matrices(dtype: str, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    kind = np.dtype(np.float32) if dtype == "tf32" else DTYPES[dtype]
    found = [xegpu_py.zeros_aligned((size, size), kind) for _ in range(2)]
    for array in found:
        array[:] = rng.integers(-128, 128, array.shape) if dtype == "i8" else rng.standard_normal(array.shape)
    return found


def result_of(kernel: GemmKernel) -> np.ndarray:
    return xegpu_py.zeros_aligned((kernel.size, kernel.size), np.int32 if kernel.result == "i32" else np.float32)


def torch_seconds(dtype: str, a: np.ndarray, b: np.ndarray, times: int) -> float | None:
    """The median time of torch's matmul in the same type; None if torch or the type is missing."""
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


def memory(field: str) -> int:
    """Bytes of this process: `VmRSS` now, or `VmHWM` at most since the start, or since `forget`; 0 if not known."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(field)), 0)


def forget() -> None:
    """Reset the peak size of this process to its present size."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def age() -> float:
    """Seconds since this process began, to a hundredth; 0 where that is not known."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


@dataclass
class Measured:
    """Median and best times of runs, in seconds."""

    ours: list[float]
    numpy: list[float]
    flops: int

    @property
    def speed(self) -> float:
        """The median of FLOP per second."""
        return self.flops / statistics.median(self.ours)

    @property
    def peer(self) -> float:
        return self.flops / statistics.median(self.numpy)

    @property
    def ratio(self) -> float:
        return self.speed / self.peer


def measured(run: Callable[[], object], peer: Callable[[], object], size: int, times: int) -> Measured:
    """Time both in alternating runs, so that they are under the same load."""
    found = Measured([], [], 2 * size**3)
    for _ in range(times):
        found.ours.append(seconds(run))
        found.numpy.append(seconds(peer))
    return found


def cold(kernel: GemmKernel, args: argparse.Namespace) -> tuple[Callable[[], object], list[np.ndarray]]:
    """Compile the first kernel of this process, run it once, and print the time of each step."""
    times = {"start and import": age()}

    def step(name: str, work: Callable[[], object]) -> object:
        start = time.perf_counter()
        found = work()
        times[name] = time.perf_counter() - start
        return found

    module = step("parse", lambda: xegpu_py.parse(kernel.text()))
    options = {"engine": args.engine, "model": args.model, "threads": args.threads, "registers": 256}
    compiled = step("lower", lambda: xegpu_py.compile(module, target=kernel.target, progress=False, **options))
    if args.engine == "jit":
        step("compile", lambda: compiled.executor.jit)
    a, b = matrices(kernel.dtype, kernel.size)
    c = result_of(kernel)
    c[:] = 1
    forget()
    before = memory("VmRSS")

    def run() -> None:
        compiled(a, b, c, grid=kernel.grid, block=kernel.block)

    step("run", run)
    beyond = memory("VmHWM") - before
    print(", ".join(f"{name} {t:.3f} s" for name, t in times.items()) + f", in all {sum(times.values()):.3f} s")
    print(f"memory beyond the arrays while it ran: {beyond / 1e6:.1f} MB")
    return run, [a, b, c]


def scaling(kernel: GemmKernel, a: np.ndarray, b: np.ndarray, c: np.ndarray, model: str, times: int) -> None:
    """Print the speed-up of two threads over one."""
    runs = []
    for threads in (1, 2):
        compiled = xegpu_py.compile(
            kernel.text(), engine="jit", model=model, threads=threads, registers=256, target=kernel.target
        )
        runs.append(lambda compiled=compiled: compiled(a, b, c, grid=kernel.grid, block=kernel.block))
        runs[-1]()
    found = [[seconds(run) for run in runs] for _ in range(times)]
    one, two = (statistics.median(x) for x in zip(*found))
    print(f"one thread {one:.3f} s, two threads {two:.3f} s: {one / two:.2f} times as fast")


def plot(path: str, size: int, times: int, threads: int | None) -> None:
    """Draw the speed of types and models beside numpy's."""
    try:
        import matplotlib
    except ImportError:
        raise missing("matplotlib", extra="plot") from None

    matplotlib.use("svg")
    # Small, and the same bytes for the same figures.
    matplotlib.rcParams |= {"svg.hashsalt": "gemm", "svg.fonttype": "none", "font.family": "sans-serif"}
    from matplotlib import pyplot

    names, ours, peers = [], [], []
    for dtype, model in PLOTTED:
        kernel = GemmKernel(dtype, size)
        compiled = xegpu_py.compile(kernel.text(), model=model, threads=threads, registers=256, target=kernel.target)
        a, b = matrices(dtype, size)
        c, wide = result_of(kernel), [x.astype(np.float32) for x in (a, b)]
        compiled(a, b, c, grid=kernel.grid, block=kernel.block)
        found = measured(
            lambda k=kernel, f=compiled, x=(a, b, c): f(*x, grid=k.grid, block=k.block),
            lambda w=wide: np.matmul(*w),
            size,
            times,
        )
        print(f"{dtype} {model}: {found.speed / 1e9:.1f} GFLOP/s, ratio {found.ratio:.2f}")
        names.append(dtype if model == "fma" else f"{dtype}\n{model}")
        ours.append(found.speed / 1e9)
        peers.append(found.peer / 1e9)
    figure, axes = pyplot.subplots(figsize=(8, 3.2))
    axes.bar(names, ours, color="#4c72b0", width=0.6, label="this project, exact to the bit")
    axes.axhline(statistics.median(peers), color="#c44e52", label="numpy float32 A @ B")
    for x, y in enumerate(ours):
        axes.text(x, y, f"{y:.0f}", ha="center", va="bottom", fontsize=8)
    axes.set_ylabel("GFLOP/s")
    where = f"{threads} thread{'s' * (threads > 1)}" if threads else "all cores"
    axes.set_title(f"GEMM {size}^3, 256x256 workgroup tiles, {where}", fontsize=10)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="M, N and K, a multiple of 256")
    parser.add_argument("--dtype", choices=BITS, default="bf16")
    parser.add_argument("--engine", choices=ENGINES[:2], default="jit")
    parser.add_argument("--model", choices=("fma", "stage", "exact"), default="fma")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--host", choices=CORES, help="make code for another CPU, and let numpy's BLAS do so too")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="one thread each, and the time that it spends on a processor: other work on the machine counts less",
    )
    parser.add_argument("--times", type=int, default=9, help="runs, of which the median counts")
    parser.add_argument("--scaling", action="store_true", help="also compare two threads with one")
    parser.add_argument("--plot", metavar="FILE.svg", help="only draw all types; needs the extra 'plot'")
    args = parser.parse_args()
    if args.size % 256 or args.size < 256:
        parser.error(f"--size must be a multiple of 256, not {args.size}")
    if args.cpu_time:
        args.threads = 1
    if args.plot:
        plot(args.plot, args.size, args.times, args.threads)
        return
    kernel = GemmKernel(args.dtype, args.size)
    run, (a, b, c) = cold(kernel, args)
    wide = [x.astype(np.float32) for x in (a, b)]
    np.matmul(*wide)
    found = measured(run, lambda: np.matmul(*wide), args.size, args.times)
    # Some rows are enough; all rows in float64 would take long.
    rows = slice(0, None, max(1, args.size // 256))
    reference = wide[0][rows].astype(np.float64) @ wide[1].astype(np.float64)
    error = np.abs(c[rows] - reference).max() / np.abs(reference).max()
    print(f"greatest error against float64, relative to the greatest number: {error:.1e}")
    if args.scaling:
        scaling(kernel, a, b, c, args.model, args.times)
    host = chosen_host()
    torch = torch_seconds(args.dtype, a, b, args.times)
    print(f"torch matmul, {args.dtype}: " + (f"{found.flops / torch / 1e9:.1f} GFLOP/s" if torch else "not here"))
    print(f"fused multiply-adds of f32 alone, one core: {flops_of_one_core(host) / 1e9:.1f} GFLOP/s")
    print(f"code for {host.machine.cpu}, numpy's BLAS for {blas_core()}")
    print(f"numpy float32 matmul: {found.peer / 1e9:.1f} GFLOP/s")
    best = [found.flops / min(x) / 1e9 for x in (found.ours, found.numpy)]
    print(f"fastest runs: {best[0]:.1f} and {best[1]:.1f} GFLOP/s")
    name = f"{args.engine} {args.dtype} {args.model} {args.size}^3"
    print(f"{name}: {found.speed / 1e9:.1f} GFLOP/s, ratio {found.ratio:.2f}")


if __name__ == "__main__":
    main()
