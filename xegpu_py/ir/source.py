"""Source text: positions, lines, and the limits under which MLIR's parser is safe."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position

MAX_NESTING = 256
"""Deepest bracket nesting that is read. MLIR's parser and passes recurse, and overflow the stack at a few thousand."""

MAX_DIGITS = 1000
"""Most digits of a number that is read. Python refuses to convert a few thousand."""

MAX_ALIAS = 1_000_000
"""Most characters of an alias whose own aliases are written out. Each can double the one before it."""

_LONG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")
_ZEROS = str.maketrans("123456789", "0" * 9)
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}<>"))
_OPAQUE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
_ARRAY_OF_INDICES = re.compile(r"(?<![\w.$!#@%])array\s*<\s*(?:index\b|!)")
_ALIAS = re.compile(r"^[ \t]*([#!][A-Za-z_][\w$.-]*)[ \t]*=", re.MULTILINE)
_ALIAS_USE = re.compile(r"[#!][A-Za-z_][\w$.-]*")
_SEPARATOR = re.compile(r"^[ \t]*// -----[^\n]*(?:\n|\Z)", re.MULTILINE)
_DEPTH_STEP = np.zeros(256, np.int8)
_DEPTH_STEP[[ord(c) for c in "([{<"]] = 1
_DEPTH_STEP[[ord(c) for c in ")]}>"]] = -1


class Source(Struct, frozen=True, dict=True):
    """A piece of a text file: its text, the file's name, and the file's line on which the piece starts."""

    text: str
    name: str
    first_line: int = 1

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line."""
        return [0, *(m.end() for m in re.finditer("\n", self.text))]

    def position(self, offset: int) -> Position:
        """The file position of the character at `offset`."""
        line = bisect_right(self.line_starts, offset) - 1
        return Position(self.name, line + self.first_line, offset - self.line_starts[line] + 1)

    def offset(self, line: int, column: int) -> int:
        """The offset of column `column` (from 1) of line `line` of this piece (from 1)."""
        if not 1 <= line <= len(self.line_starts):
            return len(self.text)
        return min(self.line_starts[line - 1] + max(column, 1) - 1, len(self.text))

    def line_of(self, offset: int) -> int:
        """The line of this piece (from 1) of the character at `offset`."""
        return bisect_right(self.line_starts, offset)

    def line(self, number: int) -> str | None:
        """The text of the file's line `number`, None where the piece does not hold it."""
        index = number - self.first_line
        if not 0 <= index < len(self.line_starts):
            return None
        start = self.line_starts[index]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)]

    def error(self, offset: int, message: str, *notes: str) -> DiagnosticError:
        """A located error, to be raised by the caller."""
        where = self.position(offset)
        attached = tuple(Diagnostic("note", note, where) for note in notes)
        return DiagnosticError([Diagnostic("error", message, where, attached)], [self])

    def split(self) -> Iterator[Source]:
        """The pieces between `// -----` lines, as mlir-opt's --split-input-file makes them."""
        start = 0
        for m in _SEPARATOR.finditer(self.text):
            yield self._piece(start, m.start())
            start = m.end()
        yield self._piece(start, len(self.text))

    def _piece(self, start: int, end: int) -> Source:
        return Source(self.text[start:end], self.name, self.first_line + self.text.count("\n", 0, start))

    def check_nesting(self) -> None:
        """Refuse text nested deeper than `MAX_NESTING`.

        Raises:
            DiagnosticError: at the first bracket that is too deep.
        """
        brackets = self.text.encode("latin-1", "replace").replace(b"->", b"").translate(None, _NO_BRACKETS)
        if _depths(np.frombuffer(brackets, np.uint8)).max(initial=0) <= MAX_NESTING:
            return
        # One byte a character, so that an index into the result is an offset into the text.
        depths = _depths(np.frombuffer(self._bare.replace("->", "  ").encode("latin-1", "replace"), np.uint8))
        if depths.max(initial=0) > MAX_NESTING:
            offset = int(np.argmax(depths > MAX_NESTING))
            raise self.error(offset, f"brackets are nested deeper than {MAX_NESTING}")

    def check_numbers(self) -> None:
        """Refuse numbers of more than `MAX_DIGITS` digits.

        Raises:
            DiagnosticError: at the first one.
        """
        if "0" * (MAX_DIGITS + 1) not in self.text.translate(_ZEROS):
            return
        found = _LONG_NUMBER.search(self._bare)
        if found:
            raise self.error(found.start(), f"number must not have more than {MAX_DIGITS} digits")

    def check_arrays(self) -> None:
        """Refuse `array<index: 1>`, on which MLIR 22 ends the process, and aliases as types of such elements.

        Raises:
            DiagnosticError: at the first one.
        """
        found = "array" in self.text and _ARRAY_OF_INDICES.search(self._bare)
        if found:
            note = "write array<i64: ...>, or another type out, not as an alias"
            raise self.error(found.start(), "elements of 'array' must be integers or floats of known width", note)

    def check_aliases(self) -> None:
        """Refuse aliases that are longer than `MAX_ALIAS` with all aliases in them written out.

        Raises:
            DiagnosticError: at the first one.
        """
        sizes: dict[str, int] = {}
        for m in _ALIAS.finditer(self.text):
            end, depth = m.end(), 0
            while end < len(self.text):
                start, end = end, (self.text.find("\n", end) + 1 or len(self.text))
                line = self.text[start:end].replace("->", "")
                depth += sum(map(line.count, "([{<")) - sum(map(line.count, ")]}>"))
                if depth <= 0:
                    break
            body = self.text[m.end() : end]
            sizes[m[1]] = len(body) + sum(sizes.get(name, 0) for name in _ALIAS_USE.findall(body))
            if sizes[m[1]] > MAX_ALIAS:
                raise self.error(m.start(1), f"alias '{m[1]}' has more than {MAX_ALIAS} characters when written out")

    @property
    def _bare(self) -> str:
        """The text with blanks for comments and strings."""
        return _OPAQUE.sub(lambda m: " " * len(m[0]), self.text)


def _depths(codes: np.ndarray) -> np.ndarray:
    """The bracket depth of each character."""
    steps = _DEPTH_STEP[codes]
    depths = np.cumsum(steps, dtype=np.int32)
    # Closing brackets that close nothing must not hide depth that follows them.
    return depths - np.minimum.accumulate(np.minimum(depths, 0))


def decode_utf8(data: bytes, name: str) -> Source:
    """The source held by the bytes of a file.

    Raises:
        DiagnosticError: at the first byte that is not UTF-8, or at a NUL.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        before = Source(data[: e.start].decode("utf-8"), name)
        raise before.error(len(before.text), f"byte 0x{data[e.start]:02x} is not valid UTF-8") from None
    source = Source(text, name)
    nul = text.find("\0")
    if nul >= 0:
        raise source.error(nul, "unexpected NUL character")
    return source
