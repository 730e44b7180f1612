"""Run the programs of a directory, and hold what each prints against its own CHECK lines.

    python test/programs/suite.py DIRECTORY [OPTION of xegpu-run...]

The directory may be IMEX's test/Integration/Dialect/XeGPU, say, with the option --import-upstream. A program is a file
with a function `main`; files without one are only compiled. Each line of the table is a file: "passed"; "compiled";
"ran", if it checks nothing; or why not, with the first line of the error.
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


def first_error(text: str) -> str:
    """The first line of an error."""
    lines = text.strip().splitlines() or ["no message"]
    return next((line for line in lines if re.search(r"\berror\b", line)), lines[-1])


def outcome(file: Path, options: list[str], seconds: float) -> tuple[str, str]:
    """What came of a file, and why."""
    text = file.read_text()
    if not re.search(r"func\.func @main\(\)", text):
        command = [TOOLS / "xegpu-opt", file, "-o", os.devnull, *(o for o in options if o == "--import-upstream")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        return (
            ("read", "has no main without arguments") if done.returncode == 0 else ("refused", first_error(done.stderr))
        )
    try:
        command = [TOOLS / "xegpu-run", file, "-e", "main", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "slow", f"more than {seconds:g} s"
    if done.returncode:
        return "refused" if "in launch" not in done.stderr else "failed", first_error(done.stderr)
    prefixes = re.findall(r"--check-prefix[= ](\S+)", text) or ["CHECK"]
    if not re.search(rf"\b({'|'.join(prefixes)})(-[A-Z-]+\d*)?:", text):
        return "ran", "checks nothing"
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
    """Run the directory's programs; the exit status is 1 if one did not pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seconds", type=float, default=300, help="for a program (default 300)")
    parser.add_argument("--jobs", type=int, default=1, help="programs at once (default 1)")
    args, options = parser.parse_known_args()
    files = sorted(args.directory.rglob("*.mlir")) if args.directory.is_dir() else [args.directory]
    counts: Counter[str] = Counter()
    for file, what, why, seconds in results(files, options, args.seconds, args.jobs):
        counts[what] += 1
        name = file.relative_to(args.directory) if args.directory.is_dir() else file
        print(f"{what:8} {seconds:6.1f} s  {name}  {why}", flush=True)
    print(f"{len(files)} files: {', '.join(f'{n} {what}' for what, n in counts.most_common())}")
    return 0 if set(counts) <= {"passed", "ran", "read"} else 1


if __name__ == "__main__":
    sys.exit(main())
