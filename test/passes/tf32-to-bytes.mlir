// Narrowing a tf32 number to 8 bits begins with f32: canonicalize has folded the conversion to f32 before it.

// RUN: xegpu-opt --pass-pipeline='builtin.module(xetile-to-xegpu-pipeline{target=pvcxt grf=128 prefetch-distance=0 load-ahead=true},xegpu-to-visa-pipeline{target=pvcxt grf=128 unaligned=true optimize=true})' %s | xegpu-run - small:f32:8x3:seed=0 zeros:f32:8x3 zeros:f8E5M2:8x3 --engine both -o 0=%t.both.0.npy -o 1=%t.both.1.npy -o 2=%t.both.2.npy
// RUN: xegpu-run %s small:f32:8x3:seed=0 zeros:f32:8x3 zeros:f8E5M2:8x3 --engine reference -o 0=%t.reference.0.npy -o 1=%t.reference.1.npy -o 2=%t.reference.2.npy
// RUN: cmp %t.both.0.npy %t.reference.0.npy
// RUN: cmp %t.both.1.npy %t.reference.1.npy
// RUN: cmp %t.both.2.npy %t.reference.2.npy

gpu.module @kernels {
  gpu.func @random(%a0: memref<8x3xtf32>, %a1: memref<8x3xf32>, %a2: memref<8x3xf8E5M2>) kernel {
    %v1 = gpu.block_id x
    %v2 = arith.constant 0 : index
    %v3 = arith.constant 0 : index
    %v4 = xetile.init_tile %a0[%v2, %v3] : memref<8x3xtf32> -> !xetile.tile<8x3xtf32>
    %v5 = xetile.load_tile %v4 : !xetile.tile<8x3xtf32> -> vector<8x3xtf32>
    %v6 = arith.extf %v5 : vector<8x3xtf32> to vector<8x3xf32>
    %v7 = arith.truncf %v6 : vector<8x3xf32> to vector<8x3xf8E5M2>
    %v8 = arith.constant 8 : index
    %v9 = arith.muli %v1, %v8 : index
    %v10 = arith.constant 0 : index
    %v11 = xetile.init_tile %a1[%v9, %v10] : memref<8x3xf32> -> !xetile.tile<8x3xf32>
    xetile.store_tile %v6, %v11 : vector<8x3xf32>, !xetile.tile<8x3xf32>
    %v12 = arith.constant 8 : index
    %v13 = arith.muli %v1, %v12 : index
    %v14 = arith.constant 0 : index
    %v15 = xetile.init_tile %a2[%v13, %v14] : memref<8x3xf8E5M2> -> !xetile.tile<8x3xf8E5M2>
    xetile.store_tile %v7, %v15 : vector<8x3xf8E5M2>, !xetile.tile<8x3xf8E5M2>
    gpu.return
  }
}
