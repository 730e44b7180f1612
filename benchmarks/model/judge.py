"""Judge the model of time: predict published measurements, and compare orders, ratios and absolute times.

    python benchmarks/model/judge.py                 # the table
    python benchmarks/model/judge.py --only gemm     # points whose group has "gemm" in its name
    python benchmarks/model/judge.py --fit           # fit the constants on half of the groups
    python benchmarks/model/judge.py --plot FILE.svg # predicted beside published times

points.csv has the published values with their sources. Groups are ablations: their points differ in one thing. Groups
whose names have an even CRC are for fitting; the others are never fitted, and alone count in the last line.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
import time
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from cases import Case, ItemLaunch, cases, target
from msgspec import Struct
from msgspec.structs import replace

from xegpu_py import external_tools, opencl
from xegpu_py.extensions.profile.gpus import gpu
from xegpu_py.extensions.profile.launches import ProfiledLaunch, launched
from xegpu_py.extensions.profile.time_model import FITTED, Fitted, predicted
from xegpu_py.visa.program import extent

SECONDS = {"us": 1e-6, "ms": 1e-3}
RATES = {"TFLOPS": 1e12, "TIOPS": 1e12, "TOPS": 1e12, "GFLOPS": 1e9, "GB/s": 1e9, "TB/s": 1e12, "MLUPs": 1e6}

MACROS = (
    "TURNS", "STRIDE", "STEP", "WIDTH", "VECTOR", "CHECKED", "TOKENS", "EXPERTS", "SLICES", "BYTES", "SEQUENCES",
)  # fmt: skip
"""The macros of kernels.cl, which are 1 where a case says nothing else."""


class Point(Struct):
    """A published value: its group, what was measured, and the seconds that it means for the launches of its case."""

    name: str
    group: str
    text: str
    seconds: float


class Result(Struct):
    """A point with its prediction, and those of two baselines: the roofline, and all parts at their peaks."""

    point: Point
    case: Case
    seconds: float
    bound: str
    roofline: float
    peak: float
    detail: str

    def cost(self, way: str) -> float:
        """A time, published or predicted, for each unit of work."""
        seconds: float = self.point.seconds if way == "published" else getattr(self, way)
        return seconds / (self.case.work or 1)

    @property
    def fitted(self) -> bool:
        """Whether its group is for fitting."""
        return zlib.crc32(self.point.group.encode()) % 2 == 0


def published(found: Sequence[Case]) -> list[tuple[Point, Case]]:
    """The points of cases."""
    with (Path(__file__).parent / "points.csv").open() as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    result = []
    for case in found:
        row = rows[case.point]
        value, unit = float(row["value"]), row["unit"]
        seconds = value * SECONDS[unit] if unit in SECONDS else case.work / (value * RATES[unit])
        text = f"{row['kernel']} {row['shape']} {row['config']} {row['type']}"
        # The points of one group that differ in one thing are of one GPU.
        group = f"{row['group']}, {case.gpu}"
        result.append((Point(row["id"], group, text, seconds), case))
    return result


def run(case: Case) -> list[ProfiledLaunch]:
    """Run the workgroups of a case's launches that stand for all."""
    done = []
    for launch in case.launches:
        if isinstance(launch, ItemLaunch):
            macros = {**dict.fromkeys(MACROS, 1), **launch.macros}
            options = " ".join([*(f"-D{name}={value}" for name, value in macros.items()), launch.options])
            program = opencl.compile(Path(__file__).parent / "kernels.cl", target=target(case.gpu), options=options)
            sized = getattr(program, launch.kernel)[launch.items, launch.local]
            done.append(sized.counted(launch.arrays(), "sample"))
            continue
        kernel = launch.kernel.with_options(target=target(case.gpu), **{"registers": 128, **launch.options})
        arrays = launch.arrays()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = kernel.compile(*arrays, **launch.named)
        _, passed, _ = kernel.bind(*arrays, **launch.named)
        grid = extent(launch.grid, "grid")
        done.append(launched(compiled, passed, grid, groups="sample"))
    return done


