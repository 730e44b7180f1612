"""Patterns: functions that rewrite ops, registered by the names of the ops."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mlir import ir

P = TypeVar("P", bound=Callable[..., Any])


class PatternSet(dict[str, P]):
    """A set of patterns by op name. A set is also the decorator that registers patterns.

        pattern: PatternSet[Pattern] = PatternSet(__package__, {"control": "scf cf", "memory": "vector.load memref"})

        @pattern("vector.step")
        def step(conversion: Conversion, op: ir.Operation) -> None: ...

    `find` imports the modules with patterns for an op: a small kernel has few kinds of ops, and spends most of its time
    on imports. Users of other methods call `load` first.
    """

    def __init__(self, package: str | None = None, modules: Mapping[str, str] | None = None) -> None:
        """An empty set.

        Args:
            package: the package of the modules.
            modules: the modules that register patterns. The value is what the names of their ops begin with, separated
                by spaces, such as a dialect.
        """
        super().__init__()
        self.modules = {f"{package}.{m}": tuple(names.split()) for m, names in (modules or {}).items()}
        self._looked_up: set[str] = set()

    def __call__(self, *names: str | type[ir.OpView]) -> Callable[[P], P]:
        """Register a function for the ops of these names or classes."""

        def register(function: P) -> P:
            self.update({name if isinstance(name, str) else name.OPERATION_NAME: function for name in names})
            return function

        return register

    def find(self, name: str) -> P | None:
        """The pattern for ops of a name; None if there is none."""
        if name not in self._looked_up:
            self._looked_up.add(name)
            for module, beginnings in self.modules.items():
                if name.startswith(beginnings):
                    importlib.import_module(module)
        return self.get(name)

    def load(self) -> None:
        """Import all modules that register patterns."""
        for module in self.modules:
            importlib.import_module(module)
