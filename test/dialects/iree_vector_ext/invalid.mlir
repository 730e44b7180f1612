// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

// expected-error @+1 {{batch_tile has 1 dimensions, but subgroup_tile has 2}}
#ranks = #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [2], outer_tile = [1, 1], thread_tile = [16, 4], element_tile = [1, 4], subgroup_strides = [1, 0], thread_strides = [1, 16]>
func.func @f(%v: vector<64x64xf16>) {
  %0 = iree_vector_ext.to_layout %v to layout(#ranks) : vector<64x64xf16>
  return
}

// -----

// expected-error @+1 {{thread_tile must be positive, but got [0]}}
#zero = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [2], outer_tile = [1], thread_tile = [0], element_tile = [1], subgroup_strides = [0], thread_strides = [1]>

// -----

// expected-error @+1 {{subgroup_strides must not be negative, but dimension 0 has -1}}
#negative = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [-1], thread_strides = [1]>

// -----

// expected-error @+1 {{thread_strides [1, 8] mix dimensions 0 and 1: the stride 8 must be a multiple of 1 x 16 = 16}}
#mixed = #iree_vector_ext.nested_layout<subgroup_tile = [1, 1], batch_tile = [2, 2], outer_tile = [1, 1], thread_tile = [16, 4], element_tile = [1, 1], subgroup_strides = [0, 0], thread_strides = [1, 8]>

// -----

// expected-error @+1 {{#iree_vector_ext.nested_layout needs thread_strides}}
#short = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [0]>

// -----

// expected-error @+1 {{expected batch_tile, outer_tile, thread_tile, element_tile, subgroup_strides, thread_strides in #iree_vector_ext.nested_layout}}
#unknown = #iree_vector_ext.nested_layout<subgroup_tile = [1], batches = [2]>

// -----

func.func @generic_form(%v: vector<16xf16>) {
  // expected-error @+1 {{thread_tile must be positive, but got [-16]}}
  %0 = "iree_vector_ext.to_layout"(%v) {layout = #iree_vector_ext.nested_layout<array<i64: 1>, array<i64: 1>, array<i64: 1>, array<i64: -16>, array<i64: 1>, array<i64: 1>, array<i64: 1>>} : (vector<16xf16>) -> vector<16xf16>
  return
}

// -----

#row = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [0], thread_strides = [1]>
func.func @rank(%v: vector<4x32xf16>) {
  // expected-error @+1 {{'iree_vector_ext.to_layout' op the vector has 2 dimensions, but the layout has 1}}
  %0 = iree_vector_ext.to_layout %v to layout(#row) : vector<4x32xf16>
  return
}

// -----

#row = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [0], thread_strides = [1]>
func.func @size(%v: vector<64xf16>) {
  // expected-error @+2 {{'iree_vector_ext.to_layout' op dimension 0 of the vector has size 64, but that of the layout has size 32}}
  // expected-note @+1 {{the size of a layout's dimension is the product of the five tile sizes}}
  %0 = iree_vector_ext.to_layout %v to layout(#row) : vector<64xf16>
  return
}

// -----

func.func @types(%v: vector<32xf16>) {
  // expected-error @+2 {{'iree_vector_ext.to_layout' op has input type vector<32xf16>, but output type vector<32xf32>}}
  // expected-note @+1 {{a layout does not change the type of a vector}}
  %0 = "iree_vector_ext.to_layout"(%v) {layout = #iree_vector_ext.nested_layout<array<i64: 1>, array<i64: 2>, array<i64: 1>, array<i64: 16>, array<i64: 1>, array<i64: 1>, array<i64: 1>>} : (vector<32xf16>) -> vector<32xf32>
  return
}

// -----

func.func @elements(%v: vector<32xf16>) {
  // expected-error @+1 {{'iree_vector_ext.to_simt' op has input element type f16, but output element type f32}}
  %0 = iree_vector_ext.to_simt %v : vector<32xf16> -> vector<2x1x1xf32>
  return
}

// -----

func.func @elements(%v: vector<2x1x1xf16>) {
  // expected-error @+1 {{'iree_vector_ext.to_simd' op has input element type f16, but output element type f32}}
  %0 = iree_vector_ext.to_simd %v : vector<2x1x1xf16> -> vector<32xf32>
  return
}

// -----

func.func @no_vector(%v: tensor<32xf16>) {
  // expected-error @+1 {{tensor<32xf16>}}
  %0 = iree_vector_ext.to_simt %v : tensor<32xf16> -> vector<2x1x1xf16>
  return
}
