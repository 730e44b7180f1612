// C = A x B of tf32 with f32 accumulation: numbers of 32 bits whose lowest 13 are not multiplied. A subgroup computes
// a tile of 16 x 32.

// RUN: xegpu-run %s ones:f32:32x40 ones:f32:40x64 zeros:f32:32x64 --grid 2,2 --print 2 | FileCheck %s
// CHECK: {{^\[\[}}40. 40. 40. {{.*}} 40. 40. 40.]

!a_desc = !xegpu.tensor_desc<16x8xtf32>
!b_desc = !xegpu.tensor_desc<8x16xtf32>
!c_desc = !xegpu.tensor_desc<8x16xf32>
!a = vector<16x8xtf32>
!a_rows = vector<8x8xtf32>
!b = vector<8x16xtf32>
!c = vector<8x16xf32>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<32x40xtf32>, %B: memref<40x64xtf32>, %C: memref<32x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c40 = arith.constant 40 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m0 = arith.muli %x, %c16 : index
    %n0 = arith.muli %y, %c32 : index
    %n1 = arith.addi %n0, %c16 : index
    %zero = arith.constant dense<0.0> : !c
    %a_first = xegpu.create_nd_tdesc %A[%m0, 0] {mode = vc} : memref<32x40xtf32> -> !a_desc
    %b0_first = xegpu.create_nd_tdesc %B[0, %n0] {mode = vc} : memref<40x64xtf32> -> !b_desc
    %b1_first = xegpu.create_nd_tdesc %B[0, %n1] {mode = vc} : memref<40x64xtf32> -> !b_desc
    %r:7 = scf.for %k = %c0 to %c40 step %c8
        iter_args(%acc00 = %zero, %acc01 = %zero, %acc10 = %zero, %acc11 = %zero, %a_desc = %a_first,
                  %b0_desc = %b0_first, %b1_desc = %b1_first)
        -> (!c, !c, !c, !c, !a_desc, !b_desc, !b_desc) {
      %a = xegpu.load_nd %a_desc {mode = vc} : !a_desc -> !a
      %b0 = xegpu.load_nd %b0_desc {mode = vc} : !b_desc -> !b
      %b1 = xegpu.load_nd %b1_desc {mode = vc} : !b_desc -> !b
      %a0 = vector.extract_strided_slice %a {offsets = [0, 0], sizes = [8, 8], strides = [1, 1]}
        : !a to !a_rows
      %a1 = vector.extract_strided_slice %a {offsets = [8, 0], sizes = [8, 8], strides = [1, 1]}
        : !a to !a_rows
      %c0_0 = xegpu.dpas %acc00, %a0, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c0_1 = xegpu.dpas %acc01, %a0, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c1_0 = xegpu.dpas %acc10, %a1, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c1_1 = xegpu.dpas %acc11, %a1, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %a_next = xegpu.update_nd_offset %a_desc, [0, %c8] {mode = vc} : !a_desc -> !a_desc
      %b0_next = xegpu.update_nd_offset %b0_desc, [%c8, 0] {mode = vc} : !b_desc -> !b_desc
      %b1_next = xegpu.update_nd_offset %b1_desc, [%c8, 0] {mode = vc} : !b_desc -> !b_desc
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
