"""`xetile-wg-to-sg`: workgroup tiles become subgroup tiles."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-wg-to-sg")
@dataclass
class XeTileWgToSg(Pass):
    """Let each subgroup of a workgroup work on its own parts of the tiles and vectors, as their maps say.

    Which parts these are follows from `gpu.subgroup_id`. A tile larger than its map's `sg_layout` x `sg_data` becomes
    several; of one that is smaller subgroups have parts in common, and the first of them stores. Where a subgroup
    needs what others have, for `xetile.convert_layout`, transposes, and reductions across subgroups, it goes through
    shared local memory with a barrier between writing and reading, and another one in loops; where it has what it
    needs itself, it stays in registers. Maps must be complete: see `xetile-infer-layout`. `target` says how much
    shared local memory there is.

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
        # What lowers ops is loaded when it is needed, since tools start without it.
        from xegpu_py.passes.common.gpu_functions import target_for
        from xegpu_py.passes.xetile.kernels import kernels
        from xegpu_py.passes.xetile.layouts import has_maps
        from xegpu_py.passes.xetile_wg_to_sg.distribution import Distribution

        for func in kernels(op):
            if has_maps(func):
                Distribution(func, target_for(func, self.target)).run()
