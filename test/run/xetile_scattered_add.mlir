// Numbers added to elements that an array of indices names, where a mask allows it: those of index 0 are left out.

// RUN: xegpu-run %s arange:i32:256 ones:f32:256 zeros:f32:300 --grid 2 --block 4 --print 2 | FileCheck %s
// CHECK: [0. 1. 1. 1.

!i = !xetile.tile<128xi32, #xetile.tile_attr<wg_map = <sg_layout = [4], sg_data = [32]>, scattered = true>>
!f = !xetile.tile<128xf32, #xetile.tile_attr<wg_map = <sg_layout = [4], sg_data = [32]>, scattered = true>>

gpu.module @kernels {
  gpu.func @add(%where: memref<256xi32>, %what: memref<256xf32>, %out: memref<300xf32>) kernel {
    %c128 = arith.constant 128 : index
    %b = gpu.block_id x
    %first = arith.muli %b, %c128 : index
    %start = vector.broadcast %first : index to vector<128xindex>
    %step = vector.step : vector<128xindex>
    %line = arith.addi %start, %step : vector<128xindex>
    %ti = xetile.init_tile %where, %line : memref<256xi32>, vector<128xindex> -> !i
    %tv = xetile.init_tile %what, %line : memref<256xf32>, vector<128xindex> -> !f
    %at = xetile.load %ti : !i -> vector<128xi32>
    %v = xetile.load %tv : !f -> vector<128xf32>
    %none = arith.constant dense<0> : vector<128xi32>
    %mask = arith.cmpi ne, %at, %none : vector<128xi32>
    %places = arith.index_cast %at : vector<128xi32> to vector<128xindex>
    %to = xetile.init_tile %out, %places : memref<300xf32>, vector<128xindex> -> !f
    %old = xetile.atomic_rmw <addf>, %v, %to, %mask : vector<128xf32>, !f, vector<128xi1> -> vector<128xf32>
    gpu.return
  }
}
