"""`xetile-to-xegpu`: tiles of subgroups become XeGPU of the same size."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-to-xegpu")
@dataclass
class XeTileToXeGPU(Pass):
    """Lower XeTile of subgroups to XeGPU in VC mode.

    Each op becomes ops of the same sizes. A tile becomes a descriptor; loads, stores, prefetches and moves of tiles
    become those of descriptors, and products `xegpu.dpas`. What a target moves and multiplies at once, and how it reads
    tiles that its 2D block messages cannot serve, is the business of `xegpu-legalize`.

    Column-major tiles, and those whose only use is a transpose, are loaded transposed. The second operand of products
    is loaded in VNNI layout, or packed in registers if it is computed. Padding is selected by a mask of what lies in
    bounds. Scattered tiles, and blocks that are updated atomically, become descriptors of up to 32 elements. A
    reduction combines each 8 rows, or each 64 bytes of a row, with the next ones, and then what is in them.

        %t = xetile.init_tile %B[0, %n] : memref<64x256xbf16> -> !xetile.tile<32x64xbf16>
        %b = xetile.load_tile %t : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
        %d = xetile.tile_mma %a, %b, %c : vector<32x32xbf16>, vector<32x64xbf16>, vector<32x64xf32> -> vector<32x64xf32>

    becomes

        %t = xegpu.create_nd_tdesc %B[0, %n] {mode = vc} : memref<64x256xbf16> -> !xegpu.tensor_desc<32x64xbf16>
        %b = xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<32x64xbf16> -> vector<16x64x2xbf16>
        %d = xegpu.dpas %c, %a, %b {mode = vc} : vector<32x64xf32>, vector<32x32xbf16>, vector<16x64x2xbf16> -> ...

    `target` is accepted and of no effect.
    """

    target: str = ""

    def run(self, op: ir.Operation) -> None:
        # The patterns are imported here to keep the start of the tools fast.
        from xegpu_py.passes.xetile.kernels import kernels
        from xegpu_py.passes.xetile.layouts import has_maps
        from xegpu_py.passes.xetile_to_xegpu.lowering import Lowering

        for func in kernels(op):
            if has_maps(func):
                self.fail(func, "distributes tiles over subgroups", "run xetile-wg-to-sg first")
            Lowering(func).run()
