"""`make fuzz`: run random programs of all levels in parallel, for a number of seconds; see docs/testing.md.

Each task is a separate process, so that a crash ends only one task, and the program that crashed is kept.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisException

from xegpu_py.engines.jit import tiered_code

from . import coverage
from .program import Failure, Program, check
from .strategies import LEVELS, programs

TESTS = Path(__file__).parents[1]

SHRINK_SECONDS = 60
"""The time limit for shrinking a failure."""


@dataclass
class Report:
    """The results of a task.

    Attributes:
        ran: the number of programs by outcome: "ran", or the reason why a target refused them.
        cells: the number of programs that reached each cell of the coverage table.
        failures: the smallest failing program of each signature, as a lit test.
    """

    ran: Counter[str] = field(default_factory=Counter)
    cells: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        """Add the results of another task."""
        self.ran += other.ran
        self.cells += other.cells
        for signature, text in other.failures.items():
            if len(text) < len(self.failures.get(signature, text + " ")):
                self.failures[signature] = text


def signature(message: str) -> str:
    """The message without its numbers and types; failures with the same signature probably have the same cause."""
    lines = message.splitlines() or [""]
    first = next((line for line in lines if "error:" in line or "differ" in line), lines[0])
    first = re.sub(r"^.*?error: ", "", first)
    first = re.sub(r"argument \d+ at .*\) by (\w+), .*", r"another result than by \1", first)
    return re.sub(r"\d+", "N", re.sub(r"[!%#]?[\w.]+<[^'\"]*>", "T", first))[:120]


def work(
    level: str, number: int, seconds: float, current: Path, evaluators: tuple[str, ...], watched: bool = True
) -> Report:
    """Run programs of a level for some seconds, and shrink the first failure.

    Args:
        number: the seed.
        current: a file to which the running program is written.
    """
    # Every other task runs code that is not optimized at first.
    tiered_code.QUICK_SECONDS *= number % 2
    report = Report()
    end = time.monotonic() + seconds
    failure: list[tuple[Program, str, str]] = []

    @seed(number)
    @settings(
        max_examples=1_000_000,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
    )
    @given(programs(level))
    def run(program: Program) -> None:
        if time.monotonic() > end + (SHRINK_SECONDS if failure else 0):
            raise KeyboardInterrupt
        if watched:
            current.write_text(program.lit())
        try:
            outcome = check(program, evaluators)
        except Failure as error:
            name = signature(str(error))
            if failure and failure[0][1] != name:
                return
            if not failure or len(program.text) < len(failure[0][0].text):
                failure[:] = [(program, name, str(error))]
            raise
        if not failure:
            report.ran[outcome] += 1
            report.cells.update(coverage.cells(program))

    try:
        run()
    except KeyboardInterrupt:
        pass
    except (Failure, HypothesisException):
        if not failure:
            raise
    if failure:
        program, name, message = failure[0]
        report.ran["failed"] += 1
        report.failures[f"{level}: {name}"] = program.lit(
            f"{message.splitlines()[0]}\nFound by make fuzz, level {level}, seed {number}."
        )
    current.unlink(missing_ok=True)
    return report


def _words(level: str, number: int, seconds: float, out: str, reference: bool) -> list[str]:
    """The command of a task, without Python's name."""
    words = ["-m", "generators.fuzz", "--task", level, str(number), "--seconds", str(seconds), "--out", out]
    return words + ([] if reference else ["--no-reference"])


def _task(level: str, number: int, seconds: float, out: Path, reference: bool) -> subprocess.Popen[bytes]:
    log = (out / f"{level}-{number}.log").open("wb")
    words = [sys.executable, *_words(level, number, seconds, str(out), reference)]
    return subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)


