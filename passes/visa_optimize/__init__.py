"""`visa-optimize`: optimizes kernels of vISA without changing the bits they write."""

from __future__ import annotations

from dataclasses import replace

from mlir import ir

from xegpu_py.dialects import visa
from xegpu_py.ir.passes import BodyPass, register_pass
from xegpu_py.ir.pending_functions import PendingFunctions
from xegpu_py.passes.analysis.ir_queries import registers_of
from xegpu_py.passes.visa_optimize.code_motion import forward_results, has_loops, hoist, schedule_loads
from xegpu_py.passes.visa_optimize.constant_propagation import Depends
from xegpu_py.passes.visa_optimize.simplify import remove_dead_code, rewrite_values, without_unused_declarations
from xegpu_py.target import Target
from xegpu_py.visa.allocate import allocate
from xegpu_py.visa.dataflow import has_calls
from xegpu_py.visa.fp_modes import dependence, leading_modes
from xegpu_py.visa.program import Instruction, Program, analysis


@register_pass("visa-optimize")
class VisaOptimize(BodyPass):
    """Optimize vISA: fewer and cheaper instructions.

    The optimized kernel writes the same bits to memory. The optimizations, each of which has an option that disables
    it:

    - `fold`: constant folding and propagation, with the results that the interpreter computes. Integer identities are
      removed, and an instruction whose predicate is known becomes unconditional or is removed.
    - `copies`: copy propagation. Operands read the source of a copy, and results are written directly to the
      destination of a later move.
    - `addresses`: strength reduction of addresses. Products become shifts, and constants become offsets of messages.
    - `hoist`: loop-invariant code motion.
    - `dead`: removes unread results, jumps to the next instruction, unused labels and unreachable code.
    - `schedule`: starts loads as soon as their addresses are known.

    Floating-point arithmetic does not change: no operation is contracted or reassociated, and no operation on unknown
    numbers is treated as an identity. Messages keep their order, and no instruction moves across a barrier, a fence, or
    `visa.fence_sw` (the lowering of `xegpu.compile_hint`). An optimization that lengthens live ranges is applied only
    while the live values fit into seven eighths of the registers; `grf` is the number of registers, by default the
    target's. Kernels with calls or address variables stay as they are.

        visa.mov (M1_NM, 1) %i(0,0)<1> %n(0,0)<0;1,0>
        visa.label "For1"
        visa.mov (M1_NM, 1) %scale(0,0)<1> 0x10:d
        visa.mul (M1_NM, 1) %j(0,0)<1> %i(0,0)<0;1,0> %scale(0,0)<0;1,0>
        visa.mul (M1_NM, 1) %k(0,0)<1> %n(0,0)<0;1,0> %scale(0,0)<0;1,0>

    becomes

        visa.mov (M1_NM, 1) %i(0,0)<1> %n(0,0)<0;1,0>
        visa.shl (M1_NM, 1) %k(0,0)<1> %n(0,0)<0;1,0> 0x4:ud
        visa.label "For1"
        visa.shl (M1_NM, 1) %j(0,0)<1> %i(0,0)<0;1,0> 0x4:ud
    """

    grf: int = 0
    fold: bool = True
    copies: bool = True
    addresses: bool = True
    hoist: bool = True
    dead: bool = True
    schedule: bool = True

    def run_with(self, op: ir.Operation, bodies: PendingFunctions) -> None:
        for func in visa.kernels(op):
            if not visa.is_lowered(func, bodies):
                continue
            gpu = visa.target_of(func)
            registers_of(func, gpu, self.grf)
            program = visa.program_of(func, bodies)
            new = self.optimize(program, gpu)
            if new != program:
                bodies.put(func, visa.KernelBody(new))

    def optimize(self, program: Program, target: Target) -> Program:
        """Return the optimized kernel."""
        modes = leading_modes(program)
        addresses = any(var.kind == "A" for var in program.variables)
        if modes is None or addresses or has_calls(program):
            # The result of an instruction depends on the modes at its place, or on callers and address variables.
            return program
        setting = program.instructions[:modes]
        rest = program.with_instructions(program.instructions[modes:])
        return _after(_optimized(rest, target, self, setting), setting)


# The order of the optimizations, and the registers that they may use.

_KEPT_FREE = 8
"""One in this many registers is reserved for temporaries of the finalizer."""


@analysis
def _after(program: Program, setting: tuple[Instruction, ...]) -> Program:
    """The program behind instructions that set `%cr0`."""
    return program.with_instructions((*setting, *program.instructions)) if setting else program


def _optimized(program: Program, target: Target, steps: VisaOptimize, setting: tuple[Instruction, ...]) -> Program:
    """The optimized program, which runs after instructions that set `%cr0`."""
    depends = dependence(setting, target)
    count = steps.grf or target.grf_counts[0]
    budget = count - count // _KEPT_FREE
    simple = without_unused_declarations(_simplified(program, target, steps, depends))
    new, pressure = simple, None
    if steps.hoist and has_loops(new):
        pressure = _pressure(new, target, steps, setting)
        if pressure < budget:
            new = hoist(new, target, (budget - pressure) * target.grf_bytes)
    if steps.schedule:
        new = schedule_loads(new, target, budget * target.grf_bytes)
    # Long live ranges may cost more than they save: retry with a smaller budget.
    for found in (without_unused_declarations(new), simple):
        pressure = _pressure(found, target, steps, setting)
        if pressure <= budget or pressure <= _pressure(program, target, steps, setting):
            return found
    if steps.copies:
        fewer = replace(steps, schedule=False, hoist=False, copies=False)
        return _optimized(program, target, fewer, setting)
    return program


def _pressure(program: Program, target: Target, steps: VisaOptimize, setting: tuple[Instruction, ...]) -> int:
    # Of the same program and by the same arguments as visa-allocate, which finds the result.
    return allocate(_after(program, setting), target, steps.grf or None).pressure


def _simplified(program: Program, target: Target, steps: VisaOptimize, depends: Depends) -> Program:
    if steps.copies:
        # Must run before copy propagation, which would replace the reads of the move's destination.
        program = forward_results(program, target)
    names = [name for name, on in vars(steps).items() if on]
    program = rewrite_values(program, target, names, depends)
    if steps.dead:
        program = remove_dead_code(program, target)
    return forward_results(program, target) if steps.copies else program
