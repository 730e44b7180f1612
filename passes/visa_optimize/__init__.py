"""`visa-optimize`: optimizes kernels of vISA without changing the bits they write."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlir import ir

from xegpu_py.ir.bodies import Bodies
from xegpu_py.ir.passes import BodyPass, register_pass
from xegpu_py.passes.common.kernels import registers_of

if TYPE_CHECKING:
    from xegpu_py.target import Target
    from xegpu_py.visa.program import Program


@register_pass("visa-optimize")
@dataclass
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
    target's.

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

    def run_with(self, op: ir.Operation, bodies: Bodies) -> None:
        # Imported here to keep the start of the tools fast.
        from xegpu_py.dialects import visa

        for func in visa.kernels(op):
            if not visa.is_lowered(func, bodies):
                continue
            gpu = visa.target_of(func)
            registers_of(func, gpu, self.grf)
            program = visa.program_of(func, bodies)
            new = self.optimize(program, gpu)
            if new != program:
                bodies.put(func, visa.KernelBody(new))

    def optimize(self, program: "Program", target: "Target") -> "Program":
        """Return the optimized kernel."""
        from xegpu_py.passes.visa_optimize.pipeline import optimize

        return optimize(program, target, self)
