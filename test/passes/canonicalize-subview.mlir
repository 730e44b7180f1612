// RUN: xegpu-opt %s --canonicalize | FileCheck %s

// Upstream's canonicalization ends the process at some of these views, or drops another dimension.

// CHECK-LABEL: func.func @one_of_two
// CHECK: memref.subview %{{.*}}[%[[ONE:.*]], %{{.*}}] [%[[ONE]], 1] [%[[ONE]], 1] : memref<?x8xf32> to memref<?xf32, strided<[?], offset: ?>>
func.func @one_of_two(%m: memref<?x8xf32>) -> memref<?xf32, strided<[?], offset: ?>> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = memref.subview %m[%c1, %c0] [%c1, 1] [%c1, 1] : memref<?x8xf32> to memref<?xf32, strided<[?], offset: ?>>
  return %r : memref<?xf32, strided<[?], offset: ?>>
}

// CHECK-LABEL: func.func @two_of_three
// CHECK: memref.subview {{.*}} to memref<?x2xf32, strided<[?, ?], offset: ?>>
func.func @two_of_three(%m: memref<8x16x8xf32, strided<[?, ?, ?], offset: ?>>, %d: index) -> memref<?x2xf32, strided<[?, ?], offset: ?>> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = memref.subview %m[%c0, %d, %c0] [%c1, 2, 1] [1, %c1, %c1] : memref<8x16x8xf32, strided<[?, ?, ?], offset: ?>> to memref<?x2xf32, strided<[?, ?], offset: ?>>
  return %r : memref<?x2xf32, strided<[?, ?], offset: ?>>
}

// CHECK-LABEL: func.func @extent_of_a_row
// CHECK: memref.subview
func.func @extent_of_a_row(%m: memref<?x8xf32>, %d: index) -> index {
  %c0 = arith.constant 0 : index
  %r = memref.subview %m[%d, 0] [1, %d] [1, %d] : memref<?x8xf32> to memref<?xf32, strided<[?], offset: ?>>
  %n = memref.dim %r, %c0 : memref<?xf32, strided<[?], offset: ?>>
  return %n : index
}

// Other views have their constants.
// CHECK-LABEL: func.func @full_rank
// CHECK: memref.subview %{{.*}}[1, 0] [1, 1] [1, 1]
func.func @full_rank(%m: memref<?x8xf32>) -> memref<1x1xf32, strided<[8, 1], offset: ?>> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = memref.subview %m[%c1, %c0] [1, 1] [1, 1] : memref<?x8xf32> to memref<1x1xf32, strided<[8, 1], offset: ?>>
  return %r : memref<1x1xf32, strided<[8, 1], offset: ?>>
}

// An extent is folded where its dimension exists; a dimension that is not known to exist stays.
// CHECK-LABEL: func.func @extents
// CHECK: %[[C4:.*]] = arith.constant 4 : index
// CHECK: %[[N:.*]] = memref.dim %{{.*}}, %{{.*}} : memref<4x?xf32>
// CHECK: return %[[C4]], %[[N]]
func.func @extents(%m: memref<4x?xf32>, %d: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %a = memref.dim %m, %c0 : memref<4x?xf32>
  %b = memref.dim %m, %d : memref<4x?xf32>
  return %a, %b : index, index
}
