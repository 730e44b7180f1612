"""A reading position in MLIR text, and the tokens that dialect syntax is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Pattern

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)*")
_WORD = re.compile(r"[A-Za-z_][\w$]*(?:\.[\w$]+)*")
_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)(?![\w])")
_DIMENSION = re.compile(r"(\d+|\?)\s*x\s*")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\u201c([^"\u201d\n]*)\u201d')
_SSA = re.compile(r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?")
_SYMBOL = re.compile(r"[!#]?[A-Za-z_][\w$]*(?:\.[\w$]+)*")
_NESTED = re.compile(r'->|"(?:[^"\\\n]|\\.)*"|//[^\n]*|[()\[\]{}<>,]')
_TOKEN = re.compile(r'"[^"\n]*"|' r"%[\w$.#-]*|[!#@^]?[\w$.]+|->|::|\S|$")
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|[ \t\r\n]+')
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class SyntaxFault(Exception):
    """A syntax error in a text: its offset and its message."""

    def __init__(self, offset: int, message: str) -> None:
        self.offset = offset
        self.message = message
        super().__init__(message)


class Cursor:
    """A position in a text. Every reading method skips white space and comments first.

    Attributes:
        text: the whole text.
        pos: offset of the next character.
    """

    def __init__(self, text: str, pos: int = 0) -> None:
        self.text = text
        self.pos = pos

    def skip(self) -> int:
        """The offset of the next token: after white space and comments. The cursor stays where it is."""
        text, pos = self.text, self.pos
        if pos < len(text) and text[pos] > " " and text[pos] != "/":
            return pos
        m = _SPACE.match(text, pos)
        assert m
        return m.end()

    def fault(self, message: str, offset: int | None = None) -> SyntaxFault:
        """A fault at `offset`, by default at the next token."""
        return SyntaxFault(self.skip() if offset is None else offset, message)

    def expected(self, what: str) -> SyntaxFault:
        """The fault of finding another token than `what`."""
        return self.fault(f"expected {what}, but got {self.peek_token()}")

    def peek_token(self) -> str:
        """The next token, quoted, for messages."""
        m = _TOKEN.match(self.text, self.skip())
        return f"'{m[0]}'" if m and m[0] else "end of input"

    def match(self, pattern: Pattern[str]) -> re.Match[str] | None:
        """Consume what `pattern` matches at the next token, if it does."""
        m = pattern.match(self.text, self.skip())
        if m:
            self.pos = m.end()
        return m

    def at_end(self) -> bool:
        """Whether nothing but white space and comments is left."""
        return self.skip() >= len(self.text)

    def at(self, literal: str) -> bool:
        """Whether the next token is `literal`; a word must end where the literal does."""
        start = self.skip()
        if not self.text.startswith(literal, start):
            return False
        end = start + len(literal)
        word = literal[-1].isalnum() or literal[-1] == "_"
        return not (word and end < len(self.text) and (self.text[end].isalnum() or self.text[end] in "_$"))

    def accept(self, literal: str) -> bool:
        """Consume `literal` if it is the next token."""
        if self.at(literal):
            self.pos = self.skip() + len(literal)
            return True
        return False

    def expect(self, literal: str) -> None:
        """Consume `literal`.

        Raises:
            SyntaxFault: if something else comes next.
        """
        if not self.accept(literal):
            raise self.expected(f"'{literal}'")

    def entries(self, closing: str) -> Iterator[int]:
        """The offset of each entry of a list, which commas divide; consumes the commas, and the closing bracket.

        Raises:
            SyntaxFault: if something else follows an entry.
        """
        while not self.at(closing):
            yield self.skip()
            if not self.accept(","):
                break
        self.expect(closing)

    def word(self) -> str | None:
        """A bare identifier, dots included."""
        m = self.match(_WORD)
        return m[0] if m else None

    def integer(self) -> int | None:
        """A decimal or hexadecimal integer."""
        m = self.match(_INTEGER)
        return int(m[0], 16 if "x" in m[0] else 10) if m else None

    def dimensions(self, of: str) -> tuple[int, ...]:
        """A static shape with its `x`, as in `8x16x` before `f32`; `of` names what has the shape, for the message.

        Raises:
            SyntaxFault: if an extent is `?`.
        """
        found = []
        while m := self.match(_DIMENSION):
            if m[1] == "?":
                raise self.fault(f"the shape of {of} must be static", m.start())
            found.append(int(m[1]))
        return tuple(found)

    def string(self) -> str | None:
        """The contents of a string literal."""
        m = self.match(_STRING)
        return None if m is None else (m[1] if m[1] is not None else m[2])

    def ssa(self) -> str | None:
        """The use of an SSA value, such as `%a` or `%a#1`."""
        m = self.match(_SSA)
        return m[0] if m else None

    def balanced(self) -> str:
        """The text from an opening bracket to the one that closes it, both included."""
        start = self.skip()
        stack: list[str] = []
        pos = start
        while True:
            m = _NESTED.search(self.text, pos)
            if not m:
                raise self.fault(f"'{self.text[start]}' is not closed", start)
            pos, token = m.end(), m[0]
            if token in _CLOSING:
                stack.append(_CLOSING[token])
            elif stack and token == stack[-1]:
                stack.pop()
                if not stack:
                    self.pos = pos
                    return self.text[start:pos]
            elif token in ")]}>":
                raise self.fault(f"'{token}' does not close '{self.text[start]}'", m.start())

    def type_text(self) -> str:
        """The text of one type."""
        start = self.skip()
        if self.at("("):
            self.balanced()
            self.expect("->")
            if self.at("("):
                self.balanced()
            else:
                self.type_text()
            return _plain(self.text[start : self.pos])
        if self.at("#"):
            raise self.expected("a type")
        return self.symbol_text("a type")

    def symbol_text(self, what: str = "an attribute") -> str:
        """The text of a name, of an alias, or of a `name<...>`."""
        start = self.skip()
        if not self.match(_SYMBOL):
            raise self.expected(what)
        if self.text.startswith("<", self.pos):
            self.balanced()
        return _plain(self.text[start : self.pos])

    def until(self, stops: str) -> str:
        """The text up to the first of the characters `stops` outside brackets and strings."""
        start = self.skip()
        pos = start
        opened = 0
        while True:
            m = _NESTED.search(self.text, pos)
            if not m:
                raise self.fault(f"expected one of {' '.join(stops)}", len(self.text))
            pos, token = m.end(), m[0]
            if not opened and token in stops:
                self.pos = m.start()
                return _plain(self.text[start : self.pos]).rstrip()
            if token in _CLOSING:
                opened += 1
            elif token in ")]}>":
                opened -= 1
                if opened < 0:
                    raise self.fault(f"unexpected '{token}'", m.start())


def _plain(text: str) -> str:
    """The text on one line and without comments, since a comment would hide the text after it."""
    if "\n" not in text and "//" not in text:
        return text
    return _COMMENT.sub(lambda m: m[1] or " ", text)


def split_list(text: str) -> list[str]:
    """The parts of a list that commas outside brackets and strings divide; no parts in an empty list."""
    parts, start, opened = [], 0, 0
    for m in _NESTED.finditer(text):
        token = m[0]
        if token in _CLOSING:
            opened += 1
        elif token in (")", "]", "}", ">"):
            opened -= 1
        elif token == "," and not opened:
            parts.append(text[start : m.start()].strip())
            start = m.end()
    last = text[start:].strip()
    return [*parts, last] if parts or last else []
