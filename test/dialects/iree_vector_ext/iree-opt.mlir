// iree-opt reads what xegpu-opt prints, and the reverse.
// REQUIRES: iree-opt
// RUN: %iree-opt %S/ops.mlir -o %t.iree.mlir
// RUN: xegpu-opt %S/ops.mlir -o %t.ours.mlir
// RUN: %iree-opt %t.ours.mlir | diff %t.iree.mlir -
// RUN: xegpu-opt %t.iree.mlir | diff %t.ours.mlir -
// RUN: FileCheck %s --input-file %t.iree.mlir

// CHECK-COUNT-3: iree_vector_ext.to_layout
// CHECK: iree_vector_ext.to_simt
// CHECK: iree_vector_ext.to_simd
