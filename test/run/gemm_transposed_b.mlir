// C = A x B^T of bf16, with B given as N x K: each load transposes 32-bit pairs, which is the transpose and the packing
// that dpas wants in one message. A subgroup computes a tile of 16 x 32.

// RUN: xegpu-run %s ones:bf16:32x64 ones:bf16:64x64 zeros:f32:32x64 --grid 2,2 --print 2 | FileCheck %s
// CHECK: {{^\[\[}}64. 64. 64. {{.*}} 64. 64. 64.]

!a_desc = !xegpu.tensor_desc<16x16xbf16>
!b_desc = !xegpu.tensor_desc<16x16xbf16>
!c_desc = !xegpu.tensor_desc<8x16xf32>
!a = vector<16x8x2xbf16>
!a_rows = vector<8x8x2xbf16>
!b = vector<8x16x2xbf16>
!b_pairs = vector<8x32xbf16>
!c = vector<8x16xf32>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<32x64xbf16>, %B: memref<64x64xbf16>, %C: memref<32x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m0 = arith.muli %x, %c16 : index
    %n0 = arith.muli %y, %c32 : index
    %n1 = arith.addi %n0, %c16 : index
    %zero = arith.constant dense<0.0> : !c
    %a_first = xegpu.create_nd_tdesc %A[%m0, 0] {mode = vc} : memref<32x64xbf16> -> !a_desc
    %b0_first = xegpu.create_nd_tdesc %B[%n0, 0] {mode = vc} : memref<64x64xbf16> -> !b_desc
    %b1_first = xegpu.create_nd_tdesc %B[%n1, 0] {mode = vc} : memref<64x64xbf16> -> !b_desc
    %r:7 = scf.for %k = %c0 to %c64 step %c16
        iter_args(%acc00 = %zero, %acc01 = %zero, %acc10 = %zero, %acc11 = %zero, %a_desc = %a_first,
                  %b0_desc = %b0_first, %b1_desc = %b1_first)
        -> (!c, !c, !c, !c, !a_desc, !b_desc, !b_desc) {
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !a_desc -> !a
      %b0_pairs = xegpu.load_nd %b0_desc {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !b_desc -> !b_pairs
      %b0 = vector.shape_cast %b0_pairs : !b_pairs to !b
      %b1_pairs = xegpu.load_nd %b1_desc {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !b_desc -> !b_pairs
      %b1 = vector.shape_cast %b1_pairs : !b_pairs to !b
      %a0 = vector.extract_strided_slice %a {offsets = [0, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]}
        : !a to !a_rows
      %a1 = vector.extract_strided_slice %a {offsets = [8, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]}
        : !a to !a_rows
      %c0_0 = xegpu.dpas %acc00, %a0, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c0_1 = xegpu.dpas %acc01, %a0, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c1_0 = xegpu.dpas %acc10, %a1, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c1_1 = xegpu.dpas %acc11, %a1, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %a_next = xegpu.update_nd_offset %a_desc, [0, %c16] {mode = vc} : !a_desc -> !a_desc
      %b0_next = xegpu.update_nd_offset %b0_desc, [0, %c16] {mode = vc} : !b_desc -> !b_desc
      %b1_next = xegpu.update_nd_offset %b1_desc, [0, %c16] {mode = vc} : !b_desc -> !b_desc
      scf.yield %c0_0, %c0_1, %c1_0, %c1_1, %a_next, %b0_next, %b1_next
        : !c, !c, !c, !c, !a_desc, !b_desc, !b_desc
    }
    %m1 = arith.addi %m0, %c8 : index
    %d00 = xegpu.create_nd_tdesc %C[%m0, %n0] {mode = vc} : memref<32x64xf32> -> !c_desc
    xegpu.store_nd %r#0, %d00 {mode = vc} : !c, !c_desc
    %d01 = xegpu.create_nd_tdesc %C[%m0, %n1] {mode = vc} : memref<32x64xf32> -> !c_desc
    xegpu.store_nd %r#1, %d01 {mode = vc} : !c, !c_desc
    %d10 = xegpu.create_nd_tdesc %C[%m1, %n0] {mode = vc} : memref<32x64xf32> -> !c_desc
    xegpu.store_nd %r#2, %d10 {mode = vc} : !c, !c_desc
    %d11 = xegpu.create_nd_tdesc %C[%m1, %n1] {mode = vc} : memref<32x64xf32> -> !c_desc
    xegpu.store_nd %r#3, %d11 {mode = vc} : !c, !c_desc
    gpu.return
  }
}
