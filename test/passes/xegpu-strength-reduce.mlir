// RUN: xegpu-opt %s --xegpu-strength-reduce='target=pvc' --canonicalize --cse | FileCheck %s
// RUN: xegpu-opt %s --xegpu-strength-reduce='target=pvc max-bytes=1073741824' --canonicalize --cse | FileCheck %s --check-prefix=LIMITED

!a = !xegpu.tensor_desc<8x16xf16>
!b = !xegpu.tensor_desc<16x16xf16>

gpu.module @kernels {
  // Descriptors that advance together with the counter need no induction variables.
  // CHECK-LABEL: gpu.func @product(
  // CHECK-SAME: %[[A:.*]]: memref<64x64xf16>, %[[B:.*]]: memref<64x64xf16>, %[[ROW:.*]]: index,
  // CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %c16 iter_args(%[[SUM:.*]] = %{{.*}}) -> (vector<8x16xf32>)
  // CHECK-DAG: %[[T:.*]] = xegpu.create_nd_tdesc %[[A]][%[[ROW]], %[[K]]]
  // CHECK-DAG: %[[U:.*]] = xegpu.create_nd_tdesc %[[B]][%[[K]], 0]
  // CHECK-DAG: xegpu.load_nd %[[T]]
  // CHECK-DAG: xegpu.load_nd %[[U]]
  // CHECK-NOT: update_nd_offset
  // CHECK: scf.yield %{{.*}} : vector<8x16xf32>
  gpu.func @product(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %row: index, %c: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %at = xegpu.create_nd_tdesc %a[%row, 0] {mode = vc} : memref<64x64xf16> -> !a
    %bt = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<64x64xf16> -> !b
    %r:3 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero, %t = %at, %u = %bt) -> (vector<8x16xf32>, !a, !b) {
      %x = xegpu.load_nd %t {mode = vc} : !a -> vector<8x16xf16>
      %y = xegpu.load_nd %u {mode = vc, vnni_axis = 0} : !b -> vector<8x16x2xf16>
      %z = xegpu.dpas %sum, %x, %y {mode = vc} : vector<8x16xf32>, vector<8x16xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
      %v = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !a -> !a
      %w = xegpu.update_nd_offset %u, [16, 0] {mode = vc} : !b -> !b
      scf.yield %z, %v, %w : vector<8x16xf32>, !a, !b
    }
    %ct = xegpu.create_nd_tdesc %c[%row, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#0, %ct {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }

  // Offsets that differ from the counter by a constant are sums. Moved descriptors that other ops use are kept.
  // CHECK-LABEL: gpu.func @ahead(
  // CHECK: scf.for %[[K:.*]] = %c16 to %c64 step %c16 {
  // CHECK: %[[SUM:.*]] = arith.addi %[[K]], %c-8
  // CHECK: %[[T:.*]] = xegpu.create_nd_tdesc %{{.*}}[8, %[[SUM]]]
  // CHECK: %[[U:.*]] = xegpu.update_nd_offset %[[T]], [0, 16]
  // CHECK: xegpu.prefetch_nd %[[U]]
  // CHECK-NEXT: }
  gpu.func @ahead(%a: memref<64x64xf16>) kernel {
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %0 = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<64x64xf16> -> !a
    %1 = xegpu.update_nd_offset %0, [8, 8] {mode = vc} : !a -> !a
    %r = scf.for %k = %c16 to %c64 step %c16 iter_args(%t = %1) -> (!a) {
      %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !a -> !a
      xegpu.prefetch_nd %u {mode = vc} : !a
      scf.yield %u : !a
    }
    gpu.return
  }

  // Two descriptors with the same first offset and step share an induction variable that is not the counter.
  // CHECK-LABEL: gpu.func @shared(
  // CHECK-SAME: %[[FIRST:arg1]]: i16)
  // CHECK: %[[INIT:.*]] = arith.index_cast %[[FIRST]]
  // CHECK: scf.for %{{.*}} iter_args(%[[I:.*]] = %[[INIT]]) -> (index) {
  // CHECK-DAG: xegpu.create_nd_tdesc %{{.*}}[0, %[[I]]]
  // CHECK-DAG: xegpu.create_nd_tdesc %{{.*}}[8, %[[I]]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %c32
  // CHECK: scf.yield %[[NEXT]] : index
  gpu.func @shared(%a: memref<64x64xf16>, %first: i16) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %x = arith.index_cast %first : i16 to index
    %0 = xegpu.create_nd_tdesc %a[0, %x] {mode = vc} : memref<64x64xf16> -> !a
    %1 = xegpu.create_nd_tdesc %a[8, %x] {mode = vc} : memref<64x64xf16> -> !a
    %r:2 = scf.for %k = %c0 to %c4 step %c1 iter_args(%t = %0, %u = %1) -> (!a, !a) {
      xegpu.prefetch_nd %t {mode = vc} : !a
      xegpu.prefetch_nd %u {mode = vc} : !a
      %v = xegpu.update_nd_offset %t, [0, 32] {mode = vc} : !a -> !a
      %w = xegpu.update_nd_offset %u, [0, 32] {mode = vc} : !a -> !a
      scf.yield %v, %w : !a, !a
    }
    gpu.return
  }

  // The loop carries a variable of its own for a descriptor that is used after the loop.
  // CHECK-LABEL: gpu.func @used_after(
  // CHECK: %[[R:.*]] = scf.for %{{.*}} iter_args(%[[I:.*]] = %c0) -> (index) {
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, %[[I]]]
  // CHECK: }
  // CHECK: %[[LAST:.*]] = xegpu.create_nd_tdesc %{{.*}}[0, %[[R]]]
  // CHECK: xegpu.prefetch_nd %[[LAST]]
  gpu.func @used_after(%a: memref<64x64xf16>, %n: i16) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %upper = arith.index_cast %n : i16 to index
    %0 = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<64x64xf16> -> !a
    %r = scf.for %k = %c0 to %upper step %c16 iter_args(%t = %0) -> (!a) {
      xegpu.prefetch_nd %t {mode = vc} : !a
      %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !a -> !a
      scf.yield %u : !a
    }
    xegpu.prefetch_nd %r {mode = vc} : !a
    gpu.return
  }

  // A descriptor whose offsets may exceed 32 bits is kept.
  // CHECK-LABEL: gpu.func @far(
  // CHECK: scf.for %{{.*}} iter_args(%[[T:.*]] = %{{.*}}) -> (!xegpu.tensor_desc<8x16xf16>)
  // CHECK: xegpu.update_nd_offset %[[T]]
  // LIMITED-LABEL: gpu.func @far(
  // LIMITED: scf.for %[[K:.*]] = %{{.*}} {
  // LIMITED-NEXT: xegpu.create_nd_tdesc %{{.*}}[0, %[[K]]]
  gpu.func @far(%a: memref<?x?xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %a, %c1 : memref<?x?xf16>
    %0 = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<?x?xf16> -> !a
    %r = scf.for %k = %c0 to %n step %c16 iter_args(%t = %0) -> (!a) {
      xegpu.prefetch_nd %t {mode = vc} : !a
      %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !a -> !a
      scf.yield %u : !a
    }
    gpu.return
  }

  // Steps that change from one iteration to the next are not reduced.
  // CHECK-LABEL: gpu.func @growing(
  // CHECK: scf.for %[[K:.*]] = %{{.*}} iter_args(%[[T:.*]] = %{{.*}}) -> (!xegpu.tensor_desc<8x16xf16>)
  // CHECK: xegpu.update_nd_offset %[[T]], [0, %[[K]]]
  gpu.func @growing(%a: memref<64x64xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %0 = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<64x64xf16> -> !a
    %r = scf.for %k = %c0 to %c4 step %c1 iter_args(%t = %0) -> (!a) {
      xegpu.prefetch_nd %t {mode = vc} : !a
      %u = xegpu.update_nd_offset %t, [0, %k] {mode = vc} : !a -> !a
      scf.yield %u : !a
    }
    gpu.return
  }

  // Equal indices become one, also in a loop inside another; values after the loop are kept.
  // CHECK-LABEL: gpu.func @indices(
  // CHECK: scf.for %[[K:.*]] = %c0 to %c4 step %c1 {
  // CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %c0 to %c4 step %c1 iter_args(%[[P:.*]] = %[[K]]) -> (index) {
  // CHECK: memref.store %[[P]], %{{.*}}[%[[I]]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[P]], %c2
  // CHECK: scf.yield %[[NEXT]] : index
  // CHECK: memref.store %[[R]], %{{.*}}[%[[K]]]
  gpu.func @indices(%out: memref<8xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %o = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %c0) -> (index) {
      %r:3 = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %a, %q = %c0, %s = %a) -> (index, index, index) {
        memref.store %s, %out[%q] : memref<8xindex>
        %p2 = arith.addi %p, %c2 : index
        %q1 = arith.addi %c1, %q : index
        %s2 = arith.addi %s, %c2 : index
        scf.yield %p2, %q1, %s2 : index, index, index
      }
      memref.store %r#0, %out[%a] : memref<8xindex>
      %a1 = arith.addi %a, %c1 : index
      scf.yield %a1 : index
    }
    gpu.return
  }

  // A counter that is no index wraps elsewhere.
  // CHECK-LABEL: gpu.func @narrow_counter
  // CHECK: scf.for %[[K:.*]] = %c0_i32 to %c64_i32 step %c16_i32 iter_args(%[[I:.*]] = %c0) -> (index)
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, %[[I]]]
  // CHECK: memref.store %[[K]], %{{.*}}[%[[I]]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %c16
  // CHECK: scf.yield %[[NEXT]] : index
  gpu.func @narrow_counter(%m: memref<8x64xf32>, %out: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %low = arith.constant 0 : i32
    %high = arith.constant 64 : i32
    %step = arith.constant 16 : i32
    %t = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<8x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %r:2 = scf.for %k = %low to %high step %step iter_args(%i = %c0, %u = %t)
        -> (index, !xegpu.tensor_desc<8x16xf32>) : i32 {
      xegpu.prefetch_nd %u {mode = vc} : !xegpu.tensor_desc<8x16xf32>
      memref.store %k, %out[%i] : memref<64xi32>
      %next = arith.addi %i, %c16 : index
      %v = xegpu.update_nd_offset %u, [0, 16] {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
      scf.yield %next, %v : index, !xegpu.tensor_desc<8x16xf32>
    }
    gpu.return
  }
}
