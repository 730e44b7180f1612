// A copy and a transpose through shared local memory: what one subgroup writes there another one reads.

// RUN: xegpu-run %s arange:f32:32x32 zeros:f32:32x32 zeros:f32:32x32 --block 4 --print 2 | FileCheck %s
// CHECK: {{\[\[}}0.000e+00 3.200e+01 6.400e+01

!quarter = !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 16]>>>
!rows = !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 32]>>>
!shared_quarter = !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 16]>, memory_space = 3>>
!shared_rows = !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 32]>, memory_space = 3>>

gpu.module @kernels {
  gpu.func @copy(%X: memref<32x32xf32>, %Y: memref<32x32xf32>, %T: memref<32x32xf32>) kernel {
    %buffer = memref.alloc() : memref<32x32xf32, 3>
    %x = xetile.init_tile %X[0, 0] : memref<32x32xf32> -> !quarter
    %to = xetile.init_tile %buffer[0, 0] : memref<32x32xf32, 3> -> !shared_quarter
    %from = xetile.init_tile %buffer[0, 0] : memref<32x32xf32, 3> -> !shared_rows
    %v = xetile.load_tile %x : !quarter -> vector<32x32xf32>
    xetile.store_tile %v, %to : vector<32x32xf32>, !shared_quarter
    gpu.barrier
    %w = xetile.load_tile %from : !shared_rows -> vector<32x32xf32>
    %y = xetile.init_tile %Y[0, 0] : memref<32x32xf32> -> !rows
    xetile.store_tile %w, %y : vector<32x32xf32>, !rows
    %turned = xetile.transpose %w, [1, 0] {map = <sg_layout = [2, 2], sg_data = [16, 16]>} : vector<32x32xf32> -> vector<32x32xf32>
    %t = xetile.init_tile %T[0, 0] : memref<32x32xf32> -> !quarter
    xetile.store_tile %turned, %t : vector<32x32xf32>, !quarter
    gpu.return
  }
}
