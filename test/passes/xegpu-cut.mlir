// RUN: xegpu-opt %s --xegpu-cut=target=pvc --xegpu-dce | FileCheck %s

// The pass divides blocks and vectors, and leaves arithmetic on formats without instructions.

gpu.module @kernels {
// CHECK-LABEL: @sum
// CHECK: xegpu.create_nd_tdesc %{{.*}}[0, 0] {{.*}} -> !xegpu.tensor_desc<32x16xbf16>
// CHECK: xegpu.create_nd_tdesc %{{.*}}[32, 0] {{.*}} -> !xegpu.tensor_desc<32x16xbf16>
// CHECK-COUNT-2: xegpu.load_nd %{{.*}} -> vector<32x16xbf16>
// CHECK: arith.addf {{.*}} : vector<{{[0-9]+}}x16xbf16>
// CHECK-COUNT-8: xegpu.store_nd {{.*}} : vector<8x16xbf16>
gpu.func @sum(%m: memref<64x64xbf16>) kernel {
  %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xbf16> -> !xegpu.tensor_desc<64x16xbf16>
  %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xbf16> -> vector<64x16xbf16>
  %y = arith.addf %x, %x : vector<64x16xbf16>
  xegpu.store_nd %y, %d {mode = vc} : vector<64x16xbf16>, !xegpu.tensor_desc<64x16xbf16>
  gpu.return
}
}
