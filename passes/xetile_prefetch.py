"""`xetile-prefetch`: loops prefetch the tiles that they load some iterations later."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-prefetch")
@dataclass
class XeTilePrefetch(Pass):
    """Prefetch the tiles that loops load.

    Each loop prefetches the tiles that it loads, `distance` iterations ahead. These are the tiles that each iteration
    advances, and tiles whose offsets depend on the loop's counter. The tiles of the first iterations are prefetched
    before the loop. At workgroup level, each subgroup prefetches another part of the tile, so that a tile which several
    subgroups load is prefetched once.

        %r = scf.for %k = %c0 to %K step %c32 iter_args(%t = %t0) -> (!xetile.tile<32x32xbf16>) {
          %a = xetile.load_tile %t : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
          ...
          %u = xetile.update_tile_offset %t, [0, 32] : !xetile.tile<32x32xbf16>
          scf.yield %u : !xetile.tile<32x32xbf16>
        }

    becomes, with `distance=1`,

        xetile.prefetch_tile %t0 {l1_hint = cached, l3_hint = cached} : !xetile.tile<32x32xbf16>
        %p0 = xetile.update_tile_offset %t0, [0, 32] : !xetile.tile<32x32xbf16>
        %r:2 = scf.for %k = %c0 to %K step %c32 iter_args(%t = %t0, %p = %p0) -> (...) {
          ...
          xetile.prefetch_tile %p {l1_hint = cached, l3_hint = cached} : !xetile.tile<32x32xbf16>
          %q = xetile.update_tile_offset %p, [0, 32] : !xetile.tile<32x32xbf16>
          scf.yield %u, %q : !xetile.tile<32x32xbf16>, !xetile.tile<32x32xbf16>
        }
    """

    distance: int = 1
    target: str = ""

    def run(self, op: ir.Operation) -> None:
        # The helpers are imported here to keep the start of the tools fast.
        from xegpu_py.passes.common.gpu_functions import target_for
        from xegpu_py.passes.xetile.kernels import kernels
        from xegpu_py.passes.xetile.prefetching import Prefetching

        if self.distance < 1:
            self.fail(op, f"cannot prefetch {self.distance} iterations ahead: distance must be at least 1")
        for func in kernels(op):
            Prefetching(func, self.distance, target_for(func, self.target)).run()
