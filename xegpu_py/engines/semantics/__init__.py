"""The semantics of instructions: a table of functions by the instruction's name.

- `alu.ARITHMETIC`: `(op, *sources) -> result`, on the numbers of many threads and lanes at once (see `AluOp`);
- `alu.STEPS` and `memory.STEPS`: `(inst, layout, model) -> Step`, which build a function that runs the
  instruction for many threads;
- `control.CONTROL`: `(inst, program, layout) -> Next`, which build a function that returns the next program counters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Tables of functions by the names of instructions.


class Table(dict[str, Callable[..., Any]]):
    """Functions by the names of instructions."""

    def of(self, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function for these instructions."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self.update(dict.fromkeys(names, function))
            return function

        return enter


ROUNDED = {"add": "add", "mul": "mul", "mad": "mad", "divm": "div", "sqrtm": "sqrt"}
"""The functions of floats that follow the rounding mode, as `numerics.directed` calls them."""
