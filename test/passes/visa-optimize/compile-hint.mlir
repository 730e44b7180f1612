// RUN: xegpu-opt %s --xegpu-to-visa-pipeline | FileCheck %s
// RUN: xegpu-opt %s --xegpu-to-visa-pipeline='optimize=false' | FileCheck %s --check-prefix=PLAIN

!line = !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @hint
  // CHECK: visa.lsc_load
  // CHECK: visa.add
  // CHECK-NEXT: visa.fence_sw
  // CHECK-NEXT: visa.shl (M1_NM, 1)
  // CHECK-NEXT: visa.add (M1_NM, 1)
  // CHECK-NEXT: visa.lsc_load
  // PLAIN-LABEL: gpu.func @hint
  // PLAIN: visa.fence_sw
  gpu.func @hint(%m: memref<32xf32>, %i: index) kernel {
    %d = xegpu.create_nd_tdesc %m[0] {mode = vc} : memref<32xf32> -> !line
    %e = xegpu.create_nd_tdesc %m[%i] {mode = vc} : memref<32xf32> -> !line
    %x = xegpu.load_nd %d {mode = vc} : !line -> vector<16xf32>
    %z = arith.addf %x, %x : vector<16xf32>
    xegpu.compile_hint {hint = schedule_barrier}
    %y = xegpu.load_nd %e {mode = vc} : !line -> vector<16xf32>
    %s = arith.mulf %z, %y : vector<16xf32>
    xegpu.store_nd %s, %d {mode = vc} : vector<16xf32>, !line
    gpu.return
  }
}
