// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-wg-to-sg,canonicalize,cse)' --split-input-file | FileCheck %s

// A part for each subgroup; the first of the subgroups that share a part stores it.

!half = !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [16, 32]>>>

// CHECK-LABEL: gpu.func @shared
gpu.module @m {
  gpu.func @shared(%X: memref<256x256xf32>, %m: index) kernel {
    // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
    // CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
    // CHECK: %[[ID:.*]] = gpu.subgroup_id : index
    // CHECK: %[[ROW:.*]] = arith.divui %[[ID]], %[[C2]]
    // CHECK: %[[Y:.*]] = arith.muli %[[ROW]], %[[C16]]
    // CHECK: %[[COLUMN:.*]] = arith.remui %[[ID]], %[[C2]]
    // CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[COLUMN]], %{{.*}}
    // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[Y]]
    // CHECK: %[[T:.*]] = xetile.init_tile %{{.*}}[%[[AT]], 64] : memref<256x256xf32> -> !xetile.tile<16x32xf32>
    %t = xetile.init_tile %X[%m, 64] : memref<256x256xf32> -> !half
    // CHECK: %[[V:.*]] = xetile.load_tile %[[T]] {padding = 1.000000e+00 : f32, l1_hint = cached} : !xetile.tile<16x32xf32>
    %v = xetile.load_tile %t {padding = 1.0 : f32, l1_hint = cached} : !half -> vector<64x32xf32>
    // CHECK: scf.if %[[FIRST]] {
    // CHECK-NEXT: xetile.store_tile %[[V]], %[[T]] : vector<16x32xf32>
    xetile.store_tile %v, %t : vector<64x32xf32>, !half
    gpu.return
  }
}

// -----

// A tile larger than sg_layout x sg_data: two parts for each subgroup, distributed round robin.

!twice = !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 16]>>>

// CHECK-LABEL: gpu.func @round_robin
gpu.module @m {
  gpu.func @round_robin(%X: memref<256x256xf32>) kernel {
    // CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
    // CHECK: %[[Y:.*]] = arith.muli
    // CHECK: %[[Z:.*]] = arith.addi %[[Y]], %[[C32]]
    // CHECK: xetile.init_tile %{{.*}}[%[[Y]], %[[X:.*]]] : memref<256x256xf32> -> !xetile.tile<16x16xf32>
    // CHECK: xetile.init_tile %{{.*}}[%[[Z]], %[[X]]] : memref<256x256xf32> -> !xetile.tile<16x16xf32>
    %t = xetile.init_tile %X[0, 0] : memref<256x256xf32> -> !twice
    %v = xetile.load_tile %t : !twice -> vector<64x32xf32>
    // CHECK-COUNT-2: arith.addf %{{.*}}, %{{.*}} : vector<16x16xf32>
    %w = arith.addf %v, %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 16]>} : vector<64x32xf32>
    xetile.store_tile %w, %t : vector<64x32xf32>, !twice
    gpu.return
  }
}

// -----

// A reduction across subgroups uses shared local memory: each writes its partial result and, after one barrier, reads
// those of the others.

!in = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 32]>>>
!out = !xetile.tile<32x1xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 1]>>>

// CHECK-LABEL: gpu.func @across
gpu.module @m {
  gpu.func @across(%X: memref<32x64xf32>, %Y: memref<32x1xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !in
    %v = xetile.load_tile %t : !in -> vector<32x64xf32>
    // CHECK: %[[P:.*]] = xetile.reduction <add>, %{{.*}} [1] : vector<16x32xf32> -> vector<16x1xf32>
    // CHECK: %[[B:.*]] = memref.alloc() : memref<32x2xf32, 3>
    // CHECK: %[[MINE:.*]] = xetile.init_tile %[[B]][%{{.*}}, %{{.*}}] {in_bounds = true} : {{.*}} -> !xetile.tile<16x1xf32, #xetile.tile_attr<memory_space = 3>>
    // CHECK: xetile.store_tile %[[P]], %[[MINE]]
    // CHECK: gpu.barrier
    // CHECK: %[[ALL:.*]] = xetile.load_tile %{{.*}} -> vector<16x2xf32>
    // CHECK-NOT: gpu.barrier
    // CHECK: xetile.reduction <add>, %[[ALL]] [1] : vector<16x2xf32> -> vector<16x1xf32>
    %r = xetile.reduction <add>, %v [1] {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x64xf32> -> vector<32x1xf32>
    %u = xetile.init_tile %Y[0, 0] : memref<32x1xf32> -> !out
    xetile.store_tile %r, %u : vector<32x1xf32>, !out
    gpu.return
  }
}

// -----

// A barrier after that of an exchange is left out, unless other memory was accessed between the two.

!in = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 32]>>>
!out = !xetile.tile<32x1xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 1]>>>

