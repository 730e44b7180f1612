"""From dialect syntax to MLIR's own: rewrites our ops, types and attributes in a source text to generic form.

Each line stays the line that it was, and `Rewritten` maps positions back, so that what MLIR reports of the rewritten
text is shown at the user's line and column.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xegpu_py.ir.assembly import encode, read_op
from xegpu_py.ir.cursor import Cursor, SyntaxFault
from xegpu_py.ir.definition import Dialect
from xegpu_py.ir.operation import Operation
from xegpu_py.ir.source import Source
from xegpu_py.ir.type_reader import STRING, TypeReader

_NAME = re.compile(r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?")
_WORD = re.compile(r"[%@^!#]?[\w$.-]+|\S")
_MEMO_LINE = 500
"""Longest rest of a line that is looked up as already read: bounds the work on files of one huge line."""


@dataclass(frozen=True)
class Edit:
    """A range of the source that was replaced, and the range of the rewritten text that replaces it."""

    source_start: int
    source_end: int
    start: int
    end: int


@dataclass
class Rewritten:
    """A source in MLIR's own spelling."""

    source: Source
    text: str
    edits: list[Edit]

    def __post_init__(self) -> None:
        self._starts = [e.start for e in self.edits]
        self._lines = Source(self.text, self.source.name)

    def source_offset(self, line: int, column: int) -> int:
        """The source offset of a place in the rewritten text."""
        offset = self._lines.offset(line, column)
        i = bisect_right(self._starts, offset) - 1
        if i < 0:
            return offset
        edit = self.edits[i]
        if offset >= edit.end:
            return offset - edit.end + edit.source_end
        # Inside a replacement the same word in what was replaced is the best answer.
        word = _WORD.match(self.text, offset)
        if word and offset > edit.start:
            found = re.search(rf"(?<![\w$.-]){re.escape(word[0])}(?![\w$-])", self._replaced(edit))
            if found:
                return edit.source_start + found.start()
        return edit.source_start

    def shifted_lines(self) -> frozenset[int]:
        """The lines, from 1, on which columns are not those of the source, or not all of them."""
        lines = self._lines
        return frozenset(
            bisect_right(lines.line_starts, at)
            for e in self.edits
            for at in ((e.end,) if self.text[e.end : e.end + 1] not in ("", "\n") else ())
        )

    def _replaced(self, edit: Edit) -> str:
        return self.source.text[edit.source_start : edit.source_end]


@dataclass
class _Template:
    """An op's generic form, with marks for SSA names, and the text of the line from which it was read."""

    pieces: list[str]
    uses: list[int]

    def fill(self, names: Sequence[str]) -> str:
        out = list(self.pieces)
        for i, use in enumerate(self.uses):
            out[2 * i + 1] = names[use]
        return "".join(out)


