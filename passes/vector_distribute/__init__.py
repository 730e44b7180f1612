"""`vector-distribute`: distributes vectors with layouts to lanes."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.common.kernels import SUBGROUP_SIZES


@register_pass("vector-distribute")
@dataclass
class VectorDistribute(Pass):
    """Distribute functions on vectors among lanes.

    Functions on whole vectors become functions on each lane's parts of them. Layouts are computed as by
    `vector-layout-analysis`. A vector with a layout becomes a vector of its batches, outers and elements (`batch x
    outer x element`, three times the rank). Reductions and changes of layout that involve several lanes use shuffles;
    those that involve several subgroups use shared local memory. Vectors that are arguments or results of a `func.func`
    pass through `to_simt` and `to_simd`. A distributed `gpu.func` is a kernel of work items, for `xegpu-simt-to-vc`.

        %0 = vector.transfer_read %m[%c0], %zero {in_bounds = [true]} : memref<32xf32>, vector<32xf32>
        %1 = iree_vector_ext.to_layout %0 to layout(#two_batches_of_16_lanes) : vector<32xf32>
        %2 = arith.addf %1, %1 : vector<32xf32>

    becomes

        %lane = gpu.lane_id
        %0 = vector.transfer_read %m[%lane], %zero {in_bounds = [true]} : memref<32xf32>, vector<1xf32>
        %1 = vector.insert %0, %zeros [0, 0] : vector<1xf32> into vector<2x1x1xf32>
        %at = arith.addi %lane, %c16 : index
        %2 = vector.transfer_read %m[%at], %zero {in_bounds = [true]} : memref<32xf32>, vector<1xf32>
        %3 = vector.insert %2, %1 [1, 0] : vector<1xf32> into vector<2x1x1xf32>
        %4 = arith.addf %3, %3 : vector<2x1x1xf32>
    """

    subgroup_size: int = 16

    def run(self, op: ir.Operation) -> None:
        from xegpu_py.passes.common.layouts.flow import functions
        from xegpu_py.passes.vector_distribute.distributor import distribute

        if self.subgroup_size not in SUBGROUP_SIZES:
            self.fail(op, f"subgroup-size = {self.subgroup_size} is not one of {', '.join(map(str, SUBGROUP_SIZES))}")
        for func in functions(op):
            distribute(func, self.subgroup_size)
