// C += A x B where each workgroup of z has its own part of K, and all add to C by atomic operations.

// RUN: xegpu-run %s ones:bf16:64x128 ones:bf16:128x64 zeros:f32:64x64 --grid 1,1,4 --block 4 --print 2 | FileCheck %s
// CHECK: {{\[\[}}128. 128. 128.

#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<64x128xbf16>, %B: memref<128x64xbf16>, %C: memref<64x64xf32>) kernel {
    %c32 = arith.constant 32 : index
    %z = gpu.block_id z
    %k = arith.muli %z, %c32 : index
    %a = xetile.init_tile %A[0, %k] : memref<64x128xbf16> -> !xetile.tile<64x32xbf16>
    %b = xetile.init_tile %B[%k, 0] : memref<128x64xbf16> -> !xetile.tile<32x64xbf16>
    %va = xetile.load_tile %a : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
    %vb = xetile.load_tile %b : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
    %d = xetile.tile_mma %va, %vb {wg_map_c = #c} : vector<64x32xbf16>, vector<32x64xbf16> -> vector<64x64xf32>
    %c = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %old = xetile.atomic_rmw <addf>, %d, %c : vector<64x64xf32>, !xetile.tile<64x64xf32> -> vector<64x64xf32>
    gpu.return
  }
}
