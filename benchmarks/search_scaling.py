"""How searches scale: trials of 2 s on 1 to 64 workers, and the time of the space of LLVM's Lighthouse.

    python benchmarks/search_scaling.py [--seconds S] [--each N] [--sample N]

Trials sleep, so that the processors of this machine do not limit them. Up to 4 workers run them in their child
processes; more workers are simulated: they sleep themselves, and all else is as in a search. The efficiency is the time
that N workers would take without anything else, divided by the time that they take. The processor time of a trial in
this process, with its scheduler and its workers, tells how many trials a second a machine of its own can serve.

Of the 5,292 configurations of examples/lighthouse_space.toml a random sample is tried in this process.
The law is: time = 5,292 x mean processor time of a trial / processors. The shapes of loads and prefetches are chosen by
this compiler, so that configurations which differ only in these are one kernel. The last line is the ratio of the
efficiency on 64 workers to 0.90.
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
import time
from pathlib import Path

import ml_dtypes
import numpy as np
from support.processes import missing

import xegpu_py
import xegpu_py.language as xl
from xegpu_py.extensions.tuning import cluster
from xegpu_py.extensions.tuning.evaluation import OBJECTIVES, TrialOutcome, Trials

try:
    import dask.config
    from distributed import Client, LocalCluster
except ImportError:
    raise missing("distributed", extra="tune") from None

MEASURED = (1, 2, 4)
SIMULATED = (8, 16, 32, 64)
SPACE = Path(__file__).parents[1] / "examples/lighthouse_space.toml"


class Sleeper:
    """A child of a worker that only sleeps."""

    seconds, is_alive = 2.0, True

    def __init__(self, share: tuple[int, int]) -> None:
        pass

    def run(self, key: str, problem: bytes, argument: tuple, limits: cluster.TrialLimits) -> tuple[str, TrialOutcome]:
        time.sleep(Sleeper.seconds)
        wanted = [np.zeros(1)] if argument[1] else None
        return "done", TrialOutcome("done", (float(argument[0]["number"]),), outputs=wanted)

    def end(self, why: str) -> None:
        pass


def sleeping(number: int):
    return lambda y: time.sleep(Sleeper.seconds)


QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "60s"}
"""Settings of Dask without which 64 workers in one process mostly measure themselves."""


def efficiency(workers: int, each: int) -> tuple[float, float]:
    """The efficiency of a search of `each` trials for each worker, after one that starts the children; and the
    processor time of a trial in this process, in seconds."""
    fixed = {"threads_per_worker": 1, "processes": False, "dashboard_address": None, "memory_limit": 0}
    made = LocalCluster(n_workers=workers, silence_logs=50, **fixed)
    with made, Client(made, set_as_default=False) as client:
        options = {"scheduler": client, "sampler": "random", "expected": [np.zeros(1)]}
        space = {"number": range(10 * workers * each)}
        xegpu_py.tune(sleeping, space, (np.zeros(1),), lambda run: 1.0, workers, **options)
        begun, used = time.perf_counter(), time.process_time()
        xegpu_py.tune(sleeping, space, (np.zeros(1),), lambda run: 1.0, workers * each, **options)
        taken, used = time.perf_counter() - begun, time.process_time() - used
        return each * Sleeper.seconds / taken, used / (workers * each)


@xegpu_py.jit
def gemm(A, B, C, MAP: xegpu_py.Constexpr, BM: xegpu_py.Constexpr, BN: xegpu_py.Constexpr, BK: xegpu_py.Constexpr):
    m, n = xl.program_id(0) * BM, xl.program_id(1) * BN
    total = xl.zeros((BM, BN), xl.float32, map=MAP)
    for k in range(0, A.shape[1], BK):
        total += xl.dot(A.tile((BM, BK), at=(m, k)).load(), B.tile((BK, BN), at=(k, n)).load())
    C.tile((BM, BN), at=(m, n)).store(total)


def lighthouse(**values: int):
    """The launch of a configuration of Lighthouse."""
    m, n, sg_m, sg_n = (values[name] for name in ("wg_m", "wg_n", "sg_m", "sg_n"))
    layout = xl.WgMap((m // sg_m, n // sg_n), (sg_m, sg_n))
    kernel = gemm.with_options(prefetch=values["prefetch_nb"])
    options = {"MAP": layout, "BM": m, "BN": n, "BK": values["k_tile"]}
    return functools.partial(kernel[4096 // m, 4096 // n], **options)


def seconds_of_a_trial(sample: int) -> list[float]:
    """The processor time of trials by the model, whose results are not compared."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (4096, 4096)).astype(ml_dtypes.bfloat16) for _ in range(2))
    problem = Trials(lighthouse, (a, b, np.zeros((4096, 4096), np.float32)), None, {"model": OBJECTIVES["model"]})
    found = []
    for configuration in random.Random(0).sample(list(xegpu_py.Space.from_file(SPACE)), sample):
        begun = time.process_time()
        outcome = problem.run((configuration, False))
        found.append(time.process_time() - begun)
        print(f"  {found[-1]:6.1f} s of a processor, {outcome.state} {outcome.message[:80]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a trial")
    parser.add_argument("--each", type=int, default=6, help="trials of each worker")
    parser.add_argument("--sample", type=int, default=8, help="configurations of Lighthouse")
    args = parser.parse_args()
    Sleeper.seconds = args.seconds
    if args.sample:
        print("trials of Lighthouse's space, 4096^3 in bf16:")
        mean, count = statistics.mean(seconds_of_a_trial(args.sample)), len(list(xegpu_py.Space.from_file(SPACE)))
        print(f"mean {mean:.1f} s; {count:,} configurations on two processors: {count * mean / 2 / 3600:.1f} hours")
    found = 0.0
    for workers in (*MEASURED, *SIMULATED):
        if workers == SIMULATED[0]:
            cluster.Child = Sleeper
        with dask.config.set(QUIET):
            found, used = efficiency(workers, args.each)
        how = "measured" if workers in MEASURED else "simulated"
        print(
            f"{workers:3} workers, {how}: efficiency {found:.2f}, {used * 1e3:.1f} ms of a processor a trial",
            flush=True,
        )
    print(f"ratio {found / 0.9:.2f}")


if __name__ == "__main__":
    main()
