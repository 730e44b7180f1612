// Adjacent blocks are loaded by one message.

// RUN: xegpu-opt %s --xegpu-legalize=target=pvc --canonicalize --cse --xegpu-dce | FileCheck %s

!block = !xegpu.tensor_desc<16x16xbf16>

gpu.module @m {
  func.func private @use(vector<8x16x2xbf16>, vector<8x16x2xbf16>)
  func.func private @use_four(vector<8x16xi8>, vector<8x16xi8>, vector<8x16xi8>, vector<8x16xi8>)
  func.func private @use_all(vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xbf16>,
                             vector<8x16xf32>, vector<8x16xf32>)

  // CHECK-LABEL: gpu.func @loop
  // CHECK: %[[D:.*]] = xegpu.create_nd_tdesc %{{.*}}[0, %{{.*}}] {mode = vc} : {{.*}} -> !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
  // CHECK-NOT: xegpu.create_nd_tdesc
  // CHECK: scf.for {{.*}} iter_args(%[[AT:.*]] = %[[D]])
  // CHECK: %[[BOTH:.*]] = xegpu.load_nd %[[AT]] {mode = vc, vnni_axis = 0, l1_hint = cached} : {{.*}} -> vector<2x8x16x2xbf16>
  // CHECK: %[[X:.*]] = vector.extract %[[BOTH]][0] : vector<8x16x2xbf16> from vector<2x8x16x2xbf16>
  // CHECK: %[[Y:.*]] = vector.extract %[[BOTH]][1] : vector<8x16x2xbf16> from vector<2x8x16x2xbf16>
  // CHECK: func.call @use(%[[X]], %[[Y]])
  // CHECK: %[[NEXT:.*]] = xegpu.update_nd_offset %[[AT]], [16, 0]
  // CHECK: scf.yield %[[NEXT]]
  gpu.func @loop(%m: memref<64x64xbf16>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %right = arith.addi %n, %c16 : index
    %d = xegpu.create_nd_tdesc %m[0, %n] {mode = vc} : memref<64x64xbf16> -> !block
    %e = xegpu.create_nd_tdesc %m[0, %right] {mode = vc} : memref<64x64xbf16> -> !block
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %d, %bt = %e) -> (!block, !block) {
      %x = xegpu.load_nd %at {mode = vc, vnni_axis = 0, l1_hint = cached} : !block -> vector<8x16x2xbf16>
      %y = xegpu.load_nd %bt {mode = vc, vnni_axis = 0, l1_hint = cached} : !block -> vector<8x16x2xbf16>
      func.call @use(%x, %y) : (vector<8x16x2xbf16>, vector<8x16x2xbf16>) -> ()
      %a = xegpu.update_nd_offset %at, [16, 0] {mode = vc} : !block -> !block
      %b = xegpu.update_nd_offset %bt, [16, 0] {mode = vc} : !block -> !block
      scf.yield %a, %b : !block, !block
    }
    gpu.return
  }

  // Four blocks of bytes fill a row of 64 bytes.
  // CHECK-LABEL: gpu.func @four
  // CHECK: xegpu.load_nd %{{.*}} -> vector<4x8x16xi8>
  // CHECK-NOT: xegpu.load_nd
  gpu.func @four(%m: memref<64x64xi8>) kernel {
    %0 = xegpu.create_nd_tdesc %m[8, 0] {mode = vc} : memref<64x64xi8> -> !xegpu.tensor_desc<8x16xi8>
    %1 = xegpu.create_nd_tdesc %m[8, 16] {mode = vc} : memref<64x64xi8> -> !xegpu.tensor_desc<8x16xi8>
    %2 = xegpu.create_nd_tdesc %m[8, 32] {mode = vc} : memref<64x64xi8> -> !xegpu.tensor_desc<8x16xi8>
    %3 = xegpu.create_nd_tdesc %m[8, 48] {mode = vc} : memref<64x64xi8> -> !xegpu.tensor_desc<8x16xi8>
    %a = xegpu.load_nd %0 {mode = vc} : !xegpu.tensor_desc<8x16xi8> -> vector<8x16xi8>
    %b = xegpu.load_nd %1 {mode = vc} : !xegpu.tensor_desc<8x16xi8> -> vector<8x16xi8>
    %c = xegpu.load_nd %2 {mode = vc} : !xegpu.tensor_desc<8x16xi8> -> vector<8x16xi8>
    %d = xegpu.load_nd %3 {mode = vc} : !xegpu.tensor_desc<8x16xi8> -> vector<8x16xi8>
    func.call @use_four(%a, %b, %c, %d) : (vector<8x16xi8>, vector<8x16xi8>, vector<8x16xi8>, vector<8x16xi8>) -> ()
    gpu.return
  }

  // Not over a barrier, not if they are not adjacent, not if hints differ, and not if a row is full.
  // CHECK-LABEL: gpu.func @apart
  // CHECK-NOT: array_length
  // CHECK: gpu.return
  gpu.func @apart(%m: memref<64x64xbf16>, %w: memref<64x64xf32>) kernel {
    %0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xbf16> -> !block
    %1 = xegpu.create_nd_tdesc %m[0, 16] {mode = vc} : memref<64x64xbf16> -> !block
    %2 = xegpu.create_nd_tdesc %m[16, 0] {mode = vc} : memref<64x64xbf16> -> !block
    %3 = xegpu.create_nd_tdesc %m[16, 24] {mode = vc} : memref<64x64xbf16> -> !block
    %4 = xegpu.create_nd_tdesc %m[32, 0] {mode = vc} : memref<64x64xbf16> -> !block
    %5 = xegpu.create_nd_tdesc %m[32, 16] {mode = vc} : memref<64x64xbf16> -> !block
    %6 = xegpu.create_nd_tdesc %w[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %7 = xegpu.create_nd_tdesc %w[0, 16] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %a = xegpu.load_nd %0 {mode = vc} : !block -> vector<16x16xbf16>
    gpu.barrier
    %b = xegpu.load_nd %1 {mode = vc} : !block -> vector<16x16xbf16>
    %c = xegpu.load_nd %2 {mode = vc} : !block -> vector<16x16xbf16>
    %d = xegpu.load_nd %3 {mode = vc} : !block -> vector<16x16xbf16>
    %e = xegpu.load_nd %4 {mode = vc} : !block -> vector<16x16xbf16>
    %f = xegpu.load_nd %5 {mode = vc, l1_hint = uncached} : !block -> vector<16x16xbf16>
    %g = xegpu.load_nd %6 {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %h = xegpu.load_nd %7 {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    func.call @use_all(%a, %b, %c, %d, %e, %f, %g, %h) : (vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xbf16>, vector<8x16xf32>, vector<8x16xf32>) -> ()
    gpu.return
  }

  // A store between them may write what the second load reads.
  // CHECK-LABEL: gpu.func @store_between
  // CHECK-NOT: array_length = 2
  // CHECK: xegpu.load_nd
  // CHECK: vector.store
  // CHECK: xegpu.load_nd
  gpu.func @store_between(%m: memref<64x64xbf16>, %s: vector<16xbf16>) kernel {
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xbf16> -> !block
    %e = xegpu.create_nd_tdesc %m[0, 16] {mode = vc} : memref<64x64xbf16> -> !block
    %x = xegpu.load_nd %d {mode = vc, vnni_axis = 0} : !block -> vector<8x16x2xbf16>
    vector.store %s, %m[%c3, %c16] : memref<64x64xbf16>, vector<16xbf16>
    %y = xegpu.load_nd %e {mode = vc, vnni_axis = 0} : !block -> vector<8x16x2xbf16>
    func.call @use(%x, %y) : (vector<8x16x2xbf16>, vector<8x16x2xbf16>) -> ()
    gpu.return
  }
}
