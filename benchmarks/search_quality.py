"""How good a search of 100 trials is: the model's time of the best GEMM, beside that of an exhaustive grid.

    python benchmarks/search_quality.py [--trials N] [--seeds N] [--journal FILE]

The grid of 546 configurations is tried once, on all processors; with a journal it continues where it was interrupted.
The searches with several seeds then look values up that it has found. The last line is the ratio of the worst of their
best times to the best of the grid: 1.00 if all of them found it.
"""

from __future__ import annotations

import argparse
import time

import ml_dtypes
import numpy as np
from support.processes import missing

import xegpu_py
import xegpu_py.language as xl

try:
    import distributed  # noqa: F401
    import optuna  # noqa: F401
except ImportError:
    raise missing("optuna", extra="tune") from None

M, N, K = 128, 128, 128

SPACE = xegpu_py.Space(
    {
        "BM": [8, 16, 32, 64],
        "BN": [16, 32, 64, 128],
        "BK": [16, 32, 64],
        "prefetch": [0, 1, 2, 3],
        "load_ahead": [False, True],
        "registers": [128, 256],
    },
    ["BM * BN <= 2048", "not (load_ahead and prefetch > 2)"],
)


@xegpu_py.jit
def gemm(A, B, C, BM: xegpu_py.Constexpr, BN: xegpu_py.Constexpr, BK: xegpu_py.Constexpr):
    m, n = xl.program_id(0) * BM, xl.program_id(1) * BN
    total = xl.zeros((BM, BN), xl.float32)
    for k in range(0, A.shape[1], BK):
        total += xl.dot(A.tile((BM, BK), at=(m, k)).load(), B.tile((BK, BN), at=(k, n)).load())
    C.tile((BM, BN), at=(m, n)).store(total)


def grid(values: dict) -> tuple[int, int]:
    return M // values["BM"], N // values["BN"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--journal", help="a file of SQLite that keeps the trials of the grid")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (128, 128)).astype(ml_dtypes.bfloat16) for _ in range(2))
    begun, options = time.perf_counter(), {"grid": grid, "budget": 1000, "sampler": "grid", "journal": args.journal}
    every = xegpu_py.tune(gemm, SPACE, (a, b, np.zeros((M, N), np.float32)), "model", **options)
    taken = time.perf_counter() - begun
    best = every.best.values[0]
    print(f"grid: {len(every.trials)} configurations, {len(every.done)} with a time, in {taken:.0f} s")
    print(f"  best {best * 1e6:.3f} us: {every.best.configuration}")
    known = {repr(sorted(t.configuration.items())): t for t in every.trials}
    found = []
    for seed in range(args.seeds):

        def looked_up(**configuration: object):
            trial = known[repr(sorted(configuration.items()))]

            def run(y: np.ndarray) -> None:
                if trial.state != "done":
                    raise ValueError(trial.message)

            return run

        def value(run: object) -> float:
            return known[repr(sorted(run.configuration.items()))].values[0]

        one = np.zeros(1)
        search = xegpu_py.tune(looked_up, SPACE, (one,), value, args.trials, seed=seed, sampler="tpe", workers=1)
        found.append(search.best.values[0])
        done, at = [t.values[0] for t in search.done], [t.values[0] for t in search.trials if t.values]
        print(f"seed {seed}: {len(search.trials)} trials, best {found[-1] * 1e6:.3f} us, first in trial", end=" ")
        print(f"{at.index(min(at)) + 1} of {len(done)} with a time")
    print(f"ratio {max(found) / best:.2f}")


if __name__ == "__main__":
    main()
