"""Source text with our ops, types and attributes in the form in which they are printed, and lines indented by nesting.

Comments, SSA names, blank lines and everything of other dialects stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from xegpu_py.ir.assembly import formats_of, read_op
from xegpu_py.ir.cursor import Cursor, SyntaxFault
from xegpu_py.ir.definition import Dialect
from xegpu_py.ir.generic import read_generic
from xegpu_py.ir.operation import Operation
from xegpu_py.ir.printer import Printer
from xegpu_py.ir.reader import Reader
from xegpu_py.ir.source import Source

INDENT = 2
"""Spaces of a level, as MLIR prints."""

_ALIAS = re.compile(r"[#!][A-Za-z_][\w$]*(?![\w$.])")
_TYPES = re.compile(r":(?!:)")
_HEADER = re.compile(r"->|(?:attributes|iter_args|kernel|private|step|to|workgroup)\b")
"""The beginning of lines that continue an op: its types, or the header of its regions."""
_BRACKETS = re.compile(r"//.*|\"(?:[^\"\\]|\\.)*\"|->|[(){}\[\]]")


class _Formatter(Reader):
    """Reads a source as `Reader` does, and writes it in dialect syntax."""

    def __init__(self, source: Source, dialects: Sequence[type[Dialect]]) -> None:
        super().__init__(source, dialects)
        self._write = Printer(dialects).write

    def _replace(self, start: int, end: int, text: str) -> None:
        self._emit(self._spelled(self._write(text), start, end))

    def _op(self, op: type[Operation], start: int, pos: int, generic: bool = False) -> int:
        text = self.source.text
        if op.spec.regions:
            self._emit(text[start:pos])
            return pos
        cursor = Cursor(text, pos)
        parsed = read_generic(op, cursor, self, str) if generic else read_op(op, cursor, self, _names)
        if "//" in text[start : cursor.pos]:
            self._emit(text[start : cursor.pos])
            return cursor.pos
        for name, types in parsed.types.items():
            parsed.types[name] = [self._write(t) for t in types]
        parsed.extra = [(name, None if value is None else self._write(value)) for name, value in parsed.extra]
        written = op.OPERATION_NAME + formats_of(op)[0].write(op, parsed, False)
        if "\n" in text[start : cursor.pos]:
            # A text of several lines stays one, with its types on the last.
            written = "\n: ".join(_split_types(written))
        self._emit(self._spelled(written, start, cursor.pos))
        return cursor.pos

    def _spelled(self, written: str, start: int, end: int) -> str:
        """A text with the aliases that the source has there."""
        for alias in set(_ALIAS.findall(self.source.text, start, end)):
            if alias in self.aliases:
                written = written.replace(self._write(self.resolve(alias)), alias)
        return written


def _split_types(written: str) -> tuple[str, ...]:
    """An op's text before and after the colon before its types."""
    depth = 0
    for i, c in enumerate(written):
        depth += (c in "([{<") - (c in ")]}>" and written[i - 1 : i + 1] != "->")
        if not depth and written.startswith(" : ", i):
            return written[:i], written[i + 3 :]
    return (written,)


def _names() -> Callable[[str], str]:
    return str


def formatted(source: Source, dialects: Sequence[type[Dialect]]) -> str:
    """The text of a source, formatted.

    Raises:
        DiagnosticError: where the source breaks our syntax.
    """
    try:
        return _indented(_Formatter(source, dialects).rewrite().text)
    except SyntaxFault as fault:
        raise source.error(fault.offset, fault.message) from None


def _indented(text: str) -> str:
    """Lines indented by the braces that are open; those within other brackets begin under what follows the bracket."""
    out: list[str] = []
    stack: list[tuple[str, int]] = []  # Open brackets, with the columns of what follows them.
    for line in text.split("\n"):
        bare = line.strip()
        closing = len(bare) - len(bare.lstrip("})]"))
        outer = stack[: max(0, len(stack) - closing)]
        level = sum(bracket == "{" for bracket, _ in outer) - bare.startswith("^")
        level += 1 if _TYPES.match(bare) else 2 if _HEADER.match(bare) else 0
        column = INDENT * max(level, 0)
        if outer and outer[-1][0] != "{" and not closing:
            column = outer[-1][1]
        out.append(" " * column + bare if bare else "")
        for m in _BRACKETS.finditer(bare):
            if m[0] in ("(", "{", "["):
                stack.append((m[0], column + m.end()))
            elif m[0] in (")", "}", "]") and stack:
                stack.pop()
    return "\n".join(out)
