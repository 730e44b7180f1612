"""Rules that lower instructions to LLVM IR. Each instruction has one rule. The modules have the names of the modules of
golden functions.

Each module has tables by the names of instructions:

- `ARITHMETIC` of `alu` and `elementary`: `(op, *sources) -> result`, on vectors of numbers of the execution type (see
  `Alu`);
- `RULES` of `registers`, `matrix`, `scaled`, `memory` and `block2d`: `(emitter, inst, at) -> None`, which read operands
  and write results;
- `CONTROL` of `control`: `(control, inst, at) -> None`, which end blocks;
- `RUNS`: the instructions that are written together if several follow each other: the maximum number in such a run, the
  function that counts them, and the function that writes them.
"""

from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from xegpu_py.visa.instructions import INSTRUCTIONS

MODULES = {
    "alu": ("alu", "registers"),
    "math": ("alu", "elementary"),
    "dpas": ("matrix", "scaled"),
    "load": ("memory", "block2d"),
    "store": ("memory", "block2d"),
    "atomic": ("memory",),
    "sync": ("control", "memory"),
    "control": ("control",),
}
"""The modules by the categories of their instructions. They are imported for the first instruction of a category."""


def entry(table: str, name: str) -> Any:
    """The entry of an instruction in one of the tables; None if it has none."""
    tables = (getattr(module, table, {}) for module in _modules(INSTRUCTIONS[name].category))
    return next((found[name] for found in tables if name in found), None)


@lru_cache(None)
def _modules(category: str) -> list[ModuleType]:
    return [import_module(f"{__name__}.{module}") for module in MODULES[category]]
