// RUN: xegpu-opt %s --xetile-infer-layout --split-input-file | FileCheck %s

// Maps propagate from the result of a product to its factors, to the tiles of their loads, and to stores of the result.

// CHECK-LABEL: gpu.func @product
gpu.module @m {
  gpu.func @product(%A: memref<128x32xbf16>, %B: memref<32x64xbf16>, %C: memref<128x64xf32>) kernel {
    // CHECK: init_tile {{.*}} -> !xetile.tile<128x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [32, 32]>>>
    %ta = xetile.init_tile %A[0, 0] : memref<128x32xbf16> -> !xetile.tile<128x32xbf16>
    // CHECK: init_tile {{.*}} -> !xetile.tile<32x64xbf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [32, 32]>>>
    %tb = xetile.init_tile %B[0, 0] : memref<32x64xbf16> -> !xetile.tile<32x64xbf16>
    %a = xetile.load_tile %ta : !xetile.tile<128x32xbf16> -> vector<128x32xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
    // CHECK: arith.constant {map = #xetile.wg_map<sg_layout = [4, 2], sg_data = [32, 32]>} dense<0.000000e+00>
    %zero = arith.constant dense<0.0> : vector<128x64xf32>
    // CHECK: tile_mma {{.*}} {wg_map_a = #xetile.wg_map<sg_layout = [4, 2], sg_data = [32, 32]>, wg_map_b = #xetile.wg_map<sg_layout = [4, 2], sg_data = [32, 32]>, wg_map_c = #xetile.wg_map<sg_layout = [4, 2], sg_data = [32, 32]>}
    %d = xetile.tile_mma %a, %b, %zero {wg_map_c = #xetile.wg_map<sg_layout = [4, 2], sg_data = [32, 32]>} : vector<128x32xbf16>, vector<32x64xbf16>, vector<128x64xf32> -> vector<128x64xf32>
    // CHECK: init_tile {{.*}} -> !xetile.tile<128x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [32, 32]>>>
    %tc = xetile.init_tile %C[0, 0] : memref<128x64xf32> -> !xetile.tile<128x64xf32>
    xetile.store_tile %d, %tc : vector<128x64xf32>, !xetile.tile<128x64xf32>
    gpu.return
  }
}

// -----

// Two maps: the second operand of a sum is converted, and the result has the map of the first. A constant that both use
// is duplicated.

!rows = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 1], sg_data = [4, 64]>>>
!blocks = !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 4], sg_data = [16, 16]>>>

// CHECK-LABEL: gpu.func @conflict
gpu.module @m {
  gpu.func @conflict(%X: memref<32x64xf32>, %Y: memref<32x64xf32>) kernel {
    %tx = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !rows
    %ty = xetile.init_tile %Y[0, 0] : memref<32x64xf32> -> !blocks
    // CHECK-DAG: arith.constant {map = #xetile.wg_map<sg_layout = [8, 1], sg_data = [4, 64]>} dense<2.000000e+00>
    // CHECK-DAG: arith.constant {map = #xetile.wg_map<sg_layout = [2, 4], sg_data = [16, 16]>} dense<2.000000e+00>
    %two = arith.constant dense<2.0> : vector<32x64xf32>
    %x = xetile.load_tile %tx : !rows -> vector<32x64xf32>
    %y = xetile.load_tile %ty : !blocks -> vector<32x64xf32>
    %x2 = arith.mulf %x, %two : vector<32x64xf32>
    %y2 = arith.mulf %y, %two : vector<32x64xf32>
    // CHECK: %[[Y:.*]] = xetile.convert_layout %{{.*}} {wg_map_result = #xetile.wg_map<sg_layout = [8, 1], sg_data = [4, 64]>, wg_map_source = #xetile.wg_map<sg_layout = [2, 4], sg_data = [16, 16]>}
    // CHECK: arith.addf %{{.*}}, %[[Y]] {map = #xetile.wg_map<sg_layout = [8, 1], sg_data = [4, 64]>}
    %sum = arith.addf %x2, %y2 : vector<32x64xf32>
    // CHECK: %[[S:.*]] = xetile.convert_layout %{{.*}} {wg_map_result = #xetile.wg_map<sg_layout = [2, 4], sg_data = [16, 16]>, wg_map_source = #xetile.wg_map<sg_layout = [8, 1], sg_data = [4, 64]>}
    // CHECK: store_tile %[[S]]
    xetile.store_tile %sum, %ty : vector<32x64xf32>, !blocks
    gpu.return
  }
}

