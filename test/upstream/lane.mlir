// RUN: xegpu-opt %s --xegpu-spelling=rfc | FileCheck %s
// RUN: xegpu-opt %s --xegpu-spelling=rfc | xegpu-opt --xegpu-to-visa-pipeline=target=pvc -o /dev/null

gpu.module @kernels {
  // A lane's vector of one dimension is its fragment of a block.
  // CHECK-LABEL: gpu.func @fragments
  // CHECK-SAME: xegpu.subgroup_size = 16 : i32
  gpu.func @fragments(%a: memref<64x64xf16>, %t: memref<64x64xf32>, %o: memref<64x64xf32>) kernel {
    %c64 = arith.constant 64 : index
    %x = gpu.thread_id x
    // A quotient by a multiple of the subgroup size is the same in all lanes.
    // CHECK: %[[Q:.*]] = arith.divui
    // CHECK: %[[S:.*]] = gpu.subgroup_broadcast %[[Q]],  first_active_lane : index
    %s = arith.divui %x, %c64 : index
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, 0] : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
    %da = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    // CHECK: xegpu.update_nd_offset %{{.*}}, [%[[S]], 0]
    // CHECK: %[[A:.*]] = xegpu.load_nd %{{.*}} : {{.*}} -> vector<8x1xf16>
    // CHECK: vector.shape_cast %[[A]] : vector<8x1xf16> to vector<8xf16>
    %va = xegpu.load_nd %da[%s, 0] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
    %db = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    %vb = xegpu.load_nd %db <{packed}> : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, 0] : memref<64x64xf32> -> !xegpu.tensor_desc<16x8xf32, #xegpu.sg_map<wi_layout = [16, 1], wi_data = [1, 1]>>
    %dt = xegpu.create_nd_tdesc %t : memref<64x64xf32> -> !xegpu.tensor_desc<16x8xf32>
    // CHECK: xegpu.load_nd %{{.*}} {transpose = [1, 0]} : {{.*}} -> vector<8x1xf32>
    %vt = xegpu.load_nd %dt <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xf32> -> vector<8xf32>
    // CHECK: xegpu.dpas %{{.*}}, %{{.*}}, %{{.*}} : vector<8x1xf32>, vector<8x1xf16>, vector<8x1x2xf16> -> vector<8x1xf32>
    %r = xegpu.dpas %va, %vb, %vt : vector<8xf16>, vector<16xf16>, vector<8xf32> -> vector<8xf32>
    %do = xegpu.create_nd_tdesc %o : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // CHECK: xegpu.store_nd %{{.*}}, %{{.*}} : vector<8x1xf32>
    xegpu.store_nd %r, %do : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }

  // A lane's accesses are loads and stores of a memref, under its mask.
  // CHECK-LABEL: gpu.func @scattered
  gpu.func @scattered(%a: memref<1024xf32>, %o: memref<32x32xf32>, %n: index) kernel {
    %x = gpu.thread_id x
    %m = arith.cmpi ult, %x, %n : index
    // CHECK: scf.if %{{.*}} -> (f32, f32) {
    // CHECK: memref.load %{{.*}} : memref<1024xf32>
    // CHECK: memref.load %{{.*}} : memref<1024xf32>
    // CHECK: vector.from_elements
    %v = xegpu.load %a[%x], %m <{chunk_size = 2 : i64}> : memref<1024xf32>, index, i1 -> vector<2xf32>
    %p = memref.extract_aligned_pointer_as_index %o : memref<32x32xf32> -> index
    %q = arith.index_cast %p : index to i64
    %true = arith.constant true
    // CHECK: memref.reinterpret_cast
    // CHECK-NOT: scf.if
    // CHECK-COUNT-2: memref.store
    xegpu.store %v, %q[%x], %true <{chunk_size = 2 : i64}> : vector<2xf32>, i64, index, i1
    gpu.return
  }

  // A block lies where the first lane says; a number that all lanes have needs no broadcast.
  // CHECK-LABEL: gpu.func @carried
  gpu.func @carried(%a: memref<64x64xf16>, %o: memref<64x64xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %lane = gpu.lane_id
    %da = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %do = xegpu.create_nd_tdesc %o : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    // CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[AT:.*]] = {{.*}})
    %end = scf.for %i = %c0 to %c8 step %c2 iter_args(%at = %lane) -> (index) {
      // CHECK-NEXT: %[[FIRST:.*]] = gpu.subgroup_broadcast %[[AT]], first_active_lane : index
      // CHECK-NEXT: xegpu.update_nd_offset %{{.*}}, [%[[FIRST]], %[[I]]]
      %x = xegpu.load_nd %da[%at, %i] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
      xegpu.store_nd %x, %do[%i, 16] : vector<8xf16>, !xegpu.tensor_desc<8x16xf16>
      %next = arith.addi %at, %c8 : index
      scf.yield %next : index
    }
    gpu.return
  }
}
