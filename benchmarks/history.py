"""Compare starts, the first kernel and lowering with older commits, alternately in one run.

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


def figures(folder: Path) -> dict[str, float]:
    """The time of each figure with an installed checkout."""
    return {name: taken for script in SCRIPTS for name, taken in run(folder, script).items() if name in FIGURES}


def installed_commit(commit: str, scratch: Path) -> Path:
    """A folder to import a commit from."""
    tree = scratch / f"tree-{commit}"
    git("worktree", "add", "--detach", "--force", str(tree), commit)
    try:
        return installed(tree, scratch / commit)
    finally:
        git("worktree", "remove", "--force", str(tree))


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
        folders = {"today": installed(ROOT, Path(scratch) / "today")}
        folders |= {commit: installed_commit(commit, Path(scratch)) for commit in commits}
        best: dict[str, dict[str, float]] = {name: {} for name in folders}
        # Alternately, since the load of a host changes.
        for _ in range(args.rounds):
            for name, folder in folders.items():
                for figure, taken in figures(folder).items():
                    best[name][figure] = min(taken, best[name].get(figure, taken))
    today = best["today"]
    for commit in commits:
        for figure, before in best[commit].items():
            ratio = today[figure] / before
            mark = "   slower" if ratio > SLOWER else ""
            print(f"{commit:12} {figure:36}{before:10.3f}{today[figure]:10.3f}   ratio {ratio:.2f}{mark}")


if __name__ == "__main__":
    main()
