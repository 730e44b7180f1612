"""What each instruction is made of in native code: one rule each, in modules named like those of the golden functions.

A rule is registered under the instruction's name. What it is given depends on its module:

- `alu`: `(op, *sources) -> result`, vectors of numbers of the execution type (see `Alu`);
- `registers`, `matrix` and `memory`: `(emitter, inst, at) -> None`, which read operands and write results;
- `control`: `(control, inst, at) -> None`, which end blocks.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

RULES: dict[str, Callable[..., Any]] = {}
"""The rules by the names of instructions."""


def load() -> None:
    """Import every module, which registers its rules."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the rule of these instructions."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RULES[name] = function
        return function

    return register