// -----

// The map of a reduction has one element for each part; broadcasts, transposes and control flow propagate it.

// CHECK-LABEL: gpu.func @shapes
gpu.module @m {
  gpu.func @shapes(%X: memref<32x64xf32>, %Y: memref<64x32xf32>, %more: i1) kernel {
    %tx = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 4], sg_data = [16, 16]>>>
    %x = xetile.load_tile %tx : !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 4], sg_data = [16, 16]>>> -> vector<32x64xf32>
    // CHECK: xetile.reduction {{.*}} {map = #xetile.wg_map<sg_layout = [2, 4], sg_data = [16, 1]>}
    %r = xetile.reduction <add>, %x [1] : vector<32x64xf32> -> vector<32x1xf32>
    // CHECK: xetile.reduction {{.*}} {reduction_size = 4, map = #xetile.wg_map<sg_layout = [2, 4], sg_data = [16, 4]>}
    %p = xetile.reduction <add>, %x [1] {reduction_size = 4} : vector<32x64xf32> -> vector<32x16xf32>
    // CHECK: xetile.broadcast {{.*}} {broadcast_size = 4, map = #xetile.wg_map<sg_layout = [2, 4], sg_data = [16, 16]>}
    %q = xetile.broadcast %p [1] {broadcast_size = 4} : vector<32x16xf32> -> vector<32x64xf32>
    // CHECK: xetile.broadcast {{.*}} {map = #xetile.wg_map<sg_layout = [2, 4], sg_data = [16, 16]>}
    %b = xetile.broadcast %r [1] : vector<32x1xf32> -> vector<32x64xf32>
    %s = scf.if %more -> (vector<32x64xf32>) {
      // CHECK: arith.addf {{.*}} {map = #xetile.wg_map<sg_layout = [2, 4], sg_data = [16, 16]>}
      %1 = arith.addf %b, %q : vector<32x64xf32>
      scf.yield %1 : vector<32x64xf32>
    } else {
      scf.yield %b : vector<32x64xf32>
    }
    // CHECK: xetile.transpose {{.*}} {map = #xetile.wg_map<sg_layout = [4, 2], sg_data = [16, 16]>}
    %t = xetile.transpose %s, [1, 0] : vector<32x64xf32> -> vector<64x32xf32>
    %ty = xetile.init_tile %Y[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32>
    xetile.store_tile %t, %ty : vector<64x32xf32>, !xetile.tile<64x32xf32>
    gpu.return
  }
}

// -----

// A kernel without a map is one of subgroups and is not changed, and neither is host code.

// CHECK-LABEL: func.func @host
func.func @host(%v: vector<256x256xf32>) -> vector<256x256xf32> {
  // CHECK-NEXT: arith.addf %{{.*}}, %{{.*}} : vector<256x256xf32>
  %0 = arith.addf %v, %v : vector<256x256xf32>
  return %0 : vector<256x256xf32>
}

// CHECK-LABEL: gpu.func @subgroup
gpu.module @m {
  gpu.func @subgroup(%X: memref<32x64xf32>) kernel {
    // CHECK: -> !xetile.tile<32x64xf32>
    %tx = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    %x = xetile.load_tile %tx : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    // CHECK: arith.addf %{{.*}}, %{{.*}} : vector<32x64xf32>
    %y = arith.addf %x, %x : vector<32x64xf32>
    xetile.store_tile %y, %tx : vector<32x64xf32>, !xetile.tile<32x64xf32>
    gpu.return
  }
}

// -----

// A value that a loop carries twice may have two maps, and so may one that is both factors of a product.

