// RUN: xegpu-opt --mlir-print-local-scope %s | FileCheck %s --check-prefix=LOCAL
// RUN: xegpu-opt --mlir-elide-elementsattrs-if-larger=4 %s | FileCheck %s --check-prefix=ELIDED
// RUN: not xegpu-opt --mlir-elide-elementsattrs-if-larger=few %s 2>&1 | FileCheck %s --check-prefix=NUMBER

// LOCAL-NOT: #map
// LOCAL: affine.apply affine_map<(d0) -> (d0 * 2)>(%{{.*}})
// ELIDED: #map = affine_map
// ELIDED: dense<[1, 2]> : vector<2xi32>
// ELIDED: dense_resource<__elided__> : vector<8xi32>
// NUMBER: xegpu-opt: error: argument --mlir-elide-elementsattrs-if-larger: invalid int value: 'few'
#map = affine_map<(d0) -> (d0 * 2)>
func.func @f(%i: index) -> (index, vector<2xi32>, vector<8xi32>) {
  %few = arith.constant dense<[1, 2]> : vector<2xi32>
  %many = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : vector<8xi32>
  %twice = affine.apply #map(%i)
  return %twice, %few, %many : index, vector<2xi32>, vector<8xi32>
}
