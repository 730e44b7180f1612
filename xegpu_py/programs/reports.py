"""Reports of suites for CI: JUnit's XML, and SARIF 2.1.0, whose results CI systems show at the lines of a change."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from xegpu_py.programs.suite import GOOD, Result

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 cannot have, also not by reference."""

_RULES = {
    "wrong": "The program printed something else than its CHECK lines demand.",
    "failed": "A launch of the program failed.",
    "refused": "The program cannot be read or lowered.",
    "slow": "The program did not end in time.",
    "fixed": "The program is listed as a known failure, and does not fail.",
}


def junit(results: Sequence[Result]) -> str:
    """The results as XML of JUnit: one suite for each folder, one case for each file; known failures are skipped."""
    root = ElementTree.Element("testsuites")
    folders: dict[str, list[Result]] = {}
    for result in results:
        folders.setdefault(str(result.file.parent), []).append(result)
    for folder, found in folders.items():
        bad = [r for r in found if r.outcome not in GOOD]
        numbers: dict[str, object] = {
            "tests": len(found),
            "failures": len(bad),
            "errors": 0,
            "skipped": sum(r.outcome == "known" for r in found),
            "time": f"{sum(r.seconds for r in found):.3f}",
        }
        suite = ElementTree.SubElement(root, "testsuite", {"name": folder, **{k: str(v) for k, v in numbers.items()}})
        for result in found:
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


def sarif(results: Sequence[Result]) -> str:
    """The bad results as SARIF, each at the place that its error names, or at the start of its file."""
    found: list[dict[str, Any]] = []
    for result in results:
        if result.outcome in GOOD:
            continue
        region = {"startLine": max(result.line, 1), "startColumn": max(result.column, 1)}
        place = {"artifactLocation": {"uri": _uri(result.file_of_error or str(result.file))}, "region": region}
        message = {"text": result.message or _RULES[result.outcome]}
        found.append(
            {
                "ruleId": result.outcome,
                "level": "error",
                "message": message,
                "locations": [{"physicalLocation": place}],
            }
        )
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": "xegpu-test", "version": version("xegpu-py"), "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": found}],
    }
    return json.dumps(log, indent=2) + "\n"


def _uri(file: str) -> str:
    """The path relative to the working directory if it is below it, as CI systems expect."""
    path = Path(file).resolve()
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_uri()


REPORTS = {".xml": junit, ".sarif": sarif}
"""The forms by the suffix of the file."""
