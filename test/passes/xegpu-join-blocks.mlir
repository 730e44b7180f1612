// RUN: xegpu-opt %s --xegpu-join-blocks=target=pvc --xegpu-dce | FileCheck %s
// RUN: xegpu-opt %s --xegpu-join-blocks=target=pvc | FileCheck %s --check-prefix=ALONE

// The pass joins blocks, and leaves others at their size.

gpu.module @kernels {
// CHECK-LABEL: @adjacent
// CHECK: %[[D:.*]] = xegpu.create_nd_tdesc %{{.*}}[0, 0] {{.*}} -> !xegpu.tensor_desc<16x16xf16, #xegpu.tdesc_attr<array_length = 2>>
// CHECK: %[[X:.*]] = xegpu.load_nd %[[D]] {{.*}} -> vector<2x16x16xf16>
// CHECK: %[[A:.*]] = vector.extract %[[X]][0]
// CHECK: %[[B:.*]] = vector.extract %[[X]][1]
// CHECK: arith.addf %[[A]], %[[B]] : vector<16x16xf16>
// CHECK: xegpu.store_nd {{.*}} : vector<64x64xf32>
gpu.func @adjacent(%m: memref<64x64xf16>, %out: memref<64x64xf16>, %large: memref<64x64xf32>) kernel {
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %d0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
  %d1 = xegpu.create_nd_tdesc %m[0, 16] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
  %x0 = xegpu.load_nd %d0 {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
  %x1 = xegpu.load_nd %d1 {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
  %sum = arith.addf %x0, %x1 : vector<16x16xf16>
  %o = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
  xegpu.store_nd %sum, %o {mode = vc} : vector<16x16xf16>, !xegpu.tensor_desc<16x16xf16>
  %l = xegpu.create_nd_tdesc %large[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x64xf32>
  xegpu.store_nd %zero, %l {mode = vc} : vector<64x64xf32>, !xegpu.tensor_desc<64x64xf32>
  gpu.return
}
}

// The pass itself removes the right descriptor and what it was moved to, the uses first.
gpu.module @moved {
// ALONE-LABEL: @moved
// ALONE: xegpu.create_nd_tdesc {{.*}}array_length = 2
// ALONE-NEXT: xegpu.update_nd_offset {{.*}}array_length = 2
// ALONE-NEXT: xegpu.load_nd
gpu.func @moved(%m: memref<64x64xf16>, %out: memref<64x64xf16>) kernel {
  %d0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
  %d1 = xegpu.create_nd_tdesc %m[0, 16] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
  %e0 = xegpu.update_nd_offset %d0, [0, 32] {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> !xegpu.tensor_desc<16x16xf16>
  %e1 = xegpu.update_nd_offset %d1, [0, 32] {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> !xegpu.tensor_desc<16x16xf16>
  %x0 = xegpu.load_nd %e0 {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
  %x1 = xegpu.load_nd %e1 {mode = vc} : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
  %sum = arith.addf %x0, %x1 : vector<16x16xf16>
  %o = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
  xegpu.store_nd %sum, %o {mode = vc} : vector<16x16xf16>, !xegpu.tensor_desc<16x16xf16>
  gpu.return
}
}
