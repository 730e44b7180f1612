// RUN: not xegpu-opt %s --xetile-wg-to-sg 2>&1 | FileCheck %s --check-prefix=MAPS
// RUN: not xegpu-opt %s --xetile-to-xegpu 2>&1 | FileCheck %s --check-prefix=TILES

// Passes name the pass that must have run before.

gpu.module @m {
  // TILES: error: 'gpu.func' op distributes tiles over subgroups
  // TILES: note: run xetile-wg-to-sg first
  gpu.func @product(%A: memref<32x32xbf16>, %B: memref<32x64xbf16>, %C: memref<32x64xf32>) kernel {
    %a = xetile.init_tile %A[0, 0] : memref<32x32xbf16> -> !xetile.tile<32x32xbf16>
    %b = xetile.init_tile %B[0, 0] : memref<32x64xbf16> -> !xetile.tile<32x64xbf16>
    %c = xetile.init_tile %C[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    %va = xetile.load_tile %a : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
    %vb = xetile.load_tile %b : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb {wg_map_c = <sg_layout = [4, 1], sg_data = [8, 64]>} : vector<32x32xbf16>, vector<32x64xbf16> -> vector<32x64xf32>
    xetile.store_tile %d, %c : vector<32x64xf32>, !xetile.tile<32x64xf32>
    // MAPS: error: 'xetile.init_tile' op has no map
    // MAPS: note: run xetile-infer-layout, which infers maps from the given ones
    %e = xetile.init_tile %C[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    xetile.prefetch_tile %e : !xetile.tile<32x64xf32>
    gpu.return
  }
}
