// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: xegpu-opt %s -mlir-print-op-generic | xegpu-opt | FileCheck %s

#layout = #iree_vector_ext.nested_layout<
  subgroup_tile = [2, 1], batch_tile = [2, 4], outer_tile = [1, 1], thread_tile = [16, 4], element_tile = [1, 4],
  subgroup_strides = [1, 0], thread_strides = [1, 16]>
#row = #iree_vector_ext.nested_layout<
  subgroup_tile = [1], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1],
  subgroup_strides = [0], thread_strides = [1]>
#none = #iree_vector_ext.nested_layout<
  subgroup_tile = [], batch_tile = [], outer_tile = [], thread_tile = [], element_tile = [],
  subgroup_strides = [], thread_strides = []>

// CHECK-LABEL: func.func @ops
// CHECK-SAME: (%[[V:.*]]: vector<64x64xf16>, %[[ROW:.*]]: vector<32xf32>, %[[ONE:.*]]: vector<i8>)
func.func @ops(%v: vector<64x64xf16>, %row: vector<32xf32>, %one: vector<i8>) -> vector<64x64xf16> {
  // CHECK: %[[A:.*]] = iree_vector_ext.to_layout %[[V]] to layout(#iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [2, 4], outer_tile = [1, 1], thread_tile = [16, 4], element_tile = [1, 4], subgroup_strides = [1, 0], thread_strides = [1, 16]>) : vector<64x64xf16>
  // GENERIC: "iree_vector_ext.to_layout"(%{{.*}}) {layout = #iree_vector_ext.nested_layout<array<i64: 2, 1>, array<i64: 2, 4>, array<i64: 1, 1>, array<i64: 16, 4>, array<i64: 1, 4>, array<i64: 1, 0>, array<i64: 1, 16>>} : (vector<64x64xf16>) -> vector<64x64xf16>
  %a = iree_vector_ext.to_layout %v to layout(#layout) : vector<64x64xf16>
  // CHECK: iree_vector_ext.to_layout %[[ROW]] to layout(#iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [2], {{.*}}>) {test.kept = 1 : i64} : vector<32xf32>
  %b = iree_vector_ext.to_layout %row to layout(#row) {test.kept = 1} : vector<32xf32>
  // CHECK: iree_vector_ext.to_layout %[[ONE]] to layout(#iree_vector_ext.nested_layout<subgroup_tile = [], batch_tile = [], outer_tile = [], thread_tile = [], element_tile = [], subgroup_strides = [], thread_strides = []>) : vector<i8>
  %c = iree_vector_ext.to_layout %one to layout(#none) : vector<i8>
  // CHECK: %[[S:.*]] = iree_vector_ext.to_simt %[[A]] : vector<64x64xf16> -> vector<2x4x1x1x1x4xf16>
  %simt = iree_vector_ext.to_simt %a : vector<64x64xf16> -> vector<2x4x1x1x1x4xf16>
  // CHECK: %[[D:.*]] = iree_vector_ext.to_simd %[[S]] : vector<2x4x1x1x1x4xf16> -> vector<64x64xf16>
  %simd = iree_vector_ext.to_simd %simt : vector<2x4x1x1x1x4xf16> -> vector<64x64xf16>
  // CHECK: return %[[D]]
  return %simd : vector<64x64xf16>
}
