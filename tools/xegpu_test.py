"""`xegpu-test`: run directories of programs, compare their output with their CHECK lines, and report for CI."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from xegpu_py.extensions.programs import suite
from xegpu_py.extensions.programs.suite import REPORTS
from xegpu_py.tools import driver


def _report(text: str) -> Path:
    if Path(text).suffix not in REPORTS:
        raise argparse.ArgumentTypeError(f"'{text}' ends neither in .xml (JUnit) nor in .sarif")
    return Path(text)


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    parser = driver.Parser(
        "xegpu-test",
        "PATH... [OPTION of xegpu-run...]",
        "Run the function 'main' of each .mlir file in directories, and compare what it prints with its CHECK lines; "
        "of files without 'main' lower all kernels. Options of xegpu-run have the form --NAME or --NAME=VALUE. The "
        "exit status is 1 if a file fails that is not a known failure, or if a known failure does not fail.",
        [
            "xegpu-test mlir/test/Integration/Dialect/XeGPU",
            "xegpu-test tests --known-failures known.txt --report junit.xml --report found.sarif",
        ],
    )
    add = parser.add_argument
    add("paths", type=Path, nargs="+", metavar="PATH", help="directories, or files")
    add("--seconds", type=driver.positive, default=300, metavar="N", help="time limit of a file (default 300)")
    add("--jobs", type=driver.positive, default=1, metavar="N", help="number of files that run at once (default 1)")
    known = "list of known failures: a line has a pattern of paths, such as WG/*.mlir, and after '#' the reason"
    add("--known-failures", dest="known", type=Path, metavar="FILE", help=known)
    report = "write a report: FILE.xml for JUnit, FILE.sarif for SARIF; may be given several times"
    add("--report", dest="reports", type=_report, action="append", default=[], metavar="FILE", help=report)
    return parser


def _files(parser: driver.Parser, paths: Sequence[Path]) -> dict[Path, list[Path]]:
    """The files of each path."""
    found = {path: sorted(path.rglob("*.mlir")) if path.is_dir() else [path] for path in paths}
    for path, files in found.items():
        if not path.exists():
            parser.error(f"cannot open '{path}': No such file or directory")
        if not files:
            parser.error(f"there is no .mlir file in '{path}'")
    return found


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args, options = parser.parse_known_args(parser.normalized(argv))
    if find_spec("filecheck") is None:
        parser.error("CHECK lines need the package filecheck: pip install filecheck")
    try:
        known = suite.known_failures(args.known) if args.known else {}
    except OSError as e:
        parser.error(f"cannot open '{args.known}': {e.strerror}")
    results: list[suite.FileResult] = []
    table: dict[Path, Counter[str]] = {}
    for path, files in _files(parser, args.paths).items():
        counts = table[path] = Counter()
        for result in suite.run(files, options, seconds=args.seconds, jobs=args.jobs, known=known):
            results.append(result)
            counts[result.outcome] += 1
            print(f"{result.outcome:8} {result.seconds:6.1f} s  {result.file}  {result.message}".rstrip(), flush=True)
    shown = [name for name in get_args(suite.Outcome) if any(counts[name] for counts in table.values())]
    print(f"\n| suite | files | {' | '.join(shown)} |\n|{' --- |' * (2 + len(shown))}")
    for path, counts in table.items():
        print(f"| {path} | {counts.total()} | {' | '.join(str(counts[name]) for name in shown)} |")
    for file in args.reports:
        parser.write(str(file), REPORTS[file.suffix](results))
    return 0 if set(shown) <= set(suite.GOOD) else 1


def main() -> None:
    """Entry point of the command `xegpu-test`."""
    driver.main(run)


if __name__ == "__main__":
    main()
