// RUN: xegpu-opt %s --export-upstream | FileCheck %s
// RUN: xegpu-opt %s --export-upstream | xegpu-opt --xegpu-spelling=rfc | FileCheck %s --check-prefix=BACK

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @blocks
  // CHECK-SAME: attributes {VectorComputeFunctionINTEL}
  // BACK-LABEL: gpu.func @blocks
  gpu.func @blocks(%a: memref<64x64xf16>, %b: memref<?x?xf32>) kernel {
    // Upstream's passes lower offsets of ops of blocks alone.
    // CHECK: %[[A:.*]] = xegpu.create_nd_tdesc %{{.*}} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    %da = xegpu.create_nd_tdesc %a[0, 16] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    // CHECK: xegpu.load_nd %[[A]][0, 16] <{packed, l1_hint = #xegpu.cache_hint<cached>}> : {{.*}} -> vector<8x16x2xf16>
    // BACK: xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0, l1_hint = cached}
    %p = xegpu.load_nd %da {mode = vc, vnni_axis = 0, l1_hint = cached} : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    // CHECK: xegpu.load_nd %[[A]][0, 32] :
    %dm = xegpu.update_nd_offset %da, [0, 16] {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> !xegpu.tensor_desc<16x16xf16>
    %q = xegpu.load_nd %dm {mode = vc, vnni_axis = 1} : !xegpu.tensor_desc<16x16xf16> -> vector<16x8x2xf16>
    // CHECK: xegpu.create_nd_tdesc %{{.*}}, shape : [%{{.*}}, %{{.*}}], strides : [%{{.*}}, 1] : memref<?x?xf32>
    %db = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<16x16xf32>
    // CHECK: xegpu.load_nd %{{.*}}[0, 0] <{transpose = array<i64: 1, 0>}>
    %t = xegpu.load_nd %db {mode = vc, transpose = [1, 0]} : !xegpu.tensor_desc<16x16xf32> -> vector<16x16xf32>
    // The accumulator comes last, and no factor but the second is packed.
    // CHECK: xegpu.dpas %{{.*}}, %{{.*}}, %{{.*}} : vector<16x16xf16>, vector<8x16x2xf16>, vector<16x16xf32> -> vector<16x16xf32>
    // BACK: xegpu.dpas %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<16x16xf32>, vector<16x16xf16>, vector<8x16x2xf16>
    %r = xegpu.dpas %t, %q, %p {mode = vc} : vector<16x16xf32>, vector<16x8x2xf16>, vector<8x16x2xf16> -> vector<16x16xf32>
    // CHECK: xegpu.store_nd %{{.*}} : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32>
    xegpu.store_nd %r, %db {mode = vc} : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @scattered
  gpu.func @scattered(%a: memref<1024xf32>) kernel {
    %at = arith.constant dense<0> : vector<16xindex>
    %m = arith.constant dense<true> : vector<16xi1>
    // CHECK: xegpu.create_tdesc %{{.*}}, %{{.*}} : memref<1024xf32>, vector<16xindex> -> !xegpu.tensor_desc<16x2xf32, #xegpu.scatter_tdesc_attr<chunk_size = 2>>
    %d = xegpu.create_tdesc %a, %at {mode = vc, chunk_size_per_lane = 2} : memref<1024xf32>, vector<16xindex> -> !xegpu.tensor_desc<16x2xf32, #xegpu.scattered>
    // CHECK: %[[G:.*]] = xegpu.load %{{.*}}, %{{.*}} : {{.*}} -> vector<16x2xf32>
    // CHECK: vector.transpose %[[G]], [1, 0]
    %v = xegpu.load_gather %d, %m {mode = vc} : !xegpu.tensor_desc<16x2xf32, #xegpu.scattered>, vector<16xi1> -> vector<2x16xf32>
    // CHECK: xegpu.store %{{.*}}, %{{.*}}, %{{.*}} : vector<16x2xf32>
    xegpu.store_scatter %v, %d, %m {mode = vc} : vector<2x16xf32>, !xegpu.tensor_desc<16x2xf32, #xegpu.scattered>, vector<16xi1>
    // CHECK: xegpu.fence memory_kind = global, fence_scope = gpu
    // CHECK: xegpu.fence memory_kind = slm, fence_scope = gpu
    xegpu.fence
    gpu.return
  }

  // Upstream's launches of such a kernel count lanes.
  // CHECK-LABEL: gpu.func @lanes
  // CHECK-SAME: kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  gpu.func @lanes(%a: memref<64x16xf32>) kernel attributes {xegpu.lanes_per_subgroup = 16 : i32, known_block_size = array<i32: 4, 1, 1>} {
    // CHECK: %[[X:.*]] = gpu.thread_id  x
    // CHECK: arith.divui %[[X]], %{{.*}} : index
    %x = gpu.thread_id x
    %d = xegpu.create_nd_tdesc %a[%x, 0] {mode = vc} : memref<64x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.prefetch_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }

  // Pairs of elements are transposed in registers: upstream's message transposes single ones.
  // CHECK-LABEL: gpu.func @pairs
  gpu.func @pairs(%b: memref<64x64xf32>, %to: memref<64x64xf32>) kernel {
    %db = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x8xf32>
    %dt = xegpu.create_nd_tdesc %to[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<4x16xf32>
    // CHECK: %[[P:.*]] = xegpu.load_nd %{{.*}}[0, 0] : !xegpu.tensor_desc<8x8xf32> -> vector<8x8xf32>
    // CHECK: %[[S:.*]] = vector.shape_cast %[[P]] : vector<8x8xf32> to vector<8x4x2xf32>
    // CHECK: vector.transpose %[[S]], [1, 0, 2]
    %t = xegpu.load_nd %db {mode = vc, transpose = [1, 0], transpose_bit_width = 64} : !xegpu.tensor_desc<8x8xf32> -> vector<4x8x2xf32>
    // CHECK: xegpu.load_nd %{{.*}}[0, 0] <{transpose = array<i64: 1, 0>}>
    %u = xegpu.load_nd %db {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !xegpu.tensor_desc<8x8xf32> -> vector<8x8xf32>
    %x = vector.shape_cast %t : vector<4x8x2xf32> to vector<4x16xf32>
    %y = vector.shape_cast %u : vector<8x8xf32> to vector<4x16xf32>
    %z = arith.addf %x, %y : vector<4x16xf32>
    xegpu.store_nd %z, %dt {mode = vc} : vector<4x16xf32>, !xegpu.tensor_desc<4x16xf32>
    gpu.return
  }
}
