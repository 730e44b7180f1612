// RUN: xegpu-opt %s --xegpu-load-ahead --split-input-file | FileCheck %s
// RUN: xegpu-opt %s --xegpu-load-ahead --xegpu-legalize --split-input-file | FileCheck %s --check-prefix=LEGAL

!a = !xegpu.tensor_desc<8x16xbf16>
!b = !xegpu.tensor_desc<16x16xbf16>

// Each block is loaded for the next iteration after its last use, and its descriptor is moved before. The first loads
// have the order of the loop.

// CHECK-LABEL: gpu.func @products
// LEGAL-LABEL: gpu.func @products
gpu.module @m {
  gpu.func @products(%A: memref<8x64xbf16>, %B: memref<64x32xbf16>, %C: memref<8x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %ta = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<8x64xbf16> -> !a
    %tb = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<64x32xbf16> -> !b
    %tc = xegpu.create_nd_tdesc %B[0, 16] {mode = vc} : memref<64x32xbf16> -> !b
    // CHECK: %[[A0:.*]] = xegpu.load_nd %{{.*}} -> vector<8x16xbf16>
    // CHECK: %[[B0:.*]] = xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0}
    // CHECK: %[[C0:.*]] = xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0}
    // CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[TA:.*]] = %{{.*}}, %[[TB:.*]] = %{{.*}}, %[[TC:.*]] = %{{.*}}, %[[B:.*]] = %[[B0]], %[[A:.*]] = %[[A0]], %[[C:.*]] = %[[C0]])
    // Adjacent blocks of carried descriptors are not joined.
    // LEGAL-COUNT-3: xegpu.load_nd
    // LEGAL: scf.for
    // LEGAL-COUNT-3: xegpu.load_nd
    %r:5 = scf.for %k = %c0 to %c64 step %c16 iter_args(%s = %zero, %t = %zero, %a = %ta, %b = %tb, %c = %tc)
        -> (vector<8x16xf32>, vector<8x16xf32>, !a, !b, !b) {
      // CHECK-NOT: xegpu.load_nd
      %va = xegpu.load_nd %a {mode = vc} : !a -> vector<8x16xbf16>
      %vb = xegpu.load_nd %b {mode = vc, vnni_axis = 0} : !b -> vector<8x16x2xbf16>
      %vc = xegpu.load_nd %c {mode = vc, vnni_axis = 0} : !b -> vector<8x16x2xbf16>
      // CHECK: xegpu.dpas %{{.*}}, %[[A]], %[[B]]
      // CHECK: %[[NB:.*]] = xegpu.update_nd_offset %[[TB]], [16, 0]
      // CHECK: %[[B1:.*]] = xegpu.load_nd %[[NB]]
      %s1 = xegpu.dpas %s, %va, %vb {mode = vc} : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      // CHECK: xegpu.dpas %{{.*}}, %[[A]], %[[C]]
      // CHECK: %[[NA:.*]] = xegpu.update_nd_offset %[[TA]], [0, 16]
      // CHECK: %[[A1:.*]] = xegpu.load_nd %[[NA]]
      // CHECK: %[[NC:.*]] = xegpu.update_nd_offset %[[TC]], [16, 0]
      // CHECK: %[[C1:.*]] = xegpu.load_nd %[[NC]]
      %t1 = xegpu.dpas %t, %va, %vc {mode = vc} : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %na = xegpu.update_nd_offset %a, [0, 16] {mode = vc} : !a -> !a
      %nb = xegpu.update_nd_offset %b, [16, 0] {mode = vc} : !b -> !b
      %nc = xegpu.update_nd_offset %c, [16, 0] {mode = vc} : !b -> !b
      // CHECK: scf.yield %{{.*}}, %{{.*}}, %[[NA]], %[[NB]], %[[NC]], %[[B1]], %[[A1]], %[[C1]]
      scf.yield %s1, %t1, %na, %nb, %nc : vector<8x16xf32>, vector<8x16xf32>, !a, !b, !b
    }
    %t0 = xegpu.create_nd_tdesc %C[0, 0] {mode = vc} : memref<8x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#0, %t0 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %t1 = xegpu.create_nd_tdesc %C[0, 16] {mode = vc} : memref<8x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#1, %t1 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

// A descriptor that each iteration creates is also created for the next one. Extracting from a loaded vector uses it.

!x = !xegpu.tensor_desc<8x16xf32>

// CHECK-LABEL: gpu.func @made
gpu.module @m {
  gpu.func @made(%X: memref<8x64xf32>, %Y: memref<4x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<4x16xf32>
    // CHECK: %[[T0:.*]] = xegpu.create_nd_tdesc %{{.*}}[0, %c0]
    // CHECK: %[[X0:.*]] = xegpu.load_nd %[[T0]]
    // CHECK: scf.for %[[I:.*]] = %c0 to %c64 step %c16 iter_args(%{{.*}}, %[[X:.*]] = %[[X0]])
    %r = scf.for %i = %c0 to %c64 step %c16 iter_args(%s = %zero) -> (vector<4x16xf32>) {
      %t = xegpu.create_nd_tdesc %X[0, %i] {mode = vc} : memref<8x64xf32> -> !x
      %v = xegpu.load_nd %t {mode = vc} : !x -> vector<8x16xf32>
      // CHECK: vector.extract_strided_slice %[[X]]
      %w = vector.extract_strided_slice %v {offsets = [4, 0], sizes = [4, 16], strides = [1, 1]} : vector<8x16xf32> to vector<4x16xf32>
      // CHECK: %[[S:.*]] = arith.addf
      %n = arith.addf %s, %w : vector<4x16xf32>
      // CHECK: %[[J:.*]] = arith.addi %[[I]], %c16
      // CHECK: %[[T:.*]] = xegpu.create_nd_tdesc %{{.*}}[0, %[[J]]]
      // CHECK: %[[X1:.*]] = xegpu.load_nd %[[T]]
      // CHECK: %[[U:.*]] = math.absf %[[S]]
      %u = math.absf %n : vector<4x16xf32>
      // CHECK: scf.yield %[[U]], %[[X1]]
      scf.yield %u : vector<4x16xf32>
    }
    %y = xegpu.create_nd_tdesc %Y[0, 0] {mode = vc} : memref<4x16xf32> -> !xegpu.tensor_desc<4x16xf32>
    xegpu.store_nd %r, %y {mode = vc} : vector<4x16xf32>, !xegpu.tensor_desc<4x16xf32>
    gpu.return
  }
}

// -----

// Loads are not moved if the loop or other threads may write the memory, if the offset is loaded from memory, if the
// value is yielded unchanged, or if the block is not checked for bounds.

!x = !xegpu.tensor_desc<8x16xf32>
!line = !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>

// CHECK-LABEL: gpu.func @stay
gpu.module @m {
  gpu.func @stay(%X: memref<64x64xf32>, %I: memref<8xindex>, %L: memref<1024xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %x = xegpu.create_nd_tdesc %X[0, 0] {mode = vc} : memref<64x64xf32> -> !x
    %y = xegpu.create_nd_tdesc %X[32, 0] {mode = vc} : memref<64x64xf32> -> !x
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %none = arith.constant dense<0.0> : vector<16xf32>
    // CHECK-COUNT-4: iter_args({{[^,]*}}) ->
    // CHECK-COUNT-2: iter_args({{[^,]*}}, {{[^,]*}}) ->
    %0 = scf.for %i = %c0 to %c8 step %c1 iter_args(%t = %x) -> (!x) {
      %v = xegpu.load_nd %t {mode = vc} : !x -> vector<8x16xf32>
      %w = arith.addf %v, %v : vector<8x16xf32>
      xegpu.store_nd %w, %y {mode = vc} : vector<8x16xf32>, !x
      %n = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !x -> !x
      scf.yield %n : !x
    }
    %1 = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (vector<8x16xf32>) {
      %v = xegpu.load_nd %x {mode = vc} : !x -> vector<8x16xf32>
      gpu.barrier
      %w = arith.addf %v, %s : vector<8x16xf32>
      %a = math.absf %w : vector<8x16xf32>
      scf.yield %a : vector<8x16xf32>
    }
    %2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (vector<8x16xf32>) {
      %at = memref.load %I[%i] : memref<8xindex>
      %t = xegpu.create_nd_tdesc %X[%at, 0] {mode = vc} : memref<64x64xf32> -> !x
      %v = xegpu.load_nd %t {mode = vc} : !x -> vector<8x16xf32>
      %w = arith.addf %v, %s : vector<8x16xf32>
      %a = math.absf %w : vector<8x16xf32>
      scf.yield %a : vector<8x16xf32>
    }
    %3 = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %none) -> (vector<16xf32>) {
      %t = xegpu.create_nd_tdesc %L[%i] {mode = vc} : memref<1024xf32> -> !line
      %v = xegpu.load_nd %t {mode = vc} : !line -> vector<16xf32>
      %w = arith.addf %v, %s : vector<16xf32>
      %a = math.absf %w : vector<16xf32>
      scf.yield %a : vector<16xf32>
    }
    %4:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero, %t = %x) -> (vector<8x16xf32>, !x) {
      %v = xegpu.load_nd %t {mode = vc} : !x -> vector<8x16xf32>
      %n = xegpu.update_nd_offset %t, [8, 0] {mode = vc} : !x -> !x
      scf.yield %v, %n : vector<8x16xf32>, !x
    }
    %5:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero, %t = %x) -> (vector<8x16xf32>, !x) {
      %v = xegpu.load_nd %t {mode = vc} : !x -> vector<8x16xf32>
      %w = arith.addf %v, %s : vector<8x16xf32>
      %a = math.absf %w : vector<8x16xf32>
      %old = memref.generic_atomic_rmw %X[%i, %c0] : memref<64x64xf32> {
      ^bb0(%there: f32):
        %more = arith.addf %there, %there : f32
        memref.atomic_yield %more : f32
      }
      %n = xegpu.update_nd_offset %t, [8, 0] {mode = vc} : !x -> !x
      scf.yield %a, %n : vector<8x16xf32>, !x
    }
    xegpu.store_nd %1, %y {mode = vc} : vector<8x16xf32>, !x
    xegpu.store_nd %2, %y {mode = vc} : vector<8x16xf32>, !x
    xegpu.store_nd %4#0, %y {mode = vc} : vector<8x16xf32>, !x
    xegpu.store_nd %5#0, %y {mode = vc} : vector<8x16xf32>, !x
    %line = xegpu.create_nd_tdesc %L[0] {mode = vc} : memref<1024xf32> -> !line
    xegpu.store_nd %3, %line {mode = vc} : vector<16xf32>, !line
    gpu.return
  }
}

