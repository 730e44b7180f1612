"""`visa-optimize`: fewer and cheaper instructions for the same bits."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass

if TYPE_CHECKING:
    from xegpu_py.target import Target
    from xegpu_py.visa.program import Program


@register_pass("visa-optimize")
@dataclass
class VisaOptimize(Pass):
    """Optimize vISA kernels."""

    grf: int = 0
    fold: bool = True
    copies: bool = True
    common: bool = True
    addresses: bool = True
    hoist: bool = True
    dead: bool = True
    schedule: bool = True

    def run(self, op: ir.Operation) -> None:
        # Loaded when it is needed, since tools start without it.
        from xegpu_py.dialects import visa

        for func in visa.kernels(op):
            gpu = visa.target_of(func)
            program = visa.program_of(func)
            new = self.optimize(program, gpu)
            if new != program:
                visa.replace_body(func, new)

    def optimize(self, program: "Program", target: "Target") -> "Program":
        """The same kernel, optimized."""
        from xegpu_py.passes.visa_optimize.pipeline import Steps, optimize

        steps = Steps(self.fold, self.copies, self.common, self.addresses, self.hoist, self.dead, self.schedule)
        return optimize(program, target, steps, self.grf or None)
