// Layouts propagate forward from operands to results, then backward from uses. A to_layout converts between two
// layouts.

// RUN: xegpu-opt %s --vector-layout-analysis | FileCheck %s

#l = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [4, 1]>
#t = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [1, 4]>
#a = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [8, 1], element_tile = [1, 16], subgroup_strides = [0, 0], thread_strides = [2, 0]>
#b = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [1, 2], element_tile = [16, 2], subgroup_strides = [0, 0], thread_strides = [0, 1]>

// CHECK-LABEL: func.func @forward_and_backward
func.func @forward_and_backward(%m: memref<8x16xf32>, %w: vector<8x16xf32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %p = arith.constant 0.0 : f32
  // Backward to the accumulator, without the reduced dimension.
  // CHECK: arith.constant {iree_vector_ext.layouts = [#iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [1], outer_tile = [1], thread_tile = [4], element_tile = [1], subgroup_strides = [1], thread_strides = [4]>]}
  %zero = arith.constant dense<0.0> : vector<8xf32>
  // Backward from the anchor.
  // CHECK: vector.transfer_read {{.*}}iree_vector_ext.layouts = [#iree_vector_ext.nested_layout<subgroup_tile = [2, 1],{{.*}} thread_strides = [4, 1]>]
  %v = vector.transfer_read %m[%c0, %c0], %p {in_bounds = [true, true]} : memref<8x16xf32>, vector<8x16xf32>
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xf32>
  // Forward.
  // CHECK: arith.addf %{{.*}} {iree_vector_ext.layouts = [#iree_vector_ext.nested_layout<subgroup_tile = [2, 1],
  %1 = arith.addf %0, %w : vector<8x16xf32>
  // CHECK: vector.transpose %{{.*}} {iree_vector_ext.layouts = [#iree_vector_ext.nested_layout<subgroup_tile = [1, 2], batch_tile = [2, 1], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [2, 1], subgroup_strides = [0, 1], thread_strides = [1, 4]>]}
  %2 = vector.transpose %1, [1, 0] : vector<8x16xf32> to vector<16x8xf32>
  // CHECK: vector.multi_reduction <add>, %{{.*}} {iree_vector_ext.layouts = [#iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [1],
  %3 = vector.multi_reduction <add>, %2, %zero [0] : vector<16x8xf32> to vector<8xf32>
  return %3 : vector<8xf32>
}

