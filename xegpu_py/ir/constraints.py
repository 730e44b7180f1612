"""Constraints on the types of operands and results."""

from __future__ import annotations

import re
from types import UnionType
from typing import Any, ClassVar, Protocol, Union, get_args, get_origin


class Emitter(Protocol):
    """Collects IRDL constraint operations."""

    def constraint(self, text: str) -> str:
        """Add the constraint operation `text`; the name of its SSA value."""

    def any_of(self, names: list[str]) -> str:
        """The value of a constraint that any of the constraints `names` satisfies."""


class TypeConstraint:
    """A set of types; this one is the set of all types.

    Attributes:
        summary: what to call a type of the set, for diagnostics and reference pages.
        fixed: the one type of the set in MLIR's own spelling, where there is just one.
    """

    summary: ClassVar[str] = "any type"
    fixed: ClassVar[str | None] = None
    _pattern: ClassVar[str] = r".*"
    _irdl: ClassVar[str] = "irdl.any"

    @classmethod
    def accepts(cls, text: str) -> bool:
        """Whether the type of this spelling (MLIR's own) is in the set."""
        return re.fullmatch(cls._pattern, text, re.DOTALL) is not None

    @classmethod
    def irdl(cls, emitter: Emitter) -> str:
        """Emit an IRDL constraint that holds the set, or the smallest larger set that IRDL can express."""
        return emitter.constraint(cls._irdl)


class OneOf(TypeConstraint):
    """One of some types without parameters, by their `names`."""

    names: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def accepts(cls, text: str) -> bool:
        return text in cls.names

    @classmethod
    def irdl(cls, emitter: Emitter) -> str:
        return emitter.any_of([emitter.constraint(f"irdl.is {name}") for name in cls.names])


class Vector(TypeConstraint):
    """Vectors of fixed size."""

    summary = "vector"
    _pattern = r"vector<[^\[\]]*>"
    _irdl = 'irdl.base "!builtin.vector"'


class MaskVector(Vector):
    """Vectors of i1."""

    summary = "vector of i1"
    _pattern = r"vector<(?:\s*\d+\s*x)+\s*i1\s*>"


class OffsetVector(Vector):
    """Vectors of index or integer."""

    summary = "vector of index or integer"
    _pattern = r"vector<(?:\s*\d+\s*x)+\s*(?:index|[su]?i\d+)\s*>"


class MemRef(TypeConstraint):
    """Ranked memory references."""

    summary = "memref"
    _pattern = r"memref<.*>"
    _irdl = 'irdl.base "!builtin.memref"'


class Integer(TypeConstraint):
    """Integers of any width and sign."""

    summary = "integer"
    _pattern = r"[su]?i\d+"
    _irdl = 'irdl.base "!builtin.integer"'


class Index(TypeConstraint):
    """The type `index`."""

    summary = "index"
    fixed = "index"
    _pattern = r"index"
    _irdl = "irdl.is index"


def alternatives(annotation: Any) -> tuple[type[TypeConstraint], ...]:
    """The constraints of an annotation `A | B`, of a single one, or of `Any`.

    Raises:
        TypeError: if something else than constraints stands there.
    """
    members = get_args(annotation) if get_origin(annotation) in (UnionType, Union) else (annotation,)
    found = tuple(TypeConstraint if m is Any else m for m in members)
    for m in found:
        if not (isinstance(m, type) and issubclass(m, TypeConstraint)):
            raise TypeError(f"{m!r} is not a type constraint")
    return found
