// What Xe-HPG lacks.

// RUN: xegpu-opt %s --xegpu-verify-target=target=dg2 --split-input-file --verify-diagnostics
// RUN: not xegpu-opt --xegpu-verify-target=target=gtx --split-input-file %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: 'builtin.module' op unknown target 'gtx'; there are pvc, pvcxt, dg2, bmg, lnl, ptl, cri, any, virtual

gpu.module @m {
  gpu.func @blocks(%m: memref<64x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    // expected-error @+2 {{requires 2D block messages, which target 'dg2' does not support}}
    // expected-note @+1 {{use 1D or scattered descriptors}}
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    // expected-error @+2 {{requires 2D block messages, which target 'dg2' does not support}}
    // expected-note @+1 {{use 1D or scattered descriptors}}
    xegpu.store_nd %x, %d {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @numbers(%a: vector<8xf64>, %f: vector<8xf32>, %h: vector<8xf16>, %i: vector<8xi32>) kernel {
    // expected-error @+2 {{target 'dg2' does not divide f64}}
    // expected-note @+1 {{use f32}}
    %0 = arith.divf %a, %a : vector<8xf64>
    %1 = arith.truncf %f : vector<8xf32> to vector<8xtf32>
    %2 = arith.truncf %h : vector<8xf16> to vector<8xf8E5M2>
    %3 = arith.divsi %i, %i : vector<8xi32>
    %c8 = arith.constant dense<8> : vector<8xi32>
    %4 = arith.divsi %i, %c8 : vector<8xi32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @matrices(%a: vector<8x8x2xf16>, %b: vector<8x8x2xf16>, %t: vector<8x8xtf32>, %u: vector<8x8xtf32>) kernel {
    // expected-error @+2 {{target 'dg2' supports only f32 accumulators for hf}}
    // expected-note @+1 {{use f32 and truncate the result}}
    %0 = xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<8x8x2xf16> -> vector<8x8xf16>
    // expected-error @+2 {{target 'dg2' does not support precision tf32}}
    // expected-note @+1 {{it supports u2, s2, u4, s4, u8, s8, bf, hf}}
    %1 = xegpu.dpas %t, %u {mode = vc} : vector<8x8xtf32>, vector<8x8xtf32> -> vector<8x8xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @barriers(%id: i8) kernel {
    // expected-error @+2 {{target 'dg2' does not support named barriers}}
    // expected-note @+1 {{use gpu.barrier}}
    xegpu.alloc_nbarrier 4
    // expected-error @+2 {{target 'dg2' does not support named barriers}}
    // expected-note @+1 {{use gpu.barrier}}
    %0 = xegpu.init_nbarrier %id, %id : i8, i8 -> !xegpu.nbarrier
    gpu.return
  }
}

// -----

// expected-error @+3 {{requires 65 KiB of shared local memory, but target 'dg2' has 64 KiB}}
// expected-note @+2 {{allocations in shared local memory are live until the workgroup ends}}
gpu.module @m {
  gpu.func @shared() workgroup(%s: memref<16385xf32, 3>) kernel {
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @gathers(%m: memref<4096xf32>, %o: vector<32xindex>, %mask: vector<32xi1>) kernel {
    %0 = xegpu.create_tdesc %m, %o {mode = vc}
      : memref<4096xf32>, vector<32xindex> -> !xegpu.tensor_desc<32xf32, #xegpu.scattered>
    // expected-error @+2 {{has 32 lanes, but a message on target 'dg2' supports at most 16}}
    // expected-note @+1 {{xegpu-legalize splits it}}
    %x = xegpu.load_gather %0, %mask {mode = vc}
      : !xegpu.tensor_desc<32xf32, #xegpu.scattered>, vector<32xi1> -> vector<32xf32>
    gpu.return
  }
}
