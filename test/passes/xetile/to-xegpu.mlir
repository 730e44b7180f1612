// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-to-xegpu,canonicalize,cse,xegpu-dce)' --split-input-file | FileCheck %s --check-prefix=TILES
// RUN: xegpu-opt %s --pass-pipeline='builtin.module(xetile-to-xegpu,canonicalize,cse,xegpu-dce,xegpu-legalize,canonicalize,cse,xegpu-dce)' --split-input-file | FileCheck %s

// Tiles become descriptors of their size (TILES), which xegpu-legalize splits into messages.

// The second operand of products is loaded in VNNI layout. Tiles that no block message can move are gathered, as all
// are
// on a GPU without such messages (test_xetile_passes.py).

// TILES-LABEL: gpu.func @arrays
// CHECK-LABEL: gpu.func @arrays
gpu.module @m {
  gpu.func @arrays(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>, %C: memref<64x64xf32>, %m: index) kernel {
    // CHECK: %[[TA:.*]] = xegpu.create_nd_tdesc %{{.*}}[%{{.*}}, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
    %ta = xetile.init_tile %A[%m, 0] : memref<64x64xbf16> -> !xetile.tile<8x32xbf16>
    %tb = xetile.init_tile %B[0, 0] : memref<64x64xbf16> -> !xetile.tile<32x16xbf16>
    // CHECK: %[[A:.*]] = xegpu.load_nd %[[TA]] {mode = vc, l1_hint = cached} : {{.*}} -> vector<2x8x16xbf16>
    // CHECK: %[[A0:.*]] = vector.extract %[[A]][0] : vector<8x16xbf16> from vector<2x8x16xbf16>
    // CHECK: %[[A1:.*]] = vector.extract %[[A]][1] : vector<8x16xbf16> from vector<2x8x16xbf16>
    %a = xetile.load_tile %ta {l1_hint = cached} : !xetile.tile<8x32xbf16> -> vector<8x32xbf16>
    // CHECK: %[[B:.*]] = xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<32x16xbf16> -> vector<16x16x2xbf16>
    // TILES: %[[A:.*]] = xegpu.load_nd %{{.*}} {mode = vc, l1_hint = cached} : !xegpu.tensor_desc<8x32xbf16> -> vector<8x32xbf16>
    // TILES: %[[B:.*]] = xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<32x16xbf16> -> vector<16x16x2xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x16xbf16> -> vector<32x16xbf16>
    %tc = xetile.init_tile %C[%m, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    // CHECK: %[[C:.*]] = xegpu.load_nd %[[TC:.*]] {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %c = xetile.load_tile %tc : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    // CHECK: %[[B0:.*]] = vector.extract_strided_slice %[[B]] {offsets = [0, 0, 0], sizes = [8, 16, 2]
    // CHECK: %[[D0:.*]] = xegpu.dpas %[[C]], %[[A0]], %[[B0]] {mode = vc} : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
    // CHECK: %[[B1:.*]] = vector.extract_strided_slice %[[B]] {offsets = [8, 0, 0], sizes = [8, 16, 2]
    // CHECK: %[[D:.*]] = xegpu.dpas %[[D0]], %[[A1]], %[[B1]] {mode = vc}
    // TILES: xegpu.dpas %{{.*}}, %[[A]], %[[B]] {mode = vc} : vector<8x16xf32>, vector<8x32xbf16>, vector<16x16x2xbf16> -> vector<8x16xf32>
    %e = xetile.tile_mma %a, %b, %c : vector<8x32xbf16>, vector<32x16xbf16>, vector<8x16xf32> -> vector<8x16xf32>
    // CHECK: xegpu.store_nd %[[D]], %[[TC]] {mode = vc, l3_hint = write_back}
    xetile.store_tile %e, %tc {l3_hint = write_back} : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----

// Transposing loads: of a column-major tile and of one whose only use is a transpose, in units of 32 bits, packed or
// not.

// CHECK-LABEL: gpu.func @transposing
// TILES-LABEL: gpu.func @transposing
gpu.module @m {
  gpu.func @transposing(%X: memref<64x64xf32>, %B: memref<64x64xf16, strided<[1, 64]>>, %C: memref<64x64xf32>) kernel {
    %tx = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !xetile.tile<16x8xf32>
    // CHECK: xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0]} : !xegpu.tensor_desc<16x8xf32> -> vector<8x16xf32>
    %x = xetile.load_tile %tx : !xetile.tile<16x8xf32> -> vector<16x8xf32>
    %xt = xetile.transpose %x, [1, 0] : vector<16x8xf32> -> vector<8x16xf32>
    // CHECK: %[[M:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [64, 64], strides: [64, 1]
    // CHECK: %[[T:.*]] = xegpu.create_nd_tdesc %[[M]][16, 0] {mode = vc} : memref<64x64xf16, strided<[64, 1]>> -> !xegpu.tensor_desc<16x16xf16>
    %tb = xetile.init_tile %B[0, 16] : memref<64x64xf16, strided<[1, 64]>> -> !xetile.tile<16x16xf16, #xetile.tile_attr<order = [0, 1]>>
    // CHECK: %[[B:.*]] = xegpu.load_nd %[[T]] {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : {{.*}} -> vector<8x32xf16>
    // CHECK: %[[P:.*]] = vector.shape_cast %[[B]] : vector<8x32xf16> to vector<8x16x2xf16>
    %b = xetile.load_tile %tb : !xetile.tile<16x16xf16, #xetile.tile_attr<order = [0, 1]>> -> vector<16x16xf16>
    %ta = xetile.init_tile %B[0, 0] : memref<64x64xf16, strided<[1, 64]>> -> !xetile.tile<16x16xf16, #xetile.tile_attr<order = [0, 1]>>
    // CHECK: %[[A:.*]] = xegpu.load_nd {{.*}} -> vector<8x32xf16>
    // CHECK: %[[S:.*]] = vector.extract_strided_slice %[[A]] {offsets = [0, 0], sizes = [4, 32], strides = [1, 1]} : vector<8x32xf16> to vector<4x32xf16>
    // CHECK: %[[U:.*]] = vector.shape_cast %[[S]] : vector<4x32xf16> to vector<4x16x2x1xf16>
    // CHECK: vector.transpose %[[U]], [0, 2, 1, 3] : vector<4x16x2x1xf16> to vector<4x2x16x1xf16>
    // TILES: xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : {{.*}} -> vector<8x32xf16>
    // TILES: xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0]} : {{.*}} -> vector<16x16xf16>
    %a = xetile.load_tile %ta : !xetile.tile<16x16xf16, #xetile.tile_attr<order = [0, 1]>> -> vector<16x16xf16>
    %a0 = vector.extract_strided_slice %a {offsets = [0, 0], sizes = [8, 16], strides = [1, 1]} : vector<16x16xf16> to vector<8x16xf16>
    // CHECK: xegpu.dpas %{{.*}}, %{{.*}}, %[[P]]
    %d = xetile.tile_mma %a0, %b, %xt : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32> -> vector<8x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %d, %tc : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----

// Blocks that no block message can move are loaded by lines that are known to be in bounds and aligned, or gathered: a
// pitch that is not a multiple of 16 bytes, a matrix that is too narrow, an odd first column, a batch whose matrices are
// misaligned. Rows with nothing between them are one line. A column of two bytes is loaded with the next one, and stored
// alone.

// CHECK-LABEL: gpu.func @misfits
gpu.module @m {
  gpu.func @misfits(%narrow: memref<64x64xf16>, %pitch: memref<64x66xf16>, %small: memref<64x8xf32>, %batch: memref<4x3x40xf16>, %i: index) kernel {
    // CHECK: xegpu.load_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<8x2xf16> -> vector<8x2xf16>
    // CHECK-NOT: tensor_desc<{{[0-9]+x[0-9]+xf}}
    // CHECK: xegpu.load_nd %{{.*}} : !xegpu.tensor_desc<16xf16>
    // CHECK: xegpu.load_nd %{{.*}} : !xegpu.tensor_desc<16xf32>
    // CHECK-COUNT-2: xegpu.load_gather
    // CHECK-COUNT-8: xegpu.store_nd %{{.*}} : vector<1xf16>, !xegpu.tensor_desc<1xf16>
    // CHECK: xegpu.store_nd %{{.*}} : vector<16xf16>, !xegpu.tensor_desc<16xf16>
    // CHECK: xegpu.store_nd %{{.*}} : vector<16xf32>, !xegpu.tensor_desc<16xf32>
    // CHECK-COUNT-2: xegpu.store_scatter
    %0 = xetile.init_tile %narrow[0, 0] : memref<64x64xf16> -> !xetile.tile<8x1xf16>
    %1 = xetile.init_tile %pitch[0, 0] : memref<64x66xf16> -> !xetile.tile<1x16xf16>
    %2 = xetile.init_tile %small[0, 0] : memref<64x8xf32> -> !xetile.tile<2x8xf32>
    %3 = xetile.init_tile %narrow[0, 1] : memref<64x64xf16> -> !xetile.tile<1x16xf16>
    %4 = xetile.init_tile %batch[%i, 0, 0] : memref<4x3x40xf16> -> !xetile.tile<1x16xf16>
    %5 = xetile.load_tile %0 : !xetile.tile<8x1xf16> -> vector<8x1xf16>
    %6 = xetile.load_tile %1 : !xetile.tile<1x16xf16> -> vector<1x16xf16>
    %7 = xetile.load_tile %2 : !xetile.tile<2x8xf32> -> vector<2x8xf32>
    %8 = xetile.load_tile %3 : !xetile.tile<1x16xf16> -> vector<1x16xf16>
    %9 = xetile.load_tile %4 : !xetile.tile<1x16xf16> -> vector<1x16xf16>
    xetile.store_tile %5, %0 : vector<8x1xf16>, !xetile.tile<8x1xf16>
    xetile.store_tile %6, %1 : vector<1x16xf16>, !xetile.tile<1x16xf16>
    xetile.store_tile %7, %2 : vector<2x8xf32>, !xetile.tile<2x8xf32>
    xetile.store_tile %8, %3 : vector<1x16xf16>, !xetile.tile<1x16xf16>
    xetile.store_tile %9, %4 : vector<1x16xf16>, !xetile.tile<1x16xf16>
    gpu.return
  }
}

// -----

// Shared local memory: row by row if the tile is known to be in bounds and rows are aligned, otherwise element by
// element.

!shared = !xetile.tile<2x16xf32, #xetile.tile_attr<memory_space = 3>>

// CHECK-LABEL: gpu.func @slm
gpu.module @m {
  gpu.func @slm(%S: memref<32x64xf32, 3>, %i: index) kernel {
    // CHECK: %[[L0:.*]] = xegpu.create_nd_tdesc %{{.*}} : memref<2048xf32, strided<[1]>, 3> -> !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<memory_scope = slm>>
    // CHECK: xegpu.load_nd %[[L0]] {mode = vc} : {{.*}} -> vector<16xf32>
    // CHECK: %[[L1:.*]] = xegpu.create_nd_tdesc %{{.*}} : memref<2048xf32, strided<[1]>, 3> -> !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<memory_scope = slm>>
    // CHECK: xegpu.load_nd %[[L1]] {mode = vc} : {{.*}} -> vector<16xf32>
    %0 = xetile.init_tile %S[%i, 16] {in_bounds = true} : memref<32x64xf32, 3> -> !shared
    %1 = xetile.load_tile %0 : !shared -> vector<2x16xf32>
    %2 = xetile.init_tile %S[%i, 16] : memref<32x64xf32, 3> -> !shared
    // CHECK: arith.cmpi ult
    // CHECK: xegpu.store_scatter
    xetile.store_tile %1, %2 : vector<2x16xf32>, !shared
    gpu.return
  }
}

// -----

// Scattered tiles in 16 lanes; padding by the mask; atomic ops; elementwise ops work on full registers.

!s = !xetile.tile<24xf32, #xetile.tile_attr<scattered = true>>

// CHECK-LABEL: gpu.func @scattered
gpu.module @m {
  gpu.func @scattered(%X: memref<64x64xf32>, %i: vector<24xindex>, %m: vector<24xi1>, %A: memref<64x64xbf16>) kernel {
    // CHECK: xegpu.create_tdesc {{.*}} -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
    // CHECK: xegpu.create_tdesc {{.*}} -> !xegpu.tensor_desc<8xf32, #xegpu.scattered>
    %t = xetile.init_tile %X, %i : memref<64x64xf32>, vector<24xindex> -> !s
    // CHECK: %[[V:.*]] = xegpu.load_gather
    // CHECK: arith.select %{{.*}}, %[[V]], %{{.*}} : vector<16xi1>, vector<16xf32>
    %v = xetile.load %t, %m {padding = 1.0 : f32} : !s, vector<24xi1> -> vector<24xf32>
    // CHECK: xegpu.atomic_rmw addf
    %o = xetile.atomic_rmw <addf>, %v, %t : vector<24xf32>, !s -> vector<24xf32>
    %ta = xetile.init_tile %A[0, 0] : memref<64x64xbf16> -> !xetile.tile<16x16xbf16>
    %b = xetile.load_tile %ta : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
    %b2 = arith.addf %b, %b : vector<16x16xbf16>
    // CHECK: %[[S:.*]] = vector.shape_cast %{{.*}} : vector<16x16xbf16> to vector<8x2x16xbf16>
    // CHECK: vector.transpose %[[S]], [0, 2, 1] : vector<8x2x16xbf16> to vector<8x16x2xbf16>
    %a = vector.extract_strided_slice %b {offsets = [0, 0], sizes = [8, 16], strides = [1, 1]} : vector<16x16xbf16> to vector<8x16xbf16>
    %d = xetile.tile_mma %a, %b2 : vector<8x16xbf16>, vector<16x16xbf16> -> vector<8x16xf32>
    %tx = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %d, %tx : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----

// Branches that yield tiles yield their differences: for block messages the descriptor, for padding the offsets and
// extents too, and for access by elements an address and strides.

// CHECK-LABEL: gpu.func @either
gpu.module @m {
  gpu.func @either(%X: memref<?x?xf32>, %Y: memref<64x63xf32>, %Z: memref<64x64xf32>, %p: i1, %q: i1, %r: i1, %m: index) kernel {
    // CHECK: scf.if %{{.*}} -> (!xegpu.tensor_desc<8x16xf32>) {
    %t = scf.if %p -> (!xetile.tile<8x16xf32>) {
      %x = xetile.init_tile %X[0, 0] : memref<?x?xf32> -> !xetile.tile<8x16xf32>
      scf.yield %x : !xetile.tile<8x16xf32>
    } else {
      %z = xetile.init_tile %Z[8, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
      scf.yield %z : !xetile.tile<8x16xf32>
    }
    // CHECK: %[[ROW:.*]] = arith.select %{{.*}}, %c0, %{{.*}} : index
    // CHECK: %[[P:.*]]:3 = scf.if %{{.*}} -> (!xegpu.tensor_desc<8x16xf32>, index, index) {
    // CHECK: scf.yield %{{.*}}, %dim, %dim_{{.*}} :
    // CHECK: scf.yield %{{.*}}, %c64, %c64 :
    %u = scf.if %q -> (!xetile.tile<8x16xf32>) {
      %x = xetile.init_tile %X[0, 0] : memref<?x?xf32> -> !xetile.tile<8x16xf32>
      scf.yield %x : !xetile.tile<8x16xf32>
    } else {
      %z = xetile.init_tile %Z[%m, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
      scf.yield %z : !xetile.tile<8x16xf32>
    }
    // CHECK: %[[E:.*]]:4 = scf.if %{{.*}} -> (i64, index, index, index) {
    // CHECK: scf.yield %{{.*}}, %dim, %dim_{{.*}}, %strides#0 :
    // CHECK: scf.yield %{{.*}}, %c64, %c63, %c63 :
    %w = scf.if %r -> (!xetile.tile<8x16xf32>) {
      %x = xetile.init_tile %X[0, 0] : memref<?x?xf32> -> !xetile.tile<8x16xf32>
      scf.yield %x : !xetile.tile<8x16xf32>
    } else {
      %y = xetile.init_tile %Y[8, 0] : memref<64x63xf32> -> !xetile.tile<8x16xf32>
      scf.yield %y : !xetile.tile<8x16xf32>
    }
    // CHECK: xegpu.load_nd
    %0 = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    // CHECK: xegpu.load_nd %[[P]]#0
    // CHECK: %[[LEFT:.*]] = arith.subi %[[P]]#1, %[[ROW]]
    // CHECK: vector.create_mask %[[LEFT]], %[[P]]#2
    %1 = xetile.load_tile %u {padding = 1.0 : f32} : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    // CHECK: %[[BASE:.*]] = arith.index_cast %[[E]]#0 : i64 to index
    // CHECK: %[[FIRST:.*]] = arith.addi %[[BASE]]
    // CHECK: %[[AT:.*]] = arith.index_cast %[[FIRST]] : index to i64
    // CHECK: xegpu.create_tdesc %[[AT]], %{{.*}} : i64, vector<32xindex>
    // CHECK-COUNT-4: xegpu.load_gather
    %2 = xetile.load_tile %w : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    xetile.store_tile %0, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
    xetile.store_tile %1, %u : vector<8x16xf32>, !xetile.tile<8x16xf32>
    xetile.store_tile %2, %w : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----

// Elements before the beginning of the matrix are padded too, unless the offset is known not to be negative.

// CHECK-LABEL: gpu.func @before
gpu.module @m {
  gpu.func @before(%X: memref<64x64xf32>, %Y: memref<64x64xf32>, %m: index) kernel {
    %x = gpu.block_id x
    // CHECK: xegpu.load_nd
    // CHECK-COUNT-1: vector.create_mask
    // CHECK-NOT: vector.create_mask
    // CHECK: xegpu.load_nd
    // CHECK-COUNT-2: vector.create_mask
    // CHECK-NOT: vector.create_mask
    %t = xetile.init_tile %X[%x, 48] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    %u = xetile.init_tile %Y[%m, 48] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    %0 = xetile.load_tile %t {padding = 1.0 : f32} : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    %1 = xetile.load_tile %u {padding = 1.0 : f32} : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    xetile.store_tile %0, %u : vector<8x16xf32>, !xetile.tile<8x16xf32>
    xetile.store_tile %1, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----

// Tiles of an unaligned argument are gathered if its pitch, its width or their offsets are not known.

// CHECK-LABEL: gpu.func @unaligned
gpu.module @m {
  gpu.func @unaligned(%X: memref<?x?xf16>, %Y: memref<?x?xf16>, %Z: memref<64x64xf16>, %m: index) kernel attributes {xetile.unaligned = array<i64: 1, 2>} {
    %x = xetile.init_tile %X[0, %m] : memref<?x?xf16> -> !xetile.tile<8x16xf16>
    %y = xetile.init_tile %Y[0, 0] : memref<?x?xf16> -> !xetile.tile<8x16xf16>
    %c2 = arith.constant 2 : index
    %two = arith.muli %m, %c2 : index
    %z0 = xetile.init_tile %Z[%m, %two] : memref<64x64xf16> -> !xetile.tile<8x16xf16>
    %z1 = xetile.init_tile %Z[0, %m] : memref<64x64xf16> -> !xetile.tile<8x16xf16>
    // CHECK: xegpu.load_nd
    // CHECK-COUNT-4: xegpu.store_scatter
    // CHECK: xegpu.store_nd
    // CHECK-COUNT-4: xegpu.store_scatter
    %v = xetile.load_tile %x : !xetile.tile<8x16xf16> -> vector<8x16xf16>
    xetile.store_tile %v, %y : vector<8x16xf16>, !xetile.tile<8x16xf16>
    xetile.store_tile %v, %z0 : vector<8x16xf16>, !xetile.tile<8x16xf16>
    xetile.store_tile %v, %z1 : vector<8x16xf16>, !xetile.tile<8x16xf16>
    gpu.return
  }
}
