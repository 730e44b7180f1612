// A batch of products, one for each workgroup of z: the innermost two dimensions of a memref are the matrix.

// RUN: xegpu-run %s ones:bf16:3x64x32 ones:bf16:3x32x64 zeros:f32:3x64x64 --grid 1,1,3 --block 4 --print 2 | FileCheck %s
// CHECK: {{\[\[\[}}32. 32. 32.

#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<3x64x32xbf16>, %B: memref<3x32x64xbf16>, %C: memref<3x64x64xf32>) kernel {
    %z = gpu.block_id z
    %a = xetile.init_tile %A[%z, 0, 0] : memref<3x64x32xbf16> -> !xetile.tile<64x32xbf16>
    %b = xetile.init_tile %B[%z, 0, 0] : memref<3x32x64xbf16> -> !xetile.tile<32x64xbf16>
    %c = xetile.init_tile %C[%z, 0, 0] : memref<3x64x64xf32> -> !xetile.tile<64x64xf32>
    %va = xetile.load_tile %a : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
    %vb = xetile.load_tile %b : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb {wg_map_c = #c} : vector<64x32xbf16>, vector<32x64xbf16> -> vector<64x64xf32>
    xetile.store_tile %d, %c : vector<64x64xf32>, !xetile.tile<64x64xf32>
    gpu.return
  }
}
