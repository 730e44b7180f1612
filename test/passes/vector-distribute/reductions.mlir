// Reductions: within the lane, over lanes by shuffles, over subgroups through shared local memory.

// RUN: xegpu-opt %s --vector-distribute --canonicalize --cse | FileCheck %s

#l = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [4, 1]>
#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>

// CHECK-LABEL: func.func @over_lanes
func.func @over_lanes(%v: vector<8x16xf32>, %acc: vector<8xf32>) -> vector<8xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xf32>
  // CHECK-DAG: %[[NONE:.*]] = arith.constant dense<0xFF800000> : vector<1x1x1xf32>
  // CHECK-DAG: %[[V:.*]] = iree_vector_ext.to_simt %{{.*}} : vector<8x16xf32>
  // CHECK-DAG: %[[ACC:.*]] = iree_vector_ext.to_simt %{{.*}} : vector<8xf32>
  // CHECK: %[[OWN:.*]] = vector.multi_reduction <maximumf>, %[[V]], %[[NONE]] [1, 3, 5] : vector<1x2x1x1x1x2xf32> to vector<1x1x1xf32>
  // CHECK: %[[S:.*]] = vector.extract %[[OWN]][0, 0, 0]
  // CHECK: %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[S]], %c1_i32, %c16_i32 : f32
  // CHECK: %[[O:.*]] = vector.broadcast %[[OTHER]] : f32 to vector<1x1x1xf32>
  // CHECK: %[[TWO:.*]] = arith.maximumf %[[OWN]], %[[O]]
  // CHECK: gpu.shuffle xor %{{.*}}, %c2_i32, %c16_i32 : f32
  // CHECK: %[[FOUR:.*]] = arith.maximumf %[[TWO]]
  // CHECK-NOT: gpu.barrier
  // CHECK: arith.maximumf %[[FOUR]], %[[ACC]]
  %1 = vector.multi_reduction <maximumf>, %0, %acc [1] : vector<8x16xf32> to vector<8xf32>
  return %1 : vector<8xf32>
}

// CHECK-LABEL: func.func @over_subgroups
func.func @over_subgroups(%v: vector<8x16xi32>, %acc: vector<16xi32>) -> vector<16xi32> {
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xi32>
  // CHECK: %[[SLM:.*]] = memref.alloc() : memref<2x16xi32, 3>
  // A lane has one row, so it has nothing to add.
  // CHECK: vector.shape_cast %{{.*}} : vector<1x2x1x1x1x2xi32> to vector<2x1x2xi32>
  // CHECK-COUNT-8: gpu.shuffle xor
  // CHECK: gpu.barrier
  // CHECK: vector.transfer_write %{{.*}}, %[[SLM]][%[[S:.*]], %{{.*}}] {in_bounds = [true]} : vector<2xi32>, memref<2x16xi32, 3>
  // CHECK: gpu.barrier
  // CHECK: vector.transfer_read %[[SLM]][%c0, %{{.*}}]
  // CHECK: vector.transfer_read %[[SLM]][%c1, %{{.*}}]
  // CHECK: arith.addi
  %1 = vector.multi_reduction <add>, %0, %acc [0] : vector<8x16xi32> to vector<16xi32>
  return %1 : vector<16xi32>
}

// CHECK-LABEL: func.func @to_a_scalar
func.func @to_a_scalar(%v: vector<64xf16>, %acc: f16) -> f16 {
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xf16>
  // CHECK: %[[FLAT:.*]] = vector.shape_cast %{{.*}} : vector<2x1x1xf16> to vector<2xf16>
  // CHECK: vector.reduction <add>, %[[FLAT]] : vector<2xf16> into f16
  // CHECK-COUNT-4: gpu.shuffle xor
  // CHECK: memref.store %{{.*}}, %[[SLM:.*]][%{{.*}}] : memref<2xf16, 3>
  // CHECK: gpu.barrier
  // CHECK: %[[X:.*]] = memref.load %[[SLM]][%c0]
  // CHECK: %[[Y:.*]] = memref.load %[[SLM]][%c1]
  // CHECK: %[[T:.*]] = arith.addf %[[X]], %[[Y]] : f16
  // CHECK: %[[R:.*]] = arith.addf %[[T]], %{{.*}} : f16
  // CHECK: return %[[R]]
  %1 = vector.reduction <add>, %0, %acc : vector<64xf16> into f16
  return %1 : f16
}

#a = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [8, 1], element_tile = [1, 16], subgroup_strides = [0, 0], thread_strides = [2, 0]>
#b = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [1, 2], element_tile = [16, 8], subgroup_strides = [0, 0], thread_strides = [0, 1]>

// CHECK-LABEL: func.func @contract
func.func @contract(%a: vector<8x16xf32>, %b: vector<16x16xf32>, %c: vector<8x16xf32>) -> vector<8x16xf32> {
  %0 = iree_vector_ext.to_layout %a to layout(#a) : vector<8x16xf32>
  %1 = iree_vector_ext.to_layout %b to layout(#b) : vector<16x16xf32>
  // CHECK: vector.contract {indexing_maps = [#[[A:.*]], #[[B:.*]], #[[C:.*]]], iterator_types = ["parallel", "parallel", "reduction", "parallel", "parallel", "reduction", "parallel", "parallel", "reduction"], kind = #vector.kind<add>}
  // CHECK-SAME: vector<1x1x1x1x1x16xf32>, vector<1x1x1x1x16x8xf32> into vector<1x1x1x1x1x8xf32>
  // CHECK-NOT: gpu.shuffle
  %2 = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %0, %1, %c : vector<8x16xf32>, vector<16x16xf32> into vector<8x16xf32>
  return %2 : vector<8x16xf32>
}

// CHECK-LABEL: func.func @masked
func.func @masked(%v: vector<8x16xf32>, %acc: vector<8xf32>, %n: index) -> vector<8xf32> {
  %c8 = arith.constant 8 : index
  %mask = vector.create_mask %c8, %n : vector<8x16xi1>
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<8x16xf32>
  // CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<1x2x1x1x1x2xf32>
  // CHECK: %[[S:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ONE]] : vector<1x2x1x1x1x2xi1>, vector<1x2x1x1x1x2xf32>
  // CHECK: vector.multi_reduction <mul>, %[[S]]
  %1 = vector.mask %mask { vector.multi_reduction <mul>, %0, %acc [1] : vector<8x16xf32> to vector<8xf32> } : vector<8x16xi1> -> vector<8xf32>
  return %1 : vector<8xf32>
}

#mixed = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [8, 1], outer_tile = [1, 1], thread_tile = [1, 16], element_tile = [1, 1], subgroup_strides = [0, 0], thread_strides = [0, 1]>

// Of two reduced dimensions a lane has all of the first, and one element of the second.
// CHECK-LABEL: func.func @over_own_and_lanes
func.func @over_own_and_lanes(%v: vector<8x16xi32>, %acc: i32) -> i32 {
  %0 = iree_vector_ext.to_layout %v to layout(#mixed) : vector<8x16xi32>
  // CHECK: vector.multi_reduction <add>
  // CHECK-COUNT-4: gpu.shuffle xor
  // CHECK-NOT: gpu.shuffle
  %1 = vector.multi_reduction <add>, %0, %acc [0, 1] : vector<8x16xi32> to i32
  return %1 : i32
}
