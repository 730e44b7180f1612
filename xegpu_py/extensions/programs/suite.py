"""Suites: directories of programs that run, whose output is compared with their own CHECK lines; and reports for CI."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from msgspec import Struct, structs

from xegpu_py.child_process import module_command
from xegpu_py.ir.diagnostic_formats import sarif_log, sarif_result
from xegpu_py.ir.diagnostics import Diagnostic, Position

Outcome = Literal["passed", "ran", "lowered", "known", "wrong", "failed", "refused", "slow", "fixed"]
"""Outcome of a file:

    passed    its function `main` ran, and printed what the CHECK lines demand
    ran       likewise, without CHECK lines
    lowered   it has no `main` without arguments, and all its kernels become vISA
    known     it is listed as a known failure, and fails
    wrong     it printed something else
    failed    a launch failed
    refused   it cannot be read or lowered
    slow      it did not end in time
    fixed     it is listed as a known failure, and does not fail
"""

GOOD: tuple[Outcome, ...] = ("passed", "ran", "lowered", "known")

_PLACE = re.compile(r"^(.*?):(\d+):(?:(\d+):)? error: (.*)$", re.MULTILINE)

_PRINTED = "\nthe program printed:\n"

_SHOWN = 200
"""The characters of a program's output that SARIF has in a message."""

_TOOL = "xegpu_py.tools"
"""The package of the tools, which run as processes of their own: a program can end its process."""


class FileResult(Struct, frozen=True):
    """Outcome of a file.

    Attributes:
        file: the file.
        outcome: see `Outcome`.
        message: why it is not good, or the reason of a known failure; the first line of an error.
        seconds: the time that it took.
        file_of_error, line, column: the place that the error names; line 0 if it names none.
        output: all that was printed on standard error.
    """

    file: Path
    outcome: Outcome
    message: str = ""
    seconds: float = 0
    file_of_error: str = ""
    line: int = 0
    column: int = 0
    output: str = ""


def known_failures(file: Path) -> dict[str, str]:
    """The patterns of a list of known failures, and the reason of each.

    Each line is a pattern of paths, as of a shell, and after `#` the reason. Empty lines are skipped.

    Raises:
        OSError: if the file cannot be read.
    """
    rows = (line.partition("#") for line in file.read_text().splitlines())
    return {pattern.strip(): reason.strip() for pattern, _, reason in rows if pattern.strip()}


def run(
    files: Sequence[Path],
    options: Sequence[str],
    *,
    seconds: float = 300,
    jobs: int = 1,
    known: Mapping[str, str] | None = None,
) -> Iterator[FileResult]:
    """Run files, each in a process of its own, and give their results in order.

    Args:
        options: options of `xegpu-run` for all files; a file whose RUN lines name the chip cri is run for it.
        seconds: the time limit of a file.
        jobs: the number of files that run at once.
        known: see `known_failures`.
    """

    def one(file: Path) -> FileResult:
        start = time.monotonic()
        try:
            result = _result(file, list(options), seconds)
        except subprocess.TimeoutExpired:
            result = FileResult(file, "slow", f"more than {seconds:g} s")
        result = structs.replace(result, seconds=time.monotonic() - start)
        reason = next((r for pattern, r in (known or {}).items() if fnmatch(str(file), f"*{pattern}")), None)
        if reason is None:
            return result
        if result.outcome in GOOD:
            return structs.replace(
                result, outcome="fixed", message="it is listed as a known failure, and does not fail"
            )
        return structs.replace(result, outcome="known", message=reason or result.message)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, files)


def _result(file: Path, options: list[str], seconds: float) -> FileResult:
    text = file.read_text()
    if re.search(r"RUN:.*\bchip=cri\b", text) and not any(o.startswith("--target") for o in options):
        options = [*options, "--target=cri"]
    if not re.search(r"func\.func @main\(\)", text):
        return _lowered(file, options, seconds)
    process = _call(["xegpu_run", str(file), "-e", "main", *options], seconds)
    if process.returncode:
        return _error(file, "refused" if "in launch" not in process.stderr else "failed", process.stderr)
    prefixes = re.findall(r"--check-prefix[= ](\S+)", text) or ["CHECK"]
    if not re.search(rf"\b({'|'.join(prefixes)})(-[A-Z-]+\d*)?:", text):
        return FileResult(file, "ran")
    command = module_command("filecheck", str(file), f"--check-prefix={prefixes[0]}")
    checked = subprocess.run(command, input=process.stdout, capture_output=True, text=True, check=False)
    if checked.returncode:
        return _error(file, "wrong", f"{checked.stderr}{checked.stdout}{_PRINTED}{process.stdout}")
    return FileResult(file, "passed")


