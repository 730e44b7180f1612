// Ops that only rearrange registers are distributed level by level: batches, outers, elements.

// RUN: xegpu-opt %s --vector-distribute --canonicalize | FileCheck %s

#l = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [4, 1]>
#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>

// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: (%[[A:.*]]: vector<8x16xf32>, %[[B:.*]]: vector<8x16xf32>) -> vector<8x16xf32>
func.func @elementwise(%a: vector<8x16xf32>, %b: vector<8x16xf32>) -> vector<8x16xf32> {
  // CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : vector<1x2x1x1x1x2xf32>
  // CHECK-DAG: %[[PA:.*]] = iree_vector_ext.to_simt %[[A]] : vector<8x16xf32> -> vector<1x2x1x1x1x2xf32>
  // CHECK-DAG: %[[PB:.*]] = iree_vector_ext.to_simt %[[B]] : vector<8x16xf32> -> vector<1x2x1x1x1x2xf32>
  %0 = iree_vector_ext.to_layout %a to layout(#l) : vector<8x16xf32>
  // CHECK: %[[LESS:.*]] = arith.cmpf olt, %[[PA]], %[[PB]] : vector<1x2x1x1x1x2xf32>
  %1 = arith.cmpf olt, %0, %b : vector<8x16xf32>
  // CHECK: %[[S:.*]] = arith.select %[[LESS]], %[[PA]], %[[PB]] : vector<1x2x1x1x1x2xi1>, vector<1x2x1x1x1x2xf32>
  %2 = arith.select %1, %0, %b : vector<8x16xi1>, vector<8x16xf32>
  %two = arith.constant dense<2.0> : vector<8x16xf32>
  // CHECK: %[[M:.*]] = arith.mulf %[[S]], %[[TWO]] fastmath<nnan> : vector<1x2x1x1x1x2xf32>
  %3 = arith.mulf %2, %two fastmath<nnan> : vector<8x16xf32>
  // CHECK: %[[E:.*]] = math.exp %[[M]] : vector<1x2x1x1x1x2xf32>
  %4 = math.exp %3 : vector<8x16xf32>
  // CHECK: %[[R:.*]] = iree_vector_ext.to_simd %[[E]] : vector<1x2x1x1x1x2xf32> -> vector<8x16xf32>
  // CHECK: return %[[R]]
  return %4 : vector<8x16xf32>
}

// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: (%[[V:.*]]: vector<16xf32>, %[[X:.*]]: f32)
func.func @broadcast(%v: vector<16xf32>, %x: f32) -> vector<8x16xf32> {
  // CHECK: %[[P:.*]] = iree_vector_ext.to_simt %[[V]] : vector<16xf32> -> vector<2x1x2xf32>
  // CHECK: %[[C:.*]] = vector.shape_cast %[[P]] : vector<2x1x2xf32> to vector<1x2x1x1x1x2xf32>
  %0 = vector.broadcast %v : vector<16xf32> to vector<8x16xf32>
  // CHECK: %[[W:.*]] = vector.broadcast %[[X]] : f32 to vector<1x2x1x1x1x2xf32>
  %1 = vector.broadcast %x : f32 to vector<8x16xf32>
  %2 = iree_vector_ext.to_layout %0 to layout(#l) : vector<8x16xf32>
  // CHECK: arith.addf %[[C]], %[[W]]
  %3 = arith.addf %2, %1 : vector<8x16xf32>
  return %3 : vector<8x16xf32>
}

// CHECK-LABEL: func.func @transpose
func.func @transpose(%v: vector<8x16xf32>) -> vector<16x8xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xf32>
  // CHECK: vector.transpose %{{.*}}, [1, 0, 3, 2, 5, 4] : vector<1x2x1x1x1x2xf32> to vector<2x1x1x1x2x1xf32>
  %1 = vector.transpose %0, [1, 0] : vector<8x16xf32> to vector<16x8xf32>
  return %1 : vector<16x8xf32>
}

// CHECK-LABEL: func.func @shape_cast
func.func @shape_cast(%v: vector<8x16xf32>) -> vector<8x1x16xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xf32>
  // CHECK: vector.shape_cast %{{.*}} : vector<1x2x1x1x1x2xf32> to vector<1x1x2x1x1x1x1x1x2xf32>
  %1 = vector.shape_cast %0 : vector<8x16xf32> to vector<8x1x16xf32>
  return %1 : vector<8x1x16xf32>
}

