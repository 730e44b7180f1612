"""`xetile-infer-layout`: the maps that were left out."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-infer-layout")
@dataclass
class XeTileInferLayout(Pass):
    """Infer the maps of tiles and vectors.

    Each tile and vector of a workgroup gets a map, which is derived from the given maps. Maps are propagated forwards,
    from operands to results, and backwards, from results to operands and from a product to its factors. If an op
    requires another map of an operand than the operand has, an `xetile.convert_layout` is inserted. A kernel without
    any map is a kernel of subgroups and is not changed.

        %a = xetile.load_tile %ta : !xetile.tile<256x32xbf16> -> vector<256x32xbf16>
        %d = xetile.tile_mma %a, %b {wg_map_c = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>} : ...

    becomes

        %a = xetile.load_tile %ta : !xetile.tile<256x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data =
          [32, 32]>>> -> vector<256x32xbf16>
        %d = xetile.tile_mma %a, %b {wg_map_a = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 32]>, wg_map_b = ...,
          wg_map_c = ...} : ...
    """

    def run(self, op: ir.Operation) -> None:
        # The helpers are imported here to keep the start of the tools fast.
        from xegpu_py.passes.xetile.inference import infer
        from xegpu_py.passes.xetile.kernels import kernels
        from xegpu_py.passes.xetile.layouts import has_maps

        for func in kernels(op):
            if has_maps(func):
                infer(func)
