// RUN: xegpu-opt %s --xegpu-legalize='target=pvc' --canonicalize --xegpu-dce | FileCheck %s

// A constant whose elements differ is split like other vectors if its user is.

!offsets = !xegpu.tensor_desc<32x8xi64, #xegpu.scattered>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @offsets
  gpu.func @offsets(%m: memref<300xi64>, %mask: vector<32xi1>, %out: memref<8x32xi64>) kernel {
    // CHECK-DAG: arith.constant dense<[0, 9, 18, {{.*}}, 135]> : vector<16xindex>
    // CHECK-DAG: arith.constant dense<[144, 153, {{.*}}, 279]> : vector<16xindex>
    // CHECK-COUNT-2: xegpu.create_tdesc {{.*}}vector<16xindex> -> !xegpu.tensor_desc<16x8xi64, #xegpu.scattered>
    %places = arith.constant dense<[0, 9, 18, 27, 36, 45, 54, 63, 72, 81, 90, 99, 108, 117, 126, 135, 144, 153, 162,
      171, 180, 189, 198, 207, 216, 225, 234, 243, 252, 261, 270, 279]> : vector<32xindex>
    %t = xegpu.create_tdesc %m, %places {mode = vc, chunk_size_per_lane = 8} : memref<300xi64>, vector<32xindex> -> !offsets
    %x = xegpu.load_gather %t, %mask {mode = vc} : !offsets, vector<32xi1> -> vector<8x32xi64>
    %to = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<8x32xi64> -> !xegpu.tensor_desc<8x32xi64>
    xegpu.store_nd %x, %to {mode = vc} : vector<8x32xi64>, !xegpu.tensor_desc<8x32xi64>
    gpu.return
  }
}

// An element that is extracted from a rewritten load is extracted from its replacement.

gpu.module @elements {
  // CHECK-LABEL: gpu.func @element
  gpu.func @element(%a: memref<4x64xui8>, %b: memref<8xui8>, %i: index) kernel {
    %0 = xegpu.create_nd_tdesc %a[0, %i] {mode = vc} : memref<4x64xui8> -> !xegpu.tensor_desc<3x1xui8>
    // CHECK: xegpu.load_nd {{.*}} -> vector<3x4xui8>
    // CHECK-NOT: xegpu.load_nd
    %1 = xegpu.load_nd %0 {mode = vc, transpose = [1, 0]} : !xegpu.tensor_desc<3x1xui8> -> vector<1x3xui8>
    %2 = vector.shape_cast %1 : vector<1x3xui8> to vector<3xui8>
    %3 = vector.extract %2[1] : ui8 from vector<3xui8>
    // CHECK: memref.store
    memref.store %3, %b[%i] : memref<8xui8>
    gpu.return
  }

  // Descriptors of three dimensions have no array_length, whichever pieces the vector's ops ask for.
  // CHECK-LABEL: gpu.func @narrow_pieces
  // CHECK-COUNT-16: xegpu.load_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<1x8x4xi32> -> vector<1x8x4xi32>
  // CHECK-NOT: xegpu.load_nd
  gpu.func @narrow_pieces(%m: memref<3x12x48xi32>, %out: memref<512xi32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 1, 0] {mode = vc} : memref<3x12x48xi32> -> !xegpu.tensor_desc<2x8x32xi32>
    %e = xegpu.update_nd_offset %d, [0, 1, 1] {mode = vc} : !xegpu.tensor_desc<2x8x32xi32> -> !xegpu.tensor_desc<2x8x32xi32>
    %x = xegpu.load_nd %e {transpose = [2, 0, 1], transpose_bit_width = 32, mode = vc}
      : !xegpu.tensor_desc<2x8x32xi32> -> vector<32x2x8xi32>
    %y = vector.shape_cast %x : vector<32x2x8xi32> to vector<512xi32>
    %l = xegpu.create_nd_tdesc %out[0] {mode = vc} : memref<512xi32> -> !xegpu.tensor_desc<512xi32>
    xegpu.store_nd %y, %l {mode = vc} : vector<512xi32>, !xegpu.tensor_desc<512xi32>
    gpu.return
  }
}
