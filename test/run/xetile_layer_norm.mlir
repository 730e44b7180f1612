// Layer norm: each row of 256 columns less its mean, by its deviation, times gamma plus beta. A row belongs to two
// subgroups, which add up what they have through shared local memory.

// RUN: xegpu-run %s ones:f32:32x256 ones:f32:1x256 ones:f32:1x256 zeros:f32:32x256 --block 8 --registers 256 --print 3 | FileCheck %s
// CHECK: {{\[\[}}1. 1. 1.

!rows = !xetile.tile<32x256xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [8, 128]>>>

gpu.module @kernels {
  gpu.func @norm(%X: memref<?x256xf32>, %gamma: memref<1x256xf32>, %beta: memref<1x256xf32>, %Y: memref<?x256xf32>) kernel {
    %c32 = arith.constant 32 : index
    %b = gpu.block_id x
    %m = arith.muli %b, %c32 : index
    %tx = xetile.init_tile %X[%m, 0] : memref<?x256xf32> -> !rows
    %x = xetile.load_tile %tx : !rows -> vector<32x256xf32>
    %by = arith.constant dense<0.00390625> : vector<32x1xf32>
    %epsilon = arith.constant dense<1.0e-5> : vector<32x1xf32>
    %sum = xetile.reduction <add>, %x [1] : vector<32x256xf32> -> vector<32x1xf32>
    %mean = arith.mulf %sum, %by : vector<32x1xf32>
    %means = xetile.broadcast %mean [1] : vector<32x1xf32> -> vector<32x256xf32>
    %off = arith.subf %x, %means : vector<32x256xf32>
    %squares = arith.mulf %off, %off : vector<32x256xf32>
    %total = xetile.reduction <add>, %squares [1] : vector<32x256xf32> -> vector<32x1xf32>
    %variance = arith.mulf %total, %by : vector<32x1xf32>
    %safe = arith.addf %variance, %epsilon : vector<32x1xf32>
    %inverse = math.rsqrt %safe : vector<32x1xf32>
    %inverses = xetile.broadcast %inverse [1] : vector<32x1xf32> -> vector<32x256xf32>
    %normal = arith.mulf %off, %inverses : vector<32x256xf32>
    %tg = xetile.init_tile %gamma[0, 0] : memref<1x256xf32> -> !xetile.tile<1x256xf32>
    %tb = xetile.init_tile %beta[0, 0] : memref<1x256xf32> -> !xetile.tile<1x256xf32>
    %g = xetile.load_tile %tg : !xetile.tile<1x256xf32> -> vector<1x256xf32>
    %be = xetile.load_tile %tb : !xetile.tile<1x256xf32> -> vector<1x256xf32>
    %gs = xetile.broadcast %g [0] : vector<1x256xf32> -> vector<32x256xf32>
    %bes = xetile.broadcast %be [0] : vector<1x256xf32> -> vector<32x256xf32>
    %scaled = arith.mulf %normal, %gs : vector<32x256xf32>
    %y = arith.addf %scaled, %bes : vector<32x256xf32>
    %ty = xetile.init_tile %Y[%m, 0] : memref<?x256xf32> -> !rows
    xetile.store_tile %y, %ty : vector<32x256xf32>, !rows
    gpu.return
  }
}
