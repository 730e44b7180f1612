// A persistent kernel: the workgroups take the tiles of C round robin, four columns of tiles a row.

// RUN: xegpu-run %s ones:bf16:192x64 ones:bf16:64x256 zeros:f32:192x256 --grid 5 --block 4 --print 2 | FileCheck %s
// CHECK: {{\[\[}}64. 64. 64.

#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<192x64xbf16>, %B: memref<64x256xbf16>, %C: memref<192x256xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c12 = arith.constant 12 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %first = gpu.block_id x
    %groups = gpu.grid_dim x
    scf.for %tile = %first to %c12 step %groups {
      %row = arith.divui %tile, %c4 : index
      %column = arith.remui %tile, %c4 : index
      %m = arith.muli %row, %c64 : index
      %n = arith.muli %column, %c64 : index
      %zero = arith.constant dense<0.0> : vector<64x64xf32>
      %a0 = xetile.init_tile %A[%m, 0] : memref<192x64xbf16> -> !xetile.tile<64x32xbf16>
      %b0 = xetile.init_tile %B[0, %n] : memref<64x256xbf16> -> !xetile.tile<32x64xbf16>
      %r:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%sum = %zero, %a = %a0, %b = %b0)
          -> (vector<64x64xf32>, !xetile.tile<64x32xbf16>, !xetile.tile<32x64xbf16>) {
        %va = xetile.load_tile %a : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
        %vb = xetile.load_tile %b : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
        %next = xetile.tile_mma %va, %vb, %sum {wg_map_c = #c}
          : vector<64x32xbf16>, vector<32x64xbf16>, vector<64x64xf32> -> vector<64x64xf32>
        %a1 = xetile.update_tile_offset %a, [0, 32] : !xetile.tile<64x32xbf16>
        %b1 = xetile.update_tile_offset %b, [32, 0] : !xetile.tile<32x64xbf16>
        scf.yield %next, %a1, %b1 : vector<64x64xf32>, !xetile.tile<64x32xbf16>, !xetile.tile<32x64xbf16>
      }
      %c = xetile.init_tile %C[%m, %n] : memref<192x256xf32> -> !xetile.tile<64x64xf32>
      xetile.store_tile %r#0, %c : vector<64x64xf32>, !xetile.tile<64x64xf32>
    }
    gpu.return
  }
}
