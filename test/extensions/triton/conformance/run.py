"""Run Triton's own tests, from a checkout of a repository that has them, on the backend `xegpu`.

`python run.py CHECKOUT --out results.tsv` runs python/test/unit/language and runtime of the checkout on tensors of the
CPU, and writes a line for each test: its id, its outcome and, where it does not pass, the reason. Tests that the table
has are not run again, unless `--again` names them: so it grows run by run. The tests are not in this repository:
`intel/intel-xpu-backend-for-triton` has those of Triton 3.8, at 6c1649935. `results.tsv` beside this file has what was
found.

pytest imports this file, too, as a plugin: it gives Triton's testing module the names of that fork, and chooses the
tests.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

FOLDERS = ("python/test/unit/language", "python/test/unit/runtime")

REASONS = (
    ("gives other numbers", r"Mismatched|not close|Arrays are not|AssertionError: assert .*(?:tensor|array)"),
    (
        "asks for CUDA, HIP or XPU",
        r"torch\.cuda|CUDA|Torch not compiled|libcuda|is_hip|pin_memory|torch\.xpu|XPU"
        r"|\.is_cuda|NUM_SMS",
    ),
    ("reads the IR of another target", r"Unknown key: '(?:ttgir|llir|ptx|cubin|amdgcn|spv)'|ptxas|nvgpu"),
    ("asks PyTorch for what it lacks on the CPU", r"_cpu\" not implemented|module 'torch\.cpu' has no"),
    ("has types of another target", r"type fp8e(?:4b8|5b16|4b15) not supported"),
    ("takes longer than the limit", r"Timeout"),
    ("accesses memory out of bounds itself", r"(?:reads|writes) \d+ bytes at"),
    ("needs a package", r"ModuleNotFoundError|ImportError|No module named"),
    ("needs more registers or shared memory", r"OutOfResources|bytes, but a thread has"),
    ("expects what Triton 3.8 says", r"FileCheck|DID NOT RAISE"),
    ("expects another form of output", r"reproducer|asm\['ttir'\] !="),
    ("is refused", r"DiagnosticError|CompilationError|does not support|cannot be lowered|error: '"),
)
"""The reasons for which tests fail, and how the report of a failure tells them; the first that fits counts."""

JUDGED = {
    # Against float64 the largest error of a gradient is 1.6e-4 here, and 6.8e-4 by PyTorch, which is what it expects.
    "test_liger_group_norm[": "rounds otherwise than PyTorch",
    # A GPU prints a scalar once for each of the 128 threads of a program, TRITON_INTERPRET once.
    **dict.fromkeys(
        [f"test_print[{name}-" for name in ("device_print_scalar", "no_arg_print", "print_no_arg")],
        "expects a line of each thread of a GPU",
    ),
}
"""The reasons of tests whose results somebody judged, by a part of their name."""

BY_CONSTRUCTION = (
    "asks for CUDA, HIP or XPU",
    "asks PyTorch for what it lacks on the CPU",
    "reads the IR of another target",
    "has types of another target",
    "expects a line of each thread of a GPU",
)
"""The reasons of tests that are written for another device."""


def reason_of(report: str, test: str = "") -> str:
    """Why a test failed, from its name and the text of its report, with the last line of it."""
    lines = [line.removeprefix("E").strip() for line in report.splitlines() if line.startswith("E ")]
    shown = (lines or report.strip().splitlines() or [""])[0][:160]
    # An assertion has its text only in the line of the program, which stands before.
    asserted = re.findall(r"^ *(assert .*)\nE ", report, re.MULTILINE)
    read = "\n".join([*lines, *asserted]) or report
    judged = (reason for part, reason in JUDGED.items() if part in test)
    found = next((reason for reason, pattern in REASONS if re.search(pattern, read)), next(judged, "fails"))
    return f"{found}: {shown}"


# The plugin of pytest.


def pytest_load_initial_conftests() -> None:
    """Give Triton's testing module the predicates of the fork whose tests run.

    Autotuners leave out keys that are no arguments, as before Triton 3.9: flash-linear-attention has some.
    """
    from triton import _internal_testing
    from triton.runtime.autotuner import Autotuner

    create = Autotuner.__init__

    def created(self: Any, fn: Any, arg_names: Any, configs: Any, key: Any, *rest: Any, **options: Any) -> None:
        create(self, fn, arg_names, configs, [name for name in key if name in arg_names], *rest, **options)

    Autotuner.__init__ = created

    for name in ("is_xpu_cri", "xpu_has_fp64"):
        if not hasattr(_internal_testing, name):
            setattr(_internal_testing, name, lambda: False)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leave out the tests whose results are known, and keep a sample of the parameters of each test function."""
    known = set(Path(os.environ["CONFORMANCE_KNOWN"]).read_text().splitlines())
    count, seed = int(os.environ["CONFORMANCE_SAMPLE"]), os.environ["CONFORMANCE_SEED"]
    functions: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    items[:] = []
    for name, found in functions.items():
        if count:
            found = random.Random(f"{seed} {name}").sample(found, min(count, len(found)))
        items += [item for item in found if item.nodeid not in known]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note which test runs, should it end the process."""
    Path(os.environ["CONFORMANCE_OUT"] + ".running").write_text(nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """End the run where its time is over."""
    if time.time() > float(os.environ["CONFORMANCE_END"]):
        raise KeyboardInterrupt


def pytest_runtest_logreport(report: Any) -> None:
    """Write the outcome of a test that has run, or was skipped or failed before it could."""
    if report.when != "call" and report.outcome == "passed":
        return
    if report.when == "teardown" and report.outcome != "failed":
        return
    write(report)


def pytest_collectreport(report: Any) -> None:
    """Write a line for a file that cannot be read."""
    if report.failed:
        write(report)


def write(report: Any) -> None:
    """Add the line of a report to the table."""
    outcome = "xfail" if hasattr(report, "wasxfail") else report.outcome
    reason = ""
    if outcome == "failed":
        reason = reason_of(str(report.longrepr), report.nodeid)
    elif outcome == "skipped":
        reason = str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)[:160]
    with open(os.environ["CONFORMANCE_OUT"], "a") as out:
        for folder in (os.getcwd(), sys.prefix, tempfile.gettempdir()):
            reason = reason.replace(f"{folder}/", "")
        shown = " ".join(reason.split())
        out.write(f"{report.nodeid}\t{outcome}\t{shown}\n")


# The program.


def main(words: list[str] | None = None) -> int:
    """Run the tests, and print the outcomes of each file; with other words than those of the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("checkout", type=Path, help="a checkout with python/test/unit")
    parser.add_argument(
        "--out", type=Path, default=Path("results.tsv"), help="the table of results (default results.tsv)"
    )
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="run N parameters of each function only")
    parser.add_argument("--seed", default="0", help="seed of the sample")
    parser.add_argument("--timeout", type=int, default=60, metavar="S", help="seconds of a test (default 60)")
    parser.add_argument("--minutes", type=float, default=600, metavar="M", help="end after M minutes")
    parser.add_argument("--again", default="$^", metavar="REGEX", help="run also tests that the table has")
    parser.add_argument("--words", default="--device cpu", help="further words for pytest (default '--device cpu')")
    parser.add_argument("files", nargs="*", help="test files or ids, by default all")
    args = parser.parse_intermixed_args(words)
    root = args.checkout.resolve()
    files = args.files or [folder for folder in FOLDERS if (root / folder).exists()]
    if not files:
        parser.error(f"'{root}' has no {FOLDERS[0]}")
    paths = [str(folder) for folder in (root, root / "src") if not (root / FOLDERS[0]).exists()]
    out = args.out.resolve()
    rows = table(out)
    again = [name for name, row in rows.items() if re.search(args.again, "\t".join(row))]
    with tempfile.TemporaryDirectory() as folder:
        results, known = Path(folder) / "results", Path(folder) / "known"
        results.touch()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *paths, os.environ.get("PYTHONPATH", "")]),
            "CONFORMANCE_OUT": str(results),
            "CONFORMANCE_KNOWN": str(known),
            "CONFORMANCE_SAMPLE": str(args.sample),
            "CONFORMANCE_SEED": args.seed,
            "CONFORMANCE_END": str(time.time() + 60 * args.minutes),
            "TRITON_DEFAULT_BACKEND": "xegpu",
            "XEGPU_PY_TRITON_DEVICE": "cpu",
        }
        command = [sys.executable, "-m", "pytest", "-p", "run", "-p", "no:xdist", "-p", "no:cacheprovider", "-q"]
        command += [
            *args.words.split(),
            "--continue-on-collection-errors",
            f"--timeout={args.timeout}",
            "--tb=short",
            "-W",
            "ignore",
            *files,
        ]
        with open(out.with_suffix(".log"), "w") as log:
            code = -1
            while code < 0:
                names = [*(rows.keys() - set(again)), *table(results)]
                known.write_text("\n".join(names))
                code = subprocess.run(
                    command, cwd=root, env=environment, stdout=log, stderr=log, check=False
                ).returncode
                if code < 0:
                    running = Path(f"{results}.running").read_text()
                    with results.open("a") as lines:
                        lines.write(f"{running}\tfailed\tends the process: signal {-code}\n")
        rows |= table(results)
    out.write_text("".join("\t".join(rows[name]) + "\n" for name in sorted(rows)))
    print(summary(out))
    return 0


def table(path: Path) -> dict[str, list[str]]:
    """The rows of a table of results by their tests' ids."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.partition("\t")[0]: line.split("\t") for line in lines}


def summary(out: Path) -> str:
    """The outcomes of each file, how often each reason occurs, and the share that passes of what is for any device."""
    rows = table(out).values()
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    for name, outcome, reason in rows:
        outcomes[name.partition("::")[0].rpartition("/")[2]][outcome] += 1
        if outcome == "failed":
            reasons[reason.partition(":")[0]] += 1
    lines = [f"{file:32} {dict(found)}" for file, found in sorted(outcomes.items())]
    passed = sum(found["passed"] for found in outcomes.values())
    failed = sum(n for reason, n in reasons.items() if reason not in BY_CONSTRUCTION)
    share = f"{passed} of {passed + failed} that are for any device pass: {passed / max(passed + failed, 1):.1%}"
    return "\n".join([*lines, *(f"{n:6} {reason}" for reason, n in reasons.most_common()), share])


if __name__ == "__main__":
    sys.exit(main())
