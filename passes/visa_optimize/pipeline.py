"""The order of the optimisations, and the registers that they may take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xegpu_py.passes.visa_optimize.dead import remove_dead_code, without_unused_declarations
from xegpu_py.passes.visa_optimize.forward import forward_results
from xegpu_py.passes.visa_optimize.hoist import hoist
from xegpu_py.passes.visa_optimize.schedule import schedule_loads
from xegpu_py.passes.visa_optimize.values import rewrite_values

from xegpu_py.target import Target
from xegpu_py.visa.allocate import allocate
from xegpu_py.visa.flow import EffectsOf
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
    original = program
    if steps.dead:
        program = remove_dead_code(program, effects_of, target.grf_bytes)
    program = _simplified(program, target, effects_of, steps)
    if steps.hoist:
        program = _hoisted(program, target, effects_of, steps, room)
    if steps.schedule:
        program = _scheduled(program, target, effects_of, room)
    if allocate(program, target, registers).pressure > max(room, allocate(original, target, registers).pressure):
        # Values that are kept to be read again cost more here than computing them again.
        cheap = replace(steps, common=False, copies=False, hoist=False, schedule=False)
        return original if steps == cheap else optimize(original, target, cheap, registers)
    return without_unused_declarations(program)


def _simplified(program: Program, target: Target, effects_of: EffectsOf, steps: Steps) -> Program:
    program = rewrite_values(program, target, effects_of, steps)
    if steps.dead:
        program = remove_dead_code(program, effects_of, target.grf_bytes)
    return forward_results(program, target, effects_of) if steps.copies else program


def _hoisted(program: Program, target: Target, effects_of: EffectsOf, steps: Steps, room: int) -> Program:
    free = room - allocate(program, target).pressure
    if free <= 0:
        return program
    moved = hoist(program, effects_of, target.grf_bytes, free * target.grf_bytes)
    # What now stands side by side before a loop may be the same.
    return program if moved == program else _simplified(moved, target, effects_of, steps)


def _scheduled(program: Program, target: Target, effects_of: EffectsOf, room: int) -> Program:
    before = allocate(program, target).pressure
    found = schedule_loads(program, effects_of, target.grf_bytes, room * target.grf_bytes)
    return found if allocate(found, target).pressure <= max(room, before) else program