// CHECK-LABEL: gpu.func @waits_once
gpu.module @m {
  gpu.func @waits_once(%X: memref<32x64xf32>, %Y: memref<32x1xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !in
    %u = xetile.init_tile %Y[0, 0] : memref<32x1xf32> -> !out
    // CHECK: xetile.load_tile
    // CHECK: gpu.barrier
    // CHECK: memref.alloc
    // CHECK: gpu.barrier
    // CHECK-NOT: gpu.barrier
    // CHECK: xetile.store_tile %{{.*}} : vector<16x1xf32>, !xetile.tile<16x1xf32>
    %v = xetile.load_tile %t : !in -> vector<32x64xf32>
    gpu.barrier
    %r = xetile.reduction <add>, %v [1] {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x64xf32> -> vector<32x1xf32>
    gpu.barrier
    %n = arith.negf %r {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x1xf32>
    gpu.barrier
    xetile.store_tile %n, %u : vector<32x1xf32>, !out
    // CHECK: gpu.barrier
    // CHECK: memref.alloc
    // CHECK: gpu.barrier
    // CHECK: xetile.load_tile %{{.*}} -> vector<16x1xf32>
    // CHECK: gpu.barrier
    // CHECK: xetile.store_tile
    gpu.barrier
    %s = xetile.reduction <mul>, %v [1] {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x64xf32> -> vector<32x1xf32>
    %w = xetile.load_tile %u : !out -> vector<32x1xf32>
    %d = arith.addf %s, %w {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x1xf32>
    gpu.barrier
    xetile.store_tile %d, %u : vector<32x1xf32>, !out
    gpu.return
  }
}

// -----

// Smaller parts of what a subgroup has are slices of its registers.

#wide = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>
!in = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = #wide>>
!out = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 32]>>>

// CHECK-LABEL: gpu.func @slices
gpu.module @m {
  gpu.func @slices(%X: memref<32x64xf32>, %Y: memref<32x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !in
    %u = xetile.init_tile %Y[0, 0] : memref<32x64xf32> -> !out
    // CHECK: %[[V:.*]] = xetile.load_tile
    %v = xetile.load_tile %t : !in -> vector<32x64xf32>
    // CHECK-DAG: %[[LEFT:.*]] = vector.extract_strided_slice %[[V]] {offsets = [0, 0], sizes = [8, 32], strides = [1, 1]}
    // CHECK-DAG: %[[RIGHT:.*]] = vector.extract_strided_slice %[[V]] {offsets = [0, 32], sizes = [8, 32], strides = [1, 1]}
    // CHECK: xetile.store_tile %[[LEFT]]
    // CHECK: xetile.store_tile %[[RIGHT]]
    %w = xetile.convert_layout %v {wg_map_result = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 32]>} : vector<32x64xf32>
    xetile.store_tile %w, %u : vector<32x64xf32>, !out
    gpu.return
  }
}

// -----

// Elements that follow from their positions are computed again where they are needed. Loaded ones are exchanged, and so
// are results of many divisions.

#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>
#columns = #xetile.wg_map<sg_layout = [1, 4], sg_data = [32, 16]>
!out = !xetile.tile<32x64xi64, #xetile.tile_attr<wg_map = #rows>>

// CHECK-LABEL: gpu.func @positions
gpu.module @m {
  gpu.func @positions(%Y: memref<32x64xi64>, %n: i64) kernel {
    %u = xetile.init_tile %Y[0, 0] : memref<32x64xi64> -> !out
    %o = vector.step {map = #xetile.wg_map<sg_layout = [4], sg_data = [8]>} : vector<32xindex>
    %i = arith.index_cast %o {map = #xetile.wg_map<sg_layout = [4], sg_data = [8]>} : vector<32xindex> to vector<32xi64>
    %j = vector.shape_cast %i {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [32, 1]>} : vector<32xi64> to vector<32x1xi64>
    %b = xetile.broadcast %j [1] {map = #columns} : vector<32x1xi64> -> vector<32x64xi64>
    %s = vector.broadcast %n {map = #columns} : i64 to vector<32x64xi64>
    %c = arith.addi %b, %s {map = #columns} : vector<32x64xi64>
    // CHECK-NOT: memref.alloc
    // CHECK: %[[C:.*]] = arith.addi %{{.*}}, %{{.*}} : vector<8x64xi64>
    // CHECK: xetile.store_tile %[[C]], %{{.*}}
    %r = xetile.convert_layout %c {wg_map_result = #rows} : vector<32x64xi64>
    xetile.store_tile %r, %u : vector<32x64xi64>, !out
    // CHECK: memref.alloc
    // CHECK: gpu.barrier
    %w = xetile.load_tile %u : !out -> vector<32x64xi64>
    %d = arith.addi %w, %w {map = #rows} : vector<32x64xi64>
    %e = xetile.convert_layout %d {wg_map_result = #columns} : vector<32x64xi64>
    %f = xetile.convert_layout %e {wg_map_result = #rows} : vector<32x64xi64>
    xetile.store_tile %f, %u : vector<32x64xi64>, !out
    // CHECK: memref.alloc
    %g = arith.divui %b, %s {map = #columns} : vector<32x64xi64>
    %h = arith.divui %s, %g {map = #columns} : vector<32x64xi64>
    %k = xetile.convert_layout %h {wg_map_result = #rows} : vector<32x64xi64>
    xetile.store_tile %k, %u : vector<32x64xi64>, !out
    gpu.return
  }
}

// -----

// The third exchange uses the memory of the first one again: all have read that before the barrier of the second one.

!in = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 32]>>>
!out = !xetile.tile<32x1xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 1]>>>

// CHECK-LABEL: gpu.func @used_again
gpu.module @m {
  gpu.func @used_again(%X: memref<32x64xf32>, %Y: memref<32x1xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !in
    %u = xetile.init_tile %Y[0, 0] : memref<32x1xf32> -> !out
    %v = xetile.load_tile %t : !in -> vector<32x64xf32>
    // CHECK-COUNT-2: memref.alloc
    // CHECK-NOT: memref.alloc
    // CHECK: gpu.return
    %a = xetile.reduction <add>, %v [1] {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x64xf32> -> vector<32x1xf32>
    %b = xetile.reduction <mul>, %v [1] {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x64xf32> -> vector<32x1xf32>
    %c = xetile.reduction <maximumf>, %v [1] {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x64xf32> -> vector<32x1xf32>
    %d = arith.addf %a, %b {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x1xf32>
    %e = arith.addf %c, %d {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 1]>} : vector<32x1xf32>
    xetile.store_tile %e, %u : vector<32x1xf32>, !out
    gpu.return
  }
}

// -----

// A subgroup that has all elements it needs keeps them in registers: along the other dimension, and if maps only differ
// in
// the size of a part. In a loop there is a barrier after the reads too.

!rows = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 64]>>>

// CHECK-LABEL: gpu.func @registers
gpu.module @m {
  gpu.func @registers(%X: memref<32x64xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !rows
    // CHECK: scf.for
    scf.for %i = %c0 to %n step %c1 {
      // CHECK: %[[V:.*]] = xetile.load_tile
      %v = xetile.load_tile %t : !rows -> vector<32x64xf32>
      // CHECK-NOT: memref.alloc
      // CHECK: %[[R:.*]] = xetile.reduction <maximumf>, %[[V]] [1] : vector<8x64xf32> -> vector<8x1xf32>
      // CHECK-NEXT: xetile.broadcast %[[R]] [1] : vector<8x1xf32> -> vector<8x64xf32>
      %r = xetile.reduction <maximumf>, %v [1] {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 1]>} : vector<32x64xf32> -> vector<32x1xf32>
      %b = xetile.broadcast %r [1] {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>} : vector<32x1xf32> -> vector<32x64xf32>
      // CHECK: memref.alloc() : memref<32x64xf32, 3>
      // CHECK: xetile.store_tile
      // CHECK: gpu.barrier
      // CHECK: xetile.load_tile %{{.*}} -> vector<32x16xf32>
      // CHECK: gpu.barrier
      %w = xetile.convert_layout %b {wg_map_result = #xetile.wg_map<sg_layout = [1, 4], sg_data = [32, 16]>} : vector<32x64xf32>
      // The next exchange has the same buffer.
      // CHECK-NOT: memref.alloc
      // CHECK: xetile.store_tile
      // CHECK: gpu.barrier
      // CHECK: xetile.load_tile %{{.*}} -> vector<8x64xf32>
      %x = xetile.convert_layout %w {wg_map_result = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 64]>} : vector<32x64xf32>
      xetile.store_tile %x, %t : vector<32x64xf32>, !rows
    }
    gpu.return
  }
}

// -----

// A shape cast is one of registers if each subgroup has the same elements in the same order, and otherwise an exchange
// through shared local memory.

!in = !xetile.tile<32x16xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 16]>>>
!out = !xetile.tile<16x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [4, 32]>>>
!square = !xetile.tile<16x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [8, 16]>>>

// CHECK-LABEL: gpu.func @shapes
gpu.module @m {
  gpu.func @shapes(%X: memref<32x16xf32>, %Y: memref<16x32xf32>, %Z: memref<16x32xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<32x16xf32> -> !in
    // CHECK: %[[V:.*]] = xetile.load_tile
    %v = xetile.load_tile %t : !in -> vector<32x16xf32>
    // CHECK: vector.shape_cast %[[V]] : vector<8x16xf32> to vector<4x32xf32>
    %a = vector.shape_cast %v {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [4, 32]>} : vector<32x16xf32> to vector<16x32xf32>
    %u = xetile.init_tile %Y[0, 0] : memref<16x32xf32> -> !out
    xetile.store_tile %a, %u : vector<16x32xf32>, !out
    // CHECK: %[[B:.*]] = memref.alloc() : memref<32x16xf32, 3>
    // CHECK: xetile.store_tile %[[V]]
    // CHECK: gpu.barrier
    // CHECK: %[[R:.*]] = memref.reinterpret_cast %[[B]] to offset: [0], sizes: [16, 32], strides: [32, 1]
    // CHECK: xetile.init_tile %[[R]]
    // CHECK: xetile.load_tile {{.*}} -> vector<8x16xf32>
    %b = vector.shape_cast %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 16]>} : vector<32x16xf32> to vector<16x32xf32>
    %w = xetile.init_tile %Z[0, 0] : memref<16x32xf32> -> !square
    xetile.store_tile %b, %w : vector<16x32xf32>, !square
    gpu.return
  }
}

// -----

// A contraction reads parts of its factors from shared local memory in a loop over K, if it would be long otherwise.

!rows = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 64]>>>
!all = !xetile.tile<64x16xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [64, 16]>>>
!sums = !xetile.tile<32x16xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [8, 16]>>>

// CHECK-LABEL: gpu.func @contraction
gpu.module @m {
  gpu.func @contraction(%A: memref<32x64xf32>, %B: memref<64x16xf32>, %C: memref<32x16xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<32x64xf32> -> !rows
    %tb = xetile.init_tile %B[0, 0] : memref<64x16xf32> -> !all
    %tc = xetile.init_tile %C[0, 0] : memref<32x16xf32> -> !sums
    %a = xetile.load_tile %ta : !rows -> vector<32x64xf32>
    %b = xetile.load_tile %tb : !all -> vector<64x16xf32>
    %c = xetile.load_tile %tc : !sums -> vector<32x16xf32>
    // CHECK: %[[BUFFER:.*]] = memref.alloc() : memref<1x3072xf32, 3>
    // CHECK: xetile.store_tile %{{.*}} : vector<8x64xf32>
    // CHECK: scf.if
    // CHECK: xetile.store_tile %{{.*}} : vector<64x16xf32>
    // CHECK: gpu.barrier
    // CHECK: scf.for %[[K:.*]] = %{{.*}} to %c64{{.*}} step %c8{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (vector<8x16xf32>) {
    // CHECK: xetile.init_tile %{{.*}}[%{{.*}}, %[[K]]]
    // CHECK: xetile.init_tile %{{.*}}[%[[K]], 0]
    // CHECK: vector.contract {{.*}} %[[SUM]] : vector<8x8xf32>, vector<8x16xf32> into vector<8x16xf32>
    %d = vector.contract {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
    } %a, %b, %c : vector<32x64xf32>, vector<64x16xf32> into vector<32x16xf32>
    xetile.store_tile %d, %tc : vector<32x16xf32>, !sums
    gpu.return
  }
}
