// C = A x B with all three in column-major order: A in f16, which is transposed in registers, and C in f32.

// RUN: xegpu-run %s ones:f16:64x64 ones:f16:64x64 zeros:f32:64x64 --block 4 --print 2 | FileCheck %s
// CHECK: {{\[\[}}64. 64. 64.

#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
!half = !xetile.tile<64x64xf16, #xetile.tile_attr<order = [0, 1]>>
!full = !xetile.tile<64x64xf32, #xetile.tile_attr<order = [0, 1]>>
!columns = memref<64x64xf16, strided<[1, 64]>>

gpu.module @kernels {
  gpu.func @gemm(%At: memref<64x64xf16>, %Bt: memref<64x64xf16>, %Ct: memref<64x64xf32>) kernel {
    %A = memref.reinterpret_cast %At to offset: [0], sizes: [64, 64], strides: [1, 64] : memref<64x64xf16> to !columns
    %B = memref.reinterpret_cast %Bt to offset: [0], sizes: [64, 64], strides: [1, 64] : memref<64x64xf16> to !columns
    %C = memref.reinterpret_cast %Ct to offset: [0], sizes: [64, 64], strides: [1, 64]
      : memref<64x64xf32> to memref<64x64xf32, strided<[1, 64]>>
    %a = xetile.init_tile %A[0, 0] : !columns -> !half
    %b = xetile.init_tile %B[0, 0] : !columns -> !half
    %c = xetile.init_tile %C[0, 0] : memref<64x64xf32, strided<[1, 64]>> -> !full
    %va = xetile.load_tile %a : !half -> vector<64x64xf16>
    %vb = xetile.load_tile %b : !half -> vector<64x64xf16>
    %old = xetile.load_tile %c : !full -> vector<64x64xf32>
    %new = xetile.tile_mma %va, %vb, %old {wg_map_c = #c}
      : vector<64x64xf16>, vector<64x64xf16>, vector<64x64xf32> -> vector<64x64xf32>
    xetile.store_tile %new, %c : vector<64x64xf32>, !full
    gpu.return
  }
}
