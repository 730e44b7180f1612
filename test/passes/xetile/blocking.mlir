// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-blocking,canonicalize,cse)' --split-input-file | FileCheck %s
// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-blocking{target=dg2},canonicalize,cse)' --split-input-file | FileCheck %s --check-prefix=DG2

// A and B come by messages of 32 rows and 64 bytes; products are those of a dpas, K outermost; C is stored by blocks of
// 8 rows. On Xe-HPG products have 8 columns.

// CHECK-LABEL: gpu.func @product
// DG2-LABEL: gpu.func @product
gpu.module @m {
  gpu.func @product(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xbf16> -> !xetile.tile<16x32xbf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xbf16> -> !xetile.tile<32x32xbf16>
    // CHECK: %[[A:.*]] = xetile.load_tile %{{.*}} : !xetile.tile<16x32xbf16>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xbf16> -> vector<16x32xbf16>
    // CHECK: %[[A0:.*]] = vector.extract_strided_slice %[[A]] {offsets = [0, 0], sizes = [8, 16]
    // CHECK: %[[A1:.*]] = vector.extract_strided_slice %[[A]] {offsets = [0, 16], sizes = [8, 16]
    // CHECK: %[[B:.*]] = xetile.load_tile %{{.*}} : !xetile.tile<32x32xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
    // CHECK: %[[B0:.*]] = vector.extract_strided_slice %[[B]] {offsets = [0, 0], sizes = [16, 16]
    // CHECK: %[[B2:.*]] = vector.extract_strided_slice %[[B]] {offsets = [16, 0], sizes = [16, 16]
    // CHECK: %[[D0:.*]] = xetile.tile_mma %[[A0]], %[[B0]] : vector<8x16xbf16>, vector<16x16xbf16> -> vector<8x16xf32>
    // CHECK-COUNT-3: xetile.tile_mma %{{.*}}, %{{.*}} : vector<8x16xbf16>
    // CHECK: xetile.tile_mma %[[A1]], %[[B2]], %[[D0]] : vector<8x16xbf16>, vector<16x16xbf16>, vector<8x16xf32>
    // CHECK-COUNT-3: xetile.tile_mma
    // CHECK-NOT: xetile.tile_mma
    // DG2-COUNT-16: xetile.tile_mma {{.*}} vector<8x16xbf16>, vector<16x8xbf16>{{.*}} -> vector<8x8xf32>
    %d = xetile.tile_mma %a, %b : vector<16x32xbf16>, vector<32x32xbf16> -> vector<16x32xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<16x32xf32>
    // CHECK-COUNT-4: xetile.store_tile %{{.*}}, %{{.*}} : vector<8x16xf32>, !xetile.tile<8x16xf32>
    xetile.store_tile %d, %tc : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }
}

// -----

// What one message of A does not bring is loaded right before the products that need it.