// Rows of a vector, each distributed to eight lanes, and the reverse.
// CHECK-LABEL: func.func @shape_cast_that_cuts
func.func @shape_cast_that_cuts(%v: vector<64xf32>) -> vector<64xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xf32>
  // CHECK: vector.shape_cast %{{.*}} : vector<2x1x1xf32> to vector<2x1x1x1x1x1xf32>
  %1 = vector.shape_cast %0 : vector<64xf32> to vector<8x8xf32>
  // CHECK: math.exp %{{.*}} : vector<2x1x1x1x1x1xf32>
  %2 = math.exp %1 : vector<8x8xf32>
  // CHECK: vector.shape_cast %{{.*}} : vector<2x1x1x1x1x1xf32> to vector<2x1x1xf32>
  // CHECK-NOT: gpu.shuffle
  // CHECK: return
  %3 = vector.shape_cast %2 : vector<8x8xf32> to vector<64xf32>
  return %3 : vector<64xf32>
}

// CHECK-LABEL: func.func @step
func.func @step() -> vector<64xindex> {
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  // CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
  // CHECK-DAG: %[[TABLE:.*]] = arith.constant dense<{{\[\[\[0\]\], \[\[16\]\]\]}}> : vector<2x1x1xindex>
  // CHECK-DAG: %[[SUBGROUP:.*]] = gpu.subgroup_id
  // CHECK-DAG: %[[LANE:.*]] = gpu.lane_id
  // CHECK-DAG: %[[S:.*]] = arith.remui %[[SUBGROUP]], %[[C2]]
  // CHECK: %[[FIRST:.*]] = arith.muli %[[S]], %[[C32]]
  // CHECK: %[[BASE:.*]] = arith.addi %[[FIRST]], %[[LANE]]
  %0 = vector.step : vector<64xindex>
  // CHECK: %[[B:.*]] = vector.broadcast %[[BASE]] : index to vector<2x1x1xindex>
  // CHECK: arith.addi %[[B]], %[[TABLE]]
  %1 = iree_vector_ext.to_layout %0 to layout(#r) : vector<64xindex>
  return %1 : vector<64xindex>
}

// CHECK-LABEL: func.func @create_mask
// CHECK-SAME: (%[[N:.*]]: index)
func.func @create_mask(%n: index) -> vector<64xi1> {
  %0 = vector.create_mask %n : vector<64xi1>
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %{{.*}} : vector<2x1x1xindex>
  // CHECK: %[[LIMIT:.*]] = vector.broadcast %[[N]] : index to vector<2x1x1xindex>
  // CHECK: arith.cmpi slt, %[[AT]], %[[LIMIT]]
  %1 = iree_vector_ext.to_layout %0 to layout(#r) : vector<64xi1>
  return %1 : vector<64xi1>
}

#two = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [1], outer_tile = [1], thread_tile = [4], element_tile = [2], subgroup_strides = [1], thread_strides = [1]>

// Each lane has its part of a constant as a row of a table. Subgroups select a table if their parts differ. Four lanes
// hold the same elements.
// CHECK-LABEL: func.func @constant
func.func @constant() -> (vector<16xi8>, vector<16xi8>) {
  // CHECK-DAG: %[[T0:.*]] = arith.constant dense<{{\[\[}}0, 1], [2, 3], [4, 5], [6, 7], [0, 1], [2, 3], [4, 5], [6, 7], [0, 1], [2, 3], [4, 5], [6, 7], [0, 1], [2, 3], [4, 5], [6, 7]]> : vector<16x2xi8>
  // CHECK-DAG: %[[T1:.*]] = arith.constant dense<{{\[\[}}8, 9], [10, 11], [12, 13], [14, 15], {{.*}}> : vector<16x2xi8>
  // CHECK-DAG: %[[SAME:.*]] = arith.constant dense<{{\[\[\[}}4, 5]]]> : vector<1x1x2xi8>
  // CHECK-DAG: %[[LANE:.*]] = gpu.lane_id
  // CHECK-DAG: %[[ROW0:.*]] = vector.extract %[[T0]][%[[LANE]]] : vector<2xi8> from vector<16x2xi8>
  // CHECK-DAG: %[[ROW1:.*]] = vector.extract %[[T1]][%[[LANE]]] : vector<2xi8> from vector<16x2xi8>
  // CHECK-DAG: %[[MINE:.*]] = arith.cmpi eq, %{{.*}}, %c1 : index
  // CHECK: arith.select %[[MINE]], %[[ROW1]], %[[ROW0]] : vector<2xi8>
  %c = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi8>
  %0 = iree_vector_ext.to_layout %c to layout(#two) : vector<16xi8>
  %d = arith.constant dense<[4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5]> : vector<16xi8>
  %1 = iree_vector_ext.to_layout %d to layout(#two) : vector<16xi8>
  return %0, %1 : vector<16xi8>, vector<16xi8>
}

// Ops without a layout are not changed.
// CHECK-LABEL: func.func @untouched
func.func @untouched(%v: vector<8x16xf32>) -> vector<8x16xf32> {
  // CHECK-NEXT: %[[R:.*]] = arith.addf %{{.*}}, %{{.*}} : vector<8x16xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = arith.addf %v, %v : vector<8x16xf32>
  return %0 : vector<8x16xf32>
}