#square = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 16]>
#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 32]>
// CHECK-LABEL: gpu.func @twice
gpu.module @twice {
  gpu.func @twice(%A: memref<32x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %a = xetile.init_tile %A[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 16]>>>
    %v = xetile.load_tile %a : !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 16]>>> -> vector<32x32xf32>
    %w = arith.addf %v, %v {map = #rows} : vector<32x32xf32>
    // CHECK: scf.for
    %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %v, %y = %w) -> (vector<32x32xf32>, vector<32x32xf32>) {
      // CHECK: %[[Z:.*]] = arith.negf %{{.*}} {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 16]>}
      %z = arith.negf %x : vector<32x32xf32>
      // CHECK: %[[ROWS:.*]] = xetile.convert_layout %[[Z]] {wg_map_result = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 32]>
      // CHECK: scf.yield %[[Z]], %[[ROWS]]
      scf.yield %z, %z : vector<32x32xf32>, vector<32x32xf32>
    }
    %h = arith.truncf %r#0 : vector<32x32xf32> to vector<32x32xf16>
    // CHECK: %[[H:.*]] = arith.truncf
    // CHECK: %[[FA:.*]] = xetile.convert_layout %[[H]] {wg_map_result = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 32]>
    // CHECK: %[[FB:.*]] = xetile.convert_layout %[[H]] {wg_map_result = #xetile.wg_map<sg_layout = [4, 1], sg_data = [32, 16]>
    // CHECK: xetile.tile_mma %[[FA]], %[[FB]]
    %p = xetile.tile_mma %h, %h {wg_map_c = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 16]>} : vector<32x32xf16>, vector<32x32xf16> -> vector<32x32xf32>
    gpu.return
  }
}

// -----

// Ops of the vector dialect become those of XeTile: transposes, broadcasts, and reductions with their initial values.

// CHECK-LABEL: gpu.func @vector_ops
gpu.module @vector_ops {
  gpu.func @vector_ops(%X: memref<64x32xf32>, %Y: memref<32x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [16, 32]>>>
    // CHECK: %[[V:.*]] = xetile.load_tile
    %v = xetile.load_tile %t : !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 1], sg_data = [16, 32]>>> -> vector<64x32xf32>
    // CHECK: %[[T:.*]] = xetile.transpose %[[V]], [1, 0] {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 32]>} : vector<64x32xf32> -> vector<32x64xf32>
    %w = vector.transpose %v, [1, 0] {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 32]>} : vector<64x32xf32> to vector<32x64xf32>
    // CHECK: %[[G:.*]] = xetile.reduction <add>, %[[V]] [0] {reduction_size = 4, map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [4, 32]>} : vector<64x32xf32> -> vector<16x32xf32>
    // CHECK: arith.addf %[[G]], %{{.*}}
    %zero = arith.constant dense<0.0> : vector<16x32xf32>
    %groups = vector.shape_cast %v : vector<64x32xf32> to vector<16x4x32xf32>
    %sums = vector.multi_reduction <add>, %groups, %zero [1] : vector<16x4x32xf32> to vector<16x32xf32>
    // CHECK: %[[M:.*]] = xetile.reduction <maxnumf>, %{{.*}} [0] {{.*}} : vector<16x32xf32> -> vector<1x32xf32>
    // CHECK: %[[A:.*]] = arith.maxnumf %[[M]], %{{.*}} : vector<1x32xf32>
    // CHECK: %[[L:.*]] = vector.shape_cast %[[A]] {{.*}} : vector<1x32xf32> to vector<32xf32>
    %least = arith.constant dense<0.0> : vector<32xf32>
    %line = vector.multi_reduction <maxnumf>, %sums, %least [0] : vector<16x32xf32> to vector<32xf32>
    // CHECK: %[[C:.*]] = vector.shape_cast %[[L]] {{.*}} : vector<32xf32> to vector<32x1xf32>
    %column = vector.shape_cast %line : vector<32xf32> to vector<32x1xf32>
    // CHECK: xetile.broadcast %[[C]] [1]
    %wide = vector.broadcast %column : vector<32x1xf32> to vector<32x64xf32>
    %sum = arith.addf %wide, %w : vector<32x64xf32>
    %u = xetile.init_tile %Y[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    xetile.store_tile %sum, %u : vector<32x64xf32>, !xetile.tile<32x64xf32>
    gpu.return
  }
}

