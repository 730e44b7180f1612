"""Variables that are no more than values on their way within one block: LLVM keeps them in the host's registers.

All others are in the thread's block, where a thread that comes back, or the golden function, finds them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xegpu_py.engines.jit.rules.elementary import ELEMENTARY
from xegpu_py.target import Target
from xegpu_py.visa.accesses import accesses, span_bits
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Program

_IN_PLACE = ("setp", *ELEMENTARY)
"""Instructions that look at the thread's block, some of them only where the golden function does them."""


def temporaries(program: Program, target: Target, starts: Sequence[int]) -> set[Variable]:
    """The variables, none of them an alias, that arithmetic alone accesses, in one block, and reads only where the same
    block has certainly written them before.

    Args:
        starts: instructions that begin blocks.
    """
    homes: dict[Variable, int] = {}
    written: dict[Variable, int] = {}
    others: set[Variable] = set()
    block, following = 0, [*starts[1:], len(program.instructions)]
    for at, inst in enumerate(program.instructions):
        while at >= following[block]:
            block += 1
        own = INSTRUCTIONS[inst.name].is_arithmetic and inst.name not in _IN_PLACE
        for access in accesses(inst, target):
            var, bits = access.var, span_bits(access)
            before = written.get(var, 0)
            if not own or homes.setdefault(var, block) != block:
                others.add(var)
            elif access.writes and access.whole:
                written[var] = before | bits
            elif bits & ~before:
                others.add(var)
    return homes.keys() - others
