"""Functions whose bodies are kept below the IR, in a form of their dialect's own, until somebody needs their ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from mlir import ir
from msgspec import Struct

from xegpu_py.ir.diagnostics import Diagnostic


class Body(Protocol):
    """A form of a function's body below the IR. It is immutable."""

    def clear(self, func: ir.Operation) -> None:
        """Leave a function without ops, but valid."""

    def build(self, func: ir.Operation) -> None:
        """Make the ops in an empty function."""

    def verify(self, func: ir.Operation) -> list[Diagnostic]:
        """The rules that the body breaks."""


class _Entry(Struct):
    """A function, its body, whether its ops are still to be made, and whether the body is known to be valid."""

    func: ir.Operation
    body: Body
    pending: bool = False
    valid: bool = False


class PendingFunctions:
    """The bodies that are known of a module's functions.

    Some were decoded from the ops of their function, or those ops were built from them. The others are pending: their
    functions are empty. Once others have ops of the module, which they may change at any time, only pending bodies are
    known.
    """

    def __init__(self) -> None:
        """Start without known bodies."""
        self._is_shared = False
        # By name, since an op's hash changes with its attributes.
        self._known: dict[str, list[_Entry]] = {}

    def _entries(self) -> Iterator[_Entry]:
        for entries in self._known.values():
            yield from entries

    def _find(self, func: ir.Operation) -> _Entry | None:
        entries = self._known.get(_name(func), ()) if self._known else ()
        return next((entry for entry in entries if entry.func == func), None)

    def get(self, func: ir.Operation) -> Body | None:
        """The body of a function, if it is known."""
        entry = self._find(func)
        return entry.body if entry else None

    def note(self, func: ir.Operation, body: Body) -> None:
        """The ops of a function are this body."""
        if not self._is_shared:
            self._add(func, body)

    def _add(self, func: ir.Operation, body: Body) -> _Entry:
        entry = _Entry(func, body)
        self._known.setdefault(_name(func), []).append(entry)
        return entry

    def put(self, func: ir.Operation, body: Body) -> None:
        """Give a function another body, and leave its ops for later."""
        entry = self._find(func) or self._add(func, body)
        if not entry.pending:
            body.clear(func)
        entry.body, entry.pending, entry.valid = body, True, False

    def build(self) -> None:
        """Make the ops of all functions."""
        for entry in self._entries():
            if entry.pending:
                entry.body.build(entry.func)
                entry.pending = False
        if self._is_shared:
            self._known.clear()

    def forget(self) -> None:
        """Make the ops of all functions, which a pass may then change."""
        self.build()
        self._known.clear()

    def share(self) -> None:
        """Make the ops of all functions, which others may then change at any time."""
        self._is_shared = True
        self.build()

    def verify(self) -> list[Diagnostic]:
        """The rules that pending bodies break. Each body is verified once."""
        diagnostics: list[Diagnostic] = []
        for entry in self._entries():
            if entry.pending and not entry.valid:
                problems = entry.body.verify(entry.func)
                diagnostics += problems
                entry.valid = not problems
        return diagnostics


def _name(func: ir.Operation) -> str:
    return func.attributes["sym_name"].value
