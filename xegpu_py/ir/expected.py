"""`-verify-diagnostics`: diagnostics that a source's comments expect, against those that arose.

The comments are MLIR's: `// expected-error @+1 {{text}}`, with `error`, `warning`, `remark` or `note`; `@above`,
`@below`, `@+N`, `@-N` or `@unknown`; a count before the braces; and `-re` where `{{...}}` in the text is a regular
expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from xegpu_py.ir.diagnostics import Diagnostic, Position
from xegpu_py.ir.source import Source

_COMMENT = re.compile(
    r"expected-(?P<severity>error|note|remark|warning)(?P<regex>-re)?\s*"
    r"(?:@(?P<where>above|below|unknown|[+-]\d+)\s*)?(?P<count>\d+\s+)?\{\{(?P<text>.*)\}\}"
)


class _Expectation(Struct, frozen=True):
    severity: str
    line: int | None
    pattern: re.Pattern[str]
    text: str
    position: Position

    def meets(self, d: Diagnostic) -> bool:
        line = d.position.line or None
        return d.severity == self.severity and line == self.line and bool(self.pattern.search(d.message))


def mismatches(source: Source, arose: Sequence[Diagnostic]) -> list[Diagnostic]:
    """An error for each expected diagnostic that did not arise, and for each unexpected diagnostic."""
    pending = _expectations(source)
    out = []
    for d in (flat for diagnostic in arose for flat in diagnostic.flat()):
        met = next((e for e in pending if e.meets(d)), None)
        if met:
            pending.remove(met)
        elif d.severity != "note":
            out.append(Diagnostic("error", f"unexpected {d.severity}: {d.message}", d.position))
    out += [Diagnostic("error", f'expected {e.severity} "{e.text}" was not produced', e.position) for e in pending]
    return out


def _expectations(source: Source) -> list[_Expectation]:
    lines = source.text.split("\n")
    is_expectation = [_COMMENT.search(line) is not None for line in lines]
    out = []
    for i, line in enumerate(lines):
        m = _COMMENT.search(line)
        if not m:
            continue
        target = _target(m["where"], i, is_expectation)
        position = Position(source.name, i + source.first_line, m.start() + 1)
        for _ in range(int(m["count"] or 1)):
            out.append(
                _Expectation(
                    m["severity"],
                    None if target is None else target + source.first_line,
                    _pattern(m["text"], bool(m["regex"])),
                    m["text"],
                    position,
                )
            )
    return out


def _target(where: str | None, line: int, is_expectation: list[bool]) -> int | None:
    """The line that is meant, counted from 0; `above` and `below` pass over lines with expectations."""
    if where is None:
        return line
    if where == "unknown":
        return None
    if where in ("above", "below"):
        step = -1 if where == "above" else 1
        line += step
        while 0 <= line < len(is_expectation) and is_expectation[line]:
            line += step
        return line
    return line + int(where)


def _pattern(text: str, regex: bool) -> re.Pattern[str]:
    if not regex:
        return re.compile(re.escape(text))
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts)))
