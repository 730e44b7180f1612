// Functions that take descriptors and return vectors.

// RUN: xegpu-run %s arange:f16:8x32 zeros:f16:8x32 --kernel twice --print 1 | FileCheck %s
// CHECK: {{\[\[}}  0.   2.   4.
// CHECK: 504. 506. 508. 510.{{\]\]}}

gpu.module @kernels {
  func.func private @load(%block: !xegpu.tensor_desc<8x32xf16>) -> vector<8x32xf16> {
    %v = xegpu.load_nd %block {mode = vc} : !xegpu.tensor_desc<8x32xf16> -> vector<8x32xf16>
    return %v : vector<8x32xf16>
  }
  func.func private @double(%block: !xegpu.tensor_desc<8x32xf16>) -> vector<8x32xf16> {
    %v = func.call @load(%block) : (!xegpu.tensor_desc<8x32xf16>) -> vector<8x32xf16>
    %w = func.call @load(%block) : (!xegpu.tensor_desc<8x32xf16>) -> vector<8x32xf16>
    %sum = arith.addf %v, %w : vector<8x32xf16>
    return %sum : vector<8x32xf16>
  }
  gpu.func @twice(%in: memref<8x32xf16>, %out: memref<8x32xf16>) kernel {
    %from = xegpu.create_nd_tdesc %in[0, 0] {mode = vc} : memref<8x32xf16> -> !xegpu.tensor_desc<8x32xf16>
    %to = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<8x32xf16> -> !xegpu.tensor_desc<8x32xf16>
    %v = func.call @double(%from) : (!xegpu.tensor_desc<8x32xf16>) -> vector<8x32xf16>
    xegpu.store_nd %v, %to {mode = vc} : vector<8x32xf16>, !xegpu.tensor_desc<8x32xf16>
    gpu.return
  }
}