// -----

// If a derived wg_map has parts that the sg_map does not divide, the sg_map is omitted.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @narrow
  gpu.func @narrow(%a: memref<16x2xf64>, %b: memref<16x2xf64>) kernel {
    // CHECK: init_tile {{.*}} -> !xetile.tile<16x2xf64, #xetile.tile_attr<wg_map = <sg_layout = [1, 2], sg_data = [16, 1]>>>
    %from = xetile.init_tile %a[0, 0] : memref<16x2xf64> -> !xetile.tile<16x2xf64, #xetile.tile_attr<sg_map = <wi_layout = [1, 2], wi_data = [1, 1]>>>
    %to = xetile.init_tile %b[0, 0] : memref<16x2xf64> -> !xetile.tile<16x2xf64, #xetile.tile_attr<wg_map = <sg_layout = [1, 2], sg_data = [16, 1]>>>
    %x = xetile.load_tile %from : !xetile.tile<16x2xf64, #xetile.tile_attr<sg_map = <wi_layout = [1, 2], wi_data = [1, 1]>>> -> vector<16x2xf64>
    xetile.store_tile %x, %to : vector<16x2xf64>, !xetile.tile<16x2xf64, #xetile.tile_attr<wg_map = <sg_layout = [1, 2], sg_data = [16, 1]>>>
    gpu.return
  }
}

// A function's type has the maps of its arguments.
// CHECK-LABEL: func.func @argument
// CHECK-SAME: %{{.*}}: !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [32, 16]>>>
func.func @argument(%v: vector<64x32xf32>, %t: !xetile.tile<64x32xf32>) {
  %w = arith.addf %v, %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 16]>} : vector<64x32xf32>
  xetile.store_tile %w, %t : vector<64x32xf32>, !xetile.tile<64x32xf32>
  return
}

// -----

// The scales of a product have its rows or its columns, and all blocks of K; without a map of the product they have none.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @scaled
  gpu.func @scaled(%a: vector<64x64xf8E5M2>, %b: vector<64x32xf8E5M2>, %C: memref<64x32xf32>) kernel {
    // CHECK: %[[P:.*]] = arith.constant {map = #xetile.wg_map<sg_layout = [4, 2], sg_data = [16, 2]>} dense<1.000000e+00> : vector<64x2xf8E8M0FNU>
    %p = arith.constant dense<1.0> : vector<64x2xf8E8M0FNU>
    // CHECK: %[[Q:.*]] = arith.constant {map = #xetile.wg_map<sg_layout = [4, 2], sg_data = [2, 16]>} dense<1.000000e+00> : vector<2x32xf8E8M0FNU>
    %q = arith.constant dense<1.0> : vector<2x32xf8E8M0FNU>
    // CHECK: xetile.tile_mma %{{.*}}, %{{.*}} scale_a = %[[P]] scale_b = %[[Q]]
    %d = xetile.tile_mma %a, %b scale_a = %p scale_b = %q : vector<64x64xf8E5M2>, vector<64x32xf8E5M2>, vector<64x2xf8E8M0FNU>, vector<2x32xf8E8M0FNU> -> vector<64x32xf32>
    %to = xetile.init_tile %C[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [16, 16]>>>
    xetile.store_tile %d, %to : vector<64x32xf32>, !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [16, 16]>>>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @undivided
  gpu.func @undivided(%a: vector<8x64xf8E5M2>, %b: vector<64x16xf8E5M2>, %C: memref<8x16xf32>) kernel {
    // CHECK: arith.constant dense<1.000000e+00> : vector<8x2xf8E8M0FNU>
    %p = arith.constant dense<1.0> : vector<8x2xf8E8M0FNU>
    %d = xetile.tile_mma %a, %b scale_a = %p : vector<8x64xf8E5M2>, vector<64x16xf8E5M2>, vector<8x2xf8E8M0FNU> -> vector<8x16xf32>
    %to = xetile.init_tile %C[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %d, %to : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}
