"""`xetile-to-xegpu`: each op on a block becomes ops of XeGPU."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-to-xegpu")
@dataclass
class XeTileToXeGPU(Pass):
    """Lower XeTile ops on blocks to XeGPU in vector compute mode.

    A tile becomes a descriptor of a 2D block where the target has such messages and they can serve it; else it
    becomes its row and column, and is read and written element by element by gather and scatter: where the tile is
    narrower than 4 bytes, where the matrix's width or pitch or an offset is known to be misaligned, or the tile lies
    in shared local memory. Tiles there whose rows are contiguous, aligned and known to be inside are moved row by
    row. What is dynamic is taken to be aligned.

    Column-major tiles, and those whose only use is a transpose, are loaded by messages that transpose. The second
    operand of products is loaded in VNNI layout, or packed in registers if it is computed.

        %t = xetile.init_tile %B[0, %n] : memref<64x256xbf16> -> !xetile.tile<32x16xbf16>
        %b = xetile.load_tile %t : !xetile.tile<32x16xbf16> -> vector<32x16xbf16>
        %b0 = vector.extract_strided_slice %b {offsets = [0, 0], sizes = [16, 16], strides = [1, 1]} : ...
        %d = xetile.tile_mma %a, %b0, %c : vector<8x16xbf16>, vector<16x16xbf16>, vector<8x16xf32> -> vector<8x16xf32>

    becomes

        %t = xegpu.create_nd_tdesc %B[0, %n] {mode = vc} : memref<64x256xbf16> -> !xegpu.tensor_desc<32x16xbf16>
        %b = xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<32x16xbf16> -> vector<16x16x2xbf16>
        %b0 = vector.extract_strided_slice %b {offsets = [0, 0, 0], sizes = [8, 16, 2], strides = [1, 1, 1]} : ...
        %d = xegpu.dpas %c, %a, %b0 {mode = vc} : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> ...
    """

    target: str = ""

    def run(self, op: ir.Operation) -> None:
        # What lowers ops is loaded when it is needed, since tools start without it.
        from xegpu_py.passes.xetile.expansion import kernels
        from xegpu_py.passes.xetile.targets import target_for
        from xegpu_py.passes.xetile_to_xegpu.lowering import Lowering

        for func in kernels(op):
            Lowering(func, target_for(self, func, self.target)).run()
