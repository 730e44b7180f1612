"""Diagnostics: places in a text, how a mistake is reported, and which ones a test expects."""

from __future__ import annotations

import linecache
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol

import numpy as np
from mlir import ir
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from xegpu_py.deferred import pattern
from xegpu_py.ir.bindings import narrowed

if TYPE_CHECKING:
    import mmap

# Source text: positions, lines, and the limits under which MLIR's parser is safe.

MAX_NESTING = 256
"""Deepest bracket nesting that is read. MLIR's parser and passes recurse, and overflow the stack at a few thousand."""

MAX_DIGITS = 1000
"""Most digits of a number that is read. Python refuses to convert a few thousand."""

MAX_ALIAS = 1_000_000
"""Most characters of an alias whose own aliases are written out. Each can double the one before it."""

_LONG_NUMBER = pattern(rf"\d{{{MAX_DIGITS + 1}}}")

_ZEROS = str.maketrans("123456789", "0" * 9)

_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}<>"))

_OPAQUE = pattern(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')

_ARRAY_OF_INDICES = pattern(r"(?<![\w.$!#@%])array\s*<\s*(?:index\b|!)")

_TRANSFORM = pattern(r"(?<![\w.$@%^-])transform\.\w")

_ALIAS = re.compile(r"^[ \t]*([#!][A-Za-z_][\w$.-]*)[ \t]*=", re.MULTILINE)

_ALIAS_USE = pattern(r"[#!][A-Za-z_][\w$.-]*")

SEPARATOR = "// -----"
"""The default marker: the beginning of a line between two pieces of a file."""

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
        line_end = self.text.find("\n", start)
        return self.text[start : line_end if line_end >= 0 else len(self.text)]

    def error(self, offset: int, message: str, *notes: str) -> DiagnosticError:
        """A located error, to be raised by the caller."""
        where = self.position(offset)
        attached = tuple(Diagnostic("note", note, where) for note in notes)
        return DiagnosticError([Diagnostic("error", message, where, attached)], [self])

    def split(self, marker: str = SEPARATOR) -> Iterator[Source]:
        """The pieces between lines that begin with a marker, as mlir-opt's --split-input-file makes them."""
        start = 0
        for m in re.finditer(rf"^[ \t]*{re.escape(marker)}[^\n]*(?:\n|\Z)", self.text, re.MULTILINE):
            yield self._piece(start, m.start())
            start = m.end()
        yield self._piece(start, len(self.text))

    def _piece(self, start: int, line_end: int) -> Source:
        return Source(self.text[start:line_end], self.name, self.first_line + self.text.count("\n", 0, start))

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
        match = _LONG_NUMBER.search(self._bare)
        if match:
            raise self.error(match.start(), f"number must not have more than {MAX_DIGITS} digits")

    def check_arrays(self) -> None:
        """Refuse `array<index: 1>`, on which MLIR 22 ends the process, and aliases as types of such elements.

        Raises:
            DiagnosticError: at the first one.
        """
        match = "array" in self.text and _ARRAY_OF_INDICES.search(self._bare)
        if match:
            note = "write array<i64: ...>, or another type out, not as an alias"
            raise self.error(match.start(), "elements of 'array' must be integers or floats of known width", note)

    def check_dialects(self) -> None:
        """Refuse MLIR's dialect `transform`: it loads upstream's C++ `xegpu`, whose name ours has, and MLIR aborts.

        Raises:
            DiagnosticError: at its first op, type or attribute.
        """
        if "transform." not in self.text:
            return

        def shown(m: re.Match[str]) -> str:
            is_op = m[0].startswith('"transform.') and self.text.startswith("(", m.end())
            is_op = is_op and not self.text.startswith("@", m.start() - 1)
            return m[0] if is_op else " " * len(m[0])

        match = _TRANSFORM.search(_OPAQUE.sub(shown, self.text))
        if match:
            note = "apply its sequences first: mlir-opt --transform-interpreter"
            raise self.error(match.start(), "dialect 'transform' cannot be read beside 'xegpu'", note)

    def check_aliases(self) -> None:
        """Refuse aliases that are longer than `MAX_ALIAS` with all aliases in them written out.

        Raises:
            DiagnosticError: at the first one.
        """
        sizes: dict[str, int] = {}
        for m in _ALIAS.finditer(self.text):
            alias_end, depth = m.end(), 0
            while alias_end < len(self.text):
                start, alias_end = alias_end, (self.text.find("\n", alias_end) + 1 or len(self.text))
                line = self.text[start:alias_end].replace("->", "")
                depth += sum(map(line.count, "([{<")) - sum(map(line.count, ")]}>"))
                if depth <= 0:
                    break
            body = self.text[m.end() : alias_end]
            sizes[m[1]] = len(body) + sum(sizes.get(name, 0) for name in _ALIAS_USE.findall(body))
            if sizes[m[1]] > MAX_ALIAS:
                raise self.error(m.start(1), f"alias '{m[1]}' has more than {MAX_ALIAS} characters when written out")

    @property
    def _bare(self) -> str:
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
        prefix = Source(data[: e.start].decode("utf-8"), name)
        raise prefix.error(len(prefix.text), f"byte 0x{data[e.start]:02x} is not valid UTF-8") from None
    source = Source(text, name)
    nul = text.find("\0")
    if nul >= 0:
        raise source.error(nul, "unexpected NUL character")
    return source


# Diagnostics in MLIR's form: `file:line:col: severity: message`, the source line, and a caret.

Severity = Literal["error", "warning", "remark", "note"]

_SHOWN_COLUMNS = 200

_BOLD, _CARET = "1", "1;32"

_COLORS: dict[Severity, str] = {"error": "1;31", "warning": "1;35", "remark": "1;34", "note": "1;36"}
"""Parameters of the escape sequence "select graphic rendition" (ECMA-48, 8.3.117)."""


class Position(Struct, frozen=True):
    """A place in a file; line and column count from 1, and a line or column of 0 means that it is not known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join(map(str, filter(None, (self.file, self.line, self.line and self.column))))


_step: mmap.mmap | None = None


def watch_steps(memory: mmap.mmap) -> None:
    """Write each step of MLIR into memory that another process reads if MLIR ends this one."""
    global _step
    _step = memory


def enter(step: str, where: Position) -> None:
    """Note the next step of MLIR; see `watch_steps`."""
    if _step is not None:
        text = f"{where}: error: {step} ended the process".encode()[: len(_step)]
        _step[:] = text.ljust(len(_step), b"\0")


class Lines(Protocol):
    """A text whose lines can be shown."""

    @property
    def name(self) -> str: ...

    def line(self, number: int) -> str | None: ...


_NAMESPACES: dict[str, str] = {}


def name_in_texts(dialect: str, namespace: str) -> None:
    """Let texts and diagnostics name a dialect of the IR by another namespace."""
    _NAMESPACES[dialect] = namespace


def spelled(text: str) -> str:
    """A text with the dialects' names as users spell them."""
    for dialect, namespace in _NAMESPACES.items():
        if dialect in text:
            text = text.replace(dialect, namespace)
    return text


def sources_of(positions: Iterable[Position]) -> list[Lines]:
    """The texts of the files of positions, of Python as it was executed."""
    files = dict.fromkeys(position.file for position in positions)
    return [Source("".join(linecache.getlines(file)), file) for file in files]


class Diagnostic(Struct, frozen=True):
    """One message with its position and the notes attached to it."""

    severity: Severity
    message: str
    position: Position
    notes: tuple[Diagnostic, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "message", spelled(self.message))

    def flat(self) -> Iterable[Diagnostic]:
        """This diagnostic, then its notes."""
        yield self
        for note in self.notes:
            yield from note.flat()

    def render(self, sources: Sequence[Lines] = (), color: bool = False) -> str:
        """The text to show, with source lines and carets where `sources` hold the position's line.

        With `color` it has the terminal's escape sequences, in the colours of LLVM's tools.
        """

        def paint(text: str, parameters: str) -> str:
            return f"\x1b[{parameters}m{text}\x1b[0m" if color else text

        out = []
        for d in self.flat():
            message = d.message if d.severity == "note" else paint(d.message, _BOLD)
            out.append(f"{paint(f'{d.position}:', _BOLD)} {paint(f'{d.severity}:', _COLORS[d.severity])} {message}")
            line = _find_line(d.position, sources)
            if line is not None:
                excerpt, caret = _excerpt(line, d.position.column)
                out += [excerpt, caret[:-1] + paint(caret[-1], _CARET)] if d.position.column else [excerpt]
        return "\n".join(out)


def _find_line(position: Position, sources: Sequence[Lines]) -> str | None:
    for source in sources:
        if position.line and source.name == position.file:
            line = source.line(position.line)
            if line is not None:
                return line
    return None


def _excerpt(line: str, column: int) -> tuple[str, str]:
    start = max(0, column - _SHOWN_COLUMNS // 2) if len(line) > _SHOWN_COLUMNS else 0
    # Control characters would change the state of a terminal.
    excerpt = "".join(
        c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[start : start + _SHOWN_COLUMNS]
    )
    indent = "".join(c if c == "\t" else " " for c in excerpt[: column - 1 - start])
    return excerpt, indent + "^"


class DiagnosticError(Exception):
    """Bad input: one or more diagnostics. Its text is what a command-line tool prints.

    Attributes:
        diagnostics: the diagnostics, errors first as they arose.
        sources: the source texts that their positions speak of.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], sources: Sequence[Lines] = ()) -> None:
        self.diagnostics = list(diagnostics)
        self.sources = list(sources)
        super().__init__(diagnostics, sources)

    def __str__(self) -> str:
        return "\n".join(d.render(self.sources) for d in self.diagnostics)


def position_of(location: ir.Location) -> Position:
    """Return the file position of an MLIR location: through names, call sites and fusions to the first one."""
    pending = [location]
    while pending:
        loc = narrowed(pending.pop())
        if loc.is_a_file():
            return Position(loc.filename, loc.start_line, loc.start_col)
        if loc.is_a_name():
            pending.append(loc.child_loc)
        elif loc.is_a_callsite():
            pending.append(loc.callee)
        elif loc.is_a_fused():
            pending.extend(reversed(loc.locations))
    return Position("<unknown>")


def error_at(where: Position, message: str, *notes: str) -> DiagnosticError:
    """An error with notes, all at one position."""
    return DiagnosticError([Diagnostic("error", message, where, tuple(Diagnostic("note", n, where) for n in notes))])


def op_error(op: ir.Operation | ir.OpView, message: str, *notes: str | Diagnostic) -> Diagnostic:
    """An error at an op. Notes that are text are at the op too."""
    where = position_of(op.location)
    attached = tuple(n if isinstance(n, Diagnostic) else Diagnostic("note", n, where) for n in notes)
    return Diagnostic("error", f"'{op.operation.name}' op {message}", where, attached)


def emit_error(op: ir.Operation | ir.OpView, message: str, *notes: str | Diagnostic) -> NoReturn:
    """Report an error at an op.

    Raises:
        DiagnosticError: `op_error` of the arguments.
    """
    raise DiagnosticError([op_error(op, message, *notes)])


_REMARKS: ContextVar[list[Diagnostic] | None] = ContextVar("remarks", default=None)


@contextmanager
def collecting(remarks: list[Diagnostic] | None) -> Iterator[None]:
    """A context manager that adds remarks to a list; without a list they are dropped."""
    token = _REMARKS.set(remarks)
    try:
        yield
    finally:
        _REMARKS.reset(token)


def remark(op: ir.Operation, message: str, *notes: str) -> None:
    """Report correct but slow code at an op. The same remark at the same location is reported once."""
    remarks = _REMARKS.get()
    if remarks is None:
        return
    diagnostic = replace(op_error(op, message, *notes), severity="remark")
    if diagnostic not in remarks:
        remarks.append(diagnostic)


def warn(op: ir.Operation, message: str) -> None:
    """Report a warning at an op, among the remarks."""
    if (remarks := _REMARKS.get()) is not None:
        remarks.append(Diagnostic("warning", message, position_of(op.location)))


# `-verify-diagnostics`: diagnostics that a source's comments expect, against those that arose.
#
# The comments are MLIR's: `// expected-error @+1 {{text}}`, with `error`, `warning`, `remark` or `note`; `@above`,
# `@below`, `@+N`, `@-N` or `@unknown`; a count before the braces; and `-re` where `{{...}}` in the text is a regular
# expression.

_COMMENT = pattern(
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
        expectation = next((e for e in pending if e.meets(d)), None)
        if expectation:
            pending.remove(expectation)
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
    segments = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(segments)))
