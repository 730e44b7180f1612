// RUN: xegpu-opt %s --xegpu-spelling=rfc | FileCheck %s
// RUN: xegpu-opt %s --xegpu-spelling=rfc | xegpu-opt --xegpu-to-visa-pipeline=target=pvc -o /dev/null

gpu.module @kernels {
  // Offsets of the load move the descriptor; without ones on the descriptor it begins at 0.
  // CHECK-LABEL: gpu.func @offsets
  // CHECK-SAME: xegpu.lanes_per_subgroup = 16 : i32
  gpu.func @offsets(%a: memref<64x64xf16>, %o: memref<64x64xf16>, %i: index) kernel {
    // CHECK: %[[D:.*]] = xegpu.create_nd_tdesc %{{.*}}[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    // CHECK: %[[M:.*]] = xegpu.update_nd_offset %[[D]], [%{{.*}}, 16] {mode = vc}
    // CHECK: xegpu.load_nd %[[M]] {mode = vc, l1_hint = cached, l2_hint = cached, l3_hint = cached}
    %v = xegpu.load_nd %d[%i, 16] <{l1_hint = #xegpu.cache_hint<cached>, l2_hint = #xegpu.cache_hint<cached>, l3_hint = #xegpu.cache_hint<cached>}> : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}, 0] {mode = vc}
    %e = xegpu.create_nd_tdesc %o[%i, 0] : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    // A pair of hints that no message has is left out.
    // CHECK: xegpu.store_nd %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xf16>
    xegpu.store_nd %v, %e <{l1_hint = #xegpu.cache_hint<write_back>, l2_hint = #xegpu.cache_hint<uncached>}> : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>
    // CHECK: xegpu.prefetch_nd %{{.*}} {mode = vc}
    xegpu.prefetch_nd %d : !xegpu.tensor_desc<8x16xf16>
    gpu.return
  }

  // Packed, transposed and several blocks at once; main flattens the blocks of an array.
  // CHECK-LABEL: gpu.func @forms
  gpu.func @forms(%a: memref<64x64xf16>, %b: memref<64x64xf32>, %o: memref<64x64xf32>) kernel {
    %da = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    // CHECK: xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0} : {{.*}} -> vector<8x16x2xf16>
    %p = xegpu.load_nd %da <{packed}> : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    // CHECK: %[[W:.*]] = xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : {{.*}} -> vector<8x32xf16>
    // CHECK: vector.shape_cast %[[W]] : vector<8x32xf16> to vector<8x16x2xf16>
    %w = xegpu.load_nd %da <{transpose = array<i64: 1, 0>, transpose_bit_width = 32 : i64}> : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    %db = xegpu.create_nd_tdesc %b : memref<64x64xf32> -> !xegpu.tensor_desc<16x8xf32, #xegpu.block_tdesc_attr<array_length = 1, memory_space = global>>
    // CHECK: xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0]} : {{.*}} -> vector<8x16xf32>
    %t = xegpu.load_nd %db <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xf32, #xegpu.block_tdesc_attr<array_length = 1, memory_space = global>> -> vector<8x16xf32>
    %dc = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, #xegpu.block_tdesc_attr<array_length = 2 : i64>>
    // CHECK: %[[L:.*]] = xegpu.load_nd %{{.*}} {mode = vc} : {{.*}} -> vector<2x8x16xf16>
    // CHECK: vector.shape_cast %[[L]] : vector<2x8x16xf16> to vector<16x16xf16>
    %l = xegpu.load_nd %dc[0, 0] : !xegpu.tensor_desc<8x16xf16, #xegpu.block_tdesc_attr<array_length = 2 : i64>> -> vector<16x16xf16>
    %la = vector.extract_strided_slice %l {offsets = [0, 0], sizes = [8, 16], strides = [1, 1]} : vector<16x16xf16> to vector<8x16xf16>
    // The accumulator comes first in ours.
    // CHECK: xegpu.dpas %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xf32>, vector<8x16xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
    %r = xegpu.dpas %la, %p, %t : vector<8x16xf16>, vector<8x16x2xf16>, vector<8x16xf32> -> vector<8x16xf32>
    // A second factor that is not packed is packed here.
    // CHECK: vector.shape_cast %{{.*}} : vector<16x16xf16> to vector<8x2x16xf16>
    // CHECK: vector.transpose %{{.*}}, [0, 2, 1] : vector<8x2x16xf16> to vector<8x16x2xf16>
    %q = xegpu.dpas %la, %l, %r : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32> -> vector<8x16xf32>
    %do = xegpu.create_nd_tdesc %o : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %q, %do[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }

  // Descriptors of fewer dimensions than what they are made of; of addresses; carried by loops.
  // CHECK-LABEL: gpu.func @sources
  gpu.func @sources(%a: memref<4x64x64xf32>, %p: i64, %d: memref<?x?xf32>, %h: index, %w: index, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    // CHECK: memref.subview %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] [1, 64, 64] [1, 1, 1]
    // CHECK-SAME: memref<64x64xf32, strided<[64, 1], offset: ?>>
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}, 16] {mode = vc} : memref<64x64xf32, strided<[64, 1], offset: ?>>
    %da = xegpu.create_nd_tdesc %a[%i, %c8, 16] : memref<4x64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // CHECK: memref.subview
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[0] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<16xf32>
    %line = xegpu.create_nd_tdesc %a[%i, %c8, 16] : memref<4x64x64xf32> -> !xegpu.tensor_desc<16xf32>
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, 0], [%{{.*}}, %{{.*}}], [%{{.*}}, 1] {mode = vc} : i64
    %dp = xegpu.create_nd_tdesc %p, shape : [%h, %w], strides : [%w, 1] : i64 -> !xegpu.tensor_desc<8x16xf32>
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, 0], [%{{.*}}, %{{.*}}], [%{{.*}}, 1] {mode = vc} : memref<?x?xf32>
    %dd = xegpu.create_nd_tdesc %d, shape : [%h, %w], strides : [%w, 1] : memref<?x?xf32> -> !xegpu.tensor_desc<8x16xf32>
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (!xegpu.tensor_desc<8x16xf32>)
    %r = scf.for %k = %c0 to %c64 step %c8 iter_args(%t = %da) -> (!xegpu.tensor_desc<8x16xf32>) {
      %v = xegpu.load_nd %t : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
      xegpu.store_nd %v, %dp[%k, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
      xegpu.store_nd %v, %dd[%k, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
      // CHECK: xegpu.update_nd_offset %{{.*}}, [%{{.*}}, 0] {mode = vc}
      %n = xegpu.update_nd_offset %t, [%c8, 0] : !xegpu.tensor_desc<8x16xf32>
      scf.yield %n : !xegpu.tensor_desc<8x16xf32>
    }
    %v = xegpu.load_nd %line : !xegpu.tensor_desc<16xf32> -> vector<16xf32>
    xegpu.store_nd %v, %line : vector<16xf32>, !xegpu.tensor_desc<16xf32>
    gpu.return
  }

  // Gathers: a lane's elements are a row in upstream's values, and a column in ours.
  // CHECK-LABEL: gpu.func @scattered
  gpu.func @scattered(%a: memref<1024xf32>, %p: i64) kernel {
    %m = arith.constant dense<true> : vector<16xi1>
    %at = arith.constant dense<[0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60]> : vector<16xindex>
    // CHECK: xegpu.create_tdesc %{{.*}}, %{{.*}} {mode = vc, chunk_size_per_lane = 4}
    // CHECK: %[[G:.*]] = xegpu.load_gather %{{.*}}, %{{.*}} {mode = vc} : {{.*}} -> vector<4x16xf32>
    // CHECK: vector.transpose %[[G]], [1, 0] : vector<4x16xf32> to vector<16x4xf32>
    %v = xegpu.load %a[%at], %m <{chunk_size = 4 : i64}> : memref<1024xf32>, vector<16xindex>, vector<16xi1> -> vector<16x4xf32>
    // CHECK: vector.transpose %{{.*}}, [1, 0] : vector<16x4xf32> to vector<4x16xf32>
    // CHECK: xegpu.store_scatter %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<4x16xf32>
    xegpu.store %v, %p[%at], %m <{chunk_size = 4 : i64}> : vector<16x4xf32>, i64, vector<16xindex>, vector<16xi1>
    %d = xegpu.create_tdesc %a, %at : memref<1024xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<chunk_size = 1>>
    %x = xegpu.load %d, %m : !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<chunk_size = 1>>, vector<16xi1> -> vector<16xf32>
    // CHECK: xegpu.atomic_rmw addf, %{{.*}}, %{{.*}}, %{{.*}} {mode = vc}
    %old = xegpu.atomic_rmw addf %d, %m, %x : !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<chunk_size = 1>>, vector<16xi1>, vector<16xf32> -> vector<16xf32>
    // CHECK: xegpu.update_offset
    %e = xegpu.update_offset %d, %at : !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<chunk_size = 1>>, vector<16xindex>
    xegpu.store %old, %e, %m : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<chunk_size = 1>>, vector<16xi1>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @barriers
  // CHECK-SAME: attributes {VectorComputeFunctionINTEL} {
  gpu.func @barriers() kernel attributes {VectorComputeFunctionINTEL} {
    %id = arith.constant 1 : i8
    %n = arith.constant 4 : i8
    // CHECK: xegpu.alloc_nbarrier 2
    xegpu.alloc_nbarrier 2
    // CHECK: xegpu.init_nbarrier
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    // CHECK: xegpu.compile_hint
    xegpu.compile_hint
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    // CHECK: xegpu.fence {scope = workgroup, memory_kind = shared}
    xegpu.fence memory_kind = slm, fence_scope = workgroup
    gpu.return
  }

  // A launch counts lanes; what is used is the number of a subgroup.
  // CHECK-LABEL: gpu.func @threads
  // CHECK-SAME: known_block_size = array<i32: 4, 2, 1>, xegpu.lanes_per_subgroup = 16 : i32
  gpu.func @threads(%a: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
    %c16 = arith.constant 16 : index
    // CHECK: %[[T:.*]] = gpu.thread_id  x
    // CHECK: %[[L:.*]] = arith.muli %[[T]], %{{.*}} : index
    %x = gpu.thread_id x
    // CHECK: arith.divui %[[L]]
    %s = arith.divui %x, %c16 : index
    // CHECK: %[[Y:.*]] = gpu.thread_id  y
    // CHECK-NOT: arith.muli %[[Y]]
    %y = gpu.thread_id y
    %d = xegpu.create_nd_tdesc %a[%s, %y] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %d : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
