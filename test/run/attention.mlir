// Flash attention forward for one head: softmax(Q K^T / 8) V for 64 queries and 1024 keys of 64 dimensions, in bf16 with
// f32 accumulation. A subgroup has 8 queries, and goes through the keys 16 at a time.

// RUN: xegpu-run %s randn:bf16:64x64:seed=1 randn:bf16:1024x64:seed=2 randn:bf16:1024x64:seed=3 zeros:f32:64x64 --grid 8 --registers 256 --strict-grf --stats | FileCheck %s
// CHECK: dpas {{ *}}4096

gpu.module @kernels {
  gpu.func @attention(%Q: memref<64x64xbf16>, %K: memref<1024x64xbf16>, %V: memref<1024x64xbf16>,
                      %O: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %keys = arith.constant 1024 : index
    %group = gpu.block_id x
    %row = arith.muli %group, %c8 : index

    %q_desc = xegpu.create_nd_tdesc %Q[%row, 0] {mode = vc}
      : memref<64x64xbf16> -> !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
    %q_desc1 = xegpu.create_nd_tdesc %Q[%row, 32] {mode = vc}
      : memref<64x64xbf16> -> !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
    %q01 = xegpu.load_nd %q_desc {mode = vc}
      : !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<array_length = 2>> -> vector<2x8x16xbf16>
    %q23 = xegpu.load_nd %q_desc1 {mode = vc}
      : !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<array_length = 2>> -> vector<2x8x16xbf16>
    %q0 = vector.extract %q01[0] : vector<8x16xbf16> from vector<2x8x16xbf16>
    %q1 = vector.extract %q01[1] : vector<8x16xbf16> from vector<2x8x16xbf16>
    %q2 = vector.extract %q23[0] : vector<8x16xbf16> from vector<2x8x16xbf16>
    %q3 = vector.extract %q23[1] : vector<8x16xbf16> from vector<2x8x16xbf16>

    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %zeros = arith.constant dense<0.0> : vector<8xf32>
    %least = arith.constant dense<0xFF800000> : vector<8xf32>
    %scale = arith.constant dense<0.125> : vector<8x16xf32>

    %r:6 = scf.for %key = %c0 to %keys step %c16
        iter_args(%o0 = %zero, %o1 = %zero, %o2 = %zero, %o3 = %zero, %most = %least, %sum = %zeros)
        -> (vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8xf32>, vector<8xf32>) {
      // Scores: one load that transposes pairs of bf16 gives K^T in VNNI layout.
      %k0_desc = xegpu.create_nd_tdesc %K[%key, 0] {mode = vc} : memref<1024x64xbf16> -> !xegpu.tensor_desc<16x16xbf16>
      %k1_desc = xegpu.create_nd_tdesc %K[%key, 16] {mode = vc} : memref<1024x64xbf16> -> !xegpu.tensor_desc<16x16xbf16>
      %k2_desc = xegpu.create_nd_tdesc %K[%key, 32] {mode = vc} : memref<1024x64xbf16> -> !xegpu.tensor_desc<16x16xbf16>
      %k3_desc = xegpu.create_nd_tdesc %K[%key, 48] {mode = vc} : memref<1024x64xbf16> -> !xegpu.tensor_desc<16x16xbf16>
      %k0_pairs = xegpu.load_nd %k0_desc {transpose = [1, 0], transpose_bit_width = 32, mode = vc}
        : !xegpu.tensor_desc<16x16xbf16> -> vector<8x32xbf16>
      %k1_pairs = xegpu.load_nd %k1_desc {transpose = [1, 0], transpose_bit_width = 32, mode = vc}
        : !xegpu.tensor_desc<16x16xbf16> -> vector<8x32xbf16>
      %k2_pairs = xegpu.load_nd %k2_desc {transpose = [1, 0], transpose_bit_width = 32, mode = vc}
        : !xegpu.tensor_desc<16x16xbf16> -> vector<8x32xbf16>
      %k3_pairs = xegpu.load_nd %k3_desc {transpose = [1, 0], transpose_bit_width = 32, mode = vc}
        : !xegpu.tensor_desc<16x16xbf16> -> vector<8x32xbf16>
      %k0 = vector.shape_cast %k0_pairs : vector<8x32xbf16> to vector<8x16x2xbf16>
      %k1 = vector.shape_cast %k1_pairs : vector<8x32xbf16> to vector<8x16x2xbf16>
      %k2 = vector.shape_cast %k2_pairs : vector<8x32xbf16> to vector<8x16x2xbf16>
      %k3 = vector.shape_cast %k3_pairs : vector<8x32xbf16> to vector<8x16x2xbf16>
      %s0 = xegpu.dpas %q0, %k0 {mode = vc} : vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %s1 = xegpu.dpas %s0, %q1, %k1 {mode = vc}
        : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %s2 = xegpu.dpas %s1, %q2, %k2 {mode = vc}
        : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %s3 = xegpu.dpas %s2, %q3, %k3 {mode = vc}
        : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %scores = arith.mulf %s3, %scale : vector<8x16xf32>

      // The running maximum, and the factor by which earlier sums are scaled when it grows.
      %new_most = vector.multi_reduction <maximumf>, %scores, %most [1] : vector<8x16xf32> to vector<8xf32>
      %change = arith.subf %most, %new_most : vector<8xf32>
      %alpha = math.exp %change : vector<8xf32>
      %most_column = vector.shape_cast %new_most : vector<8xf32> to vector<8x1xf32>
      %mosts = vector.broadcast %most_column : vector<8x1xf32> to vector<8x16xf32>
      %shifted = arith.subf %scores, %mosts : vector<8x16xf32>
      %p = math.exp %shifted : vector<8x16xf32>
      %scaled_sum = arith.mulf %sum, %alpha : vector<8xf32>
      %new_sum = vector.multi_reduction <add>, %p, %scaled_sum [1] : vector<8x16xf32> to vector<8xf32>
      %alpha_column = vector.shape_cast %alpha : vector<8xf32> to vector<8x1xf32>
      %alphas = vector.broadcast %alpha_column : vector<8x1xf32> to vector<8x16xf32>
      %p16 = arith.truncf %p : vector<8x16xf32> to vector<8x16xbf16>

      %v0_desc = xegpu.create_nd_tdesc %V[%key, 0] {mode = vc}
        : memref<1024x64xbf16> -> !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
      %v2_desc = xegpu.create_nd_tdesc %V[%key, 32] {mode = vc}
        : memref<1024x64xbf16> -> !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
      %v01 = xegpu.load_nd %v0_desc {vnni_axis = 0, mode = vc}
        : !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>> -> vector<2x8x16x2xbf16>
      %v23 = xegpu.load_nd %v2_desc {vnni_axis = 0, mode = vc}
        : !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>> -> vector<2x8x16x2xbf16>
      %v0 = vector.extract %v01[0] : vector<8x16x2xbf16> from vector<2x8x16x2xbf16>
      %v1 = vector.extract %v01[1] : vector<8x16x2xbf16> from vector<2x8x16x2xbf16>
      %v2 = vector.extract %v23[0] : vector<8x16x2xbf16> from vector<2x8x16x2xbf16>
      %v3 = vector.extract %v23[1] : vector<8x16x2xbf16> from vector<2x8x16x2xbf16>
      %o0_scaled = arith.mulf %o0, %alphas : vector<8x16xf32>
      %o1_scaled = arith.mulf %o1, %alphas : vector<8x16xf32>
      %o2_scaled = arith.mulf %o2, %alphas : vector<8x16xf32>
      %o3_scaled = arith.mulf %o3, %alphas : vector<8x16xf32>
      %o0_new = xegpu.dpas %o0_scaled, %p16, %v0 {mode = vc}
        : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %o1_new = xegpu.dpas %o1_scaled, %p16, %v1 {mode = vc}
        : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %o2_new = xegpu.dpas %o2_scaled, %p16, %v2 {mode = vc}
        : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %o3_new = xegpu.dpas %o3_scaled, %p16, %v3 {mode = vc}
        : vector<8x16xf32>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      scf.yield %o0_new, %o1_new, %o2_new, %o3_new, %new_most, %new_sum
        : vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8xf32>, vector<8xf32>
    }

    %sum_column = vector.shape_cast %r#5 : vector<8xf32> to vector<8x1xf32>
    %sums = vector.broadcast %sum_column : vector<8x1xf32> to vector<8x16xf32>
    %out0 = arith.divf %r#0, %sums : vector<8x16xf32>
    %out1 = arith.divf %r#1, %sums : vector<8x16xf32>
    %out2 = arith.divf %r#2, %sums : vector<8x16xf32>
    %out3 = arith.divf %r#3, %sums : vector<8x16xf32>
    %o0_desc = xegpu.create_nd_tdesc %O[%row, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %o1_desc = xegpu.create_nd_tdesc %O[%row, 16] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %o2_desc = xegpu.create_nd_tdesc %O[%row, 32] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %o3_desc = xegpu.create_nd_tdesc %O[%row, 48] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %out0, %o0_desc {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %out1, %o1_desc {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %out2, %o2_desc {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %out3, %o3_desc {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
