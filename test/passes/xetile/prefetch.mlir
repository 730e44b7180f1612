// RUN: xegpu-opt %s --xetile-prefetch='distance=2' --split-input-file | FileCheck %s
// RUN: xegpu-opt %s --xetile-to-xegpu-pipeline='prefetch-distance=2' --split-input-file | FileCheck %s --check-prefix=XEGPU
// RUN: not xegpu-opt %s --xetile-prefetch='distance=0' --split-input-file 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: error: 'builtin.module' op cannot prefetch 0 iterations ahead: distance must be at least 1
// RUN: not xegpu-opt %s --xetile-prefetch='distance=65' --split-input-file 2>&1 | FileCheck %s --check-prefix=FAR
// FAR: error: 'builtin.module' op cannot prefetch 65 iterations ahead: distance must be at least 1 and at most 64
// RUN: xegpu-opt %s --xetile-prefetch='distance=64' --split-input-file | FileCheck %s --check-prefix=LAST
// LAST-LABEL: gpu.func @loop

// Two tiles are prefetched before the loop, and one in each iteration.

// CHECK-LABEL: gpu.func @loop
// XEGPU-LABEL: gpu.func @loop
gpu.module @m {
  gpu.func @loop(%X: memref<64x1024xf32>, %Y: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    // CHECK: %[[T:.*]] = xetile.init_tile
    %t0 = xetile.init_tile %X[0, 0] : memref<64x1024xf32> -> !xetile.tile<8x16xf32>
    // CHECK: xetile.prefetch_tile %[[T]] {l1_hint = cached, l3_hint = cached}
    // CHECK: %[[P:.*]] = xetile.update_tile_offset %[[T]], [0, 16]
    // CHECK: xetile.prefetch_tile %[[P]]
    // CHECK: %[[Q:.*]] = xetile.update_tile_offset %[[P]], [0, 16]
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[T]], %[[A:.*]] = %[[Q]])
    // XEGPU-COUNT-2: xegpu.prefetch_nd
    // XEGPU: scf.for
    // XEGPU: xegpu.prefetch_nd
    %r:2 = scf.for %i = %c0 to %c64 step %c1 iter_args(%sum = %zero, %t = %t0) -> (vector<8x16xf32>, !xetile.tile<8x16xf32>) {
      %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      %s = arith.addf %sum, %v : vector<8x16xf32>
      %u = xetile.update_tile_offset %t, [0, 16] : !xetile.tile<8x16xf32>
      // CHECK: xetile.prefetch_tile %[[A]]
      // CHECK: %[[N:.*]] = xetile.update_tile_offset %[[A]], [0, 16]
      // CHECK: scf.yield %{{.*}}, %{{.*}}, %[[N]]
      scf.yield %s, %u : vector<8x16xf32>, !xetile.tile<8x16xf32>
    }
    %y = xetile.init_tile %Y[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %r#0, %y : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----

// At workgroup level, four subgroups load the same tile, and each prefetches a different part of it.

!a = !xetile.tile<64x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [2, 4], sg_data = [32, 32]>>>

// CHECK-LABEL: gpu.func @together
// XEGPU-LABEL: gpu.func @together
gpu.module @m {
  gpu.func @together(%X: memref<64x1024xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %t0 = xetile.init_tile %X[0, 0] : memref<64x1024xbf16> -> !a
    // CHECK: xetile.init_tile {{.*}} -> !xetile.tile<64x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 1], sg_data = [8, 32]>>>
    // XEGPU: xegpu.prefetch_nd %{{.*}} : !xegpu.tensor_desc<8x32xbf16>
    %r = scf.for %i = %c0 to %c64 step %c1 iter_args(%t = %t0) -> (!a) {
      %v = xetile.load_tile %t : !a -> vector<64x32xbf16>
      xetile.store_tile %v, %t : vector<64x32xbf16>, !a
      %u = xetile.update_tile_offset %t, [0, 32] : !a
      scf.yield %u : !a
    }
    gpu.return
  }
}

// -----

// Tiles that each iteration creates from its counter are also created for later iterations. Tiles that are not loaded,
// that lie in shared local memory, or whose offsets are loaded from memory, are not prefetched.

// CHECK-LABEL: gpu.func @made
// XEGPU-LABEL: gpu.func @made
gpu.module @m {
  gpu.func @made(%X: memref<64x1024xf32>, %Y: memref<64x1024xf32>, %I: memref<64xindex>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %L = memref.alloc() : memref<8x1024xf32, 3>
    // CHECK: %[[T0:.*]] = xetile.init_tile %{{.*}}[8, %[[P0:.*]]] :
    // CHECK: xetile.prefetch_tile %[[T0]] {l1_hint = cached, l3_hint = cached}
    // CHECK: %[[T1:.*]] = xetile.init_tile %{{.*}}[8, %[[P1:.*]]] :
    // CHECK: xetile.prefetch_tile %[[T1]]
    // CHECK-NOT: xetile.prefetch_tile
    // CHECK: scf.for %[[K:.*]] = %c0 to %{{.*}} step %[[ONE:.*]] {
    // XEGPU-COUNT-2: xegpu.prefetch_nd
    // XEGPU: scf.for
    // XEGPU-COUNT-1: xegpu.prefetch_nd
    // XEGPU-NOT: xegpu.prefetch_nd
    scf.for %k = %c0 to %n step %c1 {
      // CHECK-NOT: xetile.prefetch_tile
      %at = arith.muli %k, %c16 : index
      %t = xetile.init_tile %X[8, %at] : memref<64x1024xf32> -> !xetile.tile<8x16xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      %row = memref.load %I[%k] : memref<64xindex>
      %u = xetile.init_tile %X[%row, %at] : memref<64x1024xf32> -> !xetile.tile<8x16xf32>
      %w = xetile.load_tile %u : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      %local = xetile.init_tile %L[0, %at] : memref<8x1024xf32, 3> -> !xetile.tile<8x16xf32, #xetile.tile_attr<memory_space = 3>>
      %z = xetile.load_tile %local : !xetile.tile<8x16xf32, #xetile.tile_attr<memory_space = 3>> -> vector<8x16xf32>
      %vw = arith.addf %v, %w : vector<8x16xf32>
      %s = arith.addf %vw, %z : vector<8x16xf32>
      %y = xetile.init_tile %Y[8, %at] : memref<64x1024xf32> -> !xetile.tile<8x16xf32>
      // CHECK: xetile.store_tile
      xetile.store_tile %s, %y : vector<8x16xf32>, !xetile.tile<8x16xf32>
      // CHECK: %[[AHEAD:.*]] = arith.addi %[[K]], %{{.*}}
      // CHECK: %[[AT:.*]] = arith.muli %[[AHEAD]], %{{.*}}
      // CHECK: %[[T2:.*]] = xetile.init_tile %{{.*}}[8, %[[AT]]] :
      // CHECK: xetile.prefetch_tile %[[T2]]
      // CHECK-NOT: xetile.prefetch_tile
    }
    // CHECK: gpu.return
    gpu.return
  }
}
