// RUN: xegpu-opt %s --split-input-file --xegpu-legalize=target=pvc --canonicalize --cse --xegpu-dce | FileCheck %s
// RUN: xegpu-opt %s --split-input-file --xegpu-legalize=target=pvc --remarks --verify-diagnostics

// Blocks that no 2D message moves.

gpu.module @m {
  // Rows that are in bounds and aligned are 1D messages.
  // CHECK-LABEL: gpu.func @short_rows(
  // CHECK: %[[LINE:.*]] = memref.reinterpret_cast %{{.*}} to offset: [4], sizes: [4], strides: [1] : memref<8x8xf32> to memref<4xf32, strided<[1], offset: 4>>
  // CHECK-NEXT: %[[D:.*]] = xegpu.create_nd_tdesc %[[LINE]][0] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<4xf32>
  // CHECK-NEXT: xegpu.load_nd %[[D]] {mode = vc, l1_hint = cached} : !xegpu.tensor_desc<4xf32> -> vector<4xf32>
  // CHECK: xegpu.load_nd
  // CHECK-NOT: xegpu.load
  gpu.func @short_rows(%m: memref<8x8xf32>, %o: memref<8xf32>) kernel {
    %c4 = arith.constant 4 : index
    %before = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<8x8xf32> -> !xegpu.tensor_desc<2x4xf32>
    %d = xegpu.update_nd_offset %before, [0, %c4] {mode = vc} : !xegpu.tensor_desc<2x4xf32> -> !xegpu.tensor_desc<2x4xf32>
    // expected-remark @+1 {{takes 2 1D loads in place of 2D block messages: its tensor has rows of 32 bytes, but 2D block messages need 64}}
    %x = xegpu.load_nd %d {mode = vc, l1_hint = cached} : !xegpu.tensor_desc<2x4xf32> -> vector<2x4xf32>
    %f = vector.shape_cast %x : vector<2x4xf32> to vector<8xf32>
    %e = xegpu.create_nd_tdesc %o[0] {mode = vc} : memref<8xf32> -> !xegpu.tensor_desc<8xf32>
    xegpu.store_nd %f, %e {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // Others are gathered; short rows of a power of two share a message.
  // CHECK-LABEL: gpu.func @out_of_bounds(
  // CHECK: %[[ON:.*]] = arith.constant dense<[true, true, false, false, true, true, false, false]> : vector<8xi1>
  // CHECK: %[[AT:.*]] = arith.constant dense<[0, 1, 2, 3, 11, 12, 13, 14]> : vector<8xindex>
  // CHECK: %[[D:.*]] = xegpu.create_tdesc %{{.*}}, %[[AT]] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<8xf16, #xegpu.scattered>
  // CHECK: xegpu.load_gather %[[D]], %[[ON]] {mode = vc} : {{.*}} -> vector<8xf16>
  gpu.func @out_of_bounds(%m: memref<7x11xf16>, %o: memref<8xf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[2, 9] {mode = vc} : memref<7x11xf16> -> !xegpu.tensor_desc<2x4xf16>
    // expected-remark @+1 {{takes 1 gather in place of 2D block messages: its tensor has rows of 22 bytes, but 2D block messages need 64}}
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<2x4xf16> -> vector<2x4xf16>
    %f = vector.shape_cast %x : vector<2x4xf16> to vector<8xf16>
    %e = xegpu.create_nd_tdesc %o[0] {mode = vc} : memref<8xf16> -> !xegpu.tensor_desc<8xf16>
    xegpu.store_nd %f, %e {mode = vc} : vector<8xf16>, !xegpu.tensor_desc<8xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  // A loop carries the offsets of a descriptor; its tensor, which is known, is not carried.
  // CHECK-LABEL: gpu.func @carried(
  // CHECK: scf.for {{.*}} iter_args(%[[Y:.*]] = %{{.*}}) -> (index)
  // CHECK: %[[ROW:.*]] = vector.broadcast %[[Y]] : index to vector<16xindex>
  // CHECK: %[[IN:.*]] = arith.cmpi ult, %[[ROW]], %{{.*}} : vector<16xindex>
  // CHECK: xegpu.store_scatter {{.*}}, %[[IN]] {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>, vector<16xi1>
  // CHECK: arith.addi %[[Y]]
  gpu.func @carried(%n: index, %v: vector<1x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = memref.alloc() : memref<8x16xf32, 3>
    %d0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<8x16xf32, 3> -> !xegpu.tensor_desc<1x16xf32, memory_scope = slm>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%d = %d0) -> (!xegpu.tensor_desc<1x16xf32, memory_scope = slm>) {
      // expected-remark @+1 {{takes 1 scatter in place of 2D block messages: its tensor is in shared local memory, where 2D block messages are not supported}}
      xegpu.store_nd %v, %d {mode = vc} : vector<1x16xf32>, !xegpu.tensor_desc<1x16xf32, memory_scope = slm>
      %e = xegpu.update_nd_offset %d, [1, 0] {mode = vc} : !xegpu.tensor_desc<1x16xf32, memory_scope = slm> -> !xegpu.tensor_desc<1x16xf32, memory_scope = slm>
      scf.yield %e : !xegpu.tensor_desc<1x16xf32, memory_scope = slm>
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  // Unknown pitches and addresses are assumed to be aligned, except those of arguments that the kernel declares
  // unaligned.
  // CHECK-LABEL: gpu.func @unaligned(
  // CHECK: xegpu.load_nd {{.*}} !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
  // CHECK-NOT: xegpu.store_nd
  // CHECK-COUNT-4: xegpu.store_scatter
  gpu.func @unaligned(%m: memref<?x?xf32>, %o: memref<?x?xf32>) kernel attributes {xegpu.unaligned = array<i64: 1>} {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %e = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-remark @+1 {{its tensor is not known to have the alignment that 2D block messages require}}
    xegpu.store_nd %x, %e {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // Rows that no store message supports are scattered, while loads of the same block are messages.
  // CHECK-LABEL: gpu.func @narrow(
  // CHECK: xegpu.load_nd
  // CHECK: xegpu.store_scatter
  gpu.func @narrow(%m: memref<64x64xf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x3xf16>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x3xf16> -> vector<8x3xf16>
    // expected-remark @+1 {{has rows that 2D block messages cannot store}}
    xegpu.store_nd %x, %d {mode = vc} : vector<8x3xf16>, !xegpu.tensor_desc<8x3xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @within_a_unit(%m: memref<64x64xf16>, %x: index) kernel {
    %d = xegpu.create_nd_tdesc %m[0, %x] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    // expected-remark @+1 {{transposes its block in registers: it is not known to begin at a multiple of a message's unit}}
    %v = xegpu.load_nd %d {mode = vc, transpose = [1, 0]} : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
    xegpu.store_nd %v, %d {mode = vc} : vector<16x16xf16>, !xegpu.tensor_desc<16x16xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  // The rows that scatters store are taken from the product: a loop carries products as dpas has them.
  // CHECK-LABEL: gpu.func @product(
  // CHECK: scf.for {{.*}} -> (vector<8x16xf32>, vector<8x16xf32>)
  // CHECK: scf.yield %{{.*}}, %{{.*}} : vector<8x16xf32>, vector<8x16xf32>
  gpu.func @product(%a: vector<16x16xf16>, %b: vector<8x16x2xf16>, %m: memref<16x17xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : vector<16x16xf32>
    %c = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (vector<16x16xf32>) {
      %next = xegpu.dpas %a, %b, %sum {mode = vc} : vector<16x16xf16>, vector<8x16x2xf16>, vector<16x16xf32> -> vector<16x16xf32>
      scf.yield %next : vector<16x16xf32>
    }
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<16x17xf32> -> !xegpu.tensor_desc<16x16xf32>
    // expected-remark @+1 {{takes 16 1D stores in place of 2D block messages}}
    xegpu.store_nd %c, %d {mode = vc} : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // The address of each row follows from that of the previous one; a pitch that is not known is scaled to bytes once.
  // CHECK-LABEL: gpu.func @rows(
  // CHECK-SAME: %[[M:.*]]: memref<?x?xf16>,
  // CHECK: %[[BYTES:.*]] = arith.muli %{{.*}}#0, %c2 : index
  // CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST:.*]], %[[BYTES]] : index
  // CHECK: %[[A1:.*]] = arith.index_cast %[[SECOND]] : index to i64
  // CHECK: xegpu.create_tdesc %[[A1]], %[[LANES:.*]] {mode = vc} : i64, vector<16xindex>
  // CHECK: %[[THIRD:.*]] = arith.addi %[[SECOND]], %[[BYTES]] : index
  // CHECK: %[[A2:.*]] = arith.index_cast %[[THIRD]] : index to i64
  // CHECK: xegpu.create_tdesc %[[A2]], %[[LANES]] {mode = vc}
  // CHECK-NOT: arith.muli
  // CHECK: gpu.return
  gpu.func @rows(%m: memref<?x?xf16>, %i: index, %o: memref<48xf16>) kernel attributes {xegpu.unaligned = array<i64: 0>} {
    %d = xegpu.create_nd_tdesc %m[%i, 0] {mode = vc} : memref<?x?xf16> -> !xegpu.tensor_desc<3x16xf16>
    // expected-remark @+1 {{takes 3 gathers}}
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<3x16xf16> -> vector<3x16xf16>
    %f = vector.shape_cast %x : vector<3x16xf16> to vector<48xf16>
    %z = arith.constant 0 : index
    vector.store %f, %o[%z] : memref<48xf16>, vector<48xf16>
    gpu.return
  }
}
