// RUN: xegpu-opt %s --canonicalize | FileCheck %s

// A sum with a product of floats stays: as the accumulator its addend would be rounded with each term.
// CHECK-LABEL: func.func @f
// CHECK: %[[Z:.+]] = arith.constant dense<0.000000e+00>
// CHECK: %[[D:.+]] = vector.contract {{.+}} %{{.+}}, %[[Z]] :
// CHECK: arith.addf %[[D]], %
func.func @f(%a: vector<8x2xf32>, %b: vector<2x16xf32>, %c: vector<8x16xf32>) -> vector<8x16xf32> {
  %z = arith.constant dense<0.0> : vector<8x16xf32>
  %d = vector.contract {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %a, %b, %z : vector<8x2xf32>, vector<2x16xf32> into vector<8x16xf32>
  %e = arith.addf %d, %c : vector<8x16xf32>
  return %e : vector<8x16xf32>
}
