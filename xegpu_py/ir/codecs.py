"""Codecs: how an attribute is represented in Python, in MLIR and in text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from re import Pattern
from types import UnionType
from typing import Annotated, Any, ClassVar, Protocol, Union, get_args, get_origin

from mlir import ir

from xegpu_py.deferred import pattern
from xegpu_py.ir.builtin import ConstraintEmitter

# Attribute codecs: how a value of an attribute stands in Python, in MLIR's own spelling, and in dialect syntax.
#
# `codec_of` finds the codec of a Python annotation: `int`, `bool`, `str`, `tuple[int, ...]`, a registered enum, a class
# with a method `codec` (`Attr` of `xegpu_py.ir.definition`), or that class `| None`, or `Annotated[..., codec]` for one
# that is made where it is used.

TypeText = Annotated[str, "an MLIR type"]
"""An MLIR type as text, such as `bf16`."""


class ParserScope(Protocol):
    """The surroundings of a text that is read: its aliases, and the known dialects."""

    def read_type(self, cursor: Cursor) -> str:
        """One type, in MLIR's own spelling."""

    def read_attribute(self, cursor: Cursor) -> str:
        """One attribute, in MLIR's own spelling."""

    def resolve(self, text: str) -> str:
        """The type or attribute that the alias `text` names; any other text as it is."""


class AttributeCodec:
    """Reads, prints and checks the values of an attribute. This one takes any attribute as its text."""

    summary = "any attribute"

    def read(self, cursor: Cursor, scope: ParserScope) -> Any:
        """Read a value in dialect syntax or in MLIR's own spelling."""
        start = cursor.skip()
        return self._decode_at(scope.read_attribute(cursor), cursor, start)

    def _decode_at(self, raw: str, cursor: Cursor, offset: int) -> Any:
        """The value of a text that stands at `offset`."""
        try:
            return self.decode(raw)
        except ValueError as e:
            raise cursor.fault(str(e), offset) from None

    def starts(self, cursor: Cursor) -> bool:
        """Whether the next token can begin a value."""
        return not any(cursor.at(token) for token in ("%", "{", "}", ":", ","))

    def decode(self, raw: str) -> Any:
        """The Python value of an attribute in MLIR's own spelling.

        Raises:
            ValueError: if it is no such value.
        """
        return raw

    def encode(self, value: Any) -> str:
        """The attribute in MLIR's own spelling."""
        return str(value)

    def to_ir(self, value: Any) -> ir.Attribute:
        """The attribute in the current MLIR context."""
        return ir.Attribute.parse(self.encode(value))

    def write(self, value: Any) -> str:
        """The value in dialect syntax."""
        return self.encode(value)

    def coerce(self, value: Any) -> Any:
        """The value that a builder's argument stands for.

        Raises:
            TypeError: if an argument of this type does not stand for such a value.
            ValueError: if its type fits, but not the value.
        """
        return value

    def irdl(self, emitter: ConstraintEmitter) -> str:
        """Emit the constraint that holds such attributes."""
        return emitter.constraint("irdl.any")

    def _refuse(self, raw: object) -> ValueError:
        return ValueError(f"expected {self.summary}, but got '{raw}'")

    def _checked(self, value: Any, class_: type) -> Any:
        """A builder's argument, if it is of a type."""
        if not isinstance(value, class_):
            raise TypeError(f"expected {self.summary}, but got {value!r}")
        return value


