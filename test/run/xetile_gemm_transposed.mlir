// C = A^T x B^T in f16: A is given as K x M and transposed by an op, B as N x K and read as a column-major matrix.

// RUN: xegpu-run %s ones:f16:64x64 ones:f16:64x64 zeros:f32:64x64 --block 4 --print 2 | FileCheck %s
// CHECK: {{\[\[}}64. 64. 64.

#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
!b = !xetile.tile<32x64xf16, #xetile.tile_attr<order = [0, 1]>>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<64x64xf16>, %Bt: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %B = memref.reinterpret_cast %Bt to offset: [0], sizes: [64, 64], strides: [1, 64]
      : memref<64x64xf16> to memref<64x64xf16, strided<[1, 64]>>
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %a0 = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
    %b0 = xetile.init_tile %B[0, 0] : memref<64x64xf16, strided<[1, 64]>> -> !b
    %r:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%sum = %zero, %a = %a0, %b = %b0)
        -> (vector<64x64xf32>, !xetile.tile<32x64xf16>, !b) {
      %t = xetile.load_tile %a : !xetile.tile<32x64xf16> -> vector<32x64xf16>
      %va = xetile.transpose %t, [1, 0] : vector<32x64xf16> -> vector<64x32xf16>
      %vb = xetile.load_tile %b : !b -> vector<32x64xf16>
      %next = xetile.tile_mma %va, %vb, %sum {wg_map_c = #c}
        : vector<64x32xf16>, vector<32x64xf16>, vector<64x64xf32> -> vector<64x64xf32>
      %a1 = xetile.update_tile_offset %a, [32, 0] : !xetile.tile<32x64xf16>
      %b1 = xetile.update_tile_offset %b, [32, 0] : !b
      scf.yield %next, %a1, %b1 : vector<64x64xf32>, !xetile.tile<32x64xf16>, !b
    }
    %c = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    xetile.store_tile %r#0, %c : vector<64x64xf32>, !xetile.tile<64x64xf32>
    gpu.return
  }
}
