"""`make mutants`: plants random mistakes in the package, one at a time, and tells which ones no test notices.

A record of `make test` says which tests execute a function (`recorder.py`). For each processor one process imports the
package with all chosen mistakes behind switches, and collects the tests. For each mistake it forks; the fork makes the
mistake active, and runs the tests that execute its function, the most specific and shortest first, until one fails
or their processor time ends. Mistakes that survive are printed with their line; all are written to `build/mutants`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from itertools import groupby
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lit.main
import numpy as np
import pytest
import recorder

from mutants import mutations
from mutants.mutations import ROOT, Mutation

OUT = ROOT / "build" / "mutants"
LIT = (".mlir", ".visaasm", ".test")
FIRST_LIT = 12
"""At most so many lit tests are run for a mistake after the first third of the time, before other tests of pytest."""
TOGETHER, START = 0.1, 0.005
"""The seconds of parameters of one test that double the cost of the next one, and those that the start of each takes.
"""


def candidates(paths: list[str]) -> tuple[dict[str, set[str]], dict[str, list[tuple[float, str, float]]]]:
    """For each file the functions that tests execute; for each function its tests, each with its cost and seconds."""
    numbers, tests = recorder.read()
    names = {number: name for name, number in numbers.items()}
    file_of = np.zeros(max(names, default=0) + 1, np.int64)
    for index, (_, of_file) in enumerate(groupby(sorted(names.items(), key=_file), key=_file)):
        file_of[[number for number, _ in of_file]] = index
    tests_of = np.bincount(np.concatenate([functions for _, functions in tests.values()] or [[]]).astype(np.int64))
    of_function: dict[str, list[tuple[float, str, float]]] = {}
    for test, (seconds, functions) in tests.items():
        # A short test is the likeliest to be about a function if few tests execute the other functions of the file that
        # it executes, and it executes little else that few tests do.
        files_of, weights = file_of[functions], 1 / tests_of[functions]
        costs = (0.2 + seconds) * weights.sum() / np.bincount(files_of, weights)[files_of]
        for number, cost in zip(functions.tolist(), costs.tolist()):
            of_function.setdefault(names[number], []).append((cost, test, seconds))
    files: dict[str, set[str]] = {}
    for name in of_function:
        file, _, function = name.partition(":")
        if (ROOT / file).exists() and (not paths or any(file.startswith(p.rstrip("/")) for p in paths)):
            files.setdefault(file, set()).add(function)
    return files, of_function


def _file(numbered: tuple[int, str]) -> str:
    return numbered[1].partition(":")[0]


def in_turns(tests: list[tuple[float, str, float]]) -> list[str]:
    """The tests by cost, which rises with each parameter of one: they often notice the same mistakes.

    A short table is the best judge of its function, but one of hundreds of programs would leave no time to others.
    """
    used: dict[str, float] = {}
    turns = []
    for cost, test, seconds in sorted(tests):
        name = test.partition("[")[0]
        before = used.get(name, 0.0)
        turns.append((cost * (1 + before / TOGETHER), test))
        used[name] = before + START + seconds
    return [test for _, test in sorted(turns)]


class Judge:
    """Judges mistakes in forks of a process of pytest that has collected the tests.

    Args:
        chosen: all mistakes, numbered from 1.
        tests: for each function its tests.
        seconds: processor time of the tests of a mistake.
        asked: gives numbers of mistakes, and takes (number, verdict, test).
        control: whether no mistake is ever active, so that a test which fails says nothing about mistakes.
    """

    def __init__(
        self, chosen: list[Mutation], tests: dict[str, list[str]], seconds: float, asked: Connection, control: bool
    ) -> None:
        self.chosen, self.tests, self.seconds, self.asked, self.control = chosen, tests, seconds, asked, control

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge mistakes instead of running all tests once."""
        items = {item.nodeid: item for item in session.items}
        self.asked.send(None)
        while number := self.asked.recv():
            self.asked.send((number, *self._judge(number, items)))
        return True

    def _judge(self, number: int, items: dict[str, Any]) -> tuple[str, str]:
        mutation = self.chosen[number - 1]
        tests = self.tests[f"{mutation.file}:{mutation.function}"]
        files = [test for test in tests if test.endswith(LIT) and (ROOT / test).exists()]
        wanted = [items[test] for test in tests if test in items]
        if not wanted and not files:
            return "no test", ""
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            self._child(number, wanted, files, write)
        os.close(write)
        verdict = _wait(child, read, 3 * self.seconds + 60)
        os.close(read)
        return verdict

    def _child(self, number: int, wanted: list[Any], files: list[str], write: int) -> None:
        os.setpgid(0, 0)
        silent = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(silent, fd)
        # A mistake may ask for memory without end.
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
        mutations.ACTIVE[0] = 0 if self.control else number
        # An exception of pytest or lit would be taken by the pytest that this process is a fork of.
        test = "an exception that no test caught"
        with suppress(BaseException):
            test = next(self._failing(wanted, files), "")
        os.write(write, test.encode())
        os._exit(bool(test))

    def _failing(self, wanted: list[Any], files: list[str]) -> Iterator[str]:
        """The tests that notice the active mistake."""
        failed: list[str] = []

        class Reports:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.failed:
                    failed.append(report.nodeid)

        session = wanted[0].session if wanted else None
        if session:
            session.config.pluginmanager.register(Reports())
        start, pending = recorder._seconds(), iter(wanted)
        for number, end in enumerate((self.seconds / 3, self.seconds)):
            while recorder._seconds() - start < end and (item := next(pending, None)):
                yield from self._run(item, failed)
            if files and not number:
                yield from _lit(files[:FIRST_LIT])
        if files[FIRST_LIT:] and recorder._seconds() - start < self.seconds:
            yield from _lit(files[FIRST_LIT : 4 * FIRST_LIT])

    def _run(self, item: Any, failed: list[str]) -> Iterator[str]:
        item.session._setupstate.teardown_exact(None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        yield from failed


def _lit(files: list[str]) -> Iterator[str]:
    """The names of lit tests that fail, at most one."""
    # Files that an earlier run has written would hide that a tool writes none.
    with TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        sys.argv = ["lit", "-q", "-j1", "--max-failures=1", f"--param=outputs={folder}", f"--output={out}", *files]
        with suppress(SystemExit):
            lit.main.main()
        if not out.exists():
            yield "lit's configuration, which launches a kernel"
            return
        report = json.loads(out.read_text())
    yield from (test["name"] for test in report["tests"] if test["code"] in ("FAIL", "UNRESOLVED", "TIMEOUT"))


def _wait(child: int, read: int, limit: float) -> tuple[str, str]:
    """The verdict of a fork, which is ended after so many seconds by the clock."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            test = os.read(read, 1 << 16).decode()
            code = os.waitstatus_to_exitcode(status)
            return ("survived", "") if code == 0 else ("killed", test or f"the process ended with {code}")
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "killed", f"no end after {limit:.0f} s"


def _worker(chosen: list[Mutation], tests: dict[str, list[str]], *options: Any) -> None:
    sys.meta_path.insert(0, mutations.Finder(chosen))
    OUT.mkdir(parents=True, exist_ok=True)
    sys.stdout = sys.stderr = open(OUT / f"worker-{os.getpid()}.log", "w")  # noqa: SIM115
    wanted = sorted({t.partition("::")[0] for found in tests.values() for t in found if not t.endswith(LIT)})
    wanted = [file for file in wanted if (ROOT / file).exists()]
    pytest.main(
        ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler", *wanted],
        plugins=[Judge(chosen, tests, *options)],
    )


def main() -> int:
    """Judge mistakes, print the survivors, and return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", help="files and folders of the package; by default all")
    parser.add_argument("--number", type=int, default=300, help="mistakes at most")
    parser.add_argument("--seconds", type=float, default=1800, help="time by the clock after which no mistake is begun")
    parser.add_argument("--each", type=float, default=30, help="processor time of the tests of a mistake, in seconds")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what is drawn")
    parser.add_argument("--again", metavar="REPORT", help="judge those of an earlier report that no test noticed")
    parser.add_argument("--control", action="store_true", help="make no mistake active: all must survive")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    files, tests = candidates(options.paths)
    if not files:
        parser.exit(2, "error: no record of which test executes what: `make test` makes it\n")
    chosen = unnoticed(options.again) if options.again else mutations.choose(files, options.number, options.seed)
    wanted = {name: in_turns(tests.get(name, [])) for name in {f"{m.file}:{m.function}" for m in chosen}}
    print(f"{len(chosen)} mistakes in {len({m.file for m in chosen})} files, seed {options.seed}", flush=True)
    workers: dict[Connection, Any] = {}
    for _ in range(options.workers):
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=_worker, args=(chosen, wanted, options.each, there, options.control)
        )
        process.start()
        there.close()
        workers[here] = process
    end = time.monotonic() + options.seconds
    numbers = iter(range(1, len(chosen) + 1))
    judged: list[tuple[Mutation, str, str]] = []
    while workers:
        for connection in multiprocessing.connection.wait([*workers]):
            try:
                answer = connection.recv()
            except EOFError:
                workers.pop(connection).join()
                continue
            if answer:
                number, verdict, test = answer
                mutation = chosen[number - 1]
                judged.append((mutation, verdict, test))
                if verdict != "killed":
                    print(f"{verdict}: {describe(mutation)}", flush=True)
            connection.send(next(numbers, 0) if time.monotonic() < end else 0)
    OUT.mkdir(parents=True, exist_ok=True)
    report = [{**asdict(m), "verdict": verdict, "test": test} for m, verdict, test in judged]
    (OUT / f"{options.seed}.json").write_text(json.dumps(report, indent=1) + "\n")
    summarize(judged)
    return 0


def unnoticed(report: str) -> list[Mutation]:
    """The mistakes of a report that no test noticed, in the files as they are now."""
    found = []
    for entry in json.loads(Path(report).read_text()):
        if entry.pop("verdict") != "killed" and entry.pop("test") is not None:
            found += mutations.found_again(Mutation(**entry))
    return found


def describe(mutation: Mutation) -> str:
    """A mistake as one line."""
    change = f"'{mutation.changed}'" if mutation.changed else "nothing"
    return f"{mutation.file}:{mutation.line}: '{mutation.original}' becomes {change}"


def summarize(judged: list[tuple[Mutation, str, str]]) -> None:
    """Print how many mistakes tests noticed, by area."""
    areas = sorted({mutations.area(m.file) for m, *_ in judged})
    for name in [*areas, "all"]:
        verdicts = [v for m, v, _ in judged if name in ("all", mutations.area(m.file))]
        killed = verdicts.count("killed")
        print(f"{name:28} {killed:4} of {len(verdicts):4} noticed, {100 * killed / max(len(verdicts), 1):5.1f} %")


if __name__ == "__main__":
    sys.exit(main())
