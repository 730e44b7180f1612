"""Run the programs of suites, hold what each prints against its own CHECK lines, and print a table.

    python test/programs/suite.py DIRECTORY... [OPTION of xegpu-run...]

A directory may be IMEX's or LLVM's test/Integration/Dialect/XeGPU, say, with the option --import-upstream. A file whose
RUN lines name the chip cri is run for it. Each line of the output is a file:

    passed    its function `main` ran, and printed what the CHECK lines demand
    ran       likewise, without CHECK lines
    lowered   it has no `main` without arguments, and all its kernels become vISA
    wrong, failed, refused, slow   why not, with the first line of the error

and the table at the end has a line for each directory. The exit status is 1 if a file is not passed, ran or lowered.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOOLS = Path(sys.executable).parent
GOOD = ("passed", "ran", "lowered")
BAD = ("wrong", "failed", "refused", "slow")


def first_error(text: str) -> str:
    """The first line of an error."""
    lines = text.strip().splitlines() or ["no message"]
    return next((line for line in lines if re.search(r"\berror\b", line)), lines[-1])[:240]


def target_of(options: list[str]) -> str:
    """The target that the options of xegpu-run name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="any")
    return str(parser.parse_known_args(options)[0].target)


def lowered(file: Path, options: list[str], seconds: float) -> tuple[str, str]:
    """Whether the kernels of a file can be lowered."""
    passes = f"--xetile-to-visa-pipeline=target={target_of(options)}"
    reading = [o for o in options if o == "--import-upstream"]
    command = [TOOLS / "xegpu-opt", file, "--split-input-file", *reading, passes, "-o", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    return ("lowered", "") if done.returncode == 0 else ("refused", first_error(done.stderr))


def outcome(file: Path, options: list[str], seconds: float) -> tuple[str, str]:
    """What came of a file, and why."""
    text = file.read_text()
    if re.search(r"RUN:.*\bchip=cri\b", text) and target_of(options) == "any":
        options = [*options, "--target=cri"]
    if not re.search(r"func\.func @main\(\)", text):
        return lowered(file, options, seconds)
    command = [TOOLS / "xegpu-run", file, "-e", "main", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        return "refused" if "in launch" not in done.stderr else "failed", first_error(done.stderr)
    prefixes = re.findall(r"--check-prefix[= ](\S+)", text) or ["CHECK"]
    if not re.search(rf"\b({'|'.join(prefixes)})(-[A-Z-]+\d*)?:", text):
        return "ran", ""
    command = [TOOLS / "filecheck", file, *(f"--check-prefix={p}" for p in prefixes[:1])]
    checked = subprocess.run(command, input=done.stdout, capture_output=True, text=True)
    if checked.returncode:
        return "wrong", first_error(checked.stderr + checked.stdout) + " | " + done.stdout[:80].replace("\n", " ")
    return "passed", ""


def results(files: list[Path], options: list[str], seconds: float, jobs: int) -> Iterator[tuple[Path, str, str, float]]:
    """Each file with what came of it, and the seconds that it took."""

    def one(file: Path) -> tuple[Path, str, str, float]:
        start = time.monotonic()
        try:
            return file, *outcome(file, options, seconds), time.monotonic() - start
        except subprocess.TimeoutExpired:
            return file, "slow", f"more than {seconds:g} s", seconds

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, files)


def main() -> int:
    """Run the directories' programs; the exit status is 1 if one did not pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIRECTORY")
    parser.add_argument("--seconds", type=float, default=300, help="for a program (default 300)")
    parser.add_argument("--jobs", type=int, default=1, help="programs at once (default 1)")
    args, options = parser.parse_known_args()
    table: dict[Path, Counter[str]] = {}
    for directory in args.directories:
        files = sorted(directory.rglob("*.mlir")) if directory.is_dir() else [directory]
        counts = table[directory] = Counter()
        for file, what, why, seconds in results(files, options, args.seconds, args.jobs):
            counts[what] += 1
            print(f"{what:8} {seconds:6.1f} s  {file}  {why}", flush=True)
    found = [what for what in (*GOOD, *BAD) if any(counts[what] for counts in table.values())]
    print(f"\n| suite | files | {' | '.join(found)} |\n|{' --- |' * (2 + len(found))}")
    for directory, counts in table.items():
        print(f"| {directory} | {counts.total()} | {' | '.join(str(counts[what]) for what in found)} |")
    return 0 if set(found) <= set(GOOD) else 1


if __name__ == "__main__":
    sys.exit(main())
