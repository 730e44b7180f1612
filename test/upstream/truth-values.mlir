// RUN: xegpu-opt %s --xegpu-spelling=rfc | FileCheck %s

gpu.module @kernels {
  // Memory has a byte for each truth value.
  // CHECK-LABEL: gpu.func @bytes
  // CHECK-SAME: (%{{.*}}: memref<8x16xi8>, %{{.*}}: memref<8x16xi8>)
  gpu.func @bytes(%a: memref<8x16xi1>, %o: memref<8x16xi1>) kernel {
    // CHECK: %[[BYTES:.*]] = xegpu.load_nd %{{.*}} -> vector<8x16xi8>
    // CHECK: %[[TRUTH:.*]] = arith.trunci %[[BYTES]] : vector<8x16xi8> to vector<8x16xi1>
    %t = xegpu.create_nd_tdesc %a : memref<8x16xi1> -> !xegpu.tensor_desc<8x16xi1>
    %v = xegpu.load_nd %t[0, 0] : !xegpu.tensor_desc<8x16xi1> -> vector<8x16xi1>
    // CHECK: %[[STORED:.*]] = arith.extui %[[TRUTH]] : vector<8x16xi1> to vector<8x16xi8>
    // CHECK: xegpu.store_nd %[[STORED]],
    %u = xegpu.create_nd_tdesc %o : memref<8x16xi1> -> !xegpu.tensor_desc<8x16xi1>
    xegpu.store_nd %v, %u[0, 0] : vector<8x16xi1>, !xegpu.tensor_desc<8x16xi1>
    gpu.return
  }

  // If another op uses the memref too, neither it nor its descriptors change.
  // CHECK-LABEL: gpu.func @used_otherwise
  // CHECK-SAME: (%{{.*}}: memref<8x16xi1>)
  gpu.func @used_otherwise(%a: memref<8x16xi1>) kernel {
    %c0 = arith.constant 0 : index
    // CHECK: xegpu.load_nd %{{.*}} -> vector<8x16xi1>
    // CHECK-NOT: arith.trunci
    %t = xegpu.create_nd_tdesc %a : memref<8x16xi1> -> !xegpu.tensor_desc<8x16xi1>
    %v = xegpu.load_nd %t[0, 0] : !xegpu.tensor_desc<8x16xi1> -> vector<8x16xi1>
    // CHECK: memref.store %{{.*}} : memref<8x16xi1>
    %x = vector.extract %v[0, 1] : i1 from vector<8x16xi1>
    memref.store %x, %a[%c0, %c0] : memref<8x16xi1>
    gpu.return
  }
}