def judged(point: Point, case: Case, done: Sequence[ProfiledLaunch], fitted: Fitted) -> Result:
    """A point and its prediction."""
    on = gpu(case.gpu)
    found = [predicted(d, on, warm=case.warm, fitted=fitted) for d in done]
    longest = max(found, key=lambda p: p.seconds)
    pipes = ("float", "int", "math", "dpas", "memory")
    roofline = sum(max(p.bytes["memory"] / on.memory_rate, p.operations / on.dpas_peak) for p in found)
    peak = sum(
        max(
            p.bounds[name] * (on.dpas_share if name == "dpas" else on.memory_share if name == "memory" else 1.0)
            for name in pipes
        )
        for p in found
    )
    detail = " ".join(f"{n}:{t * 1e6:.3g}" for n, t in sorted(longest.bounds.items(), key=lambda b: -b[1])[:4])
    # A launch without a product or traffic still takes a launch.
    least = on.launch
    return Result(
        point, case, sum(p.seconds for p in found), longest.bound, max(roofline, least), max(peak, least), detail
    )


def pairs(results: Iterable[Result]) -> list[tuple[Result, Result]]:
    """The pairs of a group's points whose published times differ by more than a tenth."""
    return [
        (a, b)
        for a, b in itertools.combinations(results, 2)
        if abs(math.log(a.cost("published") / b.cost("published"))) > math.log(1.1)
    ]


def geometric(errors: Sequence[float]) -> float:
    """The geometric mean of factors, given by their logarithms."""
    return math.exp(sum(map(abs, errors)) / len(errors)) if errors else 1.0


class Score(Struct):
    """What a way of predicting reaches: groups in order, of those with pairs; and the mean factors of errors."""

    ordered: int
    groups: int
    ratio: float
    absolute: float
    points: int


def score(results: Sequence[Result], way: str = "seconds") -> Score:
    """The score of a way of predicting, "seconds", "roofline" or "peak"."""
    by_group: dict[str, list[Result]] = {}
    for result in results:
        by_group.setdefault(result.point.group, []).append(result)
    ordered, groups = 0, 0
    ratios: list[float] = []
    for members in by_group.values():
        own = []
        good = True
        for a, b in pairs(members):
            wanted = math.log(a.cost("published") / b.cost("published"))
            found = math.log(a.cost(way) / b.cost(way))
            good &= wanted * found > 0
            own.append(abs(found - wanted))
        if own:
            groups += 1
            ordered += good
            ratios.append(sum(own) / len(own))
    absolute = [math.log(getattr(r, way) / r.point.seconds) for r in results]
    return Score(ordered, groups, geometric(ratios), geometric(absolute), len(results))


LIMITS = {
    "l1_latency": (45.0, 250.0),
    "l2_latency": (100e-9, 300e-9),
    "memory_latency": (300e-9, 700e-9),
    "gather_cycles": (0.25, 4.0),
    "message_cycles": (0.5, 8.0),
    "overlap": (2.0, 10.0),
    "issue": (1.5, 3.0),
    "atomic": (5e-9, 500e-9),
    "dispatch": (20.0, 200.0),
    "exposed": (0.0, 1.0),
}
"""What the constants can be: latencies as microbenchmarks of other GPUs of these years have them, and rates that the
hardware can have at all."""

_WORST = math.log(2)
"""The most that an error counts when constants are fitted: points that are wrong for another reason decide nothing."""


def fit(samples: Sequence[tuple[Point, Case, list[ProfiledLaunch]]]) -> Fitted:
    """The constants that predict the groups for fitting best, one changed at a time."""
    own = [s for s in samples if zlib.crc32(s[0].group.encode()) % 2 == 0]

    def error(constants: Fitted) -> float:
        results = [judged(point, case, done, constants) for point, case, done in own]
        errors = [min(abs(math.log(r.seconds / r.point.seconds)), _WORST) for r in results]
        return sum(errors) / len(errors) + math.log(score(results).ratio) / 2

    best, least = FITTED, error(FITTED)
    for factor in (1.4, 1.15, 1.05):
        for name in Fitted.__struct_fields__:
            for step in (factor, 1 / factor):
                while True:
                    low, high = LIMITS[name]
                    other = replace(best, **{name: min(max(getattr(best, name) * step, low), high)})
                    if other == best:
                        break
                    found = error(other)
                    if found >= least - 1e-4:
                        break
                    best, least = other, found
                    print(f"{name} = {getattr(best, name):.4g}: {math.exp(least):.4f}", file=sys.stderr)
    return best


