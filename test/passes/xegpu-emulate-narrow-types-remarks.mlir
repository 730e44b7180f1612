// RUN: xegpu-opt %s --xegpu-emulate-narrow-types --remarks --verify-diagnostics

// Blocks that may begin within a byte leave the other half of their first and last bytes.

gpu.module @m {
  gpu.func @store(%m: memref<64x64xi4>, %column: index) kernel {
    %x = arith.constant dense<3> : vector<8x16xi4>
    %d = xegpu.create_nd_tdesc %m[0, %column] {mode = vc} : memref<64x64xi4> -> !xegpu.tensor_desc<8x16xi4>
    // expected-remark @below {{updates bytes shared with other elements by compare-and-swap loops: it may begin within a byte}}
    xegpu.store_nd %x, %d {mode = vc} : vector<8x16xi4>, !xegpu.tensor_desc<8x16xi4>
    %e = xegpu.create_nd_tdesc %m[0, 32] {mode = vc} : memref<64x64xi4> -> !xegpu.tensor_desc<8x16xi4>
    xegpu.store_nd %x, %e {mode = vc} : vector<8x16xi4>, !xegpu.tensor_desc<8x16xi4>
    gpu.return
  }
}
