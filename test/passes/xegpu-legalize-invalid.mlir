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
