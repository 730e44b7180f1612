// RUN: xegpu-opt %s --split-input-file --verify-diagnostics

// A module has one spelling; the RFC's marks decide.
gpu.module @kernels {
  gpu.func @mixed(%a: memref<64x64xf32>) kernel {
    // expected-error @+2 {{expected '[', but got ':'}}
    // expected-note @+1 {{'xegpu.create_nd_tdesc %a :' is the spelling of upstream MLIR, but 'mode = vc' is that of the RFC: a module has one of them}}
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

// expected-error @+2 {{unknown attribute '#xegpu.layout'}}
// expected-note @+1 {{'#xegpu.layout' is the spelling of upstream MLIR, but 'vnni_axis' is that of the RFC: a module has one of them}}
#wg = #xegpu.layout<sg_layout = [4, 4], sg_data = [16, 16]>

gpu.module @kernels {
  gpu.func @mixed(%a: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d {vnni_axis = 0} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

// A broken rule of upstream's is refused for upstream's reason.
gpu.module @kernels {
  gpu.func @rule(%a: memref<64x64xf32>, %v: vector<8x16xf16>) kernel {
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-error @+1 {{'xegpu.store_nd' op the elements of vector<8x16xf16> differ from the descriptor's, f32}}
    xegpu.store_nd %v, %d[0, 0] : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
