// RUN: xegpu-opt %s --xegpu-lower-unaligned-blocks=target=pvc --cse --xegpu-dce --split-input-file | FileCheck %s

// The pass alone: xegpu-legalize-fallback.mlir has what xegpu-unroll makes of its result.

gpu.module @m {
  // A vector is made of what each message loads.
  // CHECK-LABEL: gpu.func @rows(
  // CHECK-NOT: tensor_desc<2x4xf32>
  // CHECK: %[[A:.*]] = xegpu.load_nd {{.*}} -> vector<4xf32>
  // CHECK: %[[C:.*]] = vector.shape_cast %[[A]] : vector<4xf32> to vector<1x4xf32>
  // CHECK: %[[B:.*]] = xegpu.load_nd {{.*}} -> vector<4xf32>
  // CHECK: %[[D:.*]] = vector.shape_cast %[[B]] : vector<4xf32> to vector<1x4xf32>
  // CHECK: %[[E:.*]] = vector.insert_strided_slice %[[C]], %{{.*}} {offsets = [0, 0], strides = [1, 1]}
  // CHECK: %[[F:.*]] = vector.insert_strided_slice %[[D]], %[[E]] {offsets = [1, 0], strides = [1, 1]}
  // CHECK: vector.shape_cast %[[F]] : vector<2x4xf32> to vector<8xf32>
  gpu.func @rows(%m: memref<8x8xf32>, %o: memref<8xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 4] {mode = vc} : memref<8x8xf32> -> !xegpu.tensor_desc<2x4xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<2x4xf32> -> vector<2x4xf32>
    %f = vector.shape_cast %x : vector<2x4xf32> to vector<8xf32>
    %e = xegpu.create_nd_tdesc %o[0] {mode = vc} : memref<8xf32> -> !xegpu.tensor_desc<8xf32>
    xegpu.store_nd %f, %e {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32>
    gpu.return
  }

  // Blocks that 2D messages address stay. The loop carries a descriptor, for the load, and offsets, for the store of rows
  // whose last column no message stores.
  // CHECK-LABEL: gpu.func @odd_rows(
  // CHECK: scf.for {{.*}} iter_args(%[[D:[^ ]+]] = %{{[^ ]+}}, %[[Y:[^ ]+]] = %{{[^ ]+}}, %[[X:[^ ]+]] = %{{[^ ]+}}) -> (!xegpu.tensor_desc<8x3xf16>, index, index)
  // CHECK: xegpu.load_nd %[[D]]
  // CHECK: xegpu.store_scatter
  // CHECK: %[[NEXT:[^ ]+]] = xegpu.update_nd_offset %[[D]], [8, 0]
  // CHECK: scf.yield %[[NEXT]], %{{[^ ]+}}, %[[X]] :
  gpu.func @odd_rows(%m: memref<64x64xf16>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %d0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x3xf16>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%d = %d0) -> (!xegpu.tensor_desc<8x3xf16>) {
      %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x3xf16> -> vector<8x3xf16>
      xegpu.store_nd %x, %d {mode = vc} : vector<8x3xf16>, !xegpu.tensor_desc<8x3xf16>
      %e = xegpu.update_nd_offset %d, [8, 0] {mode = vc} : !xegpu.tensor_desc<8x3xf16> -> !xegpu.tensor_desc<8x3xf16>
      scf.yield %e : !xegpu.tensor_desc<8x3xf16>
    }
    gpu.return
  }
}

// -----

!shared = !xegpu.tensor_desc<16x32xbf16, #xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>>

gpu.module @transposed {
  // Each lane loads eight dwords of a row of shared local memory; the registers have the columns of dwords. Messages add the
  // offsets of the second eight dwords.
  // CHECK-LABEL: gpu.func @dwords(
  // CHECK: %[[STEP:.*]] = vector.step : vector<16xindex>
  // CHECK: %[[LANES:.*]] = arith.muli %[[STEP]], %{{.*}}
  // CHECK: %[[FIRST:.*]] = arith.addi %[[LANES]], %{{.*}}
  // CHECK: %[[D:.*]] = xegpu.create_tdesc %[[BASE:.*]], %[[FIRST]] {mode = vc, chunk_size_per_lane = 8} : i64, vector<16xindex> -> !xegpu.tensor_desc<16x8xi32, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>
  // CHECK: %[[A:.*]] = xegpu.load_gather %[[D]], %{{.*}} {mode = vc} : {{.*}} -> vector<8x16xi32>
  // CHECK: %[[C:.*]] = vector.insert_strided_slice %[[A]], %{{.*}} {offsets = [0, 0], strides = [1, 1]}
  // CHECK: %[[SECOND:.*]] = arith.addi %[[LANES]], %{{.*}}
  // CHECK: xegpu.create_tdesc %[[BASE]], %[[SECOND]]
  // CHECK: %[[E:.*]] = vector.insert_strided_slice %{{.*}}, %[[C]] {offsets = [8, 0], strides = [1, 1]}
  // CHECK: vector.bitcast %[[E]] : vector<16x16xi32> to vector<16x32xbf16>
  // CHECK-NOT: vector.transpose
  gpu.func @dwords(%o: memref<16x32xbf16>, %row: index) kernel {
    %s = memref.alloc() : memref<64x32xbf16, 3>
    %d = xegpu.create_nd_tdesc %s[%row, 0] {mode = vc} : memref<64x32xbf16, 3> -> !shared
    %x = xegpu.load_nd %d {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !shared -> vector<16x32xbf16>
    %e = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<16x32xbf16> -> !xegpu.tensor_desc<16x32xbf16>
    xegpu.store_nd %x, %e {mode = vc} : vector<16x32xbf16>, !xegpu.tensor_desc<16x32xbf16>
    gpu.return
  }
}
