// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-to-xegpu,canonicalize,cse,xegpu-dce,xegpu-legalize,canonicalize,cse,xegpu-dce)' --split-input-file | FileCheck %s
// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-to-xegpu,canonicalize,cse,xegpu-dce,xegpu-legalize{target=dg2},canonicalize,cse,xegpu-dce)' --split-input-file | FileCheck %s --check-prefix=DG2

// A and B are loaded by messages of 32 rows and 64 bytes; products have the size of a dpas, with K outermost; C is
// stored
// in blocks of 8 rows. On Xe-HPG products have 8 columns. xegpu-legalize splits tiles, which keep their size until
// then.

// CHECK-LABEL: gpu.func @product
// DG2-LABEL: gpu.func @product
gpu.module @m {
  gpu.func @product(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xbf16> -> !xetile.tile<16x32xbf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xbf16> -> !xetile.tile<32x32xbf16>
    // CHECK: %[[A:.*]] = xegpu.load_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>> -> vector<2x16x16xbf16>
    // CHECK: %[[B:.*]] = xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<32x16xbf16, #xegpu.tdesc_attr<array_length = 2>> -> vector<2x16x16x2xbf16>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xbf16> -> vector<16x32xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
    // CHECK: %[[A0:.*]] = vector.extract_strided_slice %[[A]] {offsets = [0, 0, 0], sizes = [1, 8, 16]
    // CHECK: %[[A0S:.*]] = vector.shape_cast %[[A0]] : vector<1x8x16xbf16> to vector<8x16xbf16>
    // CHECK: %[[B0:.*]] = vector.extract_strided_slice %[[B]] {offsets = [0, 0, 0, 0], sizes = [1, 8, 16, 2]
    // CHECK: %[[B0S:.*]] = vector.shape_cast %[[B0]]
    // CHECK: %[[D0:.*]] = xegpu.dpas %[[A0S]], %[[B0S]] {mode = vc} : vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
    // CHECK-COUNT-3: xegpu.dpas %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xbf16>
    // CHECK: xegpu.dpas %[[D0]], %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
    // CHECK-COUNT-3: xegpu.dpas
    // CHECK-NOT: xegpu.dpas
    // DG2-COUNT-16: xegpu.dpas {{.*}} vector<8x16xbf16>, vector<8x8x2xbf16>{{.*}} -> vector<8x8xf32>
    %d = xetile.tile_mma %a, %b : vector<16x32xbf16>, vector<32x32xbf16> -> vector<16x32xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<16x32xf32>
    // CHECK-COUNT-4: xegpu.store_nd %{{.*}}, %{{.*}} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    xetile.store_tile %d, %tc : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }
}

// -----

// Parts of A beyond one message are loaded directly before the products that use them.

// CHECK-LABEL: gpu.func @slabs
gpu.module @m {
  gpu.func @slabs(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xbf16> -> !xetile.tile<8x64xbf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x16xbf16>
    // CHECK: load_nd {{.*}} !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
    // CHECK: load_nd {{.*}} !xegpu.tensor_desc<32x16xbf16>
    // CHECK: dpas
    // CHECK: dpas
    // CHECK: load_nd {{.*}} !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
    // CHECK: load_nd {{.*}} !xegpu.tensor_desc<32x16xbf16>
    // CHECK: dpas
    // CHECK: dpas
    %a = xetile.load_tile %ta : !xetile.tile<8x64xbf16> -> vector<8x64xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<64x16xbf16> -> vector<64x16xbf16>
    %d = xetile.tile_mma %a, %b : vector<8x64xbf16>, vector<64x16xbf16> -> vector<8x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %d, %tc : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----

// Sizes that are not multiples: smaller blocks at the edges, and a product padded with zeros.

// CHECK-LABEL: gpu.func @edges
gpu.module @m {
  gpu.func @edges(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
    // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8x16x2xf16>
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<12x16xf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xf16> -> !xetile.tile<16x12xf16>
    %a = xetile.load_tile %ta : !xetile.tile<12x16xf16> -> vector<12x16xf16>
    // CHECK: %[[B:.*]] = xegpu.load_nd %{{.*}} -> vector<8x12x2xf16>
    %b = xetile.load_tile %tb : !xetile.tile<16x12xf16> -> vector<16x12xf16>
    // CHECK: %[[FULL:.*]] = vector.insert_strided_slice %[[B]], %[[ZERO]]
    // CHECK: dpas %{{.*}}, %[[FULL]] {mode = vc} : vector<8x16xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
    // CHECK: dpas %{{.*}}, %[[FULL]] {mode = vc} : vector<4x16xf16>, vector<8x16x2xf16> -> vector<4x16xf32>
    %d = xetile.tile_mma %a, %b : vector<12x16xf16>, vector<16x12xf16> -> vector<12x12xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<12x12xf32>
    // CHECK: store_nd %{{.*}} : vector<8x12xf32>
    // CHECK: store_nd %{{.*}} : vector<4x12xf32>
    xetile.store_tile %d, %tc : vector<12x12xf32>, !xetile.tile<12x12xf32>
    gpu.return
  }
}

// -----

// Elementwise ops work on 8 rows of 64 bytes; a reduction combines blocks first.

// CHECK-LABEL: gpu.func @rows
gpu.module @m {
  gpu.func @rows(%X: memref<64x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !xetile.tile<16x32xf32>
    // CHECK-COUNT-2: load_nd {{.*}} -> vector<16x16xf32>
    %v = xetile.load_tile %t : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    // CHECK-COUNT-4: math.exp %{{.*}} : vector<8x16xf32>
    %e = math.exp %v : vector<16x32xf32>
    // CHECK: %[[S:.*]] = arith.addf %{{.*}} : vector<8x16xf32>
    // CHECK: arith.addf %{{.*}} : vector<8x16xf32>
    // CHECK: vector.multi_reduction <add>, %[[S]], %{{.*}} [1] : vector<8x16xf32> to vector<8xf32>
    %r = xetile.reduction <add>, %e [1] : vector<16x32xf32> -> vector<16x1xf32>
    // CHECK: vector.broadcast %{{.*}} : vector<8x1xf32> to vector<8x16xf32>
    %b = xetile.broadcast %r [1] : vector<16x1xf32> -> vector<16x32xf32>
    // CHECK-COUNT-4: arith.divf %{{.*}} : vector<8x16xf32>
    %d = arith.divf %e, %b : vector<16x32xf32>
    xetile.store_tile %d, %t : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }
}

// -----

// Column-major tiles, and tiles with no use but a transpose, are loaded by transposing messages: 8 units of 32 bits, 16
// rows.

// CHECK-LABEL: gpu.func @transposed
gpu.module @m {
  gpu.func @transposed(%A: memref<64x64xbf16>, %B: memref<64x64xbf16, strided<[1, 64]>>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xbf16> -> !xetile.tile<16x32xbf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xbf16, strided<[1, 64]>> -> !xetile.tile<16x16xbf16, #xetile.tile_attr<order = [0, 1]>>
    // CHECK-COUNT-2: load_nd {{.*}} {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !xegpu.tensor_desc<16x16xbf16> -> vector<8x32xbf16>
    // CHECK: load_nd {{.*}} {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !xegpu.tensor_desc<16x16xbf16> -> vector<8x32xbf16>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xbf16> -> vector<16x32xbf16>
    // CHECK-NOT: load_nd
    %at = xetile.transpose %a, [1, 0] : vector<16x32xbf16> -> vector<32x16xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<16x16xbf16, #xetile.tile_attr<order = [0, 1]>> -> vector<16x16xbf16>
    %d = xetile.tile_mma %at, %b : vector<32x16xbf16>, vector<16x16xbf16> -> vector<32x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<32x16xf32>
    xetile.store_tile %d, %tc : vector<32x16xf32>, !xetile.tile<32x16xf32>
    gpu.return
  }
}

// -----

// A slice of a vector is taken from the parts of the vector, which is not reassembled.

// CHECK-LABEL: gpu.func @divided_again
gpu.module @m {
  gpu.func @divided_again(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<16x64xf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xf16> -> !xetile.tile<64x16xf16>
    // CHECK-NOT: vector.insert_strided_slice
    %a = xetile.load_tile %ta : !xetile.tile<16x64xf16> -> vector<16x64xf16>
    %b = xetile.load_tile %tb : !xetile.tile<64x16xf16> -> vector<64x16xf16>
    %a0 = vector.extract_strided_slice %a {offsets = [0, 0], sizes = [8, 64], strides = [1, 1]} : vector<16x64xf16> to vector<8x64xf16>
    // CHECK-COUNT-4: xegpu.dpas
    %d = xetile.tile_mma %a0, %b : vector<8x64xf16>, vector<64x16xf16> -> vector<8x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %d, %tc : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}
