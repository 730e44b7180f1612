// RUN: xegpu-opt %s --split-input-file --export-upstream --verify-diagnostics

gpu.module @kernels {
  gpu.func @tiles(%a: memref<64x64xf32>) kernel {
    // expected-error @+2 {{'xetile.init_tile' op cannot be exported: upstream has no tiles}}
    // expected-note @+1 {{lower the kernel first, by --xetile-to-xegpu-pipeline}}
    %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<32x32xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @mixed(%a: vector<8x32xi8>, %b: vector<8x16x4xui8>) kernel {
    // expected-error @+1 {{'xegpu.dpas' op cannot be exported: it multiplies i8 by ui8, which upstream does not mix}}
    %d = xegpu.dpas %a, %b {mode = vc} : vector<8x32xi8>, vector<8x16x4xui8> -> vector<8x16xi32>
    gpu.return
  }
}
