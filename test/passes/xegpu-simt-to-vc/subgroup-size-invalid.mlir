// RUN: not xegpu-opt %s --xegpu-simt-to-vc='subgroup-size=12' 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: xegpu-opt %s --xegpu-simt-to-vc='subgroup-size=32' | FileCheck %s

// SIZE: error: 'builtin.module' op subgroup-size must be 8, 16 or 32, but got 12
// CHECK: vector<32xf32>

gpu.module @k {
  gpu.func @add(%a: memref<64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %x = memref.load %a[%t] : memref<64xf32>
    %y = arith.addf %x, %x : f32
    memref.store %y, %a[%t] : memref<64xf32>
    gpu.return
  }
}
