// C = A x B of f16 with tiles of 32 x 64, the largest that a subgroup can hold: the accumulators alone take 128 of 256
// registers.

// RUN: xegpu-run %s ones:f16:64x48 ones:f16:48x128 zeros:f32:64x128 --grid 2,2 --registers 256 --strict-grf --print 2 | FileCheck %s
// CHECK: {{^\[\[}}48. 48. 48. {{.*}} 48. 48. 48.]

!a_desc = !xegpu.tensor_desc<32x16xf16>
!b_desc = !xegpu.tensor_desc<16x16xf16>
!c_desc = !xegpu.tensor_desc<8x16xf32>
!a = vector<32x8x2xf16>
!a_rows = vector<8x8x2xf16>
!b = vector<8x16x2xf16>
!c = vector<8x16xf32>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<64x48xf16>, %B: memref<48x128xf16>, %C: memref<64x128xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m0 = arith.muli %x, %c32 : index
    %n0 = arith.muli %y, %c64 : index
    %n1 = arith.addi %n0, %c16 : index
    %n2 = arith.addi %n0, %c32 : index
    %n3 = arith.addi %n0, %c48 : index
    %zero = arith.constant dense<0.0> : !c
    %a_first = xegpu.create_nd_tdesc %A[%m0, 0] {mode = vc} : memref<64x48xf16> -> !a_desc
    %b0_first = xegpu.create_nd_tdesc %B[0, %n0] {mode = vc} : memref<48x128xf16> -> !b_desc
    %b1_first = xegpu.create_nd_tdesc %B[0, %n1] {mode = vc} : memref<48x128xf16> -> !b_desc
    %b2_first = xegpu.create_nd_tdesc %B[0, %n2] {mode = vc} : memref<48x128xf16> -> !b_desc
    %b3_first = xegpu.create_nd_tdesc %B[0, %n3] {mode = vc} : memref<48x128xf16> -> !b_desc
    %r:21 = scf.for %k = %c0 to %c48 step %c16
        iter_args(%acc00 = %zero, %acc01 = %zero, %acc02 = %zero, %acc03 = %zero, %acc10 = %zero, %acc11 = %zero,
                  %acc12 = %zero, %acc13 = %zero, %acc20 = %zero, %acc21 = %zero, %acc22 = %zero, %acc23 = %zero,
                  %acc30 = %zero, %acc31 = %zero, %acc32 = %zero, %acc33 = %zero, %a_desc = %a_first,
                  %b0_desc = %b0_first, %b1_desc = %b1_first, %b2_desc = %b2_first, %b3_desc = %b3_first)
        -> (!c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !a_desc, !b_desc, !b_desc, !b_desc,
            !b_desc) {
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !a_desc -> !a
      %b0 = xegpu.load_nd %b0_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
      %b1 = xegpu.load_nd %b1_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
      %b2 = xegpu.load_nd %b2_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
      %b3 = xegpu.load_nd %b3_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
      %a0 = vector.extract_strided_slice %a {offsets = [0, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]}
        : !a to !a_rows
      %a1 = vector.extract_strided_slice %a {offsets = [8, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]}
        : !a to !a_rows
      %a2 = vector.extract_strided_slice %a {offsets = [16, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]}
        : !a to !a_rows
      %a3 = vector.extract_strided_slice %a {offsets = [24, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]}
        : !a to !a_rows
      %c0_0 = xegpu.dpas %acc00, %a0, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c0_1 = xegpu.dpas %acc01, %a0, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c0_2 = xegpu.dpas %acc02, %a0, %b2 {mode = vc} : !c, !a_rows, !b -> !c
      %c0_3 = xegpu.dpas %acc03, %a0, %b3 {mode = vc} : !c, !a_rows, !b -> !c
      %c1_0 = xegpu.dpas %acc10, %a1, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c1_1 = xegpu.dpas %acc11, %a1, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c1_2 = xegpu.dpas %acc12, %a1, %b2 {mode = vc} : !c, !a_rows, !b -> !c
      %c1_3 = xegpu.dpas %acc13, %a1, %b3 {mode = vc} : !c, !a_rows, !b -> !c
      %c2_0 = xegpu.dpas %acc20, %a2, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c2_1 = xegpu.dpas %acc21, %a2, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c2_2 = xegpu.dpas %acc22, %a2, %b2 {mode = vc} : !c, !a_rows, !b -> !c
      %c2_3 = xegpu.dpas %acc23, %a2, %b3 {mode = vc} : !c, !a_rows, !b -> !c
      %c3_0 = xegpu.dpas %acc30, %a3, %b0 {mode = vc} : !c, !a_rows, !b -> !c
      %c3_1 = xegpu.dpas %acc31, %a3, %b1 {mode = vc} : !c, !a_rows, !b -> !c
      %c3_2 = xegpu.dpas %acc32, %a3, %b2 {mode = vc} : !c, !a_rows, !b -> !c
      %c3_3 = xegpu.dpas %acc33, %a3, %b3 {mode = vc} : !c, !a_rows, !b -> !c
      %a_next = xegpu.update_nd_offset %a_desc, [0, %c16] {mode = vc} : !a_desc -> !a_desc
      %b0_next = xegpu.update_nd_offset %b0_desc, [%c16, 0] {mode = vc} : !b_desc -> !b_desc
      %b1_next = xegpu.update_nd_offset %b1_desc, [%c16, 0] {mode = vc} : !b_desc -> !b_desc
      %b2_next = xegpu.update_nd_offset %b2_desc, [%c16, 0] {mode = vc} : !b_desc -> !b_desc
      %b3_next = xegpu.update_nd_offset %b3_desc, [%c16, 0] {mode = vc} : !b_desc -> !b_desc
      scf.yield %c0_0, %c0_1, %c0_2, %c0_3, %c1_0, %c1_1, %c1_2, %c1_3, %c2_0, %c2_1, %c2_2, %c2_3, %c3_0, %c3_1,
                %c3_2, %c3_3, %a_next, %b0_next, %b1_next, %b2_next, %b3_next
        : !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !c, !a_desc, !b_desc, !b_desc, !b_desc,
          !b_desc
    }
    %m1 = arith.addi %m0, %c8 : index
    %m2 = arith.addi %m0, %c16 : index
    %m3 = arith.addi %m0, %c24 : index
    %d00 = xegpu.create_nd_tdesc %C[%m0, %n0] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#0, %d00 {mode = vc} : !c, !c_desc
    %d01 = xegpu.create_nd_tdesc %C[%m0, %n1] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#1, %d01 {mode = vc} : !c, !c_desc
    %d02 = xegpu.create_nd_tdesc %C[%m0, %n2] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#2, %d02 {mode = vc} : !c, !c_desc
    %d03 = xegpu.create_nd_tdesc %C[%m0, %n3] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#3, %d03 {mode = vc} : !c, !c_desc
    %d10 = xegpu.create_nd_tdesc %C[%m1, %n0] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#4, %d10 {mode = vc} : !c, !c_desc
    %d11 = xegpu.create_nd_tdesc %C[%m1, %n1] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#5, %d11 {mode = vc} : !c, !c_desc
    %d12 = xegpu.create_nd_tdesc %C[%m1, %n2] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#6, %d12 {mode = vc} : !c, !c_desc
    %d13 = xegpu.create_nd_tdesc %C[%m1, %n3] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#7, %d13 {mode = vc} : !c, !c_desc
    %d20 = xegpu.create_nd_tdesc %C[%m2, %n0] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#8, %d20 {mode = vc} : !c, !c_desc
    %d21 = xegpu.create_nd_tdesc %C[%m2, %n1] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#9, %d21 {mode = vc} : !c, !c_desc
    %d22 = xegpu.create_nd_tdesc %C[%m2, %n2] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#10, %d22 {mode = vc} : !c, !c_desc
    %d23 = xegpu.create_nd_tdesc %C[%m2, %n3] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#11, %d23 {mode = vc} : !c, !c_desc
    %d30 = xegpu.create_nd_tdesc %C[%m3, %n0] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#12, %d30 {mode = vc} : !c, !c_desc
    %d31 = xegpu.create_nd_tdesc %C[%m3, %n1] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#13, %d31 {mode = vc} : !c, !c_desc
    %d32 = xegpu.create_nd_tdesc %C[%m3, %n2] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#14, %d32 {mode = vc} : !c, !c_desc
    %d33 = xegpu.create_nd_tdesc %C[%m3, %n3] {mode = vc} : memref<64x128xf32> -> !c_desc
    xegpu.store_nd %r#15, %d33 {mode = vc} : !c, !c_desc
    gpu.return
  }
}
