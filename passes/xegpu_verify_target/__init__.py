"""`xegpu-verify-target`: what a GPU cannot do, said before anything is lowered."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xegpu-verify-target")
@dataclass
class XeGPUVerifyTarget(Pass):
    """Report ops that have no message or instruction on the target.

    Each op of a kernel is held against the limits of the GPU that `target` names, or else `visa.target` of the kernel
    or of an op around it: sizes and counts of 2D blocks, surfaces, pairs of cache hints, shapes and element types of
    dpas, registers of a gather, atomic operations, named barriers, shared local memory, conversions and functions.
    What is reported is an error at the op, with what to write instead; nothing is changed. It runs after
    xegpu-legalize, which splits what can be split.

        %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xf32> -> vector<64x16xf32>

    becomes

        error: 'xegpu.load_nd' op a 2D block load has 1 to 32 rows, not 64
        note: xegpu-legalize splits it
    """

    target: str = ""
    kernel: str = ""

    def run(self, op: ir.Operation) -> None:
        # Loaded when it is needed, since tools start without it.
        from xegpu_py.passes.common.gpu_functions import functions
        from xegpu_py.passes.xegpu_verify_target.rules import problems

        from xegpu_py.ir.diagnostics import DiagnosticError

        chosen = functions(op, self.target, self.kernel)
        # Legalisation makes several ops of one: what is wrong with all of them is said once.
        found = dict.fromkeys(problem for func, gpu in chosen for problem in problems(func, gpu))
        if found:
            raise DiagnosticError(list(found))
