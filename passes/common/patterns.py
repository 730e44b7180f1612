"""Patterns: functions that rewrite ops, registered by the names of the ops."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mlir import ir

P = TypeVar("P", bound=Callable[..., Any])


class PatternSet(dict[str, P]):
    """A set of patterns by op name. A set is also the decorator that registers patterns.

        pattern: PatternSet[Pattern] = PatternSet(__package__, ("control", "memory"))

        @pattern("vector.step")
        def step(conversion: Conversion, op: ir.Operation) -> None: ...

    Users of the patterns call `load` first, because the modules that register patterns import this set.
    """

    def __init__(self, package: str | None = None, modules: Sequence[str] = ()) -> None:
        """An empty set.

        Args:
            package: the package of the modules.
            modules: the modules that register patterns.
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
        """Import the modules that register patterns, once."""
        while self._unloaded:
            importlib.import_module(self._unloaded.pop())
