// xegpu-to-visa makes the checks of xegpu-verify-target.

// RUN: xegpu-opt %s --xegpu-to-visa --split-input-file --verify-diagnostics

gpu.module @m {
  gpu.func @rows(%a: vector<16x8x2xf16>, %b: vector<8x16x2xf16>) kernel {
    // expected-error @+2 {{has 16 rows, but the repeat count is at most 8}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %0 = xegpu.dpas %a, %b {mode = vc} : vector<16x8x2xf16>, vector<8x16x2xf16> -> vector<16x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @matrices(%m: memref<4x64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0, 0] {mode = vc} : memref<4x64x64xf32> -> !xegpu.tensor_desc<2x8x16xf32>
    // expected-error @+2 {{of a block of 3 dimensions is not supported}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<2x8x16xf32> -> vector<2x8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @transposed(%m: memref<4x64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0, 0] {mode = vc} : memref<4x64x64xf32> -> !xegpu.tensor_desc<1x8x16xf32>
    // expected-error @+2 {{cannot transpose a block of 3 dimensions}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %x = xegpu.load_nd %d {transpose = [0, 2, 1], mode = vc} : !xegpu.tensor_desc<1x8x16xf32> -> vector<1x16x8xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @within_a_unit(%m: memref<64x64xf16>, %column: index) kernel {
    %d = xegpu.create_nd_tdesc %m[0, %column] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    // expected-error @+2 {{transposes units of 32 bits, but is not known to begin at a multiple of them}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %x = xegpu.load_nd %d {transpose = [1, 0], transpose_bit_width = 32, mode = vc}
      : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @integers(%x: vector<16xi32>) kernel {
    // expected-error @+2 {{conversion between integers and f8E5M2 is not supported}}
    // expected-note @+1 {{xegpu-legalize rewrites it}}
    %y = arith.sitofp %x : vector<16xi32> to vector<16xf8E5M2>
    gpu.return
  }
}
