// RUN: xegpu-opt %s --export-upstream | FileCheck %s
// RUN: xegpu-opt %s --export-upstream | xegpu-opt --xegpu-spelling=rfc | FileCheck %s --check-prefix=BACK

!row = !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
!packed = !xegpu.tensor_desc<16x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>>
!acc = !xegpu.tensor_desc<8x16xf32, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
!turned = !xegpu.tensor_desc<16x8xf32, #xegpu.sg_map<wi_layout = [16, 1], wi_data = [1, 1]>>
!bytes = !xegpu.tensor_desc<8x32xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 2]>>
!line = !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<boundary_check = false, map = <wi_layout = [1, 16], wi_data = [1, 1]>>>

gpu.module @kernels {
  // A lane has of blocks what messages leave in its registers, as a vector of one dimension.
  // CHECK-LABEL: gpu.func @lanes
  // CHECK-SAME: kernel attributes {intel_reqd_sub_group_size = 16 : i32, known_block_size = array<i32: 64, 1, 1>} {
  // BACK-LABEL: gpu.func @lanes
  gpu.func @lanes(%a: memref<64x64xf16>, %c: memref<64x64xf32>, %i: memref<64x64xi8>, %l: memref<64xf32>) kernel
      attributes {xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: 64, 1, 1>} {
    %lane = gpu.lane_id
    // CHECK: %[[A:.*]] = xegpu.create_nd_tdesc %{{.*}} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %da = xegpu.create_nd_tdesc %a[0, 16] : memref<64x64xf16> -> !row
    // CHECK: xegpu.load_nd %[[A]][0, 16] <{l1_hint = #xegpu.cache_hint<cached>}> : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
    %x = xegpu.load_nd %da {l1_hint = cached} : !row -> vector<8x1xf16>
    %db = xegpu.create_nd_tdesc %a[16, 0] : memref<64x64xf16> -> !packed
    // CHECK: xegpu.load_nd %{{.*}}[16, 0] <{packed}> : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
    %y = xegpu.load_nd %db {vnni_axis = 0} : !packed -> vector<8x1x2xf16>
    %dt = xegpu.create_nd_tdesc %c[16, 32] : memref<64x64xf32> -> !turned
    // CHECK: %[[T:.*]] = xegpu.load_nd %{{.*}}[16, 32] <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xf32> -> vector<8xf32>
    %t = xegpu.load_nd %dt {transpose = [1, 0]} : !turned -> vector<8x1xf32>
    // CHECK: %[[D:.*]] = xegpu.dpas %{{.*}}, %{{.*}}, %[[T]] : vector<8xf16>, vector<16xf16>, vector<8xf32> -> vector<8xf32>
    // BACK: xegpu.dpas %{{.*}} : vector<8x1xf32>, vector<8x1xf16>, vector<8x1x2xf16> -> vector<8x1xf32>
    %d = xegpu.dpas %t, %x, %y : vector<8x1xf32>, vector<8x1xf16>, vector<8x1x2xf16> -> vector<8x1xf32>
    %dc = xegpu.create_nd_tdesc %c[0, 0] : memref<64x64xf32> -> !acc
    // CHECK: xegpu.store_nd %[[D]], %{{.*}}[0, 0] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %d, %dc : vector<8x1xf32>, !acc
    // Bytes come in pairs of a row.
    %di = xegpu.create_nd_tdesc %i[0, 0] : memref<64x64xi8> -> !bytes
    // CHECK: %[[B:.*]] = xegpu.load_nd %{{.*}}[0, 0] : !xegpu.tensor_desc<8x32xi8> -> vector<16xi8>
    %b = xegpu.load_nd %di : !bytes -> vector<8x2xi8>
    // CHECK: vector.shape_cast %[[B]] : vector<16xi8> to vector<8x2xi8>
    %e = vector.extract %b[0, 1] : i8 from vector<8x2xi8>
    memref.store %e, %i[%lane, %lane] : memref<64x64xi8>
    %dl = xegpu.create_nd_tdesc %l[0] : memref<64xf32> -> !line
    // CHECK: xegpu.load_nd %{{.*}}[0] : !xegpu.tensor_desc<64xf32> -> vector<4xf32>
    %v = xegpu.load_nd %dl : !line -> vector<4xf32>
    // CHECK: xegpu.store_nd %{{.*}}[0] : vector<4xf32>, !xegpu.tensor_desc<64xf32>
    xegpu.store_nd %v, %dl : vector<4xf32>, !line
    gpu.return
  }

  // Loops pass on offsets, and no descriptors.
  // CHECK-LABEL: gpu.func @loop
  gpu.func @loop(%a: memref<64x64xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    // CHECK: %[[A:.*]] = xegpu.create_nd_tdesc %{{[^ ]*}} : memref<64x64xf16>
    %d = xegpu.create_nd_tdesc %a[0, 16] : memref<64x64xf16> -> !row
    // CHECK: scf.for {{.*}} iter_args(%[[Y:.*]] = %{{.*}}, %[[X:.*]] = %{{.*}}) -> (index, index) {
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %d) -> (!row) {
      // CHECK: %[[V:.*]] = xegpu.load_nd %[[A]][%[[Y]], %[[X]]]
      %v = xegpu.load_nd %p : !row -> vector<8x1xf16>
      // CHECK: %[[N:.*]] = arith.addi %[[Y]], %{{.*}} : index
      %n = xegpu.update_nd_offset %p, [8, 0] : !row -> !row
      // CHECK: xegpu.store_nd %[[V]], %[[A]][%[[N]], %[[X]]]
      xegpu.store_nd %v, %n : vector<8x1xf16>, !row
      // CHECK: scf.yield %[[N]], %[[X]] : index, index
      scf.yield %n : !row
    }
    // CHECK: xegpu.prefetch_nd %[[A]][%{{.*}}#0, %{{.*}}#1]
    xegpu.prefetch_nd %r : !row
    gpu.return
  }
}
