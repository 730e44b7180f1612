"""Diagnostics for other programs: a line of JSON each, or a document of SARIF 2.1.0."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from xegpu_py.ir.diagnostics import Diagnostic, Position

_LEVELS = {"error": "error", "warning": "warning", "remark": "note", "note": "note"}


def json_line(diagnostic: Diagnostic) -> str:
    """A diagnostic as one line of JSON. A line or column that is not known is null."""
    return json.dumps(_record(diagnostic), ensure_ascii=False)


def _record(diagnostic: Diagnostic) -> dict[str, Any]:
    where = diagnostic.position
    return {
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": where.file,
        "line": where.line or None,
        "column": where.column or None,
        "notes": [_record(note) for note in diagnostic.notes],
    }


def sarif_result(diagnostic: Diagnostic, rule: str = "") -> dict[str, Any]:
    """A result of SARIF: the diagnostic at its position, and its notes as related locations."""
    related = [
        {**_location(note.position), "message": {"text": note.message}}
        for outer in diagnostic.notes
        for note in outer.flat()
    ]
    return {
        **({"ruleId": rule} if rule else {}),
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": diagnostic.message},
        "locations": [_location(diagnostic.position)] if diagnostic.position.file else [],
        **({"relatedLocations": related} if related else {}),
    }


def sarif_log(tool: str, results: Sequence[dict[str, Any]], rules: Mapping[str, str] | None = None) -> str:
    """A document of SARIF of a tool's run.

    Args:
        rules: the rules that results name, and a sentence on each.
    """
    described = [{"id": name, "shortDescription": {"text": text}} for name, text in (rules or {}).items()]
    driver = {"name": tool, "version": version("xegpu-py"), **({"rules": described} if described else {})}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": list(results)}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _location(where: Position) -> dict[str, Any]:
    region = {"startLine": where.line, **({"startColumn": where.column} if where.column else {})}
    artifact = {"artifactLocation": {"uri": _uri(where.file)}}
    return {"physicalLocation": {**artifact, **({"region": region} if where.line else {})}}


def _uri(file: str) -> str:
    """The path relative to the working directory if it is below it, as CI systems expect; `<stdin>` is no path."""
    if file.startswith("<"):
        return quote(file)
    path = Path(file).resolve()
    try:
        return quote(path.relative_to(Path.cwd()).as_posix())
    except ValueError:
        return path.as_uri()
