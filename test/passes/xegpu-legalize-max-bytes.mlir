// RUN: xegpu-opt %s --xegpu-legalize='target=pvc max-bytes=2147483647' | FileCheck %s --check-prefixes=CHECK,FEW
// RUN: xegpu-opt %s --xegpu-legalize='target=pvc max-bytes=2147483648' | FileCheck %s --check-prefixes=CHECK,MANY
// RUN: xegpu-opt %s --xegpu-legalize='target=pvc' | FileCheck %s --check-prefixes=CHECK,MANY

// The greatest span of an array limits the rows of a matrix with a known pitch: here, of 128 bytes, they are at most 2^24.

gpu.module @m {
  // CHECK-LABEL: gpu.func @argument(
  // FEW: xegpu.load_nd
  // FEW-NOT: xegpu.load_gather
  // MANY-NOT: xegpu.load_nd
  // MANY-COUNT-4: xegpu.load_gather
  gpu.func @argument(%m: memref<?x32xf32>, %o: memref<8x16xf32>) kernel attributes {xegpu.unaligned = array<i64: 0>} {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<?x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %e = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %x, %e {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }

  // A view may have more rows than its array.
  // CHECK-LABEL: gpu.func @view(
  // CHECK-NOT: xegpu.load_nd
  // CHECK-COUNT-4: xegpu.load_gather
  gpu.func @view(%m: memref<1024xf32>, %n: index, %o: memref<8x16xf32>) kernel attributes {xegpu.unaligned = array<i64: 0>} {
    %v = memref.reinterpret_cast %m to offset: [0], sizes: [%n, 32], strides: [32, 1] : memref<1024xf32> to memref<?x32xf32>
    %d = xegpu.create_nd_tdesc %v[0, 0] {mode = vc} : memref<?x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %e = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %x, %e {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }

  // A pitch that is not known limits nothing.
  // CHECK-LABEL: gpu.func @pitch(
  // CHECK-NOT: xegpu.load_nd
  // CHECK-COUNT-4: xegpu.load_gather
  gpu.func @pitch(%m: memref<?x?xf32>, %o: memref<8x16xf32>) kernel attributes {xegpu.unaligned = array<i64: 0>} {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %e = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %x, %e {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
