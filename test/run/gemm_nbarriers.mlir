// C = A x B by one producer and two consumers in each workgroup: subgroup 0 brings packed blocks of B into two buffers in
// shared local memory, subgroups 1 and 2 multiply. Each buffer has a named barrier, at which the producer says that it is
// full. Who has come to one buffer's barrier is done with the other buffer, so the producer may fill that next, and is
// always one block ahead.

// RUN: xegpu-run %s ones:bf16:16x96 ones:bf16:96x32 zeros:f32:16x32 --grid 1,2 --block 3 --print 2 | FileCheck %s
// CHECK: {{^\[\[}}96. 96. 96.
// CHECK-NOT: {{[ \[][0-8]}}

!a_desc = !xegpu.tensor_desc<8x16xbf16>
!b_desc = !xegpu.tensor_desc<16x16xbf16>
!c_desc = !xegpu.tensor_desc<8x16xf32>
!slm_desc = !xegpu.tensor_desc<256xbf16, #xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>>
!a = vector<8x8x2xbf16>
!b = vector<8x16x2xbf16>
!line = vector<256xbf16>
!c = vector<8x16xf32>

gpu.module @kernels {
  gpu.func @gemm(%A: memref<16x96xbf16>, %B: memref<96x32xbf16>, %C: memref<16x32xf32>)
      workgroup(%buffers: memref<512xbf16, 3>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c96 = arith.constant 96 : index
    %c256 = arith.constant 256 : index
    xegpu.alloc_nbarrier 2
    %three = arith.constant 3 : i8
    %y = gpu.block_id y
    %n = arith.muli %y, %c16 : index
    %subgroup = gpu.thread_id x
    %produces = arith.cmpi eq, %subgroup, %c0 : index
    %consumer = arith.subi %subgroup, %c1 : index
    %m = arith.muli %consumer, %c8 : index
    %zero = arith.constant dense<0.0> : !c

    %sum = scf.for %k = %c0 to %c96 step %c16 iter_args(%acc = %zero) -> (!c) {
      %block = arith.divui %k, %c16 : index
      %which = arith.remui %block, %c2 : index
      %id = arith.index_cast %which : index to i8
      %full = xegpu.init_nbarrier %id, %three : i8, i8 -> !xegpu.nbarrier
      %place = arith.muli %which, %c256 : index
      %buffer = xegpu.create_nd_tdesc %buffers[%place] {mode = vc} : memref<512xbf16, 3> -> !slm_desc
      %next = scf.if %produces -> (!c) {
        %b_desc = xegpu.create_nd_tdesc %B[%k, %n] {mode = vc} : memref<96x32xbf16> -> !b_desc
        %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0} : !b_desc -> !b
        %line = vector.shape_cast %b : !b to !line
        xegpu.store_nd %line, %buffer {mode = vc} : !line, !slm_desc
        xegpu.fence {scope = workgroup, memory_kind = shared}
        xegpu.nbarrier_arrive %full
        xegpu.nbarrier_wait %full
        scf.yield %acc : !c
      } else {
        %a_desc = xegpu.create_nd_tdesc %A[%m, %k] {mode = vc} : memref<16x96xbf16> -> !a_desc
        %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !a_desc -> !a
        xegpu.nbarrier_arrive %full
        xegpu.nbarrier_wait %full
        %line = xegpu.load_nd %buffer {mode = vc} : !slm_desc -> !line
        %b = vector.shape_cast %line : !line to !b
        %more = xegpu.dpas %acc, %a, %b {mode = vc} : !c, !a, !b -> !c
        scf.yield %more : !c
      }
      scf.yield %next : !c
    }
    scf.if %produces {
    } else {
      %c_desc = xegpu.create_nd_tdesc %C[%m, %n] {mode = vc} : memref<16x32xf32> -> !c_desc
      xegpu.store_nd %sum, %c_desc {mode = vc} : !c, !c_desc
    }
    gpu.return
  }
}