// CHECK-LABEL: gpu.func @slabs
gpu.module @m {
  gpu.func @slabs(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xbf16> -> !xetile.tile<8x64xbf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xbf16> -> !xetile.tile<64x16xbf16>
    // CHECK: load_tile {{.*}} !xetile.tile<8x32xbf16>
    // CHECK: load_tile {{.*}} !xetile.tile<32x16xbf16>
    // CHECK: tile_mma
    // CHECK: tile_mma
    // CHECK: load_tile {{.*}} !xetile.tile<8x32xbf16>
    // CHECK: load_tile {{.*}} !xetile.tile<32x16xbf16>
    // CHECK: tile_mma
    // CHECK: tile_mma
    %a = xetile.load_tile %ta : !xetile.tile<8x64xbf16> -> vector<8x64xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<64x16xbf16> -> vector<64x16xbf16>
    %d = xetile.tile_mma %a, %b : vector<8x64xbf16>, vector<64x16xbf16> -> vector<8x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %d, %tc : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----

// Sizes that do not divide: smaller blocks at the edges, and a product filled up with zeros.

// CHECK-LABEL: gpu.func @edges
gpu.module @m {
  gpu.func @edges(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
    // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16x16xf16>
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<12x16xf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xf16> -> !xetile.tile<16x12xf16>
    %a = xetile.load_tile %ta : !xetile.tile<12x16xf16> -> vector<12x16xf16>
    // CHECK: %[[B:.*]] = xetile.load_tile %{{.*}} -> vector<16x12xf16>
    %b = xetile.load_tile %tb : !xetile.tile<16x12xf16> -> vector<16x12xf16>
    // CHECK: %[[FULL:.*]] = vector.insert_strided_slice %[[B]], %[[ZERO]]
    // CHECK: tile_mma %{{.*}}, %[[FULL]] : vector<8x16xf16>, vector<16x16xf16> -> vector<8x16xf32>
    // CHECK: tile_mma %{{.*}}, %[[FULL]] : vector<4x16xf16>, vector<16x16xf16> -> vector<4x16xf32>
    %d = xetile.tile_mma %a, %b : vector<12x16xf16>, vector<16x12xf16> -> vector<12x12xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<12x12xf32>
    // CHECK: store_tile %{{.*}} : vector<8x12xf32>
    // CHECK: store_tile %{{.*}} : vector<4x12xf32>
    xetile.store_tile %d, %tc : vector<12x12xf32>, !xetile.tile<12x12xf32>
    gpu.return
  }
}

// -----

// Elementwise ops on 8 rows of 64 bytes; a reduction combines blocks first, a broadcast is made once for all rows.

// CHECK-LABEL: gpu.func @rows
gpu.module @m {
  gpu.func @rows(%X: memref<64x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !xetile.tile<16x32xf32>
    // CHECK-COUNT-2: load_tile {{.*}} -> vector<16x16xf32>
    %v = xetile.load_tile %t : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    // CHECK-COUNT-4: math.exp %{{.*}} : vector<8x16xf32>
    %e = math.exp %v : vector<16x32xf32>
    // CHECK: %[[S:.*]] = arith.addf %{{.*}} : vector<8x16xf32>
    // CHECK: xetile.reduction <add>, %[[S]] [1] : vector<8x16xf32> -> vector<8x1xf32>
    %r = xetile.reduction <add>, %e [1] : vector<16x32xf32> -> vector<16x1xf32>
    // CHECK-COUNT-2: xetile.broadcast %{{.*}} [1] : vector<8x1xf32> -> vector<8x16xf32>
    // CHECK-NOT: xetile.broadcast
    %b = xetile.broadcast %r [1] : vector<16x1xf32> -> vector<16x32xf32>
    // CHECK-COUNT-4: arith.divf %{{.*}} : vector<8x16xf32>
    %d = arith.divf %e, %b : vector<16x32xf32>
    xetile.store_tile %d, %t : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }
}

// -----

// Column-major tiles, and those that are only transposed, come by messages that transpose: 8 units of 32 bits, 16 rows.

// CHECK-LABEL: gpu.func @transposed
gpu.module @m {
  gpu.func @transposed(%A: memref<64x64xbf16>, %B: memref<64x64xbf16, strided<[1, 64]>>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xbf16> -> !xetile.tile<16x32xbf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xbf16, strided<[1, 64]>> -> !xetile.tile<16x16xbf16, #xetile.tile_attr<order = [0, 1]>>
    // CHECK-COUNT-2: load_tile {{.*}} -> vector<16x16xbf16>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xbf16> -> vector<16x32xbf16>
    // CHECK: xetile.transpose %{{.*}}, [1, 0] : vector<16x16xbf16> -> vector<16x16xbf16>
    %at = xetile.transpose %a, [1, 0] : vector<16x32xbf16> -> vector<32x16xbf16>
    // CHECK: load_tile {{.*}} : !xetile.tile<16x16xbf16, #xetile.tile_attr<order = [0, 1]>>
    %b = xetile.load_tile %tb : !xetile.tile<16x16xbf16, #xetile.tile_attr<order = [0, 1]>> -> vector<16x16xbf16>
    %d = xetile.tile_mma %at, %b : vector<32x16xbf16>, vector<16x16xbf16> -> vector<32x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<32x16xf32>
    xetile.store_tile %d, %tc : vector<32x16xf32>, !xetile.tile<32x16xf32>
    gpu.return
  }
}

// -----

// A part of a vector is divided as it is, without putting the vector together.

// CHECK-LABEL: gpu.func @divided_again
gpu.module @m {
  gpu.func @divided_again(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<16x64xf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xf16> -> !xetile.tile<64x16xf16>
    // CHECK-NOT: vector.insert_strided_slice
    %a = xetile.load_tile %ta : !xetile.tile<16x64xf16> -> vector<16x64xf16>
    %b = xetile.load_tile %tb : !xetile.tile<64x16xf16> -> vector<64x16xf16>
    %a0 = vector.extract_strided_slice %a {offsets = [0, 0], sizes = [8, 64], strides = [1, 1]} : vector<16x64xf16> to vector<8x64xf16>
    // CHECK-COUNT-4: xetile.tile_mma
    %d = xetile.tile_mma %a0, %b : vector<8x64xf16>, vector<64x16xf16> -> vector<8x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %d, %tc : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}
