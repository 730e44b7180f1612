"""Rules that lower instructions to LLVM IR. Each instruction has one rule. The modules mirror semantic functions.

Tables by the names of instructions:

- `ARITHMETIC` of `alu`, with `ELEMENTARY`: `(op, *sources) -> result`, on vectors of numbers of the execution type (see
  `Alu`);
- `RULES`: `(emitter, inst, at) -> None`, which read operands and write results;
- `CONTROL`: `(control, inst, at) -> None`, which end blocks;
- `RUNS`: consecutive instructions that are emitted together: the maximum length, the function that counts them, and the
function that writes them.
"""

from collections.abc import Callable

from xegpu_py.engines.jit.rules import alu, block2d, dpas, elementary, memory
from xegpu_py.engines.jit.rules.control import CONTROL

alu.ARITHMETIC.update(elementary.ELEMENTARY)

RULES = {**alu.RULES, **dpas.RULES, **memory.RULES, **block2d.RULES}
RUNS: dict[str, tuple[int, Callable[..., int], Callable[..., None]]] = {**dpas.RUNS, **block2d.RUNS}

__all__ = ["CONTROL", "RULES", "RUNS"]
