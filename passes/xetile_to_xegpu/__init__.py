"""`xetile-to-xegpu`: tiles of subgroups become XeGPU of the same size."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-to-xegpu")
@dataclass
class XeTileToXeGPU(Pass):
    """Lower XeTile of subgroups to XeGPU in VC mode.

    Each op becomes ops on vectors of the same sizes. A tile becomes a descriptor; loads, stores, prefetches and moves
    of tiles become those of descriptors, and products become `xegpu.dpas`. `xegpu-legalize` then divides the ops into
    those that the target supports.

    Column-major tiles, and tiles whose only use is a transpose, are loaded transposed. The second operand of a product
    is loaded in VNNI layout; if it is computed, it is packed in registers. A mask of the elements in bounds selects
    between them and the padding value. Scattered tiles, and blocks that are updated atomically, become descriptors of
    up to 32 elements. A reduction first combines groups of 8 rows, or of 64 bytes of a row, elementwise, and then the
    elements of the last group.

        %t = xetile.init_tile %B[0, %n] : memref<64x256xbf16> -> !xetile.tile<32x64xbf16>
        %b = xetile.load_tile %t : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
        %d = xetile.tile_mma %a, %b, %c : vector<32x32xbf16>, vector<32x64xbf16>, vector<32x64xf32> -> vector<32x64xf32>

    becomes

        %t = xegpu.create_nd_tdesc %B[0, %n] {mode = vc} : memref<64x256xbf16> -> !xegpu.tensor_desc<32x64xbf16>
        %b = xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<32x64xbf16> -> vector<16x64x2xbf16>
        %d = xegpu.dpas %c, %a, %b {mode = vc} : vector<32x64xf32>, vector<32x32xbf16>, vector<16x64x2xbf16> -> ...

    `target` determines how many registers a thread has; much larger vectors are refused.
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
            Lowering(func, self.target).run()
