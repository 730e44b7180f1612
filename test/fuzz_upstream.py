"""Send random kernels through MLIR's passes, and report those that change a result or abort.

python test/fuzz_upstream.py --seconds 60
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from generators import upstream_campaign as campaign

from xegpu_py.bisection.upstream_stages import tool_named
from xegpu_py.tools import driver
from xegpu_py.upstream.levels import Level


def _levels(text: str) -> list[Level]:
    known = get_args(Level)
    found = text.split(",")
    if not set(found) <= set(known):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of {', '.join(known)}")
    return [level for level in known if level in found]


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    parser = driver.Parser(
        "fuzz_upstream.py",
        "",
        "Generate random kernels in upstream's XeGPU, let mlir-opt run passes on them in a process of its own, and run "
        "the kernel after each pass. Each kind of kernel whose result a pass changes, or at which mlir-opt aborts, is "
        "reduced and written to a file. The exit status is 1 if there is such a kernel.",
        [
            "python test/fuzz_upstream.py --seconds 60",
            "python test/fuzz_upstream.py --level lane --passes 'builtin.module(gpu.module(xegpu-vector-linearize))'",
            "python test/fuzz_upstream.py --mlir-opt ~/llvm-project/build/bin/mlir-opt --programs 1000 --seed 5",
        ],
    )
    add = parser.add_argument
    passes = (
        "the pipeline, as mlir-opt's --pass-pipeline has it (default: those of gpu-lower-to-xevm-pipeline that lower "
        "kernels of the level to the dialect xevm)"
    )
    add("--passes", metavar="TEXT", default="", help=passes)
    levels = "levels of the kernels, separated by commas (default workgroup,subgroup,lane)"
    add("--level", dest="levels", metavar="LEVEL", type=_levels, default=list(get_args(Level)), help=levels)
    add("--mlir-opt", dest="tool", metavar="PATH", help="the mlir-opt to run (default: that of the installation)")
    add("--seconds", type=driver.positive, default=60, metavar="N", help="time limit (default 60)")
    add(
        "--programs", type=driver.positive, default=1_000_000, metavar="N", help="number of kernels (default: no limit)"
    )
    add("--seed", type=int, default=0, metavar="N", help="number of the first kernel (default 0)")
    folder = "folder of the reduced kernels (default upstream-bugs)"
    add("--out", type=Path, default=Path("upstream-bugs"), metavar="FOLDER", help=folder)
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_args(parser.normalized(argv))
    try:
        found = campaign.run(
            args.levels,
            args.passes,
            tool_named(args.tool),
            args.out,
            seconds=args.seconds,
            programs=args.programs,
            seed=args.seed,
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except ValueError as e:
        parser.error(str(e))
    print(found.table())
    return 1 if found.found else 0


def main() -> None:
    """Entry point of the program."""
    driver.main(run)


if __name__ == "__main__":
    main()