class IntCodec(AttributeCodec):
    """A 64-bit integer."""

    summary = "an integer"
    _RAW = re.compile(r"(-?(?:0x[0-9a-fA-F]+|\d+))(?:\s*:\s*(?:[su]?i\d+|index))?\Z")

    def read(self, cursor: Cursor, scope: ParserScope) -> int:
        value = cursor.integer()
        if value is None:
            raise cursor.expected(self.summary)
        if cursor.accept(":"):
            cursor.type_text()
        return value

    def starts(self, cursor: Cursor) -> bool:
        return cursor.peek_token().strip("'-")[:1].isdigit()

    def decode(self, raw: str) -> int:
        m = self._RAW.match(raw.strip())
        if not m:
            raise self._refuse(raw)
        return int(m[1], 16 if "0x" in m[1] else 10)

    def encode(self, value: int) -> str:
        return f"{value} : i64"

    def write(self, value: int) -> str:
        return str(value)

    def coerce(self, value: Any) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"expected {self.summary}, but got {value!r}")
        return int(value.__index__())

    def irdl(self, emitter: ConstraintEmitter) -> str:
        return emitter.constraint('irdl.base "#builtin.integer"')


class BoolCodec(AttributeCodec):
    """A truth value."""

    summary = "true or false"
    _VALUES = ("false", "true")

    def read(self, cursor: Cursor, scope: ParserScope) -> bool:
        for i, literal in enumerate(self._VALUES):
            if cursor.accept(literal):
                return bool(i)
        raise cursor.expected(self.summary)

    def decode(self, raw: str) -> bool:
        if raw not in self._VALUES:
            raise self._refuse(raw)
        return raw == "true"

    def encode(self, value: bool) -> str:
        return self._VALUES[value]

    def coerce(self, value: Any) -> Any:
        return self._checked(value, bool)

    def irdl(self, emitter: ConstraintEmitter) -> str:
        return emitter.any_of([emitter.constraint(f"irdl.is {v}") for v in self._VALUES])


class UnitCodec(AttributeCodec):
    """A unit attribute, which is there or not: its name alone says so."""

    summary = "no value"

    def read(self, cursor: Cursor, scope: ParserScope) -> bool:
        cursor.expect("unit")
        return True

    def decode(self, raw: str) -> bool:
        if raw != "unit":
            raise self._refuse(raw)
        return True

    def encode(self, value: bool) -> str:
        return "unit"

    def write(self, value: bool) -> str:
        return ""


Unit = Annotated[bool, UnitCodec()]
"""An attribute without a value. On an op it is True, or None if it is absent."""


class StringCodec(AttributeCodec):
    """A string."""

    summary = "a string"
    _ESCAPE = re.compile(rb'\\([0-9a-fA-F]{2}|[nt"\\])')
    _NAMED: ClassVar = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}

    def read(self, cursor: Cursor, scope: ParserScope) -> str:
        value = cursor.string()
        if value is None:
            raise cursor.expected(self.summary)
        return self._unescape(value)

    def _unescape(self, text: str) -> str:
        unescaped = self._ESCAPE.sub(lambda m: self._NAMED.get(m[1]) or bytes([int(m[1], 16)]), text.encode())
        return unescaped.decode("utf-8", "replace")

    def decode(self, raw: str) -> str:
        if not (len(raw) > 1 and raw[0] == raw[-1] == '"'):
            raise self._refuse(raw)
        return self._unescape(raw[1:-1])

    def encode(self, value: str) -> str:
        return f'"{"".join(self._escaped(b) for b in value.encode())}"'

    @staticmethod
    def _escaped(byte: int) -> str:
        """A byte of a string, as MLIR prints it."""
        char = chr(byte)
        return "\\\\" if char == "\\" else char if 32 <= byte < 127 and char != '"' else f"\\{byte:02X}"

    def coerce(self, value: Any) -> Any:
        return self._checked(value, str)

    def irdl(self, emitter: ConstraintEmitter) -> str:
        return emitter.constraint('irdl.base "#builtin.string"')


