"""What each instruction does: one function each, on the numbers of many threads and lanes at once.

A function is registered under the instruction's name. What it is given depends on its module:

- `alu`: `(op, *sources) -> result`, arrays of numbers of the execution type (see `op`);
- `registers`: `(op, batch, rows, mask) -> None`, instructions that work on whole registers or predicates;
- `memory`: likewise, messages to memory;
- `control`: `(op, batch, rows, active) -> next`, those that decide where threads go on.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

GOLDEN: dict[str, Callable[..., Any]] = {}
"""The functions by the names of instructions."""


def load() -> None:
    """Import every module, which registers its functions."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def golden(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as that of these instructions."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            GOLDEN[name] = function
        return function

    return register
