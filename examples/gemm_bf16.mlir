// C = A x B for bf16 matrices with f32 accumulation, in vector compute mode; all are 512x512.
//
// Each subgroup computes a tile of 32 x 32 of C. A workgroup has 4 x 4 subgroups, one to a work item of the block.
// Launch it on a grid of 4,4 workgroups of 4,4. Compile it by `xegpu_py.compile`, or run it as examples/demo.py does.

gpu.module @kernels {
  gpu.func @gemm(%A: memref<512x512xbf16>, %B: memref<512x512xbf16>, %C: memref<512x512xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %sg_rows = arith.constant 32 : index
    %sg_columns = arith.constant 32 : index
    %wg_rows = arith.constant 128 : index
    %wg_columns = arith.constant 128 : index
    %K = arith.constant 512 : index

    %group_x = gpu.block_id x
    %group_y = gpu.block_id y
    %subgroup_x = gpu.thread_id x
    %subgroup_y = gpu.thread_id y
    %m0 = arith.muli %group_x, %wg_rows : index
    %m1 = arith.muli %subgroup_x, %sg_rows : index
    %m = arith.addi %m0, %m1 : index
    %n0 = arith.muli %group_y, %wg_columns : index
    %n1 = arith.muli %subgroup_y, %sg_columns : index
    %n = arith.addi %n0, %n1 : index

    %a_first = xegpu.create_nd_tdesc %A[%m, 0] {mode = vc} : memref<512x512xbf16> -> !xegpu.tensor_desc<32x16xbf16>
    %nb0 = arith.constant 0 : index
    %n_b0 = arith.addi %n, %nb0 : index
    %b0_first = xegpu.create_nd_tdesc %B[0, %n_b0] {mode = vc} : memref<512x512xbf16> -> !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
    %zero = arith.constant dense<0.0> : vector<8x16xf32>

    %r:10 = scf.for %k = %c0 to %K step %c16 iter_args(%acc0_0 = %zero, %acc0_1 = %zero, %acc1_0 = %zero, %acc1_1 = %zero, %acc2_0 = %zero, %acc2_1 = %zero, %acc3_0 = %zero, %acc3_1 = %zero, %a_desc = %a_first, %b0_desc = %b0_first) -> (vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, !xegpu.tensor_desc<32x16xbf16>, !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>>) {
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !xegpu.tensor_desc<32x16xbf16> -> vector<32x8x2xbf16>
      %b0 = xegpu.load_nd %b0_desc {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>> -> vector<2x8x16x2xbf16>
      %a_next = xegpu.update_nd_offset %a_desc, [0, %c16] {mode = vc} : !xegpu.tensor_desc<32x16xbf16> -> !xegpu.tensor_desc<32x16xbf16>
      %b0_next = xegpu.update_nd_offset %b0_desc, [%c16, 0] {mode = vc} : !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>> -> !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
      xegpu.prefetch_nd %a_next {mode = vc, l1_hint = cached, l3_hint = cached} : !xegpu.tensor_desc<32x16xbf16>
      %a_0 = vector.extract_strided_slice %a {offsets = [0, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]} : vector<32x8x2xbf16> to vector<8x8x2xbf16>
      %a_1 = vector.extract_strided_slice %a {offsets = [8, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]} : vector<32x8x2xbf16> to vector<8x8x2xbf16>
      %a_2 = vector.extract_strided_slice %a {offsets = [16, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]} : vector<32x8x2xbf16> to vector<8x8x2xbf16>
      %a_3 = vector.extract_strided_slice %a {offsets = [24, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]} : vector<32x8x2xbf16> to vector<8x8x2xbf16>
      %b_0 = vector.extract %b0[0] : vector<8x16x2xbf16> from vector<2x8x16x2xbf16>
      %b_1 = vector.extract %b0[1] : vector<8x16x2xbf16> from vector<2x8x16x2xbf16>
      %c_0_0 = xegpu.dpas %acc0_0, %a_0, %b_0 {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %c_0_1 = xegpu.dpas %acc0_1, %a_0, %b_1 {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %c_1_0 = xegpu.dpas %acc1_0, %a_1, %b_0 {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %c_1_1 = xegpu.dpas %acc1_1, %a_1, %b_1 {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %c_2_0 = xegpu.dpas %acc2_0, %a_2, %b_0 {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %c_2_1 = xegpu.dpas %acc2_1, %a_2, %b_1 {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %c_3_0 = xegpu.dpas %acc3_0, %a_3, %b_0 {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      %c_3_1 = xegpu.dpas %acc3_1, %a_3, %b_1 {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
      scf.yield %c_0_0, %c_0_1, %c_1_0, %c_1_1, %c_2_0, %c_2_1, %c_3_0, %c_3_1, %a_next, %b0_next : vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>, !xegpu.tensor_desc<32x16xbf16>, !xegpu.tensor_desc<16x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
    }

    %row0 = arith.constant 0 : index
    %column0 = arith.constant 0 : index
    %m0_ = arith.addi %m, %row0 : index
    %n0_ = arith.addi %n, %column0 : index
    %d0 = xegpu.create_nd_tdesc %C[%m0_, %n0_] {mode = vc} : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#0, %d0 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %row1 = arith.constant 0 : index
    %column1 = arith.constant 16 : index
    %m1_ = arith.addi %m, %row1 : index
    %n1_ = arith.addi %n, %column1 : index
    %d1 = xegpu.create_nd_tdesc %C[%m1_, %n1_] {mode = vc} : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#1, %d1 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %row2 = arith.constant 8 : index
    %column2 = arith.constant 0 : index
    %m2_ = arith.addi %m, %row2 : index
    %n2_ = arith.addi %n, %column2 : index
    %d2 = xegpu.create_nd_tdesc %C[%m2_, %n2_] {mode = vc} : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#2, %d2 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %row3 = arith.constant 8 : index
    %column3 = arith.constant 16 : index
    %m3_ = arith.addi %m, %row3 : index
    %n3_ = arith.addi %n, %column3 : index
    %d3 = xegpu.create_nd_tdesc %C[%m3_, %n3_] {mode = vc} : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#3, %d3 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %row4 = arith.constant 16 : index
    %column4 = arith.constant 0 : index
    %m4_ = arith.addi %m, %row4 : index
    %n4_ = arith.addi %n, %column4 : index
    %d4 = xegpu.create_nd_tdesc %C[%m4_, %n4_] {mode = vc} : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#4, %d4 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %row5 = arith.constant 16 : index
    %column5 = arith.constant 16 : index
    %m5_ = arith.addi %m, %row5 : index
    %n5_ = arith.addi %n, %column5 : index
    %d5 = xegpu.create_nd_tdesc %C[%m5_, %n5_] {mode = vc} : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#5, %d5 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %row6 = arith.constant 24 : index
    %column6 = arith.constant 0 : index
    %m6_ = arith.addi %m, %row6 : index
    %n6_ = arith.addi %n, %column6 : index
    %d6 = xegpu.create_nd_tdesc %C[%m6_, %n6_] {mode = vc} : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#6, %d6 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %row7 = arith.constant 24 : index
    %column7 = arith.constant 16 : index
    %m7_ = arith.addi %m, %row7 : index
    %n7_ = arith.addi %n, %column7 : index
    %d7 = xegpu.create_nd_tdesc %C[%m7_, %n7_] {mode = vc} : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %r#7, %d7 {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
