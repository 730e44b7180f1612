// RUN: xegpu-opt %s --xegpu-legalize --split-input-file --verify-diagnostics

gpu.module @m {
  // expected-error @+2 {{'gpu.func' op has xegpu.unaligned = 1 : i64, which does not count arguments}}
  // expected-note @+1 {{write 'xegpu.unaligned = array<i64: 0, 2>', of its 1 arguments from 0}}
  gpu.func @number(%m: memref<?x?xf32>) kernel attributes {xegpu.unaligned = 1} {
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @+2 {{'gpu.func' op has xegpu.unaligned = array<i64: 0, 1>, which does not count arguments}}
  // expected-note @+1 {{of its 1 arguments from 0}}
  gpu.func @too_many(%m: memref<?x?xf32>) kernel attributes {xegpu.unaligned = array<i64: 0, 1>} {
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @nibbles(%m: memref<64x64xi4>) kernel {
    // expected-error @+2 {{'xegpu.create_nd_tdesc' op accesses elements of type i4, which have no addresses}}
    // expected-note @+1 {{xegpu-emulate-narrow-types packs them into bytes}}
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xi4> -> !xegpu.tensor_desc<8x64xi4>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x64xi4> -> vector<8x64xi4>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @rounding(%x: f32, %m: memref<1xf16>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @+2 {{'arith.truncf' op rounds toward zero, which is not supported}}
    // expected-note @+1 {{ops without a rounding mode round to nearest even}}
    %y = arith.truncf %x toward_zero : f32 to f16
    memref.store %y, %m[%c0] : memref<1xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @rounding_of_quotients(%x: f32, %m: memref<1xf8E5M2>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @+2 {{'arith.scaling_truncf' op rounds upward, which is not supported}}
    // expected-note @+1 {{ops without a rounding mode round to nearest even}}
    %y = arith.scaling_truncf %x, %x upward : f32, f32 to f8E5M2
    memref.store %y, %m[%c0] : memref<1xf8E5M2>
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @xegpu.formula.zeta(f64) -> f64
  gpu.func @unknown_function(%x: f64) kernel {
    // expected-error @+2 {{'func.call' op calls 'xegpu.formula.zeta', which is no function of f64}}
    // expected-note @+1 {{such functions are sinpi, cospi, lgamma, }}
    %y = func.call @xegpu.formula.zeta(%x) : (f64) -> f64
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @xegpu.formula.lgamma(f32) -> f32
  gpu.func @single(%x: f32) kernel {
    // expected-error @+2 {{'func.call' op calls 'xegpu.formula.lgamma', which is no function of f64}}
    // expected-note @+1 {{such functions are sinpi, }}
    %y = func.call @xegpu.formula.lgamma(%x) : (f32) -> f32
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @xegpu.formula.hypot.v16(vector<16xf64>) -> vector<16xf64>
  gpu.func @an_operand_less(%x: vector<16xf64>) kernel {
    // expected-error @+2 {{'func.call' op calls 'xegpu.formula.hypot.v16', which is no function of f64 with these operands}}
    // expected-note @+1 {{such functions are sinpi, }}
    %y = func.call @xegpu.formula.hypot.v16(%x) : (vector<16xf64>) -> vector<16xf64>
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @xegpu.formula.j0() -> f64
  gpu.func @no_operand() kernel {
    // expected-error @+2 {{'func.call' op calls 'xegpu.formula.j0', which is no function of f64 with these operands}}
    // expected-note @+1 {{such functions are sinpi, }}
    %y = func.call @xegpu.formula.j0() : () -> f64
    gpu.return
  }
}

// -----

gpu.module @m {
  func.func private @xegpu.formula.hypot(f64, vector<16xf64>) -> vector<16xf64>
  gpu.func @two_shapes(%x: f64, %y: vector<16xf64>) kernel {
    // expected-error @+2 {{'func.call' op calls 'xegpu.formula.hypot', which is no function of f64 with these operands}}
    // expected-note @+1 {{such functions are sinpi, }}
    %z = func.call @xegpu.formula.hypot(%x, %y) : (f64, vector<16xf64>) -> vector<16xf64>
    gpu.return
  }
}
