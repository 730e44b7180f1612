"""Patterns: the functions that rewrite ops, each registered for the names of its ops."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mlir import ir

P = TypeVar("P", bound=Callable[..., Any])


class PatternSet(dict[str, P]):
    """Patterns by the name of the op that each is for. A set is a decorator.

        pattern: PatternSet[Pattern] = PatternSet(__package__, ("control", "memory"))

        @pattern("vector.step")
        def step(conversion: Conversion, op: ir.Operation) -> None: ...

    Users of the patterns call `load` first: the modules that register them import this set, not the reverse.
    """

    def __init__(self, package: str | None = None, modules: Sequence[str] = ()) -> None:
        """An empty set.

        Args:
            package: the package of the modules.
            modules: those that register patterns.
        """
        super().__init__()
        self._unloaded = [f"{package}.{m}" for m in modules]

    def __call__(self, *names: str | type[ir.OpView]) -> Callable[[P], P]:
        """Register a function for the ops of these names or classes."""

        def register(function: P) -> P:
            self.update({name if isinstance(name, str) else name.OPERATION_NAME: function for name in names})
            return function

        return register

    def load(self) -> None:
        """Import the modules that register patterns, unless they are."""
        while self._unloaded:
            importlib.import_module(self._unloaded.pop())
