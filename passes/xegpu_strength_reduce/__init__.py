"""`xegpu-strength-reduce`: fewer induction variables of loops."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.common.kernels import GRID_LIMIT


@register_pass("xegpu-strength-reduce")
@dataclass
class XeGPUStrengthReduce(Pass):
    """Expand carried descriptors, merge equal indices.

    A block descriptor that each iteration of a loop moves by the same offsets becomes a descriptor at indices that the
    loop carries. Indices that advance together become one. If they advance together with the counter, they become
    sums of the counter and a constant.

        %0 = xegpu.create_nd_tdesc %m[%row, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
        %1:2 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero, %t = %0) -> (...) {
          %x = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
          %y = arith.addf %sum, %x : vector<8x16xf32>
          %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : ...
          scf.yield %y, %u : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
        }

    becomes

        %1 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero) -> (vector<8x16xf32>) {
          %t = xegpu.create_nd_tdesc %m[%row, %k] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
          %x = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
          %y = arith.addf %sum, %x : vector<8x16xf32>
          scf.yield %y : vector<8x16xf32>
        }

    A descriptor is kept if it moves along a dimension in which its offset may exceed 32 bits, since the offsets of
    messages have 32 bits. The other options are those of xegpu-to-visa, from which the ranges of offsets follow.
    """

    target: str = ""
    kernel: str = ""
    max_bytes: int = 0
    max_index: int = 0
    max_grid: int = GRID_LIMIT

    def run(self, op: ir.Operation) -> None:
        # Imported here to keep the start of the tools fast.
        from xegpu_py.ir.verifier import walk
        from xegpu_py.passes.common.gpu_functions import target_for
        from xegpu_py.passes.common.kernels import chosen_kernels
        from xegpu_py.passes.common.ranges import Limits

        limits = Limits(self.max_bytes, self.max_index, self.max_grid)
        for func in chosen_kernels(op, self.kernel):
            if any(inner.name == "scf.for" for inner in walk(func)):
                from xegpu_py.passes.xegpu_strength_reduce.loops import reduce_loops

                reduce_loops(func, target_for(func, self.target, op), limits)
