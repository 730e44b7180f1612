// A product of f64, which `any` target multiplies 8 elements of K at a time.

// RUN: xegpu-run %s arange:f64:16x24 ones:f64:24x16 zeros:f64:16x16 --target any --engine both --print 2 | FileCheck %s

gpu.module @kernels {
  gpu.func @gemm(%A: memref<16x24xf64>, %B: memref<24x16xf64>, %C: memref<16x16xf64>) kernel {
    %a = xetile.init_tile %A[0, 0] : memref<16x24xf64> -> !xetile.tile<16x24xf64>
    %b = xetile.init_tile %B[0, 0] : memref<24x16xf64> -> !xetile.tile<24x16xf64>
    %c = xetile.init_tile %C[0, 0] : memref<16x16xf64> -> !xetile.tile<16x16xf64>
    %x = xetile.load_tile %a : !xetile.tile<16x24xf64> -> vector<16x24xf64>
    %y = xetile.load_tile %b : !xetile.tile<24x16xf64> -> vector<24x16xf64>
    %z = xetile.tile_mma %x, %y : vector<16x24xf64>, vector<24x16xf64> -> vector<16x16xf64>
    xetile.store_tile %z, %c : vector<16x16xf64>, !xetile.tile<16x16xf64>
    gpu.return
  }
}

// Sums of 24 numbers, from 0, 24, and so on.
// CHECK: {{\[\[}} 276.  276.
// CHECK: {{\[}} 852.  852.
// CHECK: {{\[}}1428. 1428.
