"""Types and attributes of dialect syntax, read into MLIR's own spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache

from mlir import ir

from xegpu_py.ir.cursor import Cursor, SyntaxFault
from xegpu_py.ir.definition import Dialect, met

STRING = r'"(?:[^"\\\n]|\\.)*"'
"""A regular expression of a string literal."""


class TypeReader:
    """Reads types and attributes. It is a `Scope`: it knows the aliases defined so far and the dialects.

    Each text is read once.
    """

    def __init__(self, dialects: Sequence[type[Dialect]]) -> None:
        self.dialects = dialects
        self.aliases: dict[str, str] = {}
        self._by_name = {s: d for d in dialects for s in (d.name, *d.spellings)}
        self._names = "|".join(map(re.escape, self._by_name))
        self._own = re.compile(rf"(?P<sigil>[!#])(?P<owner>{self._names})\.(?P<param>\w+)")
        self._own_or_opaque = re.compile(rf"//[^\n]*|{STRING}|{self._own.pattern}")
        self._types: dict[str, str] = {}

    def resolve(self, text: str) -> str:
        """The type or attribute that the alias `text` names; any other text as it is."""
        for _ in range(len(self.aliases) + 1):
            if text not in self.aliases:
                break
            text = self.aliases[text]
        return text

    def read_type(self, cursor: Cursor) -> str:
        """One type in MLIR's own spelling. A type of ours may stand without its dialect's name."""
        start = cursor.skip()
        if cursor.at("!"):
            if self._owner(cursor):
                return self._parametrized(cursor)
            return cursor.type_text()
        word = cursor.word() or ""
        cursor.pos = start
        for dialect in self.dialects:
            if word in dialect.types:
                return self._parametrized(cursor, dialect)
        return self._builtin(cursor.type_text(), start)

    def _builtin(self, text: str, offset: int) -> str:
        known = self._types.get(text)
        if known is None:
            known = text
            for dialect in self.dialects:
                for name, meant in dialect.type_names.items():
                    if name in known:
                        known = re.sub(rf"(?:(?<![\w!#%$.])|(?<=\dx)|(?<=\d\sx\s)){name}\b", meant, known)
            known = self._types[text] = self._nested(known, offset)
        return known

    def _nested(self, text: str, offset: int) -> str:
        """A text of MLIR's own, read at `offset`, in which types and attributes of ours may stand."""
        if not any(name in text for name in self._by_name):
            return text
        out, done = [], 0
        pos = 0
        while m := self._own_or_opaque.search(text, pos):
            pos = m.end()
            if m["sigil"]:
                cursor = Cursor(text, m.start())
                try:
                    raw = self._parametrized(cursor)
                except SyntaxFault as fault:
                    raise SyntaxFault(offset + fault.offset, fault.message) from None
                out += [text[done : m.start()], raw]
                pos = done = cursor.pos
        return "".join([*out, text[done:]])

    def read_attribute(self, cursor: Cursor) -> str:
        """One attribute in MLIR's own spelling."""
        start = cursor.skip()
        if cursor.at("#"):
            if self._owner(cursor):
                return self._parametrized(cursor)
            return self._nested(cursor.symbol_text(), start)
        text = cursor.until(",}>])") if not cursor.at_end() else ""
        if not text:
            raise cursor.expected("an attribute")
        return self._nested(text, start)

    def _owner(self, cursor: Cursor) -> re.Match[str] | None:
        return self._own.match(cursor.text, cursor.skip())

    def _parametrized(self, cursor: Cursor, bare: type[Dialect] | None = None) -> str:
        """A type or attribute of ours at the cursor, in MLIR's own spelling."""
        start = cursor.skip()
        if bare:
            name, dialect, sigil = cursor.word() or "", bare, "!"
        else:
            m = self._owner(cursor)
            assert m
            cursor.pos = m.end()
            name, dialect, sigil = m["param"], self._by_name[m["owner"]], m["sigil"]
        return self._body(cursor, start, sigil, dialect, name)

    def _body(self, cursor: Cursor, start: int, sigil: str, dialect: type[Dialect], name: str) -> str:
        """Read what follows the name of a type or attribute of ours; the whole in MLIR's own spelling."""
        body_start = cursor.pos
        body = _bracketed(cursor)
        known = self._types.get(sigil + name + body)
        if known is None:
            cursor.pos = body_start
            known = self._types[sigil + name + body] = self._read_parametrized(cursor, start, dialect, sigil, name)
        return known

    def _read_parametrized(self, cursor: Cursor, start: int, dialect: type[Dialect], sigil: str, name: str) -> str:
        enum = dialect.enums.get(name, dialect.borrowed.get(name)) if sigil == "#" else None
        if enum:
            cursor.expect("<")
            case = enum.read(cursor, self)
            cursor.expect(">")
            return enum.encode(case)
        if sigil == "#" and name in dialect.shorthands:
            return dialect.shorthands[name].encode()
        table = dialect.types if sigil == "!" else dialect.attributes
        cls = table.get(name)
        if cls is None:
            what, known = ("type", [*table]) if sigil == "!" else ("attribute", [*table, *dialect.enums])
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean '{sigil}{dialect.name}.{near[0]}'?" if near else ""
            raise SyntaxFault(start, f"unknown {what} '{sigil}{dialect.name}.{name}'{hint}")
        return str(cls.read_body(cursor, self).encode())


def _bracketed(cursor: Cursor) -> str:
    """The `<...>` at the cursor, consumed; empty where there is none, or none that ends."""
    if not cursor.text.startswith("<", cursor.pos):
        return ""
    try:
        return cursor.balanced()
    except SyntaxFault:
        return ""


@lru_cache(maxsize=16)
def _type_reader(dialects: tuple[type[Dialect], ...]) -> TypeReader:
    return TypeReader(dialects)


def parse_type(text: str) -> ir.Type:
    """The type of this text, in dialect syntax or in MLIR's own spelling, in the current context.

    Raises:
        ValueError: if it is not a type.
    """
    cursor = Cursor(met(text))
    try:
        raw = _type_reader(getattr(ir.Context.current, "own", ())).read_type(cursor)
        if not cursor.at_end():
            raise cursor.expected("the end of the type")
        return ir.Type.parse(raw)
    except SyntaxFault as fault:
        raise ValueError(f"type '{text}': {fault.message}") from None
    except ir.MLIRError as e:
        raise ValueError(f"type '{text}': {e.error_diagnostics[0].message}") from None
