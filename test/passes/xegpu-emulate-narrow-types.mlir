// RUN: xegpu-opt %s --xegpu-emulate-narrow-types --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @blocks
// CHECK-SAME: (%[[A:.*]]: memref<64x128xi4>, %[[B:.*]]: memref<?x?xi4, strided<[?, 1], offset: ?>>, %[[X:.*]]: index)
gpu.module @m {
  gpu.func @blocks(%a: memref<64x128xi4>, %b: memref<?x?xi4, strided<[?, 1], offset: ?>>, %x: index) kernel {
    // CHECK-DAG: %[[A8:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<64x128xi4> to memref<64x64xi8>
    // CHECK-DAG: %[[B8:.*]] = builtin.unrealized_conversion_cast %[[B]] {{.*}} to memref<?x?xi8, strided<[?, 1], offset: ?>>
    %c64 = arith.constant 64 : index
    %column = arith.muli %x, %c64 : index
    // CHECK: %[[D:.*]] = xegpu.create_nd_tdesc %[[A8]][0, 32] {mode = vc} : memref<64x64xi8> -> !xegpu.tensor_desc<8x32xi8>
    %d = xegpu.create_nd_tdesc %a[0, 64] {mode = vc} : memref<64x128xi4> -> !xegpu.tensor_desc<8x64xi4>
    // CHECK: %[[V:.*]] = xegpu.load_nd %[[D]] {mode = vc} : !xegpu.tensor_desc<8x32xi8> -> vector<8x32xi8>
    %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x64xi4> -> vector<8x64xi4>
    // CHECK: %[[C:.*]] = arith.shrsi %{{.*}}, %c1 : index
    // CHECK: %[[E:.*]] = xegpu.create_nd_tdesc %[[B8]][0, %[[C]]] {mode = vc}
    %e = xegpu.create_nd_tdesc %b[0, %column] {mode = vc}
      : memref<?x?xi4, strided<[?, 1], offset: ?>> -> !xegpu.tensor_desc<8x64xi4>
    // CHECK: xegpu.store_nd %[[V]], %[[E]] {mode = vc} : vector<8x32xi8>, !xegpu.tensor_desc<8x32xi8>
    xegpu.store_nd %v, %e {mode = vc} : vector<8x64xi4>, !xegpu.tensor_desc<8x64xi4>
    // CHECK-NEXT: gpu.return
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @elements
gpu.module @m {
  gpu.func @elements(%a: memref<64xi4>, %x: i32) kernel {
    %c5 = arith.constant 5 : index
    // CHECK: memref.generic_atomic_rmw %{{.*}}[%c2] : memref<32xi8>
    // CHECK-NEXT: ^bb0(%[[BYTE:.*]]: i8):
    // CHECK-NEXT: %[[OTHERS:.*]] = arith.andi %[[BYTE]], %c15_i8 : i8
    // CHECK: arith.ori %[[OTHERS]]
    %v = arith.trunci %x : i32 to i4
    memref.store %v, %a[%c5] : memref<64xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @columns(%a: memref<64x128xi4>, %x: index, %v: vector<8x32xi8>) kernel {
    %w = vector.bitcast %v : vector<8x32xi8> to vector<8x64xi4>
    %d = xegpu.create_nd_tdesc %a[0, %x] {mode = vc} : memref<64x128xi4> -> !xegpu.tensor_desc<8x64xi4>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %end = scf.for %i = %c0 to %x step %c1 iter_args(%t = %d) -> (!xegpu.tensor_desc<8x64xi4>) {
      %u = xegpu.update_nd_offset %t, [0, 1] {mode = vc} : !xegpu.tensor_desc<8x64xi4> -> !xegpu.tensor_desc<8x64xi4>
      scf.yield %u : !xegpu.tensor_desc<8x64xi4>
    }
    // A loop carries descriptors without their memref.
    // expected-error @+3 {{'xegpu.store_nd' op stores a block that may begin within a byte, whose other elements it would have to leave}}
    // expected-note @+2 {{let its columns be multiples of 2, for example by arith.muli}}
    // expected-note @+1 {{or create its descriptor beside the store, in VC mode, from a memref without a shape}}
    xegpu.store_nd %w, %end {mode = vc} : vector<8x64xi4>, !xegpu.tensor_desc<8x64xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @+2 {{has memref<3x5xi4>, whose rows end within a byte: 5 elements of i4}}
  // expected-note @+1 {{rows of an even number of elements begin at bytes; of elements of 2 bits a multiple of four}}
  gpu.func @rows(%a: memref<3x5xi4>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @+2 {{has memref<4x8xi4, strided<[9, 1]>>, whose rows begin within a byte: 9 elements of i4}}
  // expected-note @+1 {{rows of an even number of elements begin at bytes}}
  gpu.func @steps(%a: memref<4x8xi4, strided<[9, 1]>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @views(%a: memref<8x64xi4>, %x: index) kernel {
    // expected-error @+2 {{'memref.subview' op has offsets that are not known to be whole bytes}}
    // expected-note @+1 {{let them be multiples of 2 elements}}
    %s = memref.subview %a[0, %x] [4, 8] [1, 1] : memref<8x64xi4> to memref<4x8xi4, strided<[64, 1], offset: ?>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @gathers(%a: memref<64xi4>, %o: vector<16xindex>) kernel {
    %c0 = arith.constant 0 : index
    %all = arith.constant dense<true> : vector<16xi1>
    %zeros = arith.constant dense<0> : vector<16xi4>
    // expected-error @+2 {{'vector.gather' op is not supported for memref<64xi4>, vector<16xi4>}}
    // expected-note @+1 {{extend the elements to i8, or load i8 and extract the elements with vector.bitcast}}
    %v = vector.gather %a[%c0] [%o], %all, %zeros : memref<64xi4>, vector<16xindex>, vector<16xi1>, vector<16xi4> into vector<16xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @+2 {{argument of type vector<16xi4> is not supported}}
  // expected-note @+1 {{pass bytes, and extract the elements with vector.bitcast}}
  gpu.func @registers(%a: vector<16xi4>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @columns_of_work_items(%b: memref<64x16xi4>) kernel {
    // expected-error @+2 {{'xegpu.create_nd_tdesc' op takes a work item's 8x1 elements of i4, which do not fill bytes}}
    // expected-note @+1 {{set wi_data to whole bytes of a row}}
    %d = xegpu.create_nd_tdesc %b[0, 0] : memref<64x16xi4>
      -> !xegpu.tensor_desc<64x16xi4, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [8, 1]>>
    gpu.return
  }
}

// -----

// Elements that are packed, and unpacked again, stay one per byte.

// CHECK-LABEL: gpu.func @unpacked_again
gpu.module @m {
  gpu.func @unpacked_again(%a: memref<8x16xi4>, %b: memref<16x8xi8>) kernel {
    // CHECK: vector.transpose %{{.*}}, [1, 0] : vector<8x16xi8> to vector<16x8xi8>
    // CHECK-NOT: vector.deinterleave
    // CHECK: gpu.return
    %d = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<8x16xi4> -> !xegpu.tensor_desc<8x16xi4>
    %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xi4> -> vector<8x16xi4>
    %t = vector.transpose %v, [1, 0] : vector<8x16xi4> to vector<16x8xi4>
    %w = arith.extsi %t : vector<16x8xi4> to vector<16x8xi8>
    %e = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<16x8xi8> -> !xegpu.tensor_desc<16x8xi8>
    xegpu.store_nd %w, %e {mode = vc} : vector<16x8xi8>, !xegpu.tensor_desc<16x8xi8>
    gpu.return
  }
}
