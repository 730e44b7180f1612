"""Diagnostics in MLIR's form: `file:line:col: severity: message`, the source line, and a caret."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NoReturn, Protocol

from mlir import ir
from msgspec import Struct
from msgspec.structs import replace

from xegpu_py.ir.bindings import narrowed

Severity = Literal["error", "warning", "remark", "note"]

_SHOWN_COLUMNS = 200

_BOLD, _CARET = "1", "1;32"
_COLORS: dict[Severity, str] = {"error": "1;31", "warning": "1;35", "remark": "1;34", "note": "1;36"}
"""Parameters of the escape sequence "select graphic rendition" (ECMA-48, 8.3.117)."""


class Position(Struct, frozen=True):
    """A place in a file; line and column count from 1, and a line of 0 means that it is not known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


_step: mmap.mmap | None = None


def watch_steps() -> mmap.mmap:
    """Memory that is shared with forks of this process, and holds the error if MLIR ends one of them."""
    global _step
    _step = mmap.mmap(-1, 1024)
    return _step


def enter(what: str, where: Position) -> None:
    """Note what MLIR is about to do; see `watch_steps`."""
    if _step is not None:
        text = f"{where}: error: {what} ended the process".encode()[: len(_step)]
        _step[:] = text.ljust(len(_step), b"\0")


class Lines(Protocol):
    """A text whose lines can be shown."""

    @property
    def name(self) -> str: ...

    def line(self, number: int) -> str | None: ...


class Diagnostic(Struct, frozen=True):
    """One message with its position and the notes attached to it."""

    severity: Severity
    message: str
    position: Position
    notes: tuple[Diagnostic, ...] = ()

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
                shown, caret = _excerpt(line, d.position.column)
                out += [shown, caret[:-1] + paint(caret[-1], _CARET)]
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
    shown = "".join(
        c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[start : start + _SHOWN_COLUMNS]
    )
    before = "".join(c if c == "\t" else " " for c in shown[: column - 1 - start])
    return shown, before + "^"


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
    """Where in a file an MLIR location points: through names, call sites and fusions to the first file position."""
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
    found = replace(op_error(op, message, *notes), severity="remark")
    if found not in remarks:
        remarks.append(found)
