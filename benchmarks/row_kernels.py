"""Flash attention, softmax and layer norm, exact to the bit, against straightforward numpy code in float32.

The kernels are the XeTile kernels of test/run, and those of the tile language that the tests have translated from
Triton's tutorials: with rows, queries and keys of 2048 numbers, whatever `--rows` says.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from support.hosts import CORES, clock, prepare

# Before numpy and the JIT are loaded, which look at these once.
if sys.argv[1:]:
    prepare(sys.argv)
# Kernels are compiled here and not read from a cache, unless a folder for the cache is given.
os.environ.setdefault("XEGPU_PY_CACHE", "off")

import ml_dtypes
import numpy as np

import xegpu_py

TESTS = Path(__file__).parent.parent / "test"
KERNELS = TESTS / "run"
sys.path.append(str(TESTS / "unit" / "language"))

import kernels.attention  # noqa: E402
import kernels.rows  # noqa: E402

CLOCK = clock(sys.argv)
LENGTH = 2048
"""The length of the tutorials' rows, and their number."""


@dataclass
class Case:
    """A kernel of test/run with its arguments, the last of which is the result, and the same computation in numpy."""

    file: str
    arguments: list[np.ndarray]
    rows: int
    peer: Callable[[], np.ndarray]
    block: int = 8

    @property
    def name(self) -> str:
        return self.file.removeprefix("xetile_").removesuffix(".mlir").replace("_", " ")

    @property
    def result(self) -> np.ndarray:
        return self.arguments[-1]

    def compiled(self, threads: int | None) -> Callable[[], object]:
        """What launches the kernel on so many threads, for None one for each processor."""
        kernel = xegpu_py.compile(KERNELS / self.file, registers=256, threads=threads, progress=False)
        return lambda: kernel(*self.arguments, grid=len(self.arguments[0]) // self.rows, block=self.block)


@dataclass
class Tutorial:
    """The same for a kernel of the tile language. One of its arguments is the result."""

    name: str
    function: Callable[..., None]
    arguments: list[Any]
    result: np.ndarray
    rows: int
    peer: Callable[[], np.ndarray]
    constants: dict[str, object]

    def compiled(self, threads: int | None) -> Callable[[], object]:
        """What launches the kernel on so many threads, for None one for each processor."""
        kernel = xegpu_py.jit(self.function, threads=threads)
        return lambda: kernel(*self.arguments, grid=LENGTH // self.rows, **self.constants)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * gamma + beta


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, hidden: np.ndarray | None = None) -> np.ndarray:
    scores = q @ k.T * np.float32(0.125)
    return softmax(scores if hidden is None else np.where(hidden, np.float32(-1e30), scores)) @ v


def aligned(values: np.ndarray) -> np.ndarray:
    """The same in an array that begins at a line of the cache, as GPU drivers allocate memory."""
    found = xegpu_py.zeros_aligned(values.shape, values.dtype)
    found[...] = values
    return found


def cases(rows: int) -> list[Case]:
    rng = np.random.default_rng(0)

    def some(*shape: int) -> np.ndarray:
        return aligned(rng.standard_normal(shape, np.float32))

    narrow = [aligned(some(rows // 4, 64).astype(ml_dtypes.bfloat16)) for _ in range(3)]
    wide = [aligned(x.astype(np.float32)) for x in narrow]
    x, y = some(4 * rows, 128), some(4 * rows, 256)
    gamma, beta = some(1, 256), some(1, 256)
    return [
        Case("xetile_attention.mlir", [*narrow, aligned(np.zeros_like(wide[0]))], 64, lambda: attention(*wide)),
        Case("xetile_softmax.mlir", [x, aligned(np.zeros_like(x))], 32, lambda: softmax(x)),
        Case(
            "xetile_layer_norm.mlir",
            [y, gamma, beta, aligned(np.zeros_like(y))],
            32,
            lambda: layer_norm(y, gamma, beta),
        ),
    ]


def tutorials() -> list[Tutorial]:
    rng, n = np.random.default_rng(1), LENGTH
    x, w, b = (aligned(rng.standard_normal(shape, np.float32)) for shape in ((n, n), n, n))
    narrow = [aligned(rng.standard_normal((n, 64), np.float32).astype(ml_dtypes.bfloat16)) for _ in range(3)]
    wide = [aligned(x.astype(np.float32)) for x in narrow]
    hidden = np.triu(np.ones((n, n), bool), 1)

    def zeros(*shape: int) -> np.ndarray:
        return aligned(np.zeros(shape, np.float32))

    found = []
    for name, causal in (("attention", False), ("causal attention", True)):
        out, constants = zeros(n, 64), {"BM": 64, "BN": 32, "D": 64, "CAUSAL": causal, "SUBGROUPS": 8}
        peer = partial(attention, *wide, hidden if causal else None)
        arguments = [*narrow, out, zeros(n, 1), 0.125]
        found.append(Tutorial(f"tutorial's {name}", kernels.attention.forward, arguments, out, 64, peer, constants))
    by_rows = {"BLOCK": n, "SUBGROUPS": 4}
    for name, function, peer, more in (
        ("softmax", kernels.rows.fused_softmax, lambda: softmax(x), [n]),
        ("layer norm", kernels.rows.layer_norm, lambda: layer_norm(x, w, b), [w, b, zeros(n), zeros(n), n, 1e-5]),
    ):
        out = zeros(n, n)
        found.append(Tutorial(f"tutorial's {name}", function, [x, out, *more], out, 1, peer, by_rows))
    return found


def measured(case: Case | Tutorial, threads: int | None, times: int) -> tuple[float, float, float]:
    """Median times of the kernel and of numpy in seconds, and the difference of their results."""
    launch = case.compiled(threads)
    launch()
    wanted = case.peer()
    error = float(np.abs(case.result - wanted).max() / np.abs(wanted).max())
    found: list[list[float]] = []
    for _ in range(times):
        found.append([])
        # Alternately, so that both run under the same load.
        for work in (launch, case.peer):
            # The threads of numpy's BLAS wait actively for a tenth of a second after each product.
            time.sleep(0.2)
            work()
            start = CLOCK()
            work()
            found[-1].append(CLOCK() - start)
    own, other = (statistics.median(x) for x in zip(*found))
    return own, other, error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8192, help="a quarter of them are queries and keys; 4 times of x")
    parser.add_argument("--times", type=int, default=9, help="runs, of which the median counts")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--host", choices=CORES, help="make code for another CPU, and let numpy do so too")
    parser.add_argument("--cpu-time", action="store_true", help="one thread each, and its time on a processor")
    args = parser.parse_args()
    if args.cpu_time:
        args.threads = 1
    ratios = []
    for case in [*cases(args.rows), *tutorials()]:
        own, other, error = measured(case, args.threads, args.times)
        ratios.append(other / own)
        shape = "x".join(map(str, case.arguments[0].shape))
        print(
            f"{case.name:27} {shape:10} {own * 1e3:8.2f} ms, numpy {other * 1e3:8.2f} ms, "
            f"{other / own:5.2f} times as fast; greatest difference {error:.1e}"
        )
    print(f"the slowest of them against numpy: ratio {min(ratios):.2f}")


if __name__ == "__main__":
    main()
