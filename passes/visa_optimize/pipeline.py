"""The order of the optimisations, and the registers that they may take."""

from __future__ import annotations

from dataclasses import replace

from xegpu_py.passes.visa_optimize import VisaOptimize
from xegpu_py.passes.visa_optimize.dead import remove_dead_code, without_unused_declarations
from xegpu_py.passes.visa_optimize.forward import forward_results
from xegpu_py.passes.visa_optimize.hoist import has_loops, hoist
from xegpu_py.passes.visa_optimize.schedule import schedule_loads
from xegpu_py.passes.visa_optimize.values import rewrite_values

from xegpu_py.target import Target
from xegpu_py.visa.allocate import allocate
from xegpu_py.visa.program import Program

_KEPT_FREE = 8
"""One register of so many is left to the finalizer, for what it computes on the side."""


def optimize(program: Program, target: Target, steps: VisaOptimize) -> Program:
    """The same kernel with fewer instructions, of which loads come early.

    Args:
        steps: says which optimisations are done, and how many registers a thread has.
    """
    count = steps.grf or target.grf_counts[0]
    budget = count - count // _KEPT_FREE
    cleaned = remove_dead_code(program, target) if steps.dead else program
    simple = without_unused_declarations(_simplified(cleaned, target, steps))
    new, pressure = simple, None
    if steps.hoist and has_loops(new):
        pressure = _pressure(new, target)
        if pressure < budget:
            new = _hoisted(new, target, steps, budget - pressure)
    if steps.schedule:
        new = schedule_loads(new, target, budget * target.grf_bytes)
    # Values that wait for their use in registers may cost more than they save: then the next has fewer.
    for found in (without_unused_declarations(new), simple):
        pressure = _pressure(found, target)
        if pressure <= budget or pressure <= _pressure(program, target):
            return found
    if steps.common or steps.copies:
        fewer = replace(steps, schedule=False, hoist=False, common=False, copies=False)
        return optimize(program, target, fewer)
    return program


def _pressure(program: Program, target: Target) -> int:
    return allocate(program, target).pressure


def _simplified(program: Program, target: Target, steps: VisaOptimize) -> Program:
    if steps.copies:
        # Before copies are read in the place of what they were copied to.
        program = forward_results(program, target)
    program = rewrite_values(program, target, steps)
    if steps.dead:
        program = remove_dead_code(program, target)
    return forward_results(program, target) if steps.copies else program


def _hoisted(program: Program, target: Target, steps: VisaOptimize, budget: int) -> Program:
    """The program with loops that compute less; values that wait before them take at most `budget` registers."""
    moved = hoist(program, target, budget * target.grf_bytes)
    # What now stands side by side before a loop may be the same.
    return program if moved is program else _simplified(moved, target, steps)
