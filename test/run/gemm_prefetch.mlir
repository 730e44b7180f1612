// C = A x B twice, with blocks prefetched two steps ahead: @moved keeps its descriptors and moves them by
// update_nd_offset, @fresh makes new ones in each step. Both give the same bits. What is prefetched beyond the end of a
// matrix is nothing.

// RUN: xegpu-run %s --kernel moved ones:bf16:64x80 ones:bf16:80x48 zeros:f32:64x48 --grid 8,3 --print 2 | FileCheck %s
// RUN: xegpu-run %s --kernel fresh ones:bf16:64x80 ones:bf16:80x48 zeros:f32:64x48 --grid 8,3 --print 2 | FileCheck %s
// CHECK: {{^\[\[}}80. 80. 80. {{.*}} 80. 80. 80.]

!a_desc = !xegpu.tensor_desc<8x16xbf16>
!b_desc = !xegpu.tensor_desc<16x16xbf16>
!c_desc = !xegpu.tensor_desc<8x16xf32>
!a = vector<8x8x2xbf16>
!b = vector<8x16x2xbf16>
!c = vector<8x16xf32>

gpu.module @kernels {
  gpu.func @moved(%A: memref<64x80xbf16>, %B: memref<80x48xbf16>, %C: memref<64x48xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c80 = arith.constant 80 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c8 : index
    %n = arith.muli %y, %c16 : index
    %a_first = xegpu.create_nd_tdesc %A[%m, 0] {mode = vc} : memref<64x80xbf16> -> !a_desc
    %b_first = xegpu.create_nd_tdesc %B[0, %n] {mode = vc} : memref<80x48xbf16> -> !b_desc
    %zero = arith.constant dense<0.0> : !c
    %r:3 = scf.for %k = %c0 to %c80 step %c16 iter_args(%acc = %zero, %a_desc = %a_first, %b_desc = %b_first)
        -> (!c, !a_desc, !b_desc) {
      %a_ahead = xegpu.update_nd_offset %a_desc, [0, %c32] {mode = vc} : !a_desc -> !a_desc
      %b_ahead = xegpu.update_nd_offset %b_desc, [%c32, 0] {mode = vc} : !b_desc -> !b_desc
      xegpu.prefetch_nd %a_ahead {mode = vc, l1_hint = cached, l3_hint = cached} : !a_desc
      xegpu.prefetch_nd %b_ahead {mode = vc, l1_hint = cached, l3_hint = cached} : !b_desc
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1, l1_hint = cached, l3_hint = cached} : !a_desc -> !a
      %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0, l1_hint = cached, l3_hint = cached} : !b_desc -> !b
      %more = xegpu.dpas %acc, %a, %b {mode = vc} : !c, !a, !b -> !c
      %a_next = xegpu.update_nd_offset %a_desc, [0, %c16] {mode = vc} : !a_desc -> !a_desc
      %b_next = xegpu.update_nd_offset %b_desc, [%c16, 0] {mode = vc} : !b_desc -> !b_desc
      scf.yield %more, %a_next, %b_next : !c, !a_desc, !b_desc
    }
    %c_desc = xegpu.create_nd_tdesc %C[%m, %n] {mode = vc} : memref<64x48xf32> -> !c_desc
    xegpu.store_nd %r#0, %c_desc {mode = vc, l1_hint = uncached, l3_hint = write_back} : !c, !c_desc
    gpu.return
  }

  gpu.func @fresh(%A: memref<64x80xbf16>, %B: memref<80x48xbf16>, %C: memref<64x48xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c80 = arith.constant 80 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c8 : index
    %n = arith.muli %y, %c16 : index
    %zero = arith.constant dense<0.0> : !c
    %sum = scf.for %k = %c0 to %c80 step %c16 iter_args(%acc = %zero) -> (!c) {
      %ahead = arith.addi %k, %c32 : index
      %a_ahead = xegpu.create_nd_tdesc %A[%m, %ahead] {mode = vc} : memref<64x80xbf16> -> !a_desc
      %b_ahead = xegpu.create_nd_tdesc %B[%ahead, %n] {mode = vc} : memref<80x48xbf16> -> !b_desc
      xegpu.prefetch_nd %a_ahead {mode = vc, l1_hint = cached, l3_hint = cached} : !a_desc
      xegpu.prefetch_nd %b_ahead {mode = vc, l1_hint = cached, l3_hint = cached} : !b_desc
      %a_desc = xegpu.create_nd_tdesc %A[%m, %k] {mode = vc} : memref<64x80xbf16> -> !a_desc
      %b_desc = xegpu.create_nd_tdesc %B[%k, %n] {mode = vc} : memref<80x48xbf16> -> !b_desc
      %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1, l1_hint = cached, l3_hint = cached} : !a_desc -> !a
      %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0, l1_hint = cached, l3_hint = cached} : !b_desc -> !b
      %more = xegpu.dpas %acc, %a, %b {mode = vc} : !c, !a, !b -> !c
      scf.yield %more : !c
    }
    %c_desc = xegpu.create_nd_tdesc %C[%m, %n] {mode = vc} : memref<64x48xf32> -> !c_desc
    xegpu.store_nd %sum, %c_desc {mode = vc, l1_hint = uncached, l3_hint = write_back} : !c, !c_desc
    gpu.return
  }
}
