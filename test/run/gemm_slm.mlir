// C = A x B, with B staged in shared local memory: the four subgroups of a workgroup compute tiles of 8 x 16 under each
// other, for which all need the same rows of B. Each loads a quarter of them (16 of 64 rows), packed as dpas wants it, and
// puts it where the others find it.

// RUN: xegpu-run %s ones:bf16:64x128 ones:bf16:128x48 zeros:f32:64x48 --grid 2,3 --block 4 --print 2 --stats | FileCheck %s
// CHECK: {{^\[\[}}128. 128. 128. {{.*}} 128. 128. 128.]
// CHECK: slm load bytes{{ +}}98304
// CHECK: slm store bytes{{ +}}24576

!a_desc = !xegpu.tensor_desc<8x16xbf16>
!b_desc = !xegpu.tensor_desc<16x16xbf16>
!c_desc = !xegpu.tensor_desc<8x16xf32>
!slm_desc = !xegpu.tensor_desc<256xbf16, #xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>>
!a = vector<8x8x2xbf16>
!b = vector<8x16x2xbf16>
!line = vector<256xbf16>
!c = vector<8x16xf32>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<64x128xbf16>, %B: memref<128x48xbf16>, %C: memref<64x48xf32>)
      workgroup(%staged: memref<1024xbf16, 3>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %subgroup = gpu.thread_id x
    %m_group = arith.muli %x, %c32 : index
    %m_subgroup = arith.muli %subgroup, %c8 : index
    %m = arith.addi %m_group, %m_subgroup : index
    %n = arith.muli %y, %c16 : index
    %own_row = arith.muli %subgroup, %c16 : index
    %own_place = arith.muli %subgroup, %c256 : index
    %own = xegpu.create_nd_tdesc %staged[%own_place] {mode = vc} : memref<1024xbf16, 3> -> !slm_desc
    %zero = arith.constant dense<0.0> : !c
    %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> (!c) {
      %row = arith.addi %k, %own_row : index
      %b_desc = xegpu.create_nd_tdesc %B[%row, %n] {mode = vc} : memref<128x48xbf16> -> !b_desc
      %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
      %b_line = vector.shape_cast %b : !b to !line
      // All have read the rows before, and all have written the new ones.
      gpu.barrier
      xegpu.store_nd %b_line, %own {mode = vc} : !line, !slm_desc
      gpu.barrier
      %next = scf.for %piece = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (!c) {
        %column = arith.addi %k, %piece : index
        %a_desc = xegpu.create_nd_tdesc %A[%m, %column] {mode = vc} : memref<64x128xbf16> -> !a_desc
        %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !a_desc -> !a
        %place = arith.muli %piece, %c16 : index
        %from = xegpu.create_nd_tdesc %staged[%place] {mode = vc} : memref<1024xbf16, 3> -> !slm_desc
        %line = xegpu.load_nd %from {mode = vc} : !slm_desc -> !line
        %packed = vector.shape_cast %line : !line to !b
        %more = xegpu.dpas %part, %a, %packed {mode = vc} : !c, !a, !b -> !c
        scf.yield %more : !c
      }
      scf.yield %next : !c
    }
    %c_desc = xegpu.create_nd_tdesc %C[%m, %n] {mode = vc} : memref<64x48xf32> -> !c_desc
    xegpu.store_nd %sum, %c_desc {mode = vc} : !c, !c_desc
    gpu.return
  }
}
