"""Compare two checkouts in one run: compile times, and the sizes of the compiled kernels.

    python benchmarks/compare.py /path/to/before .

Times are processor times. Both checkouts run this checkout's scripts, from compiled bytecode as after `pip install`.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernel_sizes import COLUMNS

HERE = Path(__file__).parent
TIMES = (
    ["compile_gemm.py", "--json=256x256x256"],
    ["compile_gemm.py", "--json=250x246x100"],
    ["lowering.py", "--json=5000"],
    ["lowering.py", "--json=50000"],
    ["first_kernel.py"],
    ["start.py"],
)
MAPPED = ("dialects", "passes", "tools")
"""Folders that are packages of `xegpu_py` once it is installed."""


def installed(checkout: Path, folder: Path) -> Path:
    """A folder to import a checkout from, laid out as it is installed."""
    package = folder / "xegpu_py"
    shutil.copytree(checkout / "xegpu_py", package)
    for name in MAPPED:
        # Older checkouts have no links to them in the package.
        shutil.copytree(checkout / name, package / name, dirs_exist_ok=True)
    compileall.compile_dir(package, quiet=1)
    return folder


def run(folder: Path, arguments: list[str]) -> dict[str, Any]:
    """Return what a script of this folder prints with a checkout; nothing if the checkout is too old for it."""
    # The threads of numpy's BLAS wait actively for 0.1 s when numpy is imported.
    env = {**os.environ, "PYTHONPATH": str(folder), "XEGPU_PY_CACHE": "off", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / arguments[0]), *arguments[1:]]
    # From a folder without packages, which would come before the checkout.
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        print(
            f"{arguments[0]} does not run with {folder.name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr
        )
        return {}
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def times(before: Path, after: Path, rounds: int) -> None:
    """Print the shortest time of each measurement in seconds, and the ratio."""
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(rounds):
        for arguments in TIMES:
            for side, folder in enumerate((before, after)):
                for name, taken in run(folder, arguments).items():
                    best[side][name] = min(taken, best[side].get(name, taken))
    kernels = [run(folder, ["kernel_sizes.py", "--seconds"]) for folder in (before, after)]
    both = kernels[0].keys() & kernels[1].keys()
    if both:
        for side, seconds in enumerate(kernels):
            best[side][f"{len(both)} kernels"] = sum(seconds[name] for name in both)
    for name in [name for name in best[0] if name in best[1]]:
        old, new = best[0][name], best[1][name]
        print(f"{name:40}{old:12.3f}{new:12.3f}   ratio {new / old:.3f}")


def sizes(before: Path, after: Path) -> int:
    """Print the kernels that differ. Returns the number of kernels that have more of something."""
    old, new = (run(folder, ["kernel_sizes.py", "--json"]) for folder in (before, after))
    worse = 0
    for name, row in new.items():
        if name in old and row != old[name]:
            pairs = list(zip(COLUMNS, old[name], row))
            worse += any(b > a for _, a, b in pairs)
            changed = [f"{column} {a} -> {b}" for column, a, b in pairs if a != b]
            print(f"{name}: {', '.join(changed) or 'other instructions'}")
    same = sum(old.get(name) == row for name, row in new.items())
    print(f"of {len(new)} kernels {same} have the same assembly, {worse} more of something")
    return worse


def table(before: Path, after: Path) -> None:
    """Print, as a table of Markdown, what kernels become: one number where both are the same."""
    old, new = (run(folder, ["kernel_sizes.py", "--json"]) for folder in (before, after))
    print(f"| Kernel | {' | '.join(COLUMNS)} |")
    print("| --- " * (len(COLUMNS) + 1) + "|")
    for name, row in new.items():
        if name in old:
            pairs = list(zip(old[name], row))[: len(COLUMNS)]
            print(f"| {name} | {' | '.join(f'{a:,}' if a == b else f'{a:,} → {b:,}' for a, b in pairs)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, nargs="?", help="without it nothing is compared")
    parser.add_argument("after", type=Path, nargs="?", default=HERE.parent)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=("times", "sizes", "table"))
    args = parser.parse_args()
    if args.before is None:
        print(f"{parser.prog}: skipped: needs arguments: {' '.join(parser.format_usage().split())}")
        return
    with tempfile.TemporaryDirectory() as folder:
        before, after = (installed(c, Path(folder) / side) for side, c in (("0", args.before), ("1", args.after)))
        if args.only in (None, "times"):
            times(before, after, args.rounds)
        if args.only in (None, "sizes"):
            sizes(before, after)
        if args.only == "table":
            table(before, after)


if __name__ == "__main__":
    main()
