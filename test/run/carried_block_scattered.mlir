// A block of bytes that a loop carries is stored where no 2D message can: the store's operand is the result of the new loop.

// RUN: xegpu-opt --pass-pipeline='builtin.module(xetile-to-xegpu-pipeline{target=pvcxt grf=256 prefetch-distance=0 load-ahead=true},xegpu-to-visa-pipeline{target=pvcxt grf=256 unaligned=true optimize=true})' %s | xegpu-run - small:i8:8x16:seed=0 small:i32:8x16:seed=0 small:i32:10x16:seed=0 i32:0 i32:-1 i32:0 zeros:i32:8x16 i32:0 zeros:i8:8x16 i32:0 --engine both -o 0=%t.both.0.npy -o 1=%t.both.1.npy -o 2=%t.both.2.npy -o 6=%t.both.6.npy -o 8=%t.both.8.npy
// RUN: xegpu-run %s small:i8:8x16:seed=0 small:i32:8x16:seed=0 small:i32:10x16:seed=0 i32:0 i32:-1 i32:0 zeros:i32:8x16 i32:0 zeros:i8:8x16 i32:0 --engine reference -o 0=%t.reference.0.npy -o 1=%t.reference.1.npy -o 2=%t.reference.2.npy -o 6=%t.reference.6.npy -o 8=%t.reference.8.npy
// RUN: cmp %t.both.0.npy %t.reference.0.npy
// RUN: cmp %t.both.1.npy %t.reference.1.npy
// RUN: cmp %t.both.2.npy %t.reference.2.npy
// RUN: cmp %t.both.6.npy %t.reference.6.npy
// RUN: cmp %t.both.8.npy %t.reference.8.npy

gpu.module @kernels {
  gpu.func @random(%a0: memref<8x16xi8>, %a1: memref<8x16xi32>, %a2: memref<10x16xi32>, %a3: index, %a4: index, %a5: index, %a6: memref<8x16xi32>, %a7: index, %a8: memref<8x16xi8>, %a9: index) kernel {
    %v1 = gpu.block_id x
    %v2 = arith.constant 0 : index
    %v3 = arith.constant 0 : index
    %v4 = xetile.init_tile %a0[%v2, %v3] : memref<8x16xi8> -> !xetile.tile<8x16xi8, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>>
    %v5 = xetile.load_tile %v4 : !xetile.tile<8x16xi8, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>> -> vector<8x16xi8>
    %v6 = arith.constant 0 : index
    %v7 = xetile.init_tile %a1[%v6, 0] : memref<8x16xi32> -> !xetile.tile<8x16xi32, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>>
    %v8 = xetile.load_tile %v7 : !xetile.tile<8x16xi32, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>> -> vector<8x16xi32>
    %v9 = arith.constant -1 : index
    %v10 = xetile.init_tile %a2[%v9, -1] : memref<10x16xi32> -> !xetile.tile<8x16xi32, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>>
    %v11 = arith.constant 0 : index
    %v12 = arith.constant 1 : index
    %v13:2 = scf.for %v16 = %v11 to %a3 step %v12 iter_args(%v14 = %v5, %v15 = %v10) -> (vector<8x16xi8>, !xetile.tile<8x16xi32, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>>) {
      %v17 = xetile.load_tile %v15 : !xetile.tile<8x16xi32, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>> -> vector<8x16xi32>
      %v18 = math.absi %v14 : vector<8x16xi8>
      %v19 = xetile.update_tile_offset %v15, [%a4, %a5] : !xetile.tile<8x16xi32, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>>
      scf.yield %v18, %v19 : vector<8x16xi8>, !xetile.tile<8x16xi32, #xetile.tile_attr<wg_map = <sg_layout = [1, 1], sg_data = [8, 16]>>>
    }
    %v20 = arith.constant 8 : index
    %v21 = arith.muli %v1, %v20 : index
    %v22 = xetile.init_tile %a6[%v21, %a7] : memref<8x16xi32> -> !xetile.tile<8x16xi32>
    xetile.store_tile %v8, %v22 {l3_hint = write_back} : vector<8x16xi32>, !xetile.tile<8x16xi32>
    %v23 = arith.constant 8 : index
    %v24 = arith.muli %v1, %v23 : index
    %v25 = xetile.init_tile %a8[%v24, %a9] : memref<8x16xi8> -> !xetile.tile<8x16xi8>
    xetile.store_tile %v13#0, %v25 : vector<8x16xi8>, !xetile.tile<8x16xi8>
    gpu.return
  }
}
