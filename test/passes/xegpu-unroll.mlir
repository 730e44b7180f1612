// RUN: xegpu-opt %s --xegpu-lower-unaligned-blocks=target=pvc --xegpu-unroll=target=pvc --xegpu-dce | FileCheck %s

// The passes divide blocks and vectors, and leave arithmetic on formats without instructions.

gpu.module @kernels {
// CHECK-LABEL: @sum
// CHECK: xegpu.create_nd_tdesc %{{.*}}[0, 0] {{.*}} -> !xegpu.tensor_desc<32x16xbf16>
// CHECK: xegpu.create_nd_tdesc %{{.*}}[32, 0] {{.*}} -> !xegpu.tensor_desc<32x16xbf16>
// CHECK-COUNT-2: xegpu.load_nd %{{.*}} -> vector<32x16xbf16>
// CHECK: arith.addf {{.*}} : vector<{{[0-9]+}}x16xbf16>
// CHECK-COUNT-8: xegpu.store_nd {{.*}} : vector<8x16xbf16>
gpu.func @sum(%m: memref<64x64xbf16>) kernel {
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<64x16xbf16>
  %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xbf16> -> vector<64x16xbf16>
  %y = arith.addf %x, %x : vector<64x16xbf16>
  xegpu.store_nd %y, %d {mode = vc} : vector<64x16xbf16>, !xegpu.tensor_desc<64x16xbf16>
  gpu.return
}

// Rows of 7 elements are no surface of 2D messages: the block becomes a gather, and the transpose moves registers.
// CHECK-LABEL: @transposed
// CHECK: %[[X:.*]] = xegpu.load_gather {{.*}} -> vector<32xf32>
// CHECK: %[[Y:.*]] = vector.shape_cast %[[X]] : vector<32xf32> to vector<4x8xf32>
// CHECK: vector.transpose %[[Y]], [1, 0] : vector<4x8xf32> to vector<8x4xf32>
gpu.func @transposed(%m: memref<9x7xf32>, %out: memref<64x64xf32>) kernel {
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<9x7xf32> -> !xegpu.tensor_desc<4x8xf32>
  %x = xegpu.load_nd %d {mode = vc, transpose = [1, 0]} : !xegpu.tensor_desc<4x8xf32> -> vector<8x4xf32>
  %o = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x4xf32>
  xegpu.store_nd %x, %o {mode = vc} : vector<8x4xf32>, !xegpu.tensor_desc<8x4xf32>
  gpu.return
}

// Columns of bytes: the rows are put side by side once, from which each column is gathered.
// CHECK-LABEL: @columns
// CHECK-COUNT-16: vector.insert_strided_slice {{.*}} : vector<1x16xi8> into vector<16x16xi8>
// CHECK-NOT: vector.insert_strided_slice
// CHECK-COUNT-16: vector.shuffle {{.*}} : vector<256xi8>, vector<256xi8>
gpu.func @columns(%out: memref<16x512xi8>) kernel {
  %m = memref.alloc() : memref<16x32xi8, 3>
  %d = xegpu.create_nd_tdesc %m[0, 16] {mode = vc} : memref<16x32xi8, 3> -> !xegpu.tensor_desc<16x16xi8, memory_scope = slm>
  %x = xegpu.load_nd %d {mode = vc, transpose = [1, 0]} : !xegpu.tensor_desc<16x16xi8, memory_scope = slm> -> vector<16x16xi8>
  %e = memref.alloc() : memref<16x32xi8, 3>
  %o = xegpu.create_nd_tdesc %e[0, 0] {mode = vc} : memref<16x32xi8, 3> -> !xegpu.tensor_desc<16x16xi8, memory_scope = slm>
  xegpu.store_nd %x, %o {mode = vc} : vector<16x16xi8>, !xegpu.tensor_desc<16x16xi8, memory_scope = slm>
  gpu.return
}
}

// Each piece of interleaved vectors needs a piece of both.

// CHECK-LABEL: gpu.func @interleaved
// CHECK-COUNT-4: vector.interleave %{{.*}}, %{{.*}} : vector<8x8xf32> -> vector<8x16xf32>
// CHECK-NOT: vector.interleave
gpu.module @m {
  gpu.func @interleaved(%a: memref<16x16xf32>, %b: memref<16x32xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32>
    %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<16x16xf32> -> vector<16x16xf32>
    %w = arith.negf %v : vector<16x16xf32>
    %r = vector.interleave %v, %w : vector<16x16xf32> -> vector<16x32xf32>
    %e = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<16x32xf32> -> !xegpu.tensor_desc<16x32xf32>
    xegpu.store_nd %r, %e {mode = vc} : vector<16x32xf32>, !xegpu.tensor_desc<16x32xf32>
    gpu.return
  }
}