def fuzz(seconds: float, workers: int, levels: list[str], out: Path, reference: bool, first: int) -> dict[str, Report]:
    """Run tasks of all levels, one at a time on each worker, and collect their reports."""
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    each = max(min(seconds / max(len(levels) // workers, 1) / 2, 40), 5)
    found = {level: Report() for level in levels}
    running: list[tuple[subprocess.Popen[bytes], str, int]] = []
    number = first
    while running or time.monotonic() < end:
        while len(running) < workers and time.monotonic() < end:
            level = levels[(number - first) % len(levels)]
            left = min(each, end - time.monotonic())
            running.append((_task(level, number, left, out, reference), level, number))
            number += 1
        time.sleep(0.2)
        for item in [r for r in running if r[0].poll() is not None]:
            running.remove(item)
            _gather(item[0].returncode, item[1], item[2], found, out)
    return found


class Remote:
    """The problem that workers of a Dask cluster solve: run a task. They have the package, but not this folder."""

    def __init__(self) -> None:
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in TESTS.rglob("*.py"):
                archive.write(file, file.relative_to(TESTS))
        self.archive = memory.getvalue()

    def run(self, words: list[str]) -> tuple[int, dict[str, str]]:
        """Run a task with these arguments; its exit status, and the files that it has written, by their names."""
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(io.BytesIO(self.archive)).extractall(folder)
            out = Path(folder) / "out"
            out.mkdir()
            command = [sys.executable, *words]
            path = {"PYTHONPATH": os.pathsep.join(["unit", ".", *sys.path]), "XEGPU_PY_CACHE": "off"}
            log = subprocess.run(
                command, cwd=folder, env={**os.environ, **path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            files = {file.name: file.read_text(errors="replace") for file in out.iterdir()}
            return log.returncode, {**files, "log": log.stdout.decode(errors="replace")}


def fuzz_on(
    scheduler: str, seconds: float, levels: list[str], out: Path, reference: bool, first: int
) -> dict[str, Report]:
    """Run tasks of all levels on the workers of a Dask cluster, and collect their reports."""
    from xegpu_py.extensions.tuning.cluster import Cluster, TrialLimits

    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    found, tasks = {level: Report() for level in levels}, list[tuple[str, int]]()

    def words() -> Iterator[list[str]]:
        while time.monotonic() < end:
            tasks.append((levels[len(tasks) % len(levels)], first + len(tasks)))
            yield _words(*tasks[-1], max(min(end - time.monotonic(), 40), 5), "out", reference)

    with Cluster(scheduler) as cluster:
        for number, report in cluster.map(Remote(), words(), TrialLimits(seconds + 2 * SHRINK_SECONDS)):
            level, seed = tasks[number]
            if report.state != "done":
                found[level].ran["crashed"] += 1
                found[level].failures[f"{level}: {report.result}"] = f"// seed {seed}: {report.result}\n"
                continue
            status, files = report.result
            for name, text in files.items():
                (out / (f"{level}-{seed}.log" if name == "log" else name)).write_text(text)
            _gather(status, level, seed, found, out)
    return found


def _gather(status: int, level: str, number: int, found: dict[str, Report], out: Path) -> None:
    name = f"{level}-{number}"
    result, log, current = out / f"{name}.json", out / f"{name}.log", out / f"{name}.current"
    if result.exists():
        data = json.loads(result.read_text())
        found[level].add(Report(Counter(data["ran"]), Counter(data["cells"]), data["failures"]))
        result.unlink()
        log.unlink()
        return
    tail = log.read_text(errors="replace")[-2000:]
    text = current.read_text() if current.exists() else ""
    cause = f"exit status {status}"
    found[level].failures[f"{level}: crash, {cause}"] = f"{text}\n// {cause}\n" + "".join(
        f"// {t}\n" for t in tail.splitlines()
    )
    found[level].ran["crashed"] += 1


def show(found: dict[str, Report], out: Path, seconds: float) -> bool:
    """Print the outcomes and the coverage table, and write the failures. Returns whether there were none."""
    cells: Counter[str] = Counter()
    for report in found.values():
        cells += report.cells
    print(coverage.table(cells))
    print()
    failed = False
    for level, report in found.items():
        refused = {why: n for why, n in report.ran.items() if why not in ("ran", "failed", "crashed")}
        print(f"{level:12} {report.ran['ran']:7} programs, {len(report.failures)} failures", end="")
        print("".join(f"; {n} refused: {why}" for why, n in refused.items()))
        for name, text in report.failures.items():
            failed = True
            path = (
                out
                / f"{level}-{hashlib.sha256(name.encode()).hexdigest()[:8]}{'.visaasm' if level == 'visa' else '.mlir'}"
            )
            path.write_text(text)
            print(f"    {name}\n    written to {path}")
    total = sum(r.ran["ran"] for r in found.values())
    print(f"{total} programs in {seconds:.0f} s")
    return not failed


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser("fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--scheduler", help="run on the workers of a Dask cluster instead")
    parser.add_argument("--levels", default=",".join(LEVELS))
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--seed", type=int, default=None, help="by default another one each time")
    parser.add_argument("--no-reference", action="store_true", help="compare the interpreter and the JIT alone")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ["XEGPU_PY_CACHE"] = "off"
    evaluators = () if args.no_reference else ("reference", "upstream")
    if args.task:
        level, number = args.task[0], int(args.task[1])
        report = work(level, number, args.seconds, args.out / f"{level}-{number}.current", evaluators)
        data = {"ran": report.ran, "cells": report.cells, "failures": report.failures}
        (args.out / f"{level}-{number}.json").write_text(json.dumps(data))
        return 0
    first = random.randrange(1 << 30) if args.seed is None else args.seed
    start = time.monotonic()
    rest = args.levels.split(","), args.out, not args.no_reference, first
    if args.scheduler:
        found = fuzz_on(args.scheduler, args.seconds, *rest)
    else:
        found = fuzz(args.seconds, args.workers, *rest)
    return 0 if show(found, args.out, time.monotonic() - start) else 1


if __name__ == "__main__":
    sys.exit(main())
