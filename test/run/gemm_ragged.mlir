// C = A x B of sizes that are not multiples of a tile: 104 x 72 by 72 x 120. Out-of-bounds elements read as zero and
// are not written, so the kernel needs no bounds checks. A subgroup computes a tile of 32 x 32.

// RUN: xegpu-run %s ones:bf16:104x72 ones:bf16:72x120 zeros:f32:104x120 --grid 4,4 --registers 256 --strict-grf \
// RUN:   --print 2 | FileCheck %s
// CHECK: {{^\[\[}}72. 72. 72. {{.*}} 72. 72. 72.]
// CHECK: {{^ \[}}72. 72. 72. {{.*}} 72. 72. 72.]]

!a_desc = !xegpu.tensor_desc<32x16xbf16>
!b_desc = !xegpu.tensor_desc<16x16xbf16>
!c_desc = !xegpu.tensor_desc<8x16xf32>
!a = vector<32x8x2xbf16>
!a_rows = vector<8x8x2xbf16>
!b = vector<8x16x2xbf16>
!c = vector<8x16xf32>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<104x72xbf16>, %B: memref<72x120xbf16>, %C: memref<104x120xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c32 = arith.constant 32 : index
    %K = arith.constant 72 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c32 : index
    %n = arith.muli %y, %c32 : index
    %n1 = arith.addi %n, %c16 : index
    %zero = arith.constant dense<0.0> : !c
    %a_first = xegpu.create_nd_tdesc %A[%m, 0] {mode = vc} : memref<104x72xbf16> -> !a_desc
    %b0_first = xegpu.create_nd_tdesc %B[0, %n] {mode = vc} : memref<72x120xbf16> -> !b_desc
    %b1_first = xegpu.create_nd_tdesc %B[0, %n1] {mode = vc} : memref<72x120xbf16> -> !b_desc
    %r:11 = scf.for %k = %c0 to %K step %c16
        iter_args(%acc00 = %zero, %acc01 = %zero, %acc10 = %zero, %acc11 = %zero,
                  %acc20 = %zero, %acc21 = %zero, %acc30 = %zero, %acc31 = %zero,
                  %a_desc = %a_first, %b0_desc = %b0_first, %b1_desc = %b1_first)
        -> (!c, !c, !c, !c, !c, !c, !c, !c, !a_desc, !b_desc, !b_desc) {
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !a_desc -> !a
      %b0 = xegpu.load_nd %b0_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
      %b1 = xegpu.load_nd %b1_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
      %a0 = vector.extract_strided_slice %a {offsets = [0, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]} : !a to !a_rows
      %a1 = vector.extract_strided_slice %a {offsets = [8, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]} : !a to !a_rows
      %a2 = vector.extract_strided_slice %a {offsets = [16, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]} : !a to !a_rows
      %a3 = vector.extract_strided_slice %a {offsets = [24, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]} : !a to !a_rows
      %c00 = xegpu.dpas %acc00, %a0, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c01 = xegpu.dpas %acc01, %a0, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c10 = xegpu.dpas %acc10, %a1, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c11 = xegpu.dpas %acc11, %a1, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c20 = xegpu.dpas %acc20, %a2, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c21 = xegpu.dpas %acc21, %a2, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c30 = xegpu.dpas %acc30, %a3, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c31 = xegpu.dpas %acc31, %a3, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %a_next = xegpu.update_nd_offset %a_desc, [0, %c16] {mode = vc} : !a_desc -> !a_desc
      %b0_next = xegpu.update_nd_offset %b0_desc, [%c16, 0] {mode = vc} : !b_desc -> !b_desc
      %b1_next = xegpu.update_nd_offset %b1_desc, [%c16, 0] {mode = vc} : !b_desc -> !b_desc
      scf.yield %c00, %c01, %c10, %c11, %c20, %c21, %c30, %c31, %a_next, %b0_next, %b1_next
        : !c, !c, !c, !c, !c, !c, !c, !c, !a_desc, !b_desc, !b_desc
    }
    %m1 = arith.addi %m, %c8 : index
    %m2 = arith.addi %m, %c16 : index
    %m3 = arith.addi %m, %c24 : index
    %d00 = xegpu.create_nd_tdesc %C[%m, %n] {mode = vc} : memref<104x120xf32> -> !c_desc
    %d01 = xegpu.create_nd_tdesc %C[%m, %n1] {mode = vc} : memref<104x120xf32> -> !c_desc
    %d10 = xegpu.create_nd_tdesc %C[%m1, %n] {mode = vc} : memref<104x120xf32> -> !c_desc
    %d11 = xegpu.create_nd_tdesc %C[%m1, %n1] {mode = vc} : memref<104x120xf32> -> !c_desc
    %d20 = xegpu.create_nd_tdesc %C[%m2, %n] {mode = vc} : memref<104x120xf32> -> !c_desc
    %d21 = xegpu.create_nd_tdesc %C[%m2, %n1] {mode = vc} : memref<104x120xf32> -> !c_desc
    %d30 = xegpu.create_nd_tdesc %C[%m3, %n] {mode = vc} : memref<104x120xf32> -> !c_desc
    %d31 = xegpu.create_nd_tdesc %C[%m3, %n1] {mode = vc} : memref<104x120xf32> -> !c_desc
    xegpu.store_nd %r#0, %d00 {mode = vc} : !c, !c_desc
    xegpu.store_nd %r#1, %d01 {mode = vc} : !c, !c_desc
    xegpu.store_nd %r#2, %d10 {mode = vc} : !c, !c_desc
    xegpu.store_nd %r#3, %d11 {mode = vc} : !c, !c_desc
    xegpu.store_nd %r#4, %d20 {mode = vc} : !c, !c_desc
    xegpu.store_nd %r#5, %d21 {mode = vc} : !c, !c_desc
    xegpu.store_nd %r#6, %d30 {mode = vc} : !c, !c_desc
    xegpu.store_nd %r#7, %d31 {mode = vc} : !c, !c_desc
    gpu.return
  }
}
