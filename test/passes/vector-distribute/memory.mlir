// Memory accesses: one for each batch and outer index, of contiguous elements.

// RUN: xegpu-opt %s --vector-distribute=subgroup-size=16 --canonicalize --cse | FileCheck %s

#l = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [4, 1]>
#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>

// CHECK-LABEL: gpu.func @copy
// CHECK-SAME: (%[[FROM:.*]]: memref<8x16xf32>, %[[TO:.*]]: memref<8x16xf32>) kernel
// CHECK-SAME: xegpu.subgroup_size = 16 : i32
gpu.module @kernels {
  gpu.func @copy(%from: memref<8x16xf32>, %to: memref<8x16xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    // CHECK-DAG: %[[SUBGROUP:.*]] = gpu.subgroup_id
    // CHECK-DAG: %[[LANE:.*]] = gpu.lane_id
    // CHECK: %[[Y:.*]] = arith.divui %[[LANE]], %[[C4:.*]] :
    // CHECK: %[[FIRST:.*]] = arith.muli %[[SUBGROUP]], %[[C4]]
    // CHECK: %[[ROW:.*]] = arith.addi %[[FIRST]], %[[Y]]
    // CHECK: %[[X:.*]] = arith.remui %[[LANE]], %[[C4]]
    // CHECK: %[[COLUMN:.*]] = arith.muli %[[X]], %{{.*}}
    // CHECK: %[[A:.*]] = vector.transfer_read %[[FROM]][%[[ROW]], %[[COLUMN]]], %{{.*}} {in_bounds = [true, true]} : memref<8x16xf32>, vector<1x2xf32>
    // CHECK: %[[NEXT:.*]] = arith.addi %[[COLUMN]], %c8
    // CHECK: %[[B:.*]] = vector.transfer_read %[[FROM]][%[[ROW]], %[[NEXT]]], %{{.*}} : memref<8x16xf32>, vector<1x2xf32>
    %v = vector.transfer_read %from[%c0, %c0], %zero {in_bounds = [true, true]} : memref<8x16xf32>, vector<8x16xf32>
    %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xf32>
    // CHECK: vector.transfer_write %[[A]], %[[TO]][%[[ROW]], %[[COLUMN]]] {in_bounds = [true, true]} : vector<1x2xf32>, memref<8x16xf32>
    // CHECK: vector.transfer_write %[[B]], %[[TO]][%[[ROW]], %[[NEXT]]]
    vector.transfer_write %0, %to[%c0, %c0] {in_bounds = [true, true]} : vector<8x16xf32>, memref<8x16xf32>
    gpu.return
  }
}

// CHECK-LABEL: func.func @masked
func.func @masked(%from: memref<?xf32>, %n: index, %at: index) -> vector<64xf32> {
  %zero = arith.constant 0.0 : f32
  %mask = vector.create_mask %n : vector<64xi1>
  // CHECK: %[[M:.*]] = arith.cmpi slt
  // CHECK: %[[M0:.*]] = vector.extract %[[M]][0, 0] : vector<1xi1> from vector<2x1x1xi1>
  // CHECK: vector.transfer_read %{{.*}}[%{{.*}}], %{{.*}}, %[[M0]] {in_bounds = [true]} : memref<?xf32>, vector<1xf32>
  // CHECK: %[[M1:.*]] = vector.extract %[[M]][1, 0] : vector<1xi1> from vector<2x1x1xi1>
  // CHECK: vector.transfer_read %{{.*}}[%{{.*}}], %{{.*}}, %[[M1]] {in_bounds = [true]} : memref<?xf32>, vector<1xf32>
  %0 = vector.transfer_read %from[%at], %zero, %mask {in_bounds = [true]} : memref<?xf32>, vector<64xf32>
  %1 = iree_vector_ext.to_layout %0 to layout(#r) : vector<64xf32>
  return %1 : vector<64xf32>
}

// CHECK-LABEL: func.func @gather
func.func @gather(%from: memref<?xf32>, %at: vector<64xindex>, %mask: vector<64xi1>, %other: vector<64xf32>) -> vector<64xf32> {
  %c0 = arith.constant 0 : index
  // CHECK: vector.gather %{{.*}}[%c0] [%{{.*}}], %{{.*}}, %{{.*}} : memref<?xf32>, vector<2x1x1xindex>, vector<2x1x1xi1>, vector<2x1x1xf32> into vector<2x1x1xf32>
  %0 = vector.gather %from[%c0] [%at], %mask, %other : memref<?xf32>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32>
  %1 = iree_vector_ext.to_layout %0 to layout(#r) : vector<64xf32>
  return %1 : vector<64xf32>
}
