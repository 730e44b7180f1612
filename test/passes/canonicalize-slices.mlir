// RUN: xegpu-opt %s --canonicalize | FileCheck %s

// Upstream's folder takes an insertion that begins inside a slice for one that does not overlap it.

// CHECK-LABEL: func.func @begins_inside
// CHECK-SAME: (%[[A:.*]]: vector<6xf32>, %[[B:.*]]: vector<4xf32>, %{{.*}}: vector<8xf32>)
func.func @begins_inside(%a: vector<6xf32>, %b: vector<4xf32>, %c: vector<8xf32>) -> vector<6xf32> {
  // CHECK-DAG: %[[LEFT:.*]] = vector.extract_strided_slice %[[A]] {offsets = [0], sizes = [2], strides = [1]}
  // CHECK-DAG: %[[RIGHT:.*]] = vector.insert_strided_slice %[[LEFT]], %{{.*}} {offsets = [0], strides = [1]}
  // CHECK: %[[BOTH:.*]] = vector.insert_strided_slice %[[B]], %[[RIGHT]] {offsets = [2], strides = [1]}
  // CHECK: return %[[BOTH]]
  %w = vector.insert_strided_slice %a, %c {offsets = [0], strides = [1]} : vector<6xf32> into vector<8xf32>
  %x = vector.insert_strided_slice %b, %w {offsets = [2], strides = [1]} : vector<4xf32> into vector<8xf32>
  %y = vector.extract_strided_slice %x {offsets = [0], sizes = [6], strides = [1]} : vector<8xf32> to vector<6xf32>
  return %y : vector<6xf32>
}

// It does not compare the dimensions for which a slice gives no offset.

// CHECK-LABEL: func.func @inner_dimension
func.func @inner_dimension(%a: vector<2x3xf32>, %b: vector<2x2xf32>) -> vector<1x3xf32> {
  // CHECK: %[[X:.*]] = vector.insert_strided_slice
  // CHECK: vector.extract{{.*}} %[[X]]
  %x = vector.insert_strided_slice %b, %a {offsets = [0, 0], strides = [1, 1]} : vector<2x2xf32> into vector<2x3xf32>
  %y = vector.extract_strided_slice %x {offsets = [0], sizes = [1], strides = [1]} : vector<2x3xf32> to vector<1x3xf32>
  return %y : vector<1x3xf32>
}

// So is a value that a loop of one iteration yields.

// CHECK-LABEL: func.func @through_a_loop
// CHECK-SAME: (%{{.*}}, %[[B:.*]]: vector<4xf32>, %{{.*}})
func.func @through_a_loop(%a: vector<6xf32>, %b: vector<4xf32>, %c: vector<8xf32>) -> vector<6xf32> {
  // CHECK-NOT: scf.for
  // CHECK: vector.insert_strided_slice %[[B]], %{{.*}} {offsets = [2], strides = [1]}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = vector.insert_strided_slice %a, %c {offsets = [0], strides = [1]} : vector<6xf32> into vector<8xf32>
  %x = scf.for %i = %c0 to %c1 step %c1 iter_args(%in = %w) -> (vector<8xf32>) {
    %out = vector.insert_strided_slice %b, %in {offsets = [2], strides = [1]} : vector<4xf32> into vector<8xf32>
    scf.yield %out : vector<8xf32>
  }
  %y = vector.extract_strided_slice %x {offsets = [0], sizes = [6], strides = [1]} : vector<8xf32> to vector<6xf32>
  return %y : vector<6xf32>
}

// A slice that no insertion overlaps is not split.

// CHECK-LABEL: func.func @apart
// CHECK-COUNT-1: vector.extract_strided_slice
// CHECK-NOT: vector.extract_strided_slice
func.func @apart(%a: vector<4x4xf32>, %b: vector<2x2xf32>) -> vector<2x4xf32> {
  %0 = vector.insert_strided_slice %b, %a {offsets = [2, 1], strides = [1, 1]} : vector<2x2xf32> into vector<4x4xf32>
  %1 = vector.extract_strided_slice %0 {offsets = [0, 0], sizes = [2, 4], strides = [1, 1]} : vector<4x4xf32> to vector<2x4xf32>
  return %1 : vector<2x4xf32>
}
