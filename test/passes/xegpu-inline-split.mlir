// RUN: xegpu-opt %s --xegpu-to-visa-pipeline='target=pvc' | FileCheck %s

// A function's block is larger than one message can load; it is split where its descriptor is created.

// CHECK: gpu.func @k
// CHECK-COUNT-2: visa.lsc_load_block2d.ugm {{.*}}:d16.32x32nn
// CHECK-COUNT-8: visa.lsc_store_block2d.ugm {{.*}}:d16.32x8nn
gpu.module @m {
  func.func private @load(%t: !xegpu.tensor_desc<64x32xf16>) -> vector<64x32xf16> {
    %v = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<64x32xf16> -> vector<64x32xf16>
    return %v : vector<64x32xf16>
  }
  gpu.func @k(%a: memref<64x32xf16>, %b: memref<64x32xf16>) kernel {
    %t = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<64x32xf16> -> !xegpu.tensor_desc<64x32xf16>
    %u = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<64x32xf16> -> !xegpu.tensor_desc<64x32xf16>
    %v = func.call @load(%t) : (!xegpu.tensor_desc<64x32xf16>) -> vector<64x32xf16>
    xegpu.store_nd %v, %u {mode = vc} : vector<64x32xf16>, !xegpu.tensor_desc<64x32xf16>
    gpu.return
  }
}
