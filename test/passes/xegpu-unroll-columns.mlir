// RUN: xegpu-opt --pass-pipeline='builtin.module(xegpu-unroll{target=pvcxt})' %s | FileCheck %s

// Columns that are sliced out of a vector do not divide it.

gpu.module @m {
  // CHECK-LABEL: @columns
  gpu.func @columns(%a: memref<16x16xf32>, %o: memref<16x16xf32>) kernel {
    %in = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32>
    %x = xegpu.load_nd %in {mode = vc} : !xegpu.tensor_desc<16x16xf32> -> vector<16x16xf32>
    // CHECK: arith.mulf %{{.*}} : vector<16x16xf32>
    %y = arith.mulf %x, %x : vector<16x16xf32>
    %l = vector.extract_strided_slice %y {offsets = [0, 3], sizes = [16, 1], strides = [1, 1]} : vector<16x16xf32> to vector<16x1xf32>
    %r = vector.extract_strided_slice %y {offsets = [0, 4], sizes = [16, 1], strides = [1, 1]} : vector<16x16xf32> to vector<16x1xf32>
    %lb = vector.broadcast %l : vector<16x1xf32> to vector<16x16xf32>
    %rb = vector.broadcast %r : vector<16x1xf32> to vector<16x16xf32>
    // CHECK: arith.addf %{{.*}} : vector<8x16xf32>
    %z = arith.addf %lb, %rb : vector<16x16xf32>
    %out = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32>
    xegpu.store_nd %z, %out {mode = vc} : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32>
    gpu.return
  }
}
