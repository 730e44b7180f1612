// RUN: xegpu-opt %s --xegpu-inline --split-input-file | FileCheck %s
// RUN: xegpu-opt %s --xegpu-inline='kernel=one' --split-input-file | FileCheck %s --check-prefix=ONE

// Nested calls, inside loops, with arguments and results.

gpu.module @m {
  func.func private @llvm.genx.srnd(vector<16xf32>, vector<16xi32>) -> vector<16xf16>
  func.func @square(%x: vector<16xf32>) -> vector<16xf32> {
    %r = arith.mulf %x, %x : vector<16xf32>
    return %r : vector<16xf32>
  }
  // CHECK: func.func @both
  func.func @both(%x: vector<16xf32>, %y: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>) {
    %z = func.call @square(%x) : (vector<16xf32>) -> vector<16xf32>
    return %z, %y : vector<16xf32>, vector<16xf32>
  }

  // CHECK: gpu.func @nested(%[[X:.+]]: vector<16xf32>, %[[N:.+]]: index)
  // CHECK: %[[L:.+]] = scf.for {{.*}} iter_args(%[[V:.+]] = %[[X]])
  // CHECK-NEXT: %[[A:.+]] = arith.mulf %[[V]], %[[V]]
  // CHECK-NEXT: %[[B:.+]] = arith.mulf %[[X]], %[[X]]
  // CHECK-NEXT: %[[S:.+]] = arith.addf %[[A]], %[[B]]
  // CHECK-NEXT: scf.yield %[[S]]
  // CHECK-NOT: call
  // CHECK: gpu.return
  gpu.func @nested(%x: vector<16xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (vector<16xf32>) {
      %a, %b = func.call @both(%v, %x) : (vector<16xf32>, vector<16xf32>) -> (vector<16xf32>, vector<16xf32>)
      %c = func.call @square(%b) : (vector<16xf32>) -> vector<16xf32>
      %s = arith.addf %a, %c : vector<16xf32>
      scf.yield %s : vector<16xf32>
    }
    gpu.return
  }

  // A function with a region that uses values defined outside of it.
  // CHECK: gpu.func @regions(%[[P:.+]]: i1, %[[X:.+]]: vector<16xf32>)
  // CHECK: %[[D:.+]] = arith.addf %[[X]], %[[X]]
  // CHECK-NEXT: scf.if %[[P]]
  // CHECK-NEXT: %[[E:.+]] = arith.mulf %[[D]], %[[X]]
  // CHECK-NEXT: scf.yield %[[E]]
  // CHECK: scf.yield %[[D]]
  func.func @chosen(%p: i1, %x: vector<16xf32>) -> vector<16xf32> {
    %d = arith.addf %x, %x : vector<16xf32>
    %r = scf.if %p -> vector<16xf32> {
      %e = arith.mulf %d, %x : vector<16xf32>
      scf.yield %e : vector<16xf32>
    } else {
      scf.yield %d : vector<16xf32>
    }
    return %r : vector<16xf32>
  }
  gpu.func @regions(%p: i1, %x: vector<16xf32>) kernel {
    %r = func.call @chosen(%p, %x) : (i1, vector<16xf32>) -> vector<16xf32>
    gpu.return
  }

  // Calls of intrinsics are not inlined.
  // CHECK: gpu.func @intrinsic
  // CHECK: call @llvm.genx.srnd
  gpu.func @intrinsic(%x: vector<16xf32>, %r: vector<16xi32>) kernel {
    %y = func.call @llvm.genx.srnd(%x, %r) : (vector<16xf32>, vector<16xi32>) -> vector<16xf16>
    gpu.return
  }
}

// -----

// Only the selected kernel is changed; functions of the host keep their calls.

// ONE-LABEL: func.func @host
// ONE-NEXT: call @f
func.func @host(%x: i32) -> i32 {
  %y = func.call @f(%x) : (i32) -> i32
  return %y : i32
}
func.func @f(%x: i32) -> i32 {
  return %x : i32
}
gpu.module @m {
  func.func @f(%x: i32) -> i32 {
    %y = arith.addi %x, %x : i32
    return %y : i32
  }
  // ONE: gpu.func @one
  // ONE-NEXT: arith.addi
  gpu.func @one(%x: i32) kernel {
    %y = func.call @f(%x) : (i32) -> i32
    gpu.return
  }
  // ONE: gpu.func @other
  // ONE-NEXT: call @f
  gpu.func @other(%x: i32) kernel {
    %y = func.call @f(%x) : (i32) -> i32
    gpu.return
  }
}