// -----

// A descriptor that moves by a number of memory stays, though this iteration's follows from the loop's arguments.

!x = !xegpu.tensor_desc<8x16xf32>

// CHECK-LABEL: gpu.func @unknown_next
gpu.module @m {
  gpu.func @unknown_next(%X: memref<64x64xf32>, %I: memref<8xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %x = xegpu.create_nd_tdesc %X[0, 0] {mode = vc} : memref<64x64xf32> -> !x
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    // CHECK-NOT: xegpu.load_nd
    // CHECK: scf.for
    // CHECK: xegpu.load_nd
    // CHECK-NOT: xegpu.load_nd
    %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero, %t = %x) -> (vector<8x16xf32>, !x) {
      %v = xegpu.load_nd %t {mode = vc} : !x -> vector<8x16xf32>
      %w = arith.addf %v, %s : vector<8x16xf32>
      %a = math.absf %w : vector<8x16xf32>
      %by = memref.load %I[%i] : memref<8xindex>
      %n = xegpu.update_nd_offset %t, [%by, 0] {mode = vc} : !x -> !x
      scf.yield %a, %n : vector<8x16xf32>, !x
    }
    xegpu.store_nd %r#0, %x {mode = vc} : vector<8x16xf32>, !x
    gpu.return
  }
}