def plot(results: Sequence[Result], path: str) -> None:
    """Draw predicted beside published times."""
    try:
        from matplotlib import pyplot
    except ImportError:
        sys.exit("judge.py: error: needs 'matplotlib': pip install 'xegpu-py[plot]' (or -e '.[plot]')")
    figure, axes = pyplot.subplots(figsize=(7, 6))
    for name in sorted({r.case.gpu for r in results}):
        for fitted, marker in ((True, "x"), (False, "o")):
            own = [r for r in results if r.case.gpu == name and r.fitted == fitted]
            label = name if not fitted else None
            axes.plot([r.point.seconds * 1e6 for r in own], [r.seconds * 1e6 for r in own], marker, label=label, ms=5)
    ends = [1.0, 1e5]
    axes.plot(ends, ends, "k-", lw=0.8)
    for factor in (1.3, 1 / 1.3):
        axes.plot(ends, [e * factor for e in ends], "k:", lw=0.8)
    axes.set(xscale="log", yscale="log", xlabel="published time, us", ylabel="time of the model, us")
    axes.legend()
    figure.savefig(path)


def report(results: Sequence[Result]) -> None:
    """Print the points by groups, and the scores."""
    last = ""
    for r in sorted(results, key=lambda r: (r.fitted, r.point.group, r.point.name)):
        if r.point.group != last:
            last = r.point.group
            members = [x for x in results if x.point.group == last]
            own = score(members)
            state = "fitted" if r.fitted else "held out"
            order = (
                f"{'in order' if own.ordered else 'NOT IN ORDER'}, ratios {own.ratio:.2f}" if own.groups else "no pairs"
            )
            print(f"\n{last} ({state}): {order}, absolute {own.absolute:.2f}")
        factor = r.seconds / r.point.seconds
        print(
            f"  {r.point.name} {r.case.gpu:8} {r.point.seconds * 1e6:10.2f} us published, "
            f"{r.seconds * 1e6:10.2f} us model, {factor:5.2f}  {r.bound:8} {r.point.text[:60]:60} {r.detail}"
        )
    print()
    for title, chosen in (
        ("all points", results),
        ("fitted groups", [r for r in results if r.fitted]),
        ("held-out groups", [r for r in results if not r.fitted]),
    ):
        for name, way in (("model", "seconds"), ("roofline", "roofline"), ("everything at peak", "peak")):
            s = score(chosen, way)
            print(
                f"{title}, {name}: {s.points} points, {s.ordered} of {s.groups} groups in order "
                f"({s.ordered / max(s.groups, 1):.0%}), ratios within {s.ratio:.2f}, absolute {s.absolute:.2f}"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="groups or points whose names have this text")
    parser.add_argument("--fit", action="store_true", help="fit the constants, and print them")
    parser.add_argument("--plot", metavar="FILE", help="write a plot")
    args = parser.parse_args()
    if external_tools.find("ocloc") is None:
        print("judge.py: skipped: needs 'ocloc': `make oracles` in a clone of the repository installs it")
        return
    samples, failed = [], 0
    for point, case in published(cases()):
        if args.only and args.only not in point.group and args.only not in point.name:
            continue
        begun = time.perf_counter()
        try:
            samples.append((point, case, run(case)))
        except Exception as error:
            failed += 1
            print(f"{point.name}: {error}", file=sys.stderr)
        if time.perf_counter() - begun > 5:
            print(f"{point.name}: {time.perf_counter() - begun:.1f} s", file=sys.stderr)
    constants = fit(samples) if args.fit else FITTED
    if args.fit:
        print(constants)
    results = [judged(*sample, constants) for sample in samples]
    if args.plot:
        plot(results, args.plot)
    report(results)
    if failed:
        sys.exit(f"judge.py: error: {failed} points were not predicted, and are not in the table")


if __name__ == "__main__":
    main()