def _lowered(file: Path, options: list[str], seconds: float) -> FileResult:
    """Whether the kernels of a file can be lowered."""
    target = next((o.partition("=")[2] for o in options if o.startswith("--target=")), "any")
    reading = [o for o in options if o == "--import-upstream"]
    passes = f"--xetile-to-visa-pipeline=target={target}"
    process = _call(["xegpu_opt", str(file), "--split-input-file", *reading, passes, "-o", os.devnull], seconds)
    return FileResult(file, "lowered") if process.returncode == 0 else _error(file, "refused", process.stderr)


def _call(words: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    command = module_command(f"{_TOOL}.{words[0]}", *words[1:])
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def _error(file: Path, outcome: Outcome, message: str) -> FileResult:
    location = _PLACE.search(message)
    lines = message.strip().splitlines() or ["no message"]
    first = next((line for line in lines if re.search(r"\berror\b", line)), lines[-1])[:240]
    if location is None:
        return FileResult(file, outcome, first, output=message)
    return FileResult(file, outcome, location[4], 0, location[1], int(location[2]), int(location[3] or 0), message)


# Reports for CI: JUnit's XML, and SARIF 2.1.0, whose results CI systems show at the lines of a change.


_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 cannot have, also not by reference."""

_RULES = {
    "wrong": "The program printed something else than its CHECK lines demand.",
    "failed": "A launch of the program failed.",
    "refused": "The program cannot be read or lowered.",
    "slow": "The program did not end in time.",
    "fixed": "The program is listed as a known failure, and does not fail.",
}


def junit(results: Sequence[FileResult]) -> str:
    """The results as XML of JUnit: one suite for each folder, one case for each file; known failures are skipped."""
    root = ElementTree.Element("testsuites")
    folders: dict[str, list[FileResult]] = {}
    for result in results:
        folders.setdefault(str(result.file.parent), []).append(result)
    for folder, folder_results in folders.items():
        bad = [r for r in folder_results if r.outcome not in GOOD]
        numbers: dict[str, object] = {
            "tests": len(folder_results),
            "failures": len(bad),
            "errors": 0,
            "skipped": sum(r.outcome == "known" for r in folder_results),
            "time": f"{sum(r.seconds for r in folder_results):.3f}",
        }
        suite = ElementTree.SubElement(root, "testsuite", {"name": folder, **{k: str(v) for k, v in numbers.items()}})
        for result in folder_results:
            case = ElementTree.SubElement(
                suite, "testcase", classname=folder, name=result.file.name, time=f"{result.seconds:.3f}"
            )
            if result.outcome == "known":
                ElementTree.SubElement(case, "skipped", message=_plain(result.message))
            elif result.outcome not in GOOD:
                failure = ElementTree.SubElement(case, "failure", type=result.outcome, message=_plain(result.message))
                failure.text = _plain(result.output)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _plain(text: str) -> str:
    return _NOT_XML.sub("?", text)


def sarif(results: Sequence[FileResult]) -> str:
    """The bad results as SARIF, each at the place that its error names, or at the start of its file."""
    sarif_results = []
    for result in results:
        if result.outcome not in GOOD:
            file = result.file_of_error or str(result.file)
            where = Position(file, max(result.line, 1), max(result.column, 1))
            _, label, printed = result.output.partition(_PRINTED)
            shown = f"; {label.strip()} {printed[:_SHOWN]!r}" if label else ""
            error = Diagnostic("error", (result.message or _RULES[result.outcome]) + shown, where)
            sarif_results.append(sarif_result(error, result.outcome))
    return sarif_log("xegpu-test", sarif_results, _RULES)


REPORTS = {".xml": junit, ".sarif": sarif}
"""The forms by the suffix of the file."""
