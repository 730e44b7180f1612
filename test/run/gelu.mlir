// C = gelu(A x B + bias) in bf16, with ragged sizes: A is 100x104, B is 104x136.

gpu.module @kernels {
  gpu.func @gelu(%A: memref<100x104xbf16>, %B: memref<104x136xbf16>, %bias: memref<144xf32>,
                 %C: memref<100x136xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %K = arith.constant 104 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c8 : index
    %n = arith.muli %y, %c16 : index
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %product = scf.for %k = %c0 to %K step %c16 iter_args(%acc = %zero) -> vector<8x16xf32> {
      %a_desc = xegpu.create_nd_tdesc %A[%m, %k] {mode = vc} : memref<100x104xbf16> -> !xegpu.tensor_desc<8x16xbf16>
      %b_desc = xegpu.create_nd_tdesc %B[%k, %n] {mode = vc} : memref<104x136xbf16> -> !xegpu.tensor_desc<16x16xbf16>
      %a = xegpu.load_nd %a_desc {vnni_axis = 1, mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x8x2xbf16>
      %b = xegpu.load_nd %b_desc {vnni_axis = 0, mode = vc} : !xegpu.tensor_desc<16x16xbf16> -> vector<8x16x2xbf16>
      %next = xegpu.dpas %acc, %a, %b {mode = vc}
        : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      scf.yield %next : vector<8x16xf32>
    }
    %bias_desc = xegpu.create_nd_tdesc %bias[%n] {mode = vc}
      : memref<144xf32> -> !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>
    %bias_row = xegpu.load_nd %bias_desc {mode = vc}
      : !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>> -> vector<16xf32>
    %biases = vector.broadcast %bias_row : vector<16xf32> to vector<8x16xf32>
    %z = arith.addf %product, %biases : vector<8x16xf32>
    %root_half = arith.constant dense<0.70710678> : vector<8x16xf32>
    %half = arith.constant dense<0.5> : vector<8x16xf32>
    %one = arith.constant dense<1.0> : vector<8x16xf32>
    %scaled = arith.mulf %z, %root_half : vector<8x16xf32>
    %e = math.erf %scaled : vector<8x16xf32>
    %e1 = arith.addf %e, %one : vector<8x16xf32>
    %hz = arith.mulf %z, %half : vector<8x16xf32>
    %g = arith.mulf %hz, %e1 : vector<8x16xf32>
    %g16 = arith.truncf %g : vector<8x16xf32> to vector<8x16xbf16>
    %c_desc = xegpu.create_nd_tdesc %C[%m, %n] {mode = vc} : memref<100x136xbf16> -> !xegpu.tensor_desc<8x16xbf16>
    xegpu.store_nd %g16, %c_desc {mode = vc} : vector<8x16xbf16>, !xegpu.tensor_desc<8x16xbf16>
    gpu.return
  }
}
