// RUN: xegpu-opt %s --int-range-optimizations | FileCheck %s

// MLIR's pass does not converge where a known number has a type without constants. What it replaced is kept.

// CHECK-LABEL: func.func @f
// CHECK: %[[T:.*]] = arith.constant true
// CHECK: %[[X:.*]] = vector.extract %{{.*}} : ui32 from vector<2x8xui32>
// CHECK: memref.store %[[X]]
// CHECK: return %[[T]] : i1
func.func @f(%m: memref<3xui32>, %i: index) -> i1 {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %v = arith.constant dense<1> : vector<2x8xui32>
  %x = vector.extract %v[0, 7] : ui32 from vector<2x8xui32>
  memref.store %x, %m[%c0] : memref<3xui32>
  %low = arith.remui %i, %c8 : index
  %less = arith.cmpi ult, %low, %c8 : index
  return %less : i1
}
