"""`visa-optimize`: fewer and cheaper instructions for the same bits."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlir import ir
from xegpu_py.passes.common.kernels import registers_of

from xegpu_py.ir.bodies import Bodies
from xegpu_py.ir.passes import Pass, register_pass

if TYPE_CHECKING:
    from xegpu_py.target import Target
    from xegpu_py.visa.program import Program


@register_pass("visa-optimize")
@dataclass
class VisaOptimize(Pass):
    """Optimize vISA kernels: the same bits in memory, by fewer and cheaper instructions.

    What is done, each switched off by its option:

    - `fold`: what is computed of constants is a constant, as the interpreter computes it; constants stand where they
      are used; operations on integers that change nothing go; a known predicate decides its instruction.
    - `copies`: operands read what a value was copied from, and results are put where they are moved to.
    - `common`: what was computed before is read from there.
    - `addresses`: products become shifts, and constants go into the offsets of messages.
    - `hoist`: what each iteration of a loop computes alike is computed before the loop.
    - `dead`: what nobody reads is not computed; idle jumps and labels go, and what cannot be reached.
    - `schedule`: loads start as soon as their addresses are known.

    Floating-point arithmetic stays as it is: nothing is contracted or reassociated, and no operation on unknown numbers
    is taken for one that changes nothing. Messages keep their order, and nothing passes a barrier, a fence, or
    `visa.fence_sw`, which is what `xegpu.compile_hint` becomes. Values are kept, moved out of loops and loaded early
    only as long as seven of eight registers hold all that lives; `grf` is their number, by default the target's usual
    one.

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
    common: bool = True
    addresses: bool = True
    hoist: bool = True
    dead: bool = True
    schedule: bool = True

    def run_with(self, op: ir.Operation, bodies: Bodies) -> None:
        # Loaded when it is needed, since tools start without it.
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
        """The same kernel, optimized."""
        from xegpu_py.passes.visa_optimize.pipeline import optimize

        return optimize(program, target, self)
