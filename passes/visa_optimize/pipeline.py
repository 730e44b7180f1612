"""The order of the optimizations, and the registers that they may use."""

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
"""One in this many registers is reserved for temporaries of the finalizer."""


def optimize(program: Program, target: Target, steps: VisaOptimize) -> Program:
    """Return the optimized kernel.

    Args:
        steps: the enabled optimizations, and the registers of a thread.
    """
    count = steps.grf or target.grf_counts[0]
    budget = count - count // _KEPT_FREE
    simple = without_unused_declarations(_simplified(program, target, steps))
    new, pressure = simple, None
    if steps.hoist and has_loops(new):
        pressure = _pressure(new, target)
        if pressure < budget:
            new = hoist(new, target, (budget - pressure) * target.grf_bytes)
    if steps.schedule:
        new = schedule_loads(new, target, budget * target.grf_bytes)
    # Long live ranges may cost more than they save: retry with a smaller budget.
    for found in (without_unused_declarations(new), simple):
        pressure = _pressure(found, target)
        if pressure <= budget or pressure <= _pressure(program, target):
            return found
    if steps.copies:
        fewer = replace(steps, schedule=False, hoist=False, copies=False)
        return optimize(program, target, fewer)
    return program


def _pressure(program: Program, target: Target) -> int:
    return allocate(program, target).pressure


def _simplified(program: Program, target: Target, steps: VisaOptimize) -> Program:
    if steps.copies:
        # Must run before copy propagation, which would replace the reads of the move's destination.
        program = forward_results(program, target)
    program = rewrite_values(program, target, steps)
    if steps.dead:
        program = remove_dead_code(program, target)
    return forward_results(program, target) if steps.copies else program
