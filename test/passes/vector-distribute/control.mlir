// Loops and branches pass on lanes' parts.

// RUN: xegpu-opt %s --vector-distribute --canonicalize | FileCheck %s

#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>

// CHECK-LABEL: func.func @for
func.func @for(%v: vector<64xf32>, %n: index) -> (vector<64xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %start = arith.constant dense<0.0> : vector<64xf32>
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xf32>
  // CHECK: %[[F:.*]]:2 = scf.for %{{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[I:.*]] = %{{.*}}) -> (vector<2x1x1xf32>, index) {
  // CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %{{.*}} : vector<2x1x1xf32>
  // CHECK-NEXT: %[[J:.*]] = arith.addi %[[I]], %{{.*}} : index
  // CHECK-NEXT: scf.yield %[[S]], %[[J]] : vector<2x1x1xf32>, index
  // CHECK: %[[R:.*]] = iree_vector_ext.to_simd %[[F]]#0 : vector<2x1x1xf32> -> vector<64xf32>
  // CHECK: return %[[R]], %[[F]]#1
  %1:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %start, %k = %n) -> (vector<64xf32>, index) {
    %2 = arith.addf %acc, %0 : vector<64xf32>
    %3 = arith.addi %k, %i : index
    scf.yield %2, %3 : vector<64xf32>, index
  }
  return %1#0, %1#1 : vector<64xf32>, index
}

// CHECK-LABEL: func.func @if
func.func @if(%v: vector<64xf32>, %which: i1) -> vector<64xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xf32>
  // CHECK: scf.if %{{.*}} -> (vector<2x1x1xf32>) {
  // CHECK: arith.negf %{{.*}} : vector<2x1x1xf32>
  // CHECK: scf.yield %{{.*}} : vector<2x1x1xf32>
  // CHECK: } else {
  // CHECK: math.sqrt %{{.*}} : vector<2x1x1xf32>
  %1 = scf.if %which -> vector<64xf32> {
    %2 = arith.negf %0 : vector<64xf32>
    scf.yield %2 : vector<64xf32>
  } else {
    %3 = math.sqrt %0 : vector<64xf32>
    scf.yield %3 : vector<64xf32>
  }
  return %1 : vector<64xf32>
}

// CHECK-LABEL: func.func @while
func.func @while(%v: vector<64xf32>, %n: index) -> vector<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xf32>
  // CHECK: scf.while (%{{.*}} = %{{.*}}, %[[X:.*]] = %{{.*}}) : (index, vector<2x1x1xf32>) -> (index, vector<2x1x1xf32>) {
  // CHECK: scf.condition(%{{.*}}) %{{.*}}, %[[X]] : index, vector<2x1x1xf32>
  // CHECK: ^bb0(%{{.*}}: index, %[[Y:.*]]: vector<2x1x1xf32>):
  // CHECK: arith.addf %[[Y]], %[[Y]] : vector<2x1x1xf32>
  %1:2 = scf.while (%i = %c0, %x = %0) : (index, vector<64xf32>) -> (index, vector<64xf32>) {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i, %x : index, vector<64xf32>
  } do {
  ^bb0(%i: index, %x: vector<64xf32>):
    %j = arith.addi %i, %c1 : index
    %y = arith.addf %x, %x : vector<64xf32>
    scf.yield %j, %y : index, vector<64xf32>
  }
  return %1#1 : vector<64xf32>
}
