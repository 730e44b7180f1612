// C += A x B with K split among workgroups: each of the four in z multiplies a quarter of K, and adds its tile to C by
// atomic messages, one row of 16 lanes at a time.

// RUN: xegpu-run %s ones:bf16:16x256 ones:bf16:256x32 ones:f32:16x32 --grid 2,2,4 --print 2 | FileCheck %s
// CHECK: {{^\[\[}}257. 257. 257.
// CHECK: 257. 257. 257.]]

!a_desc = !xegpu.tensor_desc<8x16xbf16>
!b_desc = !xegpu.tensor_desc<16x16xbf16>
!row_desc = !xegpu.tensor_desc<16xf32, #xegpu.scattered>
!a = vector<8x8x2xbf16>
!b = vector<8x16x2xbf16>
!c = vector<8x16xf32>
!row = vector<16xf32>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<16x256xbf16>, %B: memref<256x32xbf16>, %C: memref<16x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %z = gpu.block_id z
    %m = arith.muli %x, %c8 : index
    %n = arith.muli %y, %c16 : index
    %k_first = arith.muli %z, %c64 : index
    %k_end = arith.addi %k_first, %c64 : index
    %zero = arith.constant dense<0.0> : !c
    %sum = scf.for %k = %k_first to %k_end step %c16 iter_args(%acc = %zero) -> (!c) {
      %a_desc = xegpu.create_nd_tdesc %A[%m, %k] {mode = vc} : memref<16x256xbf16> -> !a_desc
      %b_desc = xegpu.create_nd_tdesc %B[%k, %n] {mode = vc} : memref<256x32xbf16> -> !b_desc
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !a_desc -> !a
      %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
      %more = xegpu.dpas %acc, %a, %b {mode = vc} : !c, !a, !b -> !c
      scf.yield %more : !c
    }
    %c_line = memref.collapse_shape %C [[0, 1]] : memref<16x32xf32> into memref<512xf32>
    %row_start = arith.muli %m, %c32 : index
    %start = arith.addi %row_start, %n : index
    %starts = vector.broadcast %start : index to vector<16xindex>
    %lanes = vector.step : vector<16xindex>
    %first = arith.addi %starts, %lanes : vector<16xindex>
    %one_row = arith.constant dense<32> : vector<16xindex>
    %all = arith.constant dense<true> : vector<16xi1>
    %d0 = xegpu.create_tdesc %c_line, %first {mode = vc} : memref<512xf32>, vector<16xindex> -> !row_desc
    %row0 = vector.extract %sum[0] : !row from !c
    %old0 = xegpu.atomic_rmw addf, %row0, %d0, %all {mode = vc} : !row, !row_desc, vector<16xi1> -> !row
    %d1 = xegpu.update_offset %d0, %one_row {mode = vc} : !row_desc, vector<16xindex> -> !row_desc
    %row1 = vector.extract %sum[1] : !row from !c
    %old1 = xegpu.atomic_rmw addf, %row1, %d1, %all {mode = vc} : !row, !row_desc, vector<16xi1> -> !row
    %d2 = xegpu.update_offset %d1, %one_row {mode = vc} : !row_desc, vector<16xindex> -> !row_desc
    %row2 = vector.extract %sum[2] : !row from !c
    %old2 = xegpu.atomic_rmw addf, %row2, %d2, %all {mode = vc} : !row, !row_desc, vector<16xi1> -> !row
    %d3 = xegpu.update_offset %d2, %one_row {mode = vc} : !row_desc, vector<16xindex> -> !row_desc
    %row3 = vector.extract %sum[3] : !row from !c
    %old3 = xegpu.atomic_rmw addf, %row3, %d3, %all {mode = vc} : !row, !row_desc, vector<16xi1> -> !row
    %d4 = xegpu.update_offset %d3, %one_row {mode = vc} : !row_desc, vector<16xindex> -> !row_desc
    %row4 = vector.extract %sum[4] : !row from !c
    %old4 = xegpu.atomic_rmw addf, %row4, %d4, %all {mode = vc} : !row, !row_desc, vector<16xi1> -> !row
    %d5 = xegpu.update_offset %d4, %one_row {mode = vc} : !row_desc, vector<16xindex> -> !row_desc
    %row5 = vector.extract %sum[5] : !row from !c
    %old5 = xegpu.atomic_rmw addf, %row5, %d5, %all {mode = vc} : !row, !row_desc, vector<16xi1> -> !row
    %d6 = xegpu.update_offset %d5, %one_row {mode = vc} : !row_desc, vector<16xindex> -> !row_desc
    %row6 = vector.extract %sum[6] : !row from !c
    %old6 = xegpu.atomic_rmw addf, %row6, %d6, %all {mode = vc} : !row, !row_desc, vector<16xi1> -> !row
    %d7 = xegpu.update_offset %d6, %one_row {mode = vc} : !row_desc, vector<16xindex> -> !row_desc
    %row7 = vector.extract %sum[7] : !row from !c
    %old7 = xegpu.atomic_rmw addf, %row7, %d7, %all {mode = vc} : !row, !row_desc, vector<16xi1> -> !row
    gpu.return
  }
}
