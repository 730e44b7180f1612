// RUN: xegpu-opt %s --xetile-split-stacks --xegpu-dce --split-input-file | FileCheck %s
// RUN: xegpu-opt %s --xetile-split-stacks --xegpu-dce --xetile-scattered-to-tiles --split-input-file | FileCheck %s --check-prefix=TILES

// Two matrices of 16x32 are loaded, multiplied by one matrix, and stored, each on its own.
//
// CHECK-LABEL: gpu.func @products
// CHECK-SAME: (%[[A:.*]]: memref<?xf16>, %{{.*}}: memref<?xf16>, %{{.*}}: memref<?xf32>, %{{.*}}: index, %{{.*}}: index)
// CHECK-COUNT-2: xetile.load {{.*}} -> vector<16x32xf16>
// CHECK: %[[FIRST:.*]] = xetile.tile_mma
// CHECK: %[[SECOND:.*]] = xetile.tile_mma
// CHECK-NOT: vector.shuffle
// CHECK: xetile.store {{.*}} : vector<16x16xf32>
// CHECK: xetile.store {{.*}} : vector<16x16xf32>
// CHECK-NOT: xetile.store
//
// TILES-LABEL: gpu.func @products
// TILES: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [16, 32], strides: [%{{.*}}, 1]
// TILES: memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [16, 32], strides: [%{{.*}}, 1]
gpu.module @stacks {
  gpu.func @products(%a: memref<?xf16>, %b: memref<?xf16>, %c: memref<?xf32>, %matrix: index, %row: index) kernel {
    %i = vector.step : vector<2xindex>
    %j = vector.step : vector<16xindex>
    %k = vector.step : vector<32xindex>
    %i1 = vector.shape_cast %i : vector<2xindex> to vector<2x1xindex>
    %j1 = vector.shape_cast %j : vector<16xindex> to vector<1x16xindex>
    %k1 = vector.shape_cast %k : vector<32xindex> to vector<1x32xindex>
    %matrices = vector.broadcast %matrix : index to vector<2x1xindex>
    %rows = vector.broadcast %row : index to vector<1x16xindex>
    %im = arith.muli %i1, %matrices : vector<2x1xindex>
    %jm = arith.muli %j1, %rows : vector<1x16xindex>
    %i2 = xetile.broadcast %im [1] : vector<2x1xindex> -> vector<2x16xindex>
    %j2 = xetile.broadcast %jm [0] : vector<1x16xindex> -> vector<2x16xindex>
    %i3 = vector.shape_cast %i2 : vector<2x16xindex> to vector<32x1xindex>
    %j3 = vector.shape_cast %j2 : vector<2x16xindex> to vector<32x1xindex>
    %ij = arith.addi %i3, %j3 : vector<32x1xindex>
    %ij1 = xetile.broadcast %ij [1] : vector<32x1xindex> -> vector<32x32xindex>
    %k2 = xetile.broadcast %k1 [0] : vector<1x32xindex> -> vector<2x32xindex>
    %k3 = xetile.broadcast %k2 [0] {broadcast_size = 16} : vector<2x32xindex> -> vector<32x32xindex>
    %ijk = arith.addi %ij1, %k3 : vector<32x32xindex>
    %ta = xetile.init_tile %a, %ijk : memref<?xf16>, vector<32x32xindex> -> !xetile.tile<32x32xf16, #xetile.tile_attr<scattered = true>>
    %va = xetile.load %ta : !xetile.tile<32x32xf16, #xetile.tile_attr<scattered = true>> -> vector<32x32xf16>
    %half = arith.constant dense<0.5> : vector<32x32xf16>
    %scaled = arith.mulf %va, %half : vector<32x32xf16>
    %a0 = vector.extract_strided_slice %scaled {offsets = [0, 0], sizes = [16, 32], strides = [1, 1]} : vector<32x32xf16> to vector<16x32xf16>
    %a1 = vector.extract_strided_slice %scaled {offsets = [16, 0], sizes = [16, 32], strides = [1, 1]} : vector<32x32xf16> to vector<16x32xf16>
    %kb = vector.shape_cast %k : vector<32xindex> to vector<32x1xindex>
    %kb1 = xetile.broadcast %kb [1] : vector<32x1xindex> -> vector<32x16xindex>
    %tb = xetile.init_tile %b, %kb1 : memref<?xf16>, vector<32x16xindex> -> !xetile.tile<32x16xf16, #xetile.tile_attr<scattered = true>>
    %vb = xetile.load %tb : !xetile.tile<32x16xf16, #xetile.tile_attr<scattered = true>> -> vector<32x16xf16>
    %d0 = xetile.tile_mma %a0, %vb : vector<16x32xf16>, vector<32x16xf16> -> vector<16x16xf32>
    %d1 = xetile.tile_mma %a1, %vb : vector<16x32xf16>, vector<32x16xf16> -> vector<16x16xf32>
    %d = vector.shuffle %d0, %d1 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] : vector<16x16xf32>, vector<16x16xf32>
    %jc = vector.shape_cast %j : vector<16xindex> to vector<1x16xindex>
    %ij2 = xetile.broadcast %ij [1] : vector<32x1xindex> -> vector<32x16xindex>
    %jc1 = xetile.broadcast %jc [0] : vector<1x16xindex> -> vector<32x16xindex>
    %at = arith.addi %ij2, %jc1 : vector<32x16xindex>
    %tc = xetile.init_tile %c, %at : memref<?xf32>, vector<32x16xindex> -> !xetile.tile<32x16xf32, #xetile.tile_attr<scattered = true>>
    xetile.store %d, %tc : vector<32x16xf32>, !xetile.tile<32x16xf32, #xetile.tile_attr<scattered = true>>
    gpu.return
  }
}

// -----

// A load of which something else uses all rows stays whole.
//
// CHECK-LABEL: gpu.func @also_whole
// CHECK: xetile.load {{.*}} -> vector<32x32xf32>
// CHECK-NOT: xetile.load
gpu.module @stacks {
  gpu.func @also_whole(%a: memref<?xf32>, %c: memref<?xf32>, %d: memref<16x32xf32>, %at: vector<32x32xindex>) kernel {
    %ta = xetile.init_tile %a, %at : memref<?xf32>, vector<32x32xindex> -> !xetile.tile<32x32xf32, #xetile.tile_attr<scattered = true>>
    %v = xetile.load %ta : !xetile.tile<32x32xf32, #xetile.tile_attr<scattered = true>> -> vector<32x32xf32>
    %low = vector.extract_strided_slice %v {offsets = [0, 0], sizes = [16, 32], strides = [1, 1]} : vector<32x32xf32> to vector<16x32xf32>
    %tc = xetile.init_tile %c, %at : memref<?xf32>, vector<32x32xindex> -> !xetile.tile<32x32xf32, #xetile.tile_attr<scattered = true>>
    xetile.store %v, %tc : vector<32x32xf32>, !xetile.tile<32x32xf32, #xetile.tile_attr<scattered = true>>
    %td = xetile.init_tile %d[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
    xetile.store_tile %low, %td : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }
}
