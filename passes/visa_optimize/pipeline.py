"""The order of the optimisations, and the registers that they may take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xegpu_py.passes.visa_optimize.dead import remove_dead_code, without_unused_declarations
from xegpu_py.passes.visa_optimize.forward import forward_results
from xegpu_py.passes.visa_optimize.hoist import has_loops, hoist
from xegpu_py.passes.visa_optimize.schedule import schedule_loads
from xegpu_py.passes.visa_optimize.values import rewrite_values

from xegpu_py.target import Target
from xegpu_py.visa.accesses import EffectsOf
from xegpu_py.visa.allocate import allocate
from xegpu_py.visa.program import Program

_KEPT_FREE = 8
"""One register of so many is left to the finalizer, for what it computes on the side."""


@dataclass(frozen=True)
class Steps:
    """Which optimisations are done: see the options of the pass."""

    fold: bool = True
    copies: bool = True
    common: bool = True
    addresses: bool = True
    hoist: bool = True
    dead: bool = True
    schedule: bool = True


def optimize(program: Program, target: Target, steps: Steps, registers: int | None = None) -> Program:
    """The same kernel with fewer instructions, of which loads come early.

    Args:
        registers: registers that a thread has; by default the target's usual number.
    """
    effects_of = EffectsOf(target)
    count = registers or target.grf_counts[0]
    room = count - count // _KEPT_FREE
    original, new = program, program
    if steps.dead:
        new = remove_dead_code(new, effects_of)
    new = _simplified(new, target, effects_of, steps)
    known: tuple[Program, int] | None = None
    if steps.hoist and has_loops(new):
        known = new, _pressure(new, target)
        if known[1] < room:
            new = _hoisted(new, target, effects_of, steps, room - known[1])
    if steps.schedule:
        new = schedule_loads(new, effects_of, room * target.grf_bytes)
    pressure = known[1] if known and new == known[0] else _pressure(new, target)
    if pressure > room and pressure > _pressure(original, target):
        # Values that wait for their use in registers cost more here than they save.
        fewer = _fewer(steps)
        return optimize(original, target, fewer, registers) if fewer else original
    return without_unused_declarations(new)


def _fewer(steps: Steps) -> Steps | None:
    """Steps that take fewer registers; None if there are none."""
    if steps.schedule or steps.hoist:
        return replace(steps, schedule=False, hoist=False)
    return replace(steps, common=False, copies=False) if steps.common or steps.copies else None


def _pressure(program: Program, target: Target) -> int:
    return allocate(program, target).pressure


def _simplified(program: Program, target: Target, effects_of: EffectsOf, steps: Steps) -> Program:
    if steps.copies:
        # Before copies are read in the place of what they were copied to.
        program = forward_results(program, target, effects_of)
    program = rewrite_values(program, target, effects_of, steps)
    if steps.dead:
        program = remove_dead_code(program, effects_of)
    return forward_results(program, target, effects_of) if steps.copies else program


def _hoisted(program: Program, target: Target, effects_of: EffectsOf, steps: Steps, room: int) -> Program:
    """The program with loops that compute less; values that wait before them take at most `room` registers."""
    moved = hoist(program, effects_of, room * target.grf_bytes)
    # What now stands side by side before a loop may be the same.
    return program if moved is program else _simplified(moved, target, effects_of, steps)
