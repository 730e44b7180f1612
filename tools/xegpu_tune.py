"""`xegpu-tune`: search for the best configuration of a kernel, or compare the engines on all, on a Dask cluster."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from xegpu_py.extensions.tuning.cluster import LIMIT
from xegpu_py.extensions.tuning.evaluation import ERRORS, with_unit
from xegpu_py.extensions.tuning.kernel_space import Subject, subject_of
from xegpu_py.extensions.tuning.search import SAMPLERS, tune
from xegpu_py.extensions.tuning.space import Space
from xegpu_py.extensions.tuning.verification import Verification, verify, write_failure
from xegpu_py.plugins import MissingExtra
from xegpu_py.runtime.host_arrays import FORMS
from xegpu_py.tools import driver
from xegpu_py.tools.kernel_arguments import KernelParser


def argument_parser() -> KernelParser:
    """The parser of the tool's arguments."""
    parser = KernelParser(
        "xegpu-tune",
        "FILE [ARG...] --space FILE",
        "Search for the configuration of a kernel with the least objective: values of its parameters and options of "
        "its compilation. FILE is a module, or a Python file that defines a kernel of the tile language, 'arguments' "
        "and 'grid'. With --verify compare the results of the engines instead; the exit status is 1 if they differ.",
        [
            "xegpu-tune gemm.py --space space.toml --budget 500 --journal gemm.db -o best.mlir",
            "xegpu-tune gemm.mlir rand:bf16:512x512 rand:bf16:512x512 zeros:f32:512x512 --grid 8,8 --space space.toml",
            "xegpu-tune gemm.py --space space.toml --verify --scheduler tcp://head:8786",
        ],
        FORMS,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="a module in MLIR, or a Python file")
    add("args", metavar="ARG", nargs="*", default=[], help="the kernel's arguments, see below (default: the file's)")
    space = "a TOML file with the tables parameters and constants, and the list constraints"
    add("--space", metavar="FILE", required=True, help=space)
    add("--kernel", metavar="NAME", help="the kernel, or a function that makes launches, if the file has several")
    grid = "workgroups, as expressions of the parameters, the constants and the kernel's arguments: 'm // BM, n // BN'"
    add("--grid", metavar="X,Y,Z", help=grid)
    add("--objective", metavar="NAME", action="append", help="what to minimize (default model); see docs/tuning.md")
    budget = "configurations to try (default 100, with --verify all)"
    add("--budget", metavar="N", type=driver.positive, help=budget)
    add("--scheduler", metavar="ADDRESS", help="a Dask scheduler (default: a cluster of this machine's processors)")
    add("--workers", metavar="N", type=driver.positive, help="workers of the cluster of this machine")
    add("--sampler", choices=SAMPLERS, help="how configurations are chosen (default tpe, with objectives nsga2)")
    add("--seed", metavar="N", type=int, default=0, help="seed of the sampler (default 0)")
    add("--limit", metavar="SECONDS", type=float, default=LIMIT, help=f"limit of a trial (default {LIMIT:g})")
    add("--memory", metavar="MIB", type=driver.positive, help="memory of a trial (default: its share of the machine's)")
    add("--journal", metavar="FILE", help="keep all trials in a file of SQLite, and continue what it has")
    add("--table", metavar="FILE", help="write all trials to FILE.parquet or FILE.csv")
    add("--plot", metavar="FILE", help="draw the search in a file of SVG, PNG or PDF")
    add("-o", dest="output", metavar="FILE", help="write the best kernel as a module")
    parser.add_switch("--verify", "compare the bytes of all results of the engines with those of the reference")
    failures = "with --verify, the folder for failing kernels (default failures)"
    add("--failures", metavar="FOLDER", type=Path, default=Path("failures"), help=failures)
    return parser


def _search(subject: Subject, space: Space, args: argparse.Namespace) -> int:
    found = tune(
        subject.make_kernel, space, subject.arguments_of({}), args.objective or "model", args.budget or 100,
        args.scheduler, grid=subject.grid, sampler=args.sampler, seed=args.seed, journal=args.journal,
        workers=args.workers, limit=args.limit, memory=args.memory and args.memory << 20,
    )  # fmt: skip
    states = Counter(t.state for t in found.trials)
    print(f"{len(found.trials)} trials: {', '.join(f'{n} {state}' for state, n in states.items())}")
    if args.table:
        found.save(args.table)
    if args.plot:
        found.plot(args.plot)
    best = found.best
    print(
        f"best: {', '.join(f'{name} = {with_unit(name, value)}' for name, value in zip(found.objectives, best.values))}"
    )
    for name, value in best.configuration.items():
        print(f"  {name} = {value!r}")
    if args.output:
        found.save_best(args.output)
    return 0


def _verify(subject: Subject, space: Space, args: argparse.Namespace) -> int:
    states: Counter[str] = Counter()
    search = {"seed": args.seed, "workers": args.workers, "limit": args.limit}
    memory = args.memory and args.memory << 20
    told: set[str] = set()
    for verdict in verify(subject, space, args.budget, args.scheduler, **search, memory=memory):
        states[verdict.state] += 1
        if verdict.state in ("done", "refused") or verdict.message in told:
            continue
        told.add(verdict.message)
        print(f"{verdict.state}: {verdict.configuration}: {verdict.message}")
        try:
            print(f"  {write_failure(args.failures, Verification(subject, space), verdict)}")
        except ERRORS as e:
            print(f"  no file: {e}")
    print(f"{states.total()} configurations: {', '.join(f'{n} {state}' for state, n in states.items())}")
    return 0 if states.keys() <= {"done", "refused"} else 1


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_intermixed_args(parser.normalized(argv))
    arguments = parser.kernel_arguments(args.args)
    try:
        space = Space.from_file(args.space)
        subject = subject_of(Path(args.file), space, args.kernel, arguments, args.grid)
        if callable(subject.arguments) and not args.verify:
            parser.error(f"'arguments' of '{args.file}' is a function, which only --verify calls")
        return (_verify if args.verify else _search)(subject, space, args)
    except OSError as e:
        parser.error(f"cannot open '{e.filename}': {e.strerror}" if e.filename else str(e))
    except (MissingExtra, TypeError, ValueError, RuntimeError) as e:
        parser.error(str(e))


def main() -> None:
    """Entry point of the command `xegpu-tune`."""
    driver.main(run)


if __name__ == "__main__":
    main()
