// Conversions of layouts: no op, a shuffle of registers, shuffles between lanes, or an exchange through shared local
// memory.

// RUN: xegpu-opt %s --vector-distribute --canonicalize --cse | FileCheck %s

#l = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [4, 1]>
#c = #iree_vector_ext.nested_layout<subgroup_tile = [1, 2], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [8, 2], element_tile = [1, 4], subgroup_strides = [0, 1], thread_strides = [1, 8]>
#flat = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 1], outer_tile = [1, 2], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [4, 1]>
#rows = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [2, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [0, 0], thread_strides = [4, 1]>
#swapped = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [2, 1], outer_tile = [1, 2], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [0, 0], thread_strides = [4, 1]>
#outer = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 2], outer_tile = [2, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [0, 0], thread_strides = [4, 1]>

// Batches become outers: the same elements in the same order.
// CHECK-LABEL: func.func @the_same
func.func @the_same(%v: vector<8x16xf32>) -> vector<8x16xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xf32>
  // CHECK-NOT: vector.shuffle
  // CHECK: vector.shape_cast %{{.*}} : vector<1x2x1x1x1x2xf32> to vector<1x1x1x2x1x2xf32>
  // CHECK-NOT: gpu.barrier
  // CHECK: return
  %1 = iree_vector_ext.to_layout %0 to layout(#flat) : vector<8x16xf32>
  return %1 : vector<8x16xf32>
}

// The same elements in another order.
// CHECK-LABEL: func.func @registers
func.func @registers(%v: vector<8x16xf32>) -> vector<8x16xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#rows) : vector<8x16xf32>
  // CHECK: vector.shuffle %[[V:.*]], %[[V]] [0, 1, 4, 5, 2, 3, 6, 7] : vector<8xf32>, vector<8xf32>
  // CHECK-NOT: gpu.barrier
  // CHECK: return
  %1 = iree_vector_ext.to_layout %0 to layout(#outer) : vector<8x16xf32>
  return %1 : vector<8x16xf32>
}

#quads = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [8], element_tile = [2], subgroup_strides = [0], thread_strides = [2]>
#other = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [8], element_tile = [2], subgroup_strides = [0], thread_strides = [1]>

