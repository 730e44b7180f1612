"""Run the tests of Triton programs of others on the backend `xegpu`, from checkouts outside of the repository.

`python programs.py liger ~/Liger-Kernel` runs the tests of Liger-Kernel's operations on tensors of the CPU, a sample
of their parameters, with the check for races; accesses out of bounds are always found. The results are kept in
`programs/liger.tsv`, as `run.py` describes. `python programs.py --table` prints the table of docs/triton.md.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import run

RESULTS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Project:
    """A repository with tests of Triton kernels.

    Attributes:
        title: its name, and what runs.
        commit: the commit whose results are in the table.
        tests: patterns of the test files in the checkout, or of files beside this one.
        left_out: a regular expression of test files that ask for other devices or test no kernels.
        needs: packages that must be installed.
        sample: how many parameters of each test function run.
        words: further words for pytest.
    """

    title: str
    commit: str
    tests: tuple[str, ...]
    left_out: str = "$^"
    needs: str = ""
    sample: int = 1
    words: str = ""

    def files(self, root: Path) -> list[str]:
        """The test files."""
        folders = (root, Path(__file__).parent)
        found = [path for pattern in self.tests for folder in folders for path in sorted(folder.glob(pattern))]
        return [str(path) for path in found if not re.search(self.left_out, path.name)]


PROJECTS = {
    "liger": Project(
        "Liger-Kernel",
        "ead96b618e5c67bddc6a6e9bcb99bfe6b5ab661c of github.com/linkedin/Liger-Kernel",
        ("test/transformers/test_*.py",),
        "cute|cutile|auto_model|flex_attention|monkey|int8int2|trainer|test_transformers|test_utils|test_moe|tiled",
        "transformers<5",
    ),
    "fla": Project(
        "flash-linear-attention",
        "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89 of github.com/fla-org/flash-linear-attention",
        ("tests/ops/test_*.py",),
        "backends|cache|tilelang",
        "transformers<5 einops",
        words="-p cuda_on_cpu -k B1-T",
    ),
    "unsloth": Project(
        "unsloth's kernels",
        "015bdef0d94a241bcd94eec7a405b1700632180d of github.com/unslothai/unsloth",
        ("unsloth_kernels.py",),
        needs="transformers<5 unsloth_zoo accelerate peft",
        sample=0,
        words="-c /dev/null",
    ),
    "triton_kernels": Project(
        "triton_kernels",
        "910ba2e98deb5180a5fb8f204f57cd6e71d2436a of github.com/triton-lang/triton-cpu, python/triton_kernels",
        ("tests/test_*.py",),
        "distributed|roofline",
        sample=2,
        words="--device cpu -p cuda_on_cpu",
    ),
}


def row(name: str) -> str:
    """The results of a project, as a row of the table: how many tests passed, and why others did not."""
    results = list(run.table(RESULTS / f"{name}.tsv").values())
    files = {test.partition("::")[0] for test, _, _ in results}
    outcomes = Counter(outcome for _, outcome, _ in results)
    reasons = Counter(reason.partition(":")[0] for _, outcome, reason in results if outcome == "failed")
    others = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items(), key=lambda x: (-x[1], x[0])))
    skipped = outcomes["skipped"] + outcomes["xfail"]
    return f"| {PROJECTS[name].title} | {len(files)} | {outcomes['passed']} | {skipped} | {others} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="print the rows of the table in docs/triton.md")
    parser.add_argument("project", nargs="?", choices=PROJECTS, help="whose tests to run")
    parser.add_argument("checkout", nargs="?", type=Path, help="the folder of its checkout")
    args, words = parser.parse_known_args()
    if args.table:
        print("\n".join(map(row, PROJECTS)))
        return 0
    if not args.project or not args.checkout:
        parser.error("a project and its checkout must be given")
    project = PROJECTS[args.project]
    root = args.checkout.resolve()
    files = project.files(root)
    if not files:
        parser.error(f"'{root}' has no {project.tests[0]}; the tests are those of {project.commit}")
    os.environ.setdefault("XEGPU_PY_AUTOTUNE", "first")
    os.environ.setdefault("XEGPU_PY_CHECK", "races")
    words = [f"--sample={project.sample}", f"--words={project.words}", *words]
    return run.main([str(root), f"--out={RESULTS / args.project}.tsv", *words, *files])


if __name__ == "__main__":
    sys.exit(main())
