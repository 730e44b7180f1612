// Functions with descriptors and vectors as arguments, of blocks that have to be split in the kernel that calls them.

// RUN: xegpu-run %s arange:f16:64x32 zeros:f16:64x32 --kernel twice --print 1 | FileCheck %s
// CHECK: {{\[\[}}0.000e+00 2.000e+00 4.000e+00
// CHECK: 4.090e+03 4.092e+03 4.094e+03{{\]\]}}

gpu.module @kernels {
  func.func private @load(%block: !xegpu.tensor_desc<64x32xf16>) -> vector<64x32xf16> {
    %v = xegpu.load_nd %block {mode = vc} : !xegpu.tensor_desc<64x32xf16> -> vector<64x32xf16>
    return %v : vector<64x32xf16>
  }
  func.func private @double(%block: !xegpu.tensor_desc<64x32xf16>) -> vector<64x32xf16> {
    %v = func.call @load(%block) : (!xegpu.tensor_desc<64x32xf16>) -> vector<64x32xf16>
    %w = func.call @load(%block) : (!xegpu.tensor_desc<64x32xf16>) -> vector<64x32xf16>
    %sum = arith.addf %v, %w : vector<64x32xf16>
    return %sum : vector<64x32xf16>
  }
  gpu.func @twice(%in: memref<64x32xf16>, %out: memref<64x32xf16>) kernel {
    %from = xegpu.create_nd_tdesc %in[0, 0] {mode = vc} : memref<64x32xf16> -> !xegpu.tensor_desc<64x32xf16>
    %to = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<64x32xf16> -> !xegpu.tensor_desc<64x32xf16>
    %v = func.call @double(%from) : (!xegpu.tensor_desc<64x32xf16>) -> vector<64x32xf16>
    xegpu.store_nd %v, %to {mode = vc} : vector<64x32xf16>, !xegpu.tensor_desc<64x32xf16>
    gpu.return
  }
}
