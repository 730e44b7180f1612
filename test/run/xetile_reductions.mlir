// Sums of rows and greatest of columns: within a subgroup along one dimension, across subgroups along the other, and
// of a part of a row each.

// RUN: xegpu-run %s ones:f32:32x64 zeros:f32:32x1 zeros:f32:1x64 zeros:f32:32x8 --block 8 --print 1 --print 3 | FileCheck %s
// CHECK: 64.
// CHECK: 8. 8.

!in = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 4], sg_data = [16, 16]>>>

gpu.module @kernels {
  gpu.func @reductions(%X: memref<32x64xf32>, %rows: memref<32x1xf32>, %columns: memref<1x64xf32>,
                       %parts: memref<32x8xf32>) kernel {
    %x = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !in
    %v = xetile.load_tile %x : !in -> vector<32x64xf32>
    %sum = xetile.reduction <add>, %v [1] : vector<32x64xf32> -> vector<32x1xf32>
    %most = xetile.reduction <maximumf>, %v [0] : vector<32x64xf32> -> vector<1x64xf32>
    %part = xetile.reduction <add>, %v [1] {reduction_size = 8} : vector<32x64xf32> -> vector<32x8xf32>
    %tr = xetile.init_tile %rows[0, 0] : memref<32x1xf32> -> !xetile.tile<32x1xf32>
    %tc = xetile.init_tile %columns[0, 0] : memref<1x64xf32> -> !xetile.tile<1x64xf32>
    %tp = xetile.init_tile %parts[0, 0] : memref<32x8xf32> -> !xetile.tile<32x8xf32>
    xetile.store_tile %sum, %tr : vector<32x1xf32>, !xetile.tile<32x1xf32>
    xetile.store_tile %most, %tc : vector<1x64xf32>, !xetile.tile<1x64xf32>
    xetile.store_tile %part, %tp : vector<32x8xf32>, !xetile.tile<32x8xf32>
    gpu.return
  }
}
