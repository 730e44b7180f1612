// Both branches of an scf.if need a number that a loop in front of it computes: each copies it for all lanes.

// RUN: xegpu-opt --pass-pipeline='builtin.module(xegpu-to-visa-pipeline{target=pvcxt grf=128 unaligned=true optimize=true})' %s | xegpu-run - small:i32:32:seed=0 small:i32:32:seed=0 small:i32:8:seed=0 small:i32:16:seed=0 small:i32:16:seed=0 small:i32:16:seed=0 --block 16 --engine both -o 0=%t.both.0.npy -o 1=%t.both.1.npy -o 2=%t.both.2.npy -o 3=%t.both.3.npy -o 4=%t.both.4.npy -o 5=%t.both.5.npy
// RUN: xegpu-run %s small:i32:32:seed=0 small:i32:32:seed=0 small:i32:8:seed=0 small:i32:16:seed=0 small:i32:16:seed=0 small:i32:16:seed=0 --block 16 --engine reference -o 0=%t.reference.0.npy -o 1=%t.reference.1.npy -o 2=%t.reference.2.npy -o 3=%t.reference.3.npy -o 4=%t.reference.4.npy -o 5=%t.reference.5.npy
// RUN: cmp %t.both.0.npy %t.reference.0.npy
// RUN: cmp %t.both.1.npy %t.reference.1.npy
// RUN: cmp %t.both.2.npy %t.reference.2.npy
// RUN: cmp %t.both.3.npy %t.reference.3.npy
// RUN: cmp %t.both.4.npy %t.reference.4.npy
// RUN: cmp %t.both.5.npy %t.reference.5.npy

gpu.module @kernels {
  gpu.func @random(%a0: memref<32xi32>, %a1: memref<32xi32>, %a2: memref<8xi32>, %a3: memref<?xi32>, %a4: memref<?xi32>, %a5: memref<?xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %v1 = gpu.thread_id x
    %v2 = gpu.block_dim x
    %v3 = gpu.block_id x
    %v4 = arith.muli %v3, %v2 : index
    %v5 = arith.addi %v4, %v1 : index
    %v6 = gpu.lane_id
    %v7 = arith.index_cast %v5 : index to i32
    %v8 = arith.constant 31 : i32
    %v9 = arith.andi %v7, %v8 : i32
    %v10 = arith.index_cast %v9 : i32 to index
    %v11 = memref.load %a0[%v10] : memref<32xi32>
    %v12 = arith.constant 31 : i32
    %v13 = arith.andi %v7, %v12 : i32
    %v14 = arith.index_cast %v13 : i32 to index
    %v15 = memref.load %a1[%v14] : memref<32xi32>
    %v16 = arith.constant 7 : i32
    %v17 = arith.andi %v7, %v16 : i32
    %v18 = arith.index_cast %v17 : i32 to index
    %v19 = memref.atomic_rmw addi %v7, %a2[%v18] : (i32, memref<8xi32>) -> i32
    %v20 = gpu.all_reduce %v7 uniform {
    ^bb0(%l: i32, %r: i32):
      %s = arith.maxsi %l, %r : i32
      gpu.yield %s : i32
    } : (i32) -> i32
    %v21 = gpu.all_reduce %v7 uniform {
    ^bb0(%l: i32, %r: i32):
      %s = arith.maxsi %l, %r : i32
      gpu.yield %s : i32
    } : (i32) -> i32
    %v22 = arith.cmpi ne, %v20, %v21 : i32
    %v23:2 = scf.if %v22 -> (i32, i32) {
      %v24 = arith.cmpi eq, %v20, %v7 : i32
      %v25:2 = scf.if %v24 -> (i32, i32) {
        %v26 = math.absi %v11 : i32
        scf.yield %v7, %v7 : i32, i32
      } else {
        %v27 = math.absi %v11 : i32
        scf.yield %v11, %v7 : i32, i32
      }
      scf.yield %v7, %v25#0 : i32, i32
    } else {
      %v28 = math.absi %v11 : i32
      scf.yield %v20, %v7 : i32, i32
    }
    memref.store %v21, %a3[%v5] : memref<?xi32>
    memref.store %v23#0, %a4[%v5] : memref<?xi32>
    memref.store %v23#1, %a5[%v5] : memref<?xi32>
    gpu.return
  }
}
