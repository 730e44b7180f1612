// Ops that cannot be distributed.

// RUN: xegpu-opt %s --vector-distribute --split-input-file --verify-diagnostics

#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>
func.func @no_rule(%v: vector<64xi32>) -> vector<64xi32> {
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xi32>
  // expected-error @+2 {{'vector.shuffle' op cannot be distributed}}
  // expected-note @+1 {{there is no rule for vector.shuffle on vectors with layouts}}
  %1 = vector.shuffle %0, %0 [0, 1] : vector<64xi32>, vector<64xi32>
  return %0 : vector<64xi32>
}

// -----

#sums = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [2, 2], subgroup_strides = [0, 0], thread_strides = [4, 1]>
func.func @outer_product(%a: vector<8xi32>, %b: vector<8xi32>, %v: vector<8x8xi32>) -> vector<8x8xi32> {
  %0 = iree_vector_ext.to_layout %v to layout(#sums) : vector<8x8xi32>
  // expected-error @+3 {{'vector.outerproduct' op cannot be distributed}}
  // expected-note @+2 {{there is no rule for vector.outerproduct on vectors with layouts}}
  // expected-note @+1 {{vector-lower-contract lowers it to ops that have one}}
  %1 = vector.outerproduct %a, %b, %0 {kind = #vector.kind<add>} : vector<8xi32>, vector<8xi32>
  return %1 : vector<8x8xi32>
}

// -----

#grid = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [2, 2], subgroup_strides = [0, 0], thread_strides = [4, 1]>
func.func @shape_cast(%v: vector<8x8xi32>) -> vector<64xi32> {
  %0 = iree_vector_ext.to_layout %v to layout(#grid) : vector<8x8xi32>
  // expected-error @+3 {{'vector.shape_cast' op cannot be distributed because the layout of its vector<64xi32> is not known}}
  // expected-note @+2 {{dimension 0 of [64] would be 4 of thread_tile, 2 of element_tile, 4 of thread_tile, 2 of element_tile, from the outermost on}}
  // expected-note @+1 {{set the layout with iree_vector_ext.to_layout}}
  %1 = vector.shape_cast %0 : vector<8x8xi32> to vector<64xi32>
  return %1 : vector<64xi32>
}

// -----

#many = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [32], element_tile = [2], subgroup_strides = [0], thread_strides = [1]>
func.func @too_many_lanes(%v: vector<64xi32>) -> vector<64xi32> {
  // expected-error @+2 {{'iree_vector_ext.to_layout' op has a layout over 32 lanes, but there are 16}}
  // expected-note @+1 {{thread_tile = [32]}}
  %0 = iree_vector_ext.to_layout %v to layout(#many) : vector<64xi32>
  return %0 : vector<64xi32>
}

// -----

#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>
gpu.module @kernels {
  gpu.func @too_many_subgroups(%m: memref<64xi32>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    // expected-error @+2 {{'vector.transfer_read' op has a layout over 2 subgroups, but there are 1}}
    // expected-note @+1 {{subgroup_tile = [2]}}
    %v = vector.transfer_read %m[%c0], %zero {in_bounds = [true]} : memref<64xi32>, vector<64xi32>
    %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xi32>
    vector.transfer_write %0, %m[%c0] {in_bounds = [true]} : vector<64xi32>, memref<64xi32>
    gpu.return
  }
}

// -----

#whole = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [4], element_tile = [2], subgroup_strides = [0], thread_strides = [0]>
func.func @not_distributed(%v: vector<8xi32>) -> vector<8xi32> {
  // expected-error @+2 {{'iree_vector_ext.to_layout' op has a layout with 4 thread tiles in dimension 0, but a stride of 0}}
  // expected-note @+1 {{a distributed vector holds one tile}}
  %0 = iree_vector_ext.to_layout %v to layout(#whole) : vector<8xi32>
  return %0 : vector<8xi32>
}

// -----

#three = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [3], element_tile = [1], subgroup_strides = [0], thread_strides = [4]>
func.func @no_power_of_two(%v: vector<3xi32>) -> i32 {
  // expected-error @+2 {{has a layout over 12 lanes, but there are 16}}
  // expected-note @+1 {{thread_tile = [3]}}
  %0 = iree_vector_ext.to_layout %v to layout(#three) : vector<3xi32>
  %1 = vector.reduction <add>, %0 : vector<3xi32> into i32
  return %1 : i32
}

// -----

#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>
func.func @tensor(%t: tensor<64xi32>) -> vector<64xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  // expected-error @+1 {{'vector.transfer_read' op cannot be distributed because it accesses tensor<64xi32> instead of a memref}}
  %v = vector.transfer_read %t[%c0], %zero {in_bounds = [true]} : tensor<64xi32>, vector<64xi32>
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xi32>
  return %0 : vector<64xi32>
}

// -----

#l = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [4, 1]>
func.func @contract(%a: vector<8x16xf32>, %b: vector<16x4xf32>, %c: vector<8x4xf32>) -> vector<8x4xf32> {
  %0 = iree_vector_ext.to_layout %a to layout(#l) : vector<8x16xf32>
  // expected-error @+1 {{'vector.contract' op cannot be distributed because the layout of its vector<16x4xf32> is not known}}
  %1 = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %0, %b, %c : vector<8x16xf32>, vector<16x4xf32> into vector<8x4xf32>
  // expected-note @-1 {{set the layout with iree_vector_ext.to_layout}}
  return %1 : vector<8x4xf32>
}

// -----

#l = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [1, 2], outer_tile = [1, 1], thread_tile = [4, 4], element_tile = [1, 2], subgroup_strides = [1, 0], thread_strides = [4, 1]>
#one = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [0], thread_strides = [1]>
func.func @broadcast(%row: vector<16xf32>) -> vector<4x8x16xf32> {
  %0 = iree_vector_ext.to_layout %row to layout(#one) : vector<16xf32>
  // expected-error @+2 {{'vector.broadcast' op cannot be distributed because the layout of its vector<4x8x16xf32> is not known}}
  // expected-note @+1 {{set the layout with iree_vector_ext.to_layout}}
  %1 = vector.broadcast %0 : vector<16xf32> to vector<4x8x16xf32>
  return %1 : vector<4x8x16xf32>
}

// -----

#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>
func.func @nothing_masked(%m: vector<64xi1>, %v: vector<64xf32>) -> vector<64xf32> {
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xf32>
  // expected-error @+2 {{'vector.mask' op with a pass-through value cannot be distributed}}
  // expected-note @+1 {{a masked vector.transfer_read can have one}}
  %1 = vector.mask %m, %v { vector.yield %0 : vector<64xf32> } : vector<64xi1> -> vector<64xf32>
  return %1 : vector<64xf32>
}

// -----

#grid = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [1, 1], outer_tile = [1, 1], thread_tile = [4, 1], element_tile = [1, 2], subgroup_strides = [0, 0], thread_strides = [1, 0]>
func.func @outer_product(%m: vector<4x2xi1>, %a: vector<4xf32>, %b: vector<2xf32>, %c: vector<4x2xf32>) -> vector<4x2xf32> {
  // expected-error @+2 {{'vector.mask' op on vector.outerproduct cannot be distributed}}
  // expected-note @+1 {{masks of transfers, gathers, reductions and contractions are}}
  %1 = vector.mask %m { vector.outerproduct %a, %b, %c {kind = #vector.kind<add>} : vector<4xf32>, vector<2xf32> } : vector<4x2xi1> -> vector<4x2xf32>
  %2 = iree_vector_ext.to_layout %1 to layout(#grid) : vector<4x2xf32>
  return %2 : vector<4x2xf32>
}

// -----

#r = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>
gpu.module @kernels {
  gpu.func @unknown_subgroups(%m: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    // expected-error @+2 {{'vector.transfer_read' op has a layout over 2 subgroups, but the number of subgroups is not known}}
    // expected-note @+1 {{set known_block_size, the number of work items in a workgroup}}
    %v = vector.transfer_read %m[%c0], %zero {in_bounds = [true]} : memref<64xi32>, vector<64xi32>
    %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xi32>
    vector.transfer_write %0, %m[%c0] {in_bounds = [true]} : vector<64xi32>, memref<64xi32>
    gpu.return
  }
}

// -----

#r = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [4], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [0], thread_strides = [1]>
gpu.module @kernels {
  // expected-error @+2 {{'gpu.func' op workgroup size 24 must be a multiple of the subgroup size 16}}
  // expected-note @+1 {{every lane holds a part of each vector}}
  gpu.func @lanes_missing(%m: memref<64xi32>) kernel attributes {known_block_size = array<i32: 24, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %v = vector.transfer_read %m[%c0], %zero {in_bounds = [true]} : memref<64xi32>, vector<64xi32>
    %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<64xi32>
    vector.transfer_write %0, %m[%c0] {in_bounds = [true]} : vector<64xi32>, memref<64xi32>
    gpu.return
  }
}

// -----

#r = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [0], thread_strides = [1]>
func.func @vectors_in_memory(%m: memref<64xvector<16xi32>>) -> vector<16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0> : vector<16xi32>
  // expected-error @+1 {{'vector.transfer_read' op cannot be distributed because its elements are vectors}}
  %v = vector.transfer_read %m[%c0], %zero : memref<64xvector<16xi32>>, vector<16xi32>
  %0 = iree_vector_ext.to_layout %v to layout(#r) : vector<16xi32>
  return %0 : vector<16xi32>
}

// -----

#rows = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1, 1], batch_tile = [1, 1, 1], outer_tile = [1, 1, 1], thread_tile = [16, 1, 1], element_tile = [1, 2, 4], subgroup_strides = [0, 0, 0], thread_strides = [1, 0, 0]>
#all = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [1], element_tile = [4], subgroup_strides = [0], thread_strides = [0]>
#sums = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [0], thread_strides = [1]>
func.func @of_one_operand(%a: vector<16x2x4xf32>, %b: vector<4xf32>, %c: vector<16xf32>) -> vector<16xf32> {
  %0 = iree_vector_ext.to_layout %a to layout(#rows) : vector<16x2x4xf32>
  %1 = iree_vector_ext.to_layout %b to layout(#all) : vector<4xf32>
  %2 = iree_vector_ext.to_layout %c to layout(#sums) : vector<16xf32>
  // expected-error @+2 {{'vector.contract' op cannot be distributed}}
  // expected-note @+1 {{only one of its operands has the reduced dimension 1}}
  %3 = vector.contract {indexing_maps = [affine_map<(m, l, k) -> (m, l, k)>, affine_map<(m, l, k) -> (k)>, affine_map<(m, l, k) -> (m)>], iterator_types = ["parallel", "reduction", "reduction"], kind = #vector.kind<add>} %0, %1, %2 : vector<16x2x4xf32>, vector<4xf32> into vector<16xf32>
  return %3 : vector<16xf32>
}
