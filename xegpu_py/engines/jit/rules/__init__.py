"""Rules that lower instructions to LLVM IR. Each instruction has one rule. The modules mirror semantic functions.

Tables by the names of instructions:

- `ARITHMETIC` of `alu`: `(op, *sources) -> result`, on vectors of numbers of the execution type (see `Alu`);
- `RULES`: `(emitter, inst, at) -> None`, which read operands and write results;
- `CONTROL`: `(control, inst, at) -> None`, which end blocks;
- `RUNS`: consecutive instructions that are emitted together: the maximum length, the function that counts them, and the
function that writes them.

Few programs have products of matrices or elementary functions, whose modules are imported when one has.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from xegpu_py.deferred import deferred
from xegpu_py.engines.jit.native_launch_struct import TABLES
from xegpu_py.engines.jit.rules import alu, block2d, memory
from xegpu_py.engines.jit.rules.control import CONTROL

if TYPE_CHECKING:
    from xegpu_py.engines.jit.rules import dpas, elementary
else:
    dpas = deferred("xegpu_py.engines.jit.rules.dpas")
    elementary = deferred("xegpu_py.engines.jit.rules.elementary")

alu.ARITHMETIC.update(dict.fromkeys(TABLES, lambda *arguments: elementary.apply(*arguments)))

RULES = {
    **alu.RULES,
    **memory.RULES,
    **block2d.RULES,
    "dpas": lambda *arguments: dpas.dpas(*arguments),
    "bdpas": lambda *arguments: dpas.bdpas(*arguments),
}
RUNS: dict[str, tuple[int, Callable[..., int], Callable[..., None]]] = {
    **block2d.RUNS,
    "dpas": (1 << 20, lambda _, run: len(run), lambda *arguments: dpas.emit_run(*arguments)),
}

__all__ = ["CONTROL", "RULES", "RUNS"]
