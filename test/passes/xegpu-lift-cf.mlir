// RUN: xegpu-opt %s --xegpu-lift-cf | FileCheck %s
// RUN: xegpu-opt %s --xegpu-lift-cf='kernel=other' | FileCheck %s --check-prefix=OTHER

// A loop with a condition, in a kernel.

// CHECK-LABEL: gpu.func @loop
// OTHER-LABEL: gpu.func @loop
gpu.module @kernels {
  gpu.func @loop(%A: memref<8x16xf32>, %n: i32) kernel {
    // OTHER: cf.br
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    // CHECK: scf.while (%[[I:.*]] = %{{.*}}, %[[V:.*]] = %{{.*}}) : (i32, vector<8x16xf32>) -> (i32, vector<8x16xf32>) {
    // CHECK: %[[GO:.*]] = arith.cmpi slt, %[[I]]
    // CHECK: scf.condition(%[[GO]]) %[[I]], %[[V]]
    // CHECK: arith.addf
    // CHECK: scf.yield
    // CHECK: xegpu.store_nd
    // CHECK-NEXT: gpu.return
    cf.br ^loop(%c0, %zero : i32, vector<8x16xf32>)
  ^loop(%i: i32, %v: vector<8x16xf32>):
    %go = arith.cmpi slt, %i, %n : i32
    cf.cond_br %go, ^body, ^end
  ^body:
    %x = arith.addf %v, %v : vector<8x16xf32>
    %j = arith.addi %i, %c1 : i32
    cf.br ^loop(%j, %x : i32, vector<8x16xf32>)
  ^end:
    %d = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %v, %d {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }

  // A branch, in a function that kernels may call.

  // CHECK-LABEL: func.func @pick
  // OTHER-LABEL: func.func @pick
  func.func @pick(%x: f32, %first: i1) -> f32 {
    // CHECK: %[[R:.*]] = scf.if
    // CHECK: return %[[R]]
    // OTHER: scf.if
    cf.cond_br %first, ^a, ^b
  ^a:
    %y = arith.mulf %x, %x : f32
    return %y : f32
  ^b:
    return %x : f32
  }
}

// A function of the host is not changed.

// CHECK-LABEL: func.func @host
func.func @host(%first: i1) {
  // CHECK: cf.cond_br
  cf.cond_br %first, ^a, ^b
^a:
  return
^b:
  return
}
