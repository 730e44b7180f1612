"""`xetile-blocking`: subgroup tiles become hardware blocks."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-blocking")
@dataclass
class XeTileBlocking(Pass):
    """Divide the tiles and vectors of a subgroup into blocks that instructions work on.

    Tiles become those of the largest messages that the target (`target`, or else `visa.target` of the kernel or of
    an op around it) has: loads of up to 32 rows of 64 bytes, in as many blocks as one message can bring, stores of 8
    rows. Products become those of one dpas. All other vectors are divided to match, 8 rows of 64 bytes where nothing
    else decides; sizes that do not divide leave smaller blocks at the edges, and products are filled up with zeros.
    With `load-ahead`, messages bring no more of K than one dpas takes, so that what a product no longer needs can be
    loaded anew while the rest of it is computed; see `xegpu-load-ahead`.

        %t = xetile.init_tile %A[%m, 0] : memref<64x64xbf16> -> !xetile.tile<16x32xbf16>
        %a = xetile.load_tile %t : !xetile.tile<16x32xbf16> -> vector<16x32xbf16>
        %d = xetile.tile_mma %a, %b : vector<16x32xbf16>, vector<32x16xbf16> -> vector<16x16xf32>

    becomes

        %t = xetile.init_tile %A[%m, 0] : memref<64x64xbf16> -> !xetile.tile<16x32xbf16>
        %a = xetile.load_tile %t : !xetile.tile<16x32xbf16> -> vector<16x32xbf16>
        %a0 = vector.extract_strided_slice %a {offsets = [0, 0], sizes = [8, 16], ...}
        ...
        %d0 = xetile.tile_mma %a0, %b0 : vector<8x16xbf16>, vector<16x16xbf16> -> vector<8x16xf32>
        %d2 = xetile.tile_mma %a1, %b1, %d0 : ...
        ...
    """

    target: str = ""
    load_ahead: bool = False

    def run(self, op: ir.Operation) -> None:
        # What lowers ops is loaded when it is needed, since tools start without it.
        from xegpu_py.passes.xetile.expansion import kernels
        from xegpu_py.passes.xetile.targets import target_for
        from xegpu_py.passes.xetile_blocking.blocking import Blocking

        for func in kernels(op):
            Blocking(func, target_for(self, func, self.target), self.load_ahead).run()
