"""`xegpu-verify-target`: reports ops that the target does not support."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import gpu_functions
from xegpu_py.passes.analysis.target_rules import verify


@register_pass("xegpu-verify-target")
class XeGPUVerifyTarget(Pass):
    """Report ops that the target does not support.

    Each op of a kernel is compared with the limits of the GPU that `target` names, or else `visa.target` of the kernel
    or of an op around it: sizes and counts of 2D blocks, surfaces, pairs of cache hints, shapes and element types of
    dpas, registers of a gather, atomic operations, named barriers, shared local memory, conversions and functions.
    An error at the op says what to write instead; nothing is changed. The pass runs after xegpu-legalize, which splits
    what can be split. xegpu-to-visa makes the same checks first.

        %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xf32> -> vector<64x16xf32>

    becomes

        error: 'xegpu.load_nd' op a 2D block load has 1 to 32 rows, not 64
        note: xegpu-legalize splits it
    """

    target: str = ""
    kernel: str = ""

    def run(self, op: ir.Operation) -> None:
        verify((func, gpu) for func, _, gpu in gpu_functions(op, self.target, self.kernel))
