// Ops under a vector.mask, whose mask is distributed like the vectors.

// RUN: xegpu-opt %s --vector-distribute --canonicalize | FileCheck %s

#a = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [8, 1], element_tile = [1, 4], subgroup_strides = [0, 0], thread_strides = [2, 0]>
#b = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [1, 2], element_tile = [4, 3], subgroup_strides = [0, 0], thread_strides = [0, 1]>
#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>

// A contraction's mask has its iteration dimensions: rows, columns and the reduced dimension.
// CHECK-LABEL: func.func @contract
func.func @contract(%a: vector<8x4xf32>, %b: vector<4x6xf32>, %c: vector<8x6xf32>, %n: index) -> vector<8x6xf32> {
  %c5 = arith.constant 5 : index
  %c3 = arith.constant 3 : index
  %mask = vector.create_mask %n, %c5, %c3 : vector<8x6x4xi1>
  %0 = iree_vector_ext.to_layout %a to layout(#a) : vector<8x4xf32>
  %1 = iree_vector_ext.to_layout %b to layout(#b) : vector<4x6xf32>
  // CHECK: arith.andi %{{.*}}, %{{.*}} : vector<1x1x1x1x1x1x1x3x4xi1>
  // CHECK: %[[M:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<1x1x1x1x1x1x1x3x4xi1>
  // CHECK: vector.mask %[[M]] { vector.contract
  // CHECK-SAME: vector<1x1x1x1x1x4xf32>, vector<1x1x1x1x4x3xf32> into vector<1x1x1x1x1x3xf32> } : vector<1x1x1x1x1x1x1x3x4xi1> -> vector<1x1x1x1x1x3xf32>
  %2 = vector.mask %mask { vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %0, %1, %c : vector<8x4xf32>, vector<4x6xf32> into vector<8x6xf32> } : vector<8x6x4xi1> -> vector<8x6xf32>
  return %2 : vector<8x6xf32>
}

// CHECK-LABEL: func.func @gather
func.func @gather(%m: memref<?xf32>, %at: vector<64xindex>, %some: vector<64xi1>, %other: vector<64xf32>, %n: index) -> vector<64xf32> {
  %c0 = arith.constant 0 : index
  %mask = vector.create_mask %n : vector<64xi1>
  %0 = iree_vector_ext.to_layout %other to layout(#r) : vector<64xf32>
  // CHECK: %[[BELOW:.*]] = arith.cmpi slt
  // CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %[[BELOW]] : vector<2x1x1xi1>
  // CHECK: vector.gather %{{.*}}[%c0] [%{{.*}}], %[[BOTH]], %{{.*}} : memref<?xf32>, vector<2x1x1xindex>, vector<2x1x1xi1>, vector<2x1x1xf32> into vector<2x1x1xf32>
  %1 = vector.mask %mask { vector.gather %m[%c0] [%at], %some, %0 : memref<?xf32>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32> } : vector<64xi1> -> vector<64xf32>
  return %1 : vector<64xf32>
}

// A read with a pass-through value selects it where the mask is off.
// CHECK-LABEL: func.func @read
func.func @read(%m: memref<?xf32>, %other: vector<64xf32>, %n: index) -> vector<64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %mask = vector.create_mask %n : vector<64xi1>
  // CHECK: %[[PASSED:.*]] = iree_vector_ext.to_simt %{{.*}} : vector<64xf32> -> vector<2x1x1xf32>
  // CHECK: %[[FLAGS:.*]] = arith.cmpi slt, %{{.*}} : vector<2x1x1xindex>
  // CHECK: vector.transfer_read %{{.*}}, %{{.*}}, %{{.*}} {in_bounds = [true]} : memref<?xf32>, vector<1xf32>
  // CHECK: arith.select %[[FLAGS]], %{{.*}}, %[[PASSED]] : vector<2x1x1xi1>, vector<2x1x1xf32>
  %0 = vector.mask %mask, %other { vector.transfer_read %m[%c0], %zero {in_bounds = [true]} : memref<?xf32>, vector<64xf32> } : vector<64xi1> -> vector<64xf32>
  %1 = iree_vector_ext.to_layout %0 to layout(#r) : vector<64xf32>
  return %1 : vector<64xf32>
}
