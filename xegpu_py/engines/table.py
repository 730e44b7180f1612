"""Tables of functions by the names of instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Table(dict[str, Callable[..., Any]]):
    """Functions by the names of instructions."""

    def of(self, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function for these instructions."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self.update(dict.fromkeys(names, function))
            return function

        return enter
