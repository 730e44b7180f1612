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


class Bodies:
    """The bodies that are known of a module's functions.

    Some were decoded from the ops of their function, or those ops were built from them. The others are pending: their
    functions are empty.
    """

    def __init__(self) -> None:
        """Start without known bodies."""
        # By name, since an op's hash changes with its attributes.
        self._known: dict[str, list[_Entry]] = {}

    def _entries(self) -> Iterator[_Entry]:
        for entries in self._known.values():
            yield from entries

    def _find(self, func: ir.Operation) -> _Entry | None:
        found = self._known.get(_name(func), ()) if self._known else ()
        return next((entry for entry in found if entry.func == func), None)

    def get(self, func: ir.Operation) -> Body | None:
        """The body of a function, if it is known."""
        entry = self._find(func)
        return entry.body if entry else None

    def note(self, func: ir.Operation, body: Body) -> _Entry:
        """The ops of a function are this body."""
        entry = _Entry(func, body)
        self._known.setdefault(_name(func), []).append(entry)
        return entry

    def put(self, func: ir.Operation, body: Body) -> None:
        """Give a function another body, and leave its ops for later."""
        entry = self._find(func) or self.note(func, body)
        if not entry.pending:
            body.clear(func)
        entry.body, entry.pending, entry.valid = body, True, False

    def build(self) -> None:
        """Make the ops of all functions."""
        for entry in self._entries():
            if entry.pending:
                entry.body.build(entry.func)
                entry.pending = False

    def forget(self) -> None:
        """Make the ops of all functions, which may then be changed."""
        self.build()
        self._known.clear()

    def verify(self) -> list[Diagnostic]:
        """The rules that pending bodies break. Each body is verified once."""
        found: list[Diagnostic] = []
        for entry in self._entries():
            if entry.pending and not entry.valid:
                problems = entry.body.verify(entry.func)
                found += problems
                entry.valid = not problems
        return found


def _name(func: ir.Operation) -> str:
    name: str = func.attributes["sym_name"].value
    return name
