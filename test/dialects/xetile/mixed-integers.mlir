// Older XeTile text mixes i32 and index: values are cast where they are used.

// RUN: xegpu-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @loop
// CHECK-SAME: (%[[A:.*]]: memref<64x64xf32>, %[[N:.*]]: i32)
func.func @loop(%a: memref<64x64xf32>, %n: i32) -> vector<16x16xf32> {
  %c0 = arith.constant 0 : index
  %0 = arith.constant 16 : i32
  %z = arith.constant dense<0.0> : vector<16x16xf32>
  // CHECK: %[[STEP:.*]] = arith.index_cast %{{.*}} : i32 to index
  // CHECK: %[[END:.*]] = arith.index_cast %[[N]] : i32 to index
  // CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[END]] step %[[STEP]]
  %r = scf.for %k = %c0 to %n
      step %0 iter_args(%s = %z) -> (vector<16x16xf32>) {
    // CHECK: %[[COLUMN:.*]] = arith.index_cast %[[K]] : index to i32
    // CHECK: %[[TWICE:.*]] = arith.addi %[[COLUMN]], %{{.*}} : i32
    %m = arith.addi %k, %0 : i32
    // CHECK: %[[ROW:.*]] = arith.index_cast %[[TWICE]] : i32 to index
    // CHECK: xetile.init_tile %[[A]][%[[ROW]], %[[K]]]
    %t = xetile.init_tile %a[%m, %k] : memref<64x64xf32> -> !xetile.tile<16x16xf32>
    %x = xetile.load_tile %t : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %y = arith.addf %s, %x : vector<16x16xf32>
    scf.yield %y : vector<16x16xf32>
  }
  return %r : vector<16x16xf32>
}

// -----

// Other types are not cast, and text of other dialects is read as MLIR reads it.
func.func @float(%a: memref<64x64xf32>, %n: f32) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<16x16xf32>
  // expected-error @+2 {{use of value '%n' expects different type than prior uses: 'index' vs 'f32'}}
  // expected-note @-3 {{prior use here}}
  %m = arith.addi %n, %n : index
  return
}

// -----

func.func @other(%n: i32, %i: index) {
  // expected-error @+2 {{use of value '%n' expects different type than prior uses: 'index' vs 'i32'}}
  // expected-note @-2 {{prior use here}}
  %m = arith.addi %i, %n : index
  return
}
