// RUN: xegpu-opt --pass-pipeline='builtin.module(xegpu-unroll{target=pvcxt})' %s | FileCheck %s

// A vector that is assembled of results of a loop: the loop is made again for its descriptor, and the pieces are results
// of the new one.

gpu.module @m {
  // CHECK-LABEL: @assembled
  gpu.func @assembled(%a: memref<64x16xf32>, %o: memref<16x16xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %first = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<64x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    // CHECK: %[[R:.*]]:2 = scf.for
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %t = %first) -> (vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>) {
      %v = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
      %s = arith.addf %sum, %v : vector<8x16xf32>
      %u = xegpu.update_nd_offset %t, [8, 0] {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
      scf.yield %s, %u : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    }
    %p = ub.poison : vector<16x16xf32>
    %upper = vector.insert_strided_slice %r#0, %p {offsets = [0, 0], strides = [1, 1]} : vector<8x16xf32> into vector<16x16xf32>
    %both = vector.insert_strided_slice %zero, %upper {offsets = [8, 0], strides = [1, 1]} : vector<8x16xf32> into vector<16x16xf32>
    %out = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32>
    // CHECK: xegpu.store_nd %[[R]]#0, %{{.*}} : vector<8x16xf32>
    // CHECK: xegpu.store_nd %{{.*}} : vector<8x16xf32>
    xegpu.store_nd %both, %out {mode = vc} : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32>
    gpu.return
  }
}
