// The softmax of each row of 64 columns and more; what lies beyond the last column is padded with a number so small
// that it counts for nothing. Rows are divided among four subgroups, and each row among two.

// RUN: xegpu-run %s zeros:f32:32x64 zeros:f32:32x64 --block 8 --print 1 | FileCheck %s
// CHECK: {{\[\[}}0.015625 0.015625

!row = !xetile.tile<32x128xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [8, 64]>>>

gpu.module @kernels {
  gpu.func @softmax(%X: memref<?x?xf32>, %Y: memref<?x?xf32>) kernel {
    %c32 = arith.constant 32 : index
    %b = gpu.block_id x
    %m = arith.muli %b, %c32 : index
    %x = xetile.init_tile %X[%m, 0] : memref<?x?xf32> -> !row
    %v = xetile.load_tile %x {padding = -1.0e30 : f32} : !row -> vector<32x128xf32>
    %most = xetile.reduction <maximumf>, %v [1] : vector<32x128xf32> -> vector<32x1xf32>
    %mosts = xetile.broadcast %most [1] : vector<32x1xf32> -> vector<32x128xf32>
    %shifted = arith.subf %v, %mosts : vector<32x128xf32>
    %powers = math.exp %shifted : vector<32x128xf32>
    %sum = xetile.reduction <add>, %powers [1] : vector<32x128xf32> -> vector<32x1xf32>
    %sums = xetile.broadcast %sum [1] : vector<32x1xf32> -> vector<32x128xf32>
    %r = arith.divf %powers, %sums : vector<32x128xf32>
    %y = xetile.init_tile %Y[%m, 0] : memref<?x?xf32> -> !row
    xetile.store_tile %r, %y : vector<32x128xf32>, !row
    gpu.return
  }
}