// CHECK-LABEL: func.func @conflict
func.func @conflict(%a: vector<8x16xf32>, %b: vector<8x16xf32>) -> vector<8x16xf32> {
  // The constant is duplicated for each layout, first for its last use.
  // CHECK: %[[K1:.*]] = arith.constant {{.*}} thread_strides = [1, 4]>]} dense<2.000000e+00>
  %two = arith.constant dense<2.0> : vector<8x16xf32>
  // CHECK: %[[A:.*]] = iree_vector_ext.to_layout %{{.*}} thread_strides = [4, 1]>)
  %0 = iree_vector_ext.to_layout %a to layout(#l) : vector<8x16xf32>
  // CHECK: %[[B:.*]] = iree_vector_ext.to_layout %{{.*}} thread_strides = [1, 4]>)
  %1 = iree_vector_ext.to_layout %b to layout(#t) : vector<8x16xf32>
  // CHECK: %[[K0:.*]] = arith.constant {{.*}} thread_strides = [4, 1]>]} dense<2.000000e+00>
  // CHECK: %[[A2:.*]] = arith.mulf %[[A]], %[[K0]]
  %2 = arith.mulf %0, %two : vector<8x16xf32>
  // CHECK: %[[B2:.*]] = arith.mulf %[[B]], %[[K1]]
  %3 = arith.mulf %1, %two : vector<8x16xf32>
  // CHECK: %[[C:.*]] = iree_vector_ext.to_layout %[[B2]] to layout({{.*}} thread_strides = [4, 1]>)
  // CHECK: arith.addf %[[A2]], %[[C]] {iree_vector_ext.layouts = [{{.*}} thread_strides = [4, 1]>]}
  %4 = arith.addf %2, %3 : vector<8x16xf32>
  return %4 : vector<8x16xf32>
}

// CHECK-LABEL: func.func @loop
func.func @loop(%a: vector<8x16xf32>, %n: index) -> vector<8x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = iree_vector_ext.to_layout %a to layout(#l) : vector<8x16xf32>
  // CHECK: scf.for
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %0) -> vector<8x16xf32> {
    // CHECK: %[[T:.*]] = iree_vector_ext.to_layout %{{.*}} thread_strides = [1, 4]>)
    %2 = iree_vector_ext.to_layout %x to layout(#t) : vector<8x16xf32>
    // CHECK: %[[S:.*]] = math.sqrt %[[T]] {iree_vector_ext.layouts = [{{.*}} thread_strides = [1, 4]>]}
    %3 = math.sqrt %2 : vector<8x16xf32>
    // CHECK: %[[Y:.*]] = iree_vector_ext.to_layout %[[S]] to layout({{.*}} thread_strides = [4, 1]>)
    // CHECK: scf.yield %[[Y]]
    scf.yield %3 : vector<8x16xf32>
  }
  // CHECK: } {iree_vector_ext.layouts = [{{.*}} thread_strides = [4, 1]>]}
  return %1 : vector<8x16xf32>
}

// CHECK-LABEL: func.func @contract
func.func @contract(%a: vector<8x16xf32>, %b: vector<16x4xf32>) -> vector<8x4xf32> {
  %zero = arith.constant dense<0.0> : vector<8x4xf32>
  %0 = iree_vector_ext.to_layout %a to layout(#a) : vector<8x16xf32>
  %1 = iree_vector_ext.to_layout %b to layout(#b) : vector<16x4xf32>
  // M is from the left operand, N from the right.
  // CHECK: vector.contract {{.*}}iree_vector_ext.layouts = [#iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [8, 2], element_tile = [1, 2], subgroup_strides = [0, 0], thread_strides = [2, 1]>]
  %2 = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %0, %1, %zero : vector<8x16xf32>, vector<16x4xf32> into vector<8x4xf32>
  return %2 : vector<8x4xf32>
}

// A value is converted once for all later uses, and once in the other branch.
// CHECK-LABEL: func.func @converted_once
func.func @converted_once(%a: vector<8x16xf32>, %b: vector<8x16xf32>, %c: vector<8x16xf32>, %which: i1) -> vector<8x16xf32> {
  // CHECK: %[[A:.*]] = iree_vector_ext.to_layout %arg0
  %0 = iree_vector_ext.to_layout %a to layout(#l) : vector<8x16xf32>
  // CHECK: %[[B:.*]] = iree_vector_ext.to_layout %arg1
  %1 = iree_vector_ext.to_layout %b to layout(#t) : vector<8x16xf32>
  // CHECK: %[[C:.*]] = iree_vector_ext.to_layout %arg2
  %2 = iree_vector_ext.to_layout %c to layout(#l) : vector<8x16xf32>
  // CHECK: %[[AT:.*]] = iree_vector_ext.to_layout %[[A]] to layout(#iree_vector_ext.nested_layout<{{.*}} thread_strides = [1, 4]>)
  // CHECK: arith.addf %[[B]], %[[AT]]
  %3 = arith.addf %1, %0 : vector<8x16xf32>
  // CHECK-NOT: to_layout %[[A]]
  // CHECK: scf.if
  %4 = scf.if %which -> vector<8x16xf32> {
    // CHECK-NOT: to_layout %[[A]]
    // CHECK: %[[D:.*]] = iree_vector_ext.to_layout %[[C]]
    // CHECK: arith.mulf %{{.*}}, %[[D]]
    %5 = arith.mulf %3, %2 : vector<8x16xf32>
    // CHECK: arith.subf %{{.*}}, %[[AT]]
    %6 = arith.subf %5, %0 : vector<8x16xf32>
    scf.yield %6 : vector<8x16xf32>
  } else {
    // CHECK: } else {
    // CHECK: %[[E:.*]] = iree_vector_ext.to_layout %[[C]]
    // CHECK: arith.divf %{{.*}}, %[[E]]
    %7 = arith.divf %3, %2 : vector<8x16xf32>
    scf.yield %7 : vector<8x16xf32>
  }
  // CHECK-NOT: to_layout %[[A]]
  // CHECK: return
  return %4 : vector<8x16xf32>
}
