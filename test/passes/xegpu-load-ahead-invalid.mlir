// RUN: xegpu-opt %s --xegpu-load-ahead='grf=128' --verify-diagnostics

!x = !xegpu.tensor_desc<32x16xf32>

gpu.module @m {
  gpu.func @too_much(%X: memref<?x?xf32>, %Y: memref<?x?xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : vector<32x64xf32>
    %x = xegpu.create_nd_tdesc %X[0, 0] {mode = vc} : memref<?x?xf32> -> !x
    // expected-error @below {{'scf.for' op cannot load ahead: it carries 128 registers, and 32 more would hold what it loads, but a thread has 128}}
    // expected-note @below {{smaller steps or tiles require fewer registers}}
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (vector<32x64xf32>) {
      %v = xegpu.load_nd %x {mode = vc} : !x -> vector<32x16xf32>
      %w = vector.insert_strided_slice %v, %s {offsets = [0, 0], strides = [1, 1]} : vector<32x16xf32> into vector<32x64xf32>
      %a = math.absf %w : vector<32x64xf32>
      scf.yield %a : vector<32x64xf32>
    }
    %y = xegpu.create_nd_tdesc %Y[0, 0] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<32x64xf32>
    xegpu.store_nd %r, %y {mode = vc} : vector<32x64xf32>, !xegpu.tensor_desc<32x64xf32>
    gpu.return
  }
}
