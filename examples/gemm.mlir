// C = A x B for bf16 matrices with f32 accumulation, in vector compute mode: each subgroup computes one 8x16 tile of
// C, 16 columns of A and 16 rows of B at a time. A is MxK, B is KxN, C is MxN.

gpu.module @kernels {
  gpu.func @gemm(%A: memref<1024x1024xbf16>, %B: memref<1024x1024xbf16>, %C: memref<1024x1024xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %K = arith.constant 1024 : index

    %block_row = gpu.block_id x
    %block_column = gpu.block_id y
    %m = arith.muli %block_row, %c8 : index
    %n = arith.muli %block_column, %c16 : index

    %c_desc = xegpu.create_nd_tdesc %C[%m, %n] {mode = vc}
      : memref<1024x1024xf32> -> !xegpu.tensor_desc<8x16xf32>
    %c_init = xegpu.load_nd %c_desc {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>

    %c_tile = scf.for %k = %c0 to %K step %c16 iter_args(%acc = %c_init) -> vector<8x16xf32> {
      %a_desc = xegpu.create_nd_tdesc %A[%m, %k] {mode = vc}
        : memref<1024x1024xbf16> -> !xegpu.tensor_desc<8x16xbf16>
      %b_desc = xegpu.create_nd_tdesc %B[%k, %n] {mode = vc}
        : memref<1024x1024xbf16> -> !xegpu.tensor_desc<16x16xbf16>
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1}
        : !xegpu.tensor_desc<8x16xbf16> -> vector<8x8x2xbf16>
      %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0}
        : !xegpu.tensor_desc<16x16xbf16> -> vector<8x16x2xbf16>
      %sum = xegpu.dpas %acc, %a, %b {mode = vc}
        : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      scf.yield %sum : vector<8x16xf32>
    }

    xegpu.store_nd %c_tile, %c_desc {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
