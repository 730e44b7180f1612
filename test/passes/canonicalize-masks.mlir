// RUN: xegpu-opt %s --canonicalize | FileCheck %s

// Under a mask that is not set, upstream's canonicalization takes the element of a reduction for its result. It drops
// the accumulator of a reduction along no dimension, and makes invalid IR of a gather of consecutive elements.

// CHECK-LABEL: func.func @one
// CHECK-SAME: (%[[M:.*]]: vector<1xi1>, %[[V:.*]]: vector<1xf32>)
// CHECK: %[[NONE:.*]] = arith.constant dense<0x7FC00000> : vector<1xf32>
// CHECK: %[[CHOSEN:.*]] = arith.select %[[M]], %[[V]], %[[NONE]]
// CHECK: vector.extract %[[CHOSEN]][0]
func.func @one(%m: vector<1xi1>, %v: vector<1xf32>) -> f32 {
  %r = vector.mask %m { vector.reduction <minnumf>, %v : vector<1xf32> into f32 } : vector<1xi1> -> f32
  return %r : f32
}

// CHECK-LABEL: func.func @each
// CHECK-SAME: (%[[M:.*]]: vector<4x1xi1>, %[[V:.*]]: vector<4x1xi32>, %[[A:.*]]: vector<4xi32>)
// CHECK: %[[NONE:.*]] = arith.constant dense<1> : vector<4x1xi32>
// CHECK: %[[CHOSEN:.*]] = arith.select %[[M]], %[[V]], %[[NONE]]
// CHECK: %[[FLAT:.*]] = vector.shape_cast %[[CHOSEN]]
// CHECK: %[[ALL:.*]] = arith.muli %[[A]], %[[FLAT]]
// CHECK: return %[[ALL]]
func.func @each(%m: vector<4x1xi1>, %v: vector<4x1xi32>, %a: vector<4xi32>) -> vector<4xi32> {
  %r = vector.mask %m { vector.multi_reduction <mul>, %v, %a [1] : vector<4x1xi32> to vector<4xi32> } : vector<4x1xi1> -> vector<4xi32>
  return %r : vector<4xi32>
}

// CHECK-LABEL: func.func @along_none
// CHECK-SAME: (%[[M:.*]]: vector<4xi1>, %[[V:.*]]: vector<4xf32>, %[[A:.*]]: vector<4xf32>)
// CHECK: %[[NONE:.*]] = arith.constant dense<-0.000000e+00> : vector<4xf32>
// CHECK: %[[CHOSEN:.*]] = arith.select %[[M]], %[[V]], %[[NONE]]
// CHECK: %[[MASKED:.*]] = arith.addf %[[A]], %[[CHOSEN]]
// CHECK: %[[ALL:.*]] = arith.addf %[[A]], %[[V]]
// CHECK: return %[[MASKED]], %[[ALL]]
func.func @along_none(%m: vector<4xi1>, %v: vector<4xf32>, %a: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
  %r = vector.mask %m { vector.multi_reduction <add>, %v, %a [] : vector<4xf32> to vector<4xf32> } : vector<4xi1> -> vector<4xf32>
  %s = vector.multi_reduction <add>, %v, %a [] : vector<4xf32> to vector<4xf32>
  return %r, %s : vector<4xf32>, vector<4xf32>
}

// CHECK-LABEL: func.func @more
// CHECK: vector.mask %{{.*}} { vector.multi_reduction <add>
func.func @more(%m: vector<2x4xi1>, %v: vector<2x4xf32>, %a: vector<2xf32>) -> vector<2xf32> {
  %r = vector.mask %m { vector.multi_reduction <add>, %v, %a [1] : vector<2x4xf32> to vector<2xf32> } : vector<2x4xi1> -> vector<2xf32>
  return %r : vector<2xf32>
}

// CHECK-LABEL: func.func @consecutive
// CHECK: %[[I:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
// CHECK: vector.mask %{{.*}} { vector.gather %{{.*}} [%[[I]]]
func.func @consecutive(%m: vector<4xi1>, %p: memref<9xf32>, %other: vector<4xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  %i = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
  %r = vector.mask %m { vector.gather %p[%c0] [%i], %m, %other : memref<9xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32> } : vector<4xi1> -> vector<4xf32>
  return %r : vector<4xf32>
}
