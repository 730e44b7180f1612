"""Compare starts, the first kernel and lowering with older commits, in one run.

    python benchmarks/history.py [COMMIT...]

Without names the commits are those of the last three tags. Times are processor times, each the shortest of several.
A line ends with `slower` if this checkout takes over a tenth longer than a commit; the exit status is 0 all the same.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

from compare import installed, run

ROOT = Path(__file__).resolve().parents[1]

SCRIPTS = (["start.py"], ["first_kernel.py"], ["lowering.py", "--json=5000"])

FIGURES = (
    "import xegpu_py",
    "xegpu-opt examples/gemm.mlir",
    "add: all",
    "5,000 ops, microseconds an op",
)

SLOWER = 1.1


def git(*words: str) -> str:
    """The output of a git command in this checkout."""
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True).stdout.strip()


def figures(folder: Path, rounds: int) -> dict[str, float]:
    """The least time of each figure with an installed checkout."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for script in SCRIPTS:
            for name, taken in run(folder, script).items():
                best[name] = min(taken, best.get(name, taken))
    return {name: best[name] for name in FIGURES if name in best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    commits = args.commits or git("tag", "--sort=-creatordate").split()[:3]
    if not commits:
        print("history.py: skipped: there is no tag, and no commit is named")
        return
    with tempfile.TemporaryDirectory() as scratch:
        today = figures(installed(ROOT, Path(scratch) / "today"), args.rounds)
        for commit in commits:
            tree = Path(scratch) / f"tree-{commit}"
            git("worktree", "add", "--detach", "--force", str(tree), commit)
            try:
                before = figures(installed(tree, Path(scratch) / commit), args.rounds)
            finally:
                git("worktree", "remove", "--force", str(tree))
            for name in [name for name in today if name in before]:
                ratio = today[name] / before[name]
                mark = "   slower" if ratio > SLOWER else ""
                print(f"{commit:12} {name:36}{before[name]:10.3f}{today[name]:10.3f}   ratio {ratio:.2f}{mark}")


if __name__ == "__main__":
    main()
