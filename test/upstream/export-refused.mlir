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

// -----

!halves = !xegpu.tensor_desc<8x32xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 2]>>

gpu.module @kernels {
  gpu.func @map(%a: memref<64x64xf16>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] : memref<64x64xf16> -> !halves
    // expected-error @+2 {{'xegpu.load_nd' op cannot be exported: its #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 2]> does not leave elements where upstream's lane level has them}}
    // expected-note @+1 {{there wi_layout is [1, 16]}}
    %v = xegpu.load_nd %d : !halves -> vector<8x2xf16>
    gpu.return
  }
}

// -----

!turned = !xegpu.tensor_desc<16x16xf16, #xegpu.sg_map<wi_layout = [16, 1], wi_data = [1, 1]>>

gpu.module @kernels {
  gpu.func @turned(%a: memref<64x64xf16>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] : memref<64x64xf16> -> !turned
    // expected-error @+2 {{'xegpu.load_nd' op cannot be exported: its #xegpu.sg_map<wi_layout = [16, 1], wi_data = [1, 1]> does not leave elements where upstream's lane level has them}}
    // expected-note @+1 {{or [16, 1] of what is transposed}}
    %v = xegpu.load_nd %d {transpose = [1, 0]} : !turned -> vector<16x1xf16>
    gpu.return
  }
}

// -----

!rows = !xegpu.tensor_desc<8x16xf32, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>

gpu.module @kernels {
  gpu.func @rows(%a: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] : memref<64x64xf32> -> !rows
    // expected-error @+2 {{does not leave elements where upstream's lane level has them}}
    // expected-note @+1 {{or [16, 1] of what is transposed}}
    %v = xegpu.load_nd %d {transpose = [1, 0]} : !rows -> vector<1x8xf32>
    gpu.return
  }
}

// -----

!bytes = !xegpu.tensor_desc<8x32xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>

gpu.module @kernels {
  gpu.func @factor(%a: memref<64x64xi8>, %b: vector<8x1x4xi8>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] : memref<64x64xi8> -> !bytes
    // expected-error @+2 {{'xegpu.load_nd' op cannot be exported}}
    // expected-note @+1 {{there wi_layout is [1, 16]}}
    %v = xegpu.load_nd %d : !bytes -> vector<8x2xi8>
    %p = xegpu.dpas %v, %b : vector<8x2xi8>, vector<8x1x4xi8> -> vector<8x1xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @sum(%a: vector<8x16xbf16>, %b: vector<8x16x2xbf16>, %c: vector<8x16xbf16>) kernel {
    // expected-error @below {{'xegpu.dpas' op cannot be exported: its accumulator, vector<8x16xbf16>, differs from its result, vector<8x16xf32>}}
    %d = xegpu.dpas %c, %a, %b {mode = vc} : vector<8x16xbf16>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @whole(%a: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-error @below {{'xegpu.load_nd' op cannot be exported: all work items have the whole block, as its descriptor has no sg_map}}
    // expected-note @below {{give it an sg_map}}
    %v = xegpu.load_nd %d : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----

!eight = !xegpu.tensor_desc<8x8xf32, #xegpu.sg_map<wi_layout = [1, 8], wi_data = [1, 1]>>
gpu.module @kernels {
  gpu.func @eight_lanes(%a: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] : memref<64x64xf32> -> !eight
    // expected-error @below {{'xegpu.load_nd' op cannot be exported: its sg_map is of 8 work items, not 16}}
    %v = xegpu.load_nd %d : !eight -> vector<8x1xf32>
    gpu.return
  }
}