// Lanes exchange all elements: a shuffle for each register.
// CHECK-LABEL: func.func @lanes
func.func @lanes(%v: vector<16xf16>) -> vector<16xf16> {
  %0 = iree_vector_ext.to_layout %v to layout(#quads) : vector<16xf16>
  // CHECK-DAG: %[[FROM:.*]] = arith.constant dense<[0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 15]> : vector<16xi32>
  // CHECK-DAG: %[[LANE:.*]] = gpu.lane_id
  // CHECK: %[[L:.*]] = vector.extract %[[FROM]][%[[LANE]]] : i32 from vector<16xi32>
  // CHECK: %[[A:.*]] = vector.extract %[[V:.*]][0, 0, 0] : f16 from vector<1x1x2xf16>
  // CHECK: gpu.shuffle idx %[[A]], %[[L]], %c16_i32 : f16
  // CHECK: %[[B:.*]] = vector.extract %[[V]][0, 0, 1] : f16 from vector<1x1x2xf16>
  // CHECK: gpu.shuffle idx %[[B]], %[[L]], %c16_i32 : f16
  // CHECK-NOT: gpu.shuffle
  // CHECK-NOT: gpu.barrier
  // CHECK: return
  %1 = iree_vector_ext.to_layout %0 to layout(#other) : vector<16xf16>
  return %1 : vector<16xf16>
}

#cyclic = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [1, 16], element_tile = [1, 1], subgroup_strides = [1, 0], thread_strides = [0, 1]>
#pairs = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [1, 16], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [0, 1]>

// The registers that lanes send and receive differ from lane to lane, equally in both subgroups.
// CHECK-LABEL: func.func @lanes_and_registers
func.func @lanes_and_registers(%v: vector<2x32xf32>) -> vector<2x32xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#cyclic) : vector<2x32xf32>
  // CHECK-COUNT-2: gpu.shuffle idx
  // CHECK-NOT: gpu.shuffle
  // CHECK-NOT: gpu.barrier
  // CHECK: vector.from_elements %{{.*}}, %{{.*}} : vector<1x1x1x1x1x2xf32>
  // CHECK: return
  %1 = iree_vector_ext.to_layout %0 to layout(#pairs) : vector<2x32xf32>
  return %1 : vector<2x32xf32>
}

#rowmajor = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [16, 1], element_tile = [1, 1], subgroup_strides = [0, 0], thread_strides = [1, 0]>
#odd = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [8, 2], element_tile = [2, 1], subgroup_strides = [0, 0], thread_strides = [2, 1]>

// i1 is exchanged as integers.
// CHECK-LABEL: func.func @truth
func.func @truth(%v: vector<16x2xi1>) -> vector<16x2xi1> {
  %0 = iree_vector_ext.to_layout %v to layout(#rowmajor) : vector<16x2xi1>
  // CHECK: arith.extui %{{.*}} : vector<1x2x1x1x1x1xi1> to vector<1x2x1x1x1x1xi32>
  // CHECK-COUNT-1: gpu.shuffle idx
  // CHECK-NOT: gpu.shuffle
  // CHECK: arith.trunci %{{.*}} : vector<1x1x1x1x2x1xi32> to vector<1x1x1x1x2x1xi1>
  %1 = iree_vector_ext.to_layout %0 to layout(#odd) : vector<16x2xi1>
  return %1 : vector<16x2xi1>
}

#run = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [1], outer_tile = [1], thread_tile = [16], element_tile = [4], subgroup_strides = [1], thread_strides = [1]>

// A shape cast with a conversion: memory is accessed in both shapes.
// CHECK-LABEL: func.func @cast
func.func @cast(%v: vector<8x16xf32>) -> vector<128xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#c) : vector<8x16xf32>
  // CHECK: %[[SLM:.*]] = memref.alloc() : memref<1x8x16xf32, 3>
  // CHECK: vector.transfer_write %{{.*}}, %[[SLM]]
  // CHECK: gpu.barrier
  // CHECK: %[[FLAT:.*]] = memref.reinterpret_cast %[[SLM]] to offset: [0], sizes: [1, 128], strides: [128, 1] : memref<1x8x16xf32, 3> to memref<1x128xf32, 3>
  // CHECK: vector.transfer_read %[[FLAT]][%c0, %{{.*}}], %{{.*}} {in_bounds = [true]} : memref<1x128xf32, 3>, vector<4xf32>
  %1 = vector.shape_cast %0 : vector<8x16xf32> to vector<128xf32>
  %2 = iree_vector_ext.to_layout %1 to layout(#run) : vector<128xf32>
  return %2 : vector<128xf32>
}

// Elements are exchanged between lanes and subgroups.
// CHECK-LABEL: func.func @memory
func.func @memory(%v: vector<8x16xf32>) -> vector<8x16xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xf32>
  // CHECK: %[[SLM:.*]] = memref.alloc() : memref<1x8x16xf32, 3>
  // CHECK: gpu.barrier
  // CHECK-COUNT-2: vector.transfer_write %{{.*}}, %[[SLM]][%c0, %{{.*}}, %{{.*}}] {in_bounds = [true, true]} : vector<1x2xf32>, memref<1x8x16xf32, 3>
  // CHECK: gpu.barrier
  // CHECK: vector.transfer_read %[[SLM]][%c0, %{{.*}}, %{{.*}}], %{{.*}} {in_bounds = [true, true]} : memref<1x8x16xf32, 3>, vector<1x4xf32>
  %1 = iree_vector_ext.to_layout %0 to layout(#c) : vector<8x16xf32>
  return %1 : vector<8x16xf32>
}
