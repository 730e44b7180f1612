// A NaN that is reduced alone keeps its bits: the reference evaluator gave canonical ones.

// RUN: xegpu-run %s bits:f8E4M3FN:3x16:seed=32 i32:0 zeros:f8E4M3FN:2x16 zeros:f8E4M3FN:3x16 i32:0 --engine both -o 0=%t.both.0.npy -o 2=%t.both.2.npy -o 3=%t.both.3.npy
// RUN: xegpu-run %s bits:f8E4M3FN:3x16:seed=32 i32:0 zeros:f8E4M3FN:2x16 zeros:f8E4M3FN:3x16 i32:0 --engine reference -o 0=%t.reference.0.npy -o 2=%t.reference.2.npy -o 3=%t.reference.3.npy
// RUN: cmp %t.both.0.npy %t.reference.0.npy
// RUN: cmp %t.both.2.npy %t.reference.2.npy
// RUN: cmp %t.both.3.npy %t.reference.3.npy

gpu.module @kernels {
  gpu.func @random(%a0: memref<?x16xf8E4M3FN>, %a1: index, %a2: memref<2x16xf8E4M3FN>, %a3: memref<3x16xf8E4M3FN>, %a4: index) kernel {
    %v1 = gpu.block_id x
    %v2 = arith.constant 0 : index
    %v3 = xetile.init_tile %a0[%v2, %a1], [3, 16], [16, 1] : memref<?x16xf8E4M3FN> -> !xetile.tile<3x16xf8E4M3FN, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [3, 4]>>>
    %v4 = xetile.load_tile %v3 : !xetile.tile<3x16xf8E4M3FN, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [3, 4]>>> -> vector<3x16xf8E4M3FN>
    %v5 = xetile.reduction <minnumf>, %v4 [0] {map = <sg_layout = [1, 1], sg_data = [3, 16]>, reduction_size = 1} : vector<3x16xf8E4M3FN> -> vector<3x16xf8E4M3FN>
    %v6 = arith.constant 3 : index
    %v7 = arith.muli %v1, %v6 : index
    %v8 = xetile.init_tile %a2[%v7, 0] : memref<2x16xf8E4M3FN> -> !xetile.tile<3x16xf8E4M3FN, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [3, 4]>>>
    xetile.store_tile %v4, %v8 : vector<3x16xf8E4M3FN>, !xetile.tile<3x16xf8E4M3FN, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [3, 4]>>>
    %v9 = arith.constant 3 : index
    %v10 = arith.muli %v1, %v9 : index
    %v11 = xetile.init_tile %a3[%v10, %a4] : memref<3x16xf8E4M3FN> -> !xetile.tile<3x16xf8E4M3FN>
    xetile.store_tile %v5, %v11 : vector<3x16xf8E4M3FN>, !xetile.tile<3x16xf8E4M3FN>
    gpu.return
  }
}
