"""`xetile-wg-to-sg`: distributes workgroup tiles to subgroups."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-wg-to-sg")
@dataclass
class XeTileWgToSg(Pass):
    """Distribute tiles of workgroups to subgroups.

    The maps of tiles and vectors define the distribution. A subgroup computes its parts from `gpu.subgroup_id`. A tile
    larger than its map's `sg_layout` x `sg_data` becomes several tiles. Subgroups share the parts of a smaller tile,
    and the first of them stores. For `xetile.convert_layout`, transposes, and reductions across subgroups, a subgroup
    may need elements of others. These go through shared local memory with a barrier between writing and reading, and a
    second barrier in loops. Elements that the subgroup has itself stay in registers. Maps must be complete: see
    `xetile-infer-layout`. `target` determines the size of shared local memory.

        %t = xetile.init_tile %A[%m, 0] : memref<1024x1024xf32> -> !xetile.tile<256x128xf32, #xetile.tile_attr<wg_map =
          <sg_layout = [8, 4], sg_data = [32, 32]>>>

    becomes

        %id = gpu.subgroup_id : index
        %row = arith.divui %id, %c4 : index
        %column = arith.remui %id, %c4 : index
        %y = arith.muli %row, %c32 : index
        %x = arith.muli %column, %c32 : index
        %my = arith.addi %m, %y : index
        %t = xetile.init_tile %A[%my, %x] : memref<1024x1024xf32> -> !xetile.tile<32x32xf32>
    """

    target: str = ""

    def run(self, op: ir.Operation) -> None:
        # The patterns are imported here to keep the start of the tools fast.
        from xegpu_py.passes.common.gpu_functions import target_for
        from xegpu_py.passes.xetile.kernels import kernels
        from xegpu_py.passes.xetile.layouts import has_maps
        from xegpu_py.passes.xetile_wg_to_sg.distribution import Distribution

        for func in kernels(op):
            if has_maps(func):
                Distribution(func, target_for(func, self.target)).run()