class Reader(TypeReader):
    """Reads one source."""

    def __init__(self, source: Source, dialects: Sequence[type[Dialect]]) -> None:
        super().__init__(dialects)
        self.source = source
        self._scan = re.compile(
            rf"(?P<skip>//[^\n]*|{STRING})"
            r"|(?P<alias>[!#][A-Za-z_][\w$]*)\s*=(?!=)"
            rf"|{self._own.pattern}"
            rf"|(?<![\w.$%@^#!-])(?P<dialect>{self._names})\.(?P<op>\w+)"
        )
        self._named = re.compile(rf"[!#]?(?P<owner>{self._names})\.(?P<param>\w+)")
        self._memo: dict[tuple[type[Operation], str], _Template] = {}
        self._out: list[str] = []
        self._length = 0
        self._edits: list[Edit] = []

    def rewrite(self) -> Rewritten:
        """The whole source in MLIR's own spelling.

        Raises:
            DiagnosticError: where the source breaks our syntax.
        """
        try:
            self._range(0, len(self.source.text))
        except SyntaxFault as fault:
            raise self.source.error(fault.offset, fault.message) from None
        return Rewritten(self.source, "".join(self._out), self._edits)

    def _emit(self, text: str) -> None:
        self._out.append(text)
        self._length += len(text)

    def _replace(self, start: int, end: int, text: str) -> None:
        text += "\n" * (self.source.text.count("\n", start, end) - text.count("\n"))
        self._edits.append(Edit(start, end, self._length, self._length + len(text)))
        self._emit(text)

    def _range(self, start: int, end: int) -> None:
        text, done = self.source.text, start
        pos = start
        while m := self._scan.search(text, pos, end):
            pos = m.end()
            if m["skip"]:
                continue
            if m["alias"]:
                cursor = Cursor(text, m.end())
                meaning = cursor.skip()
                raw = self._define(m["alias"], cursor)
                if raw:
                    self._emit(text[done:meaning])
                    self._replace(meaning, cursor.pos, raw)
                    pos = done = cursor.pos
            elif m["sigil"]:
                cursor = Cursor(text, m.start())
                raw = self._parametrized(cursor)
                self._emit(text[done : m.start()])
                self._replace(m.start(), cursor.pos, raw)
                pos = done = cursor.pos
            elif op := self._find_op(m):
                self._emit(text[done : m.start()])
                pos = done = self._op(op, m.start(), m.end())
        self._emit(text[done:end])

    def _find_op(self, m: re.Match[str]) -> type[Operation] | None:
        dialect = self._by_name[m["dialect"]]
        found = dialect.operations.get(m["op"])
        if self._is_attribute_key(m, found is not None):
            return None
        if found is None:
            near = difflib.get_close_matches(m["op"], dialect.operations, 1)
            hint = f"; did you mean '{dialect.name}.{near[0]}'?" if near else ""
            raise SyntaxFault(m.start(), f"unknown operation '{m[0]}'{hint}")
        return found

    def _is_attribute_key(self, m: re.Match[str], is_op: bool) -> bool:
        """Whether this is the name of a discardable attribute. One that stands alone in braces may be an op too."""
        text = self.source.text
        before = text[max(0, m.start() - _MEMO_LINE) : m.start()].rstrip()[-1:]
        after = Cursor(text, m.end())
        ends = ("=", ",") if is_op else ("=", ",", "}")
        return before in ("{", ",") and any(after.at(token) for token in ends)

    def _define(self, name: str, cursor: Cursor) -> str | None:
        """Remember what an alias means; a type or attribute of ours is also read, and given in MLIR's own spelling.

        The alias's sigil says which it is, so that `#m = xegpu.sg_map<...>` and `#a = !xegpu.tdesc_attr<...>` are read.
        """
        m = self._named.match(cursor.text, cursor.skip())
        if m:
            cursor.pos = m.end()
            raw = self._body(cursor, m.start(), name[0], self._by_name[m["owner"]], m["param"])
            self.aliases[name] = raw
            return raw
        try:
            self.aliases[name] = self.read_type(cursor) if name[0] == "!" else self.read_attribute(cursor)
        except SyntaxFault:
            # What is wrong with it is said where it is scanned, or by MLIR.
            self.aliases.pop(name, None)
        return None

    def _op(self, op: type[Operation], start: int, pos: int) -> int:
        """Replace the op whose name ends at `pos`; the offset after it."""
        text = self.source.text
        line_end = text.find("\n", pos, pos + _MEMO_LINE)
        rest = text[pos:line_end] if line_end >= 0 else ""
        if rest and '"' not in rest:
            if "//" in rest:
                rest = rest[: rest.index("//")]
            key = (op, _NAME.sub("%", rest))
            known = self._memo.get(key)
            if known:
                self._replace(start, pos + len(rest), known.fill(_NAME.findall(rest)))
                return pos + len(rest)
        else:
            key = None
        uses: list[str] = []
        cursor = Cursor(text, pos)
        parsed = read_op(op, cursor, self, lambda: _marker(uses))
        before, after = encode(op, parsed)
        template = _template(before + after) if not op.spec.regions else None
        if template:
            self._replace(start, cursor.pos, template.fill(uses))
            if key and cursor.pos <= pos + len(rest) and not text[cursor.pos : pos + len(rest)].strip():
                self._memo[key] = template
            return cursor.pos
        at, prefix = start, _template(before).fill(uses) + " ("
        for name in (r.name for r in op.spec.regions):
            if name not in parsed.regions:
                prefix += "{}, "
                continue
            region_start, region_end = parsed.regions[name]
            self._replace(at, region_start, prefix)
            self._range(region_start, region_end)
            at, prefix = region_end, ", "
        self._replace(at, cursor.pos, prefix.removesuffix(", ") + ")" + after)
        return cursor.pos


def _marker(uses: list[str]) -> Callable[[str], str]:
    uses.clear()

    def mark(name: str) -> str:
        uses.append(name)
        return f"\x00{len(uses) - 1}\x00"

    return mark


def _template(text: str) -> _Template:
    pieces = text.split("\x00")
    return _Template(pieces, [int(p) for p in pieces[1::2]])