class _OneOf(AttributeCodec):
    """One of some values of the codec that a subclass also derives from."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)
        self.summary = f"one of {', '.join(map(str, values))}"

    def decode(self, raw: str) -> Any:
        value = super().decode(raw)
        if value not in self.values:
            raise self._refuse(value)
        return value

    def coerce(self, value: Any) -> Any:
        coerced = super().coerce(value)
        if coerced not in self.values:
            raise ValueError(f"expected {self.summary}, but got {value!r}")
        return coerced

    def irdl(self, emitter: ConstraintEmitter) -> str:
        if not emitter.words:
            return super().irdl(emitter)
        return emitter.any_of([emitter.constraint(f"irdl.is {self.encode(v)}") for v in self.values])


class NumberCodec(_OneOf, IntCodec):
    """A 64-bit integer that is one of some numbers."""


class WordCodec(_OneOf, StringCodec):
    """A string that is one of some words, and stands without quotes in dialect syntax."""

    def read(self, cursor: Cursor, scope: ParserScope) -> Any:
        start = cursor.skip()
        keyword = cursor.string() or cursor.word()
        if keyword not in self.values:
            cursor.pos = start
            raise cursor.expected(self.summary)
        return keyword

    def write(self, value: str) -> str:
        return value


class IntArrayCodec(AttributeCodec):
    """A list of 64-bit integers."""

    summary = "a list of integers"
    _RAW = re.compile(r"(?:array<i64(?::(.*))?>|\[(.*)\])\Z", re.DOTALL)

    def read(self, cursor: Cursor, scope: ParserScope) -> tuple[int, ...]:
        start = cursor.skip()
        if cursor.at("["):
            raw = cursor.balanced()
        elif cursor.at("array"):
            raw = cursor.type_text()
        else:
            raise cursor.expected(f"{self.summary} in brackets")
        return self._decode_at(raw, cursor, start)

    def decode(self, raw: str) -> tuple[int, ...]:
        m = self._RAW.match(raw.strip())
        if not m:
            raise self._refuse(raw)
        items = (m[1] or m[2] or "").strip()
        if not items:
            return ()
        try:
            return tuple(map(int, items.split(",")))
        except ValueError:
            return tuple(IntCodec().decode(item.strip()) for item in items.split(","))

    def encode(self, value: tuple[int, ...]) -> str:
        return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"

    def to_ir(self, value: tuple[int, ...]) -> ir.Attribute:
        return ir.DenseI64ArrayAttr.get(list(value))

    def write(self, value: tuple[int, ...]) -> str:
        return f"[{', '.join(map(str, value))}]"

    def coerce(self, value: Any) -> tuple[int, ...]:
        try:
            return tuple(IntCodec().coerce(item) for item in value)
        except TypeError:
            raise TypeError(f"expected {self.summary}, but got {value!r}") from None

    def irdl(self, emitter: ConstraintEmitter) -> str:
        return emitter.constraint('irdl.base "#builtin.dense_array"')


class TypeCodec(AttributeCodec):
    """A type, held as its text."""

    summary = "a type"

    def read(self, cursor: Cursor, scope: ParserScope) -> TypeText:
        return scope.read_type(cursor)

    def coerce(self, value: Any) -> TypeText:
        return str(value)


class IntEnumCodec(IntCodec):
    """A case of an upstream enum that MLIR holds as a 64-bit integer."""

    def __init__(self, enum_class: type[Enum]) -> None:
        self.cases = enum_class
        self.summary = f"one of {', '.join(sorted(c.name for c in enum_class))}"

    def starts(self, cursor: Cursor) -> bool:
        return AttributeCodec.starts(self, cursor)

    def read(self, cursor: Cursor, scope: ParserScope) -> Any:
        start = cursor.skip()
        number = cursor.integer()
        if number is not None:
            if cursor.accept(":"):
                cursor.type_text()
            return self._case(lambda: self.cases(number), number, cursor, start)
        keyword = cursor.string() or cursor.word()
        return self._case(lambda: self.cases[keyword or ""], keyword, cursor, start)

    def _case(self, find: Callable[[], Any], case_value: object, cursor: Cursor, offset: int) -> Any:
        try:
            return find()
        except (KeyError, ValueError):
            token_text = cursor.peek_token() if case_value is None else f"'{case_value}'"
            raise cursor.fault(f"expected {self.summary}, but got {token_text}", offset) from None

    def decode(self, raw: str) -> Any:
        number = super().decode(raw)
        try:
            return self.cases(number)
        except ValueError:
            raise self._refuse(raw) from None

    def encode(self, value: Any) -> str:
        return super().encode(value.value)

    def write(self, value: Any) -> str:
        return str(value.name)

    def coerce(self, value: Any) -> Any:
        try:
            return self.cases[value] if isinstance(value, str) else self.cases(int(value))
        except (KeyError, ValueError, TypeError):
            raise ValueError(f"expected {self.summary}, but got {value!r}") from None


_CODECS: dict[Any, AttributeCodec] = {
    int: IntCodec(),
    bool: BoolCodec(),
    str: StringCodec(),
    tuple[int, ...]: IntArrayCodec(),
    TypeText: TypeCodec(),
    Any: AttributeCodec(),
}


def codec_of(annotation: Any) -> AttributeCodec:
    """The codec of the values that a Python annotation speaks of.

    Raises:
        TypeError: if there is none.
    """
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, AttributeCodec):
            return mark
    if get_origin(annotation) in (UnionType, Union):
        cls = next(a for a in get_args(annotation) if a is not type(None))
        return _codec_of_class(cls, optional=True)
    try:
        return _CODECS[annotation]
    except KeyError:
        return _codec_of_class(annotation, optional=False)


def _codec_of_class(cls: Any, optional: bool) -> AttributeCodec:
    if not hasattr(cls, "codec"):
        raise TypeError(f"no attribute codec stands for {cls!r}")
    return cls.codec(optional)


def register_codec(enum_class: type[Enum], codec: AttributeCodec) -> None:
    """Let an enum stand for its cases in annotations."""
    _CODECS[enum_class] = codec


def register_int_enum(enum_class: type[Enum]) -> None:
    """Let an upstream enum, which MLIR holds as an integer, be an attribute of ops."""
    register_codec(enum_class, IntEnumCodec(enum_class))


# A reading position in MLIR text, and the tokens that dialect syntax is made of.

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)*")

_WORD = re.compile(r"[A-Za-z_][\w$]*(?:\.[\w$]+)*")

_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)(?![\w])")

_DIMENSION = re.compile(r"(\d+|\?)\s*x\s*")

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\u201c([^"\u201d\n]*)\u201d')

_SSA = re.compile(r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?")

_SYMBOL = re.compile(r"[!#]?[A-Za-z_][\w$]*(?:\.[\w$]+)*")

_NESTED = re.compile(r'->|"(?:[^"\\\n]|\\.)*"|//[^\n]*|[()\[\]{}<>,]')

_TOKEN = pattern(r'"[^"\n]*"|' r"%[\w$.#-]*|[!#@^]?[\w$.]+|->|::|\S|$")

_COMMENT = pattern(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|[ \t\r\n]+')

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
        token_end = start + len(literal)
        is_word = literal[-1].isalnum() or literal[-1] == "_"
        return not (
            is_word and token_end < len(self.text) and (self.text[token_end].isalnum() or self.text[token_end] in "_$")
        )

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
        sizes = []
        while m := self.match(_DIMENSION):
            if m[1] == "?":
                raise self.fault(f"the shape of {of} must be static", m.start())
            sizes.append(int(m[1]))
        return tuple(sizes)

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

    def symbol_text(self, symbol_kind: str = "an attribute") -> str:
        """The text of a name, of an alias, or of a `name<...>`."""
        start = self.skip()
        if not self.match(_SYMBOL):
            raise self.expected(symbol_kind)
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
    items, start, opened = [], 0, 0
    for m in _NESTED.finditer(text):
        token = m[0]
        if token in _CLOSING:
            opened += 1
        elif token in (")", "]", "}", ">"):
            opened -= 1
        elif token == "," and not opened:
            items.append(text[start : m.start()].strip())
            start = m.end()
    last_item = text[start:].strip()
    return [*items, last_item] if items or last_item else []
