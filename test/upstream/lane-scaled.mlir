// Products of block-scaled matrices of lanes, which target cri has.

// RUN: xegpu-opt %s --xegpu-spelling=rfc | FileCheck %s
// RUN: xegpu-opt %s --xegpu-spelling=rfc | xegpu-opt --xegpu-to-visa-pipeline=target=cri | FileCheck %s --check-prefix=VISA

gpu.module @kernels {
  // Scales are vectors, and a lane's elements stay where they are.
  // CHECK-LABEL: gpu.func @scaled
  gpu.func @scaled(%va: vector<16xf8E5M2>, %vb: vector<32xf8E5M2>, %p: vector<1xf8E8M0FNU>, %q: f8E8M0FNU,
                   %x: vector<16xf16>, %o: memref<8x16xf32>, %e: memref<8x32xf8E5M2>) kernel {
    // CHECK: %[[Q:.*]] = vector.broadcast %{{.*}} : f8E8M0FNU to vector<1xf8E8M0FNU>
    // CHECK: xegpu.dpas_mx %{{.*}}, %{{.*}} scale_a = %{{.*}} scale_b = %[[Q]] : (vector<8x2xf8E5M2>, vector<8x1x4xf8E5M2>, vector<1xf8E8M0FNU>, vector<1xf8E8M0FNU>) -> vector<8x1xf32>
    %d = xegpu.dpas_mx %va, %vb scale_a = %p scale_b = %q
      : (vector<16xf8E5M2>, vector<32xf8E5M2>, vector<1xf8E8M0FNU>, f8E8M0FNU) -> vector<8xf32>
    // CHECK: xegpu.truncf %{{.*}} : vector<16xf16> -> vector<16xf8E5M2>
    %t = xegpu.truncf %x : vector<16xf16> -> vector<16xf8E5M2>
    // CHECK: xegpu.lane_shuffle %{{.*}} pack : vector<16xf8E5M2>
    %s = xegpu.lane_shuffle %t pack : vector<16xf8E5M2>
    %do = xegpu.create_nd_tdesc %o : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %d, %do : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
    %de = xegpu.create_nd_tdesc %e : memref<8x32xf8E5M2> -> !xegpu.tensor_desc<8x32xf8E5M2>
    xegpu.store_nd %s, %de : vector<16xf8E5M2>, !xegpu.tensor_desc<8x32xf8E5M2>
    // VISA: visa.bdpas.bf8.bf8.8.8 (M1, 16)
    gpu.return
  }
}
