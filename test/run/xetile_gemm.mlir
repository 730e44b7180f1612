// C = A x B in bf16: each workgroup computes a tile of 256x256 with 8x4 subgroups of 32x64, 32 of K at a time.

// RUN: xegpu-run %s ones:bf16:256x64 ones:bf16:64x512 zeros:f32:256x512 --grid 1,2 --block 32 --registers 256 --print 2 | FileCheck %s
// CHECK: {{\[\[}}64. 64. 64.

#c = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<?x?xbf16>, %B: memref<?x?xbf16>, %C: memref<?x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c256 = arith.constant 256 : index
    %K = memref.dim %A, %c1 : memref<?x?xbf16>
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c256 : index
    %n = arith.muli %y, %c256 : index
    %zero = arith.constant dense<0.0> : vector<256x256xf32>
    %a0 = xetile.init_tile %A[%m, 0] : memref<?x?xbf16> -> !xetile.tile<256x32xbf16>
    %b0 = xetile.init_tile %B[0, %n] : memref<?x?xbf16> -> !xetile.tile<32x256xbf16>
    %r:3 = scf.for %k = %c0 to %K step %c32 iter_args(%sum = %zero, %a = %a0, %b = %b0)
        -> (vector<256x256xf32>, !xetile.tile<256x32xbf16>, !xetile.tile<32x256xbf16>) {
      %va = xetile.load_tile %a : !xetile.tile<256x32xbf16> -> vector<256x32xbf16>
      %vb = xetile.load_tile %b : !xetile.tile<32x256xbf16> -> vector<32x256xbf16>
      %next = xetile.tile_mma %va, %vb, %sum {wg_map_c = #c}
        : vector<256x32xbf16>, vector<32x256xbf16>, vector<256x256xf32> -> vector<256x256xf32>
      %a1 = xetile.update_tile_offset %a, [0, 32] : !xetile.tile<256x32xbf16>
      %b1 = xetile.update_tile_offset %b, [32, 0] : !xetile.tile<32x256xbf16>
      scf.yield %next, %a1, %b1 : vector<256x256xf32>, !xetile.tile<256x32xbf16>, !xetile.tile<32x256xbf16>
    }
    %c = xetile.init_tile %C[%m, %n] : memref<?x?xf32> -> !xetile.tile<256x256xf32>
    xetile.store_tile %r#0, %c : vector<256x256xf32>, !xetile.tile<256x256xf32>
    gpu.return
  }
}
