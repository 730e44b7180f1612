// A product of i4, of which B is given by columns: arguments are packed for the launch, and their rows are even.
// RUN: xegpu-run %s ones:i4:8x64 ones:ui4:16x64 zeros:i32:8x16 --print 2 | FileCheck %s
// RUN: xegpu-run %s ones:i4:8x64 ones:ui4:16x64 zeros:i32:8x16 --engine=reference --print 2 | FileCheck %s
// CHECK: [64 64 64 {{.*}}64]

gpu.module @kernels {
  gpu.func @product(%a: memref<8x64xi4>, %b: memref<16x64xi4>, %c: memref<8x16xi32>) kernel {
    %at = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<8x64xi4> -> !xegpu.tensor_desc<8x64xi4>
    %bt = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<16x64xi4> -> !xegpu.tensor_desc<16x64xi4>
    %ct = xegpu.create_nd_tdesc %c[0, 0] {mode = vc} : memref<8x16xi32> -> !xegpu.tensor_desc<8x16xi32>
    %x = xegpu.load_nd %at {mode = vc} : !xegpu.tensor_desc<8x64xi4> -> vector<8x64xi4>
    %y = xegpu.load_nd %bt {mode = vc, transpose = [1, 0], transpose_bit_width = 32}
      : !xegpu.tensor_desc<16x64xi4> -> vector<8x16x8xi4>
    %z = xegpu.dpas %x, %y {mode = vc} : vector<8x64xi4>, vector<8x16x8xi4> -> vector<8x16xi32>
    xegpu.store_nd %z, %ct {mode = vc} : vector<8x16xi32>, !xegpu.tensor_desc<8x16xi32>
    gpu.return
  }
}
