// A producer and a consumer in each workgroup: the producer puts numbers into shared local memory, the consumer doubles
// them. Two named barriers, one for "full" and one for "empty", keep them in step over four rounds.

gpu.module @kernels {
  gpu.func @relay(%in: memref<4x64xf32>, %out: memref<4x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %slm = memref.alloc() : memref<64xf32, 3>
    xegpu.alloc_nbarrier 2
    %full_id = arith.constant 0 : i8
    %empty_id = arith.constant 1 : i8
    %two = arith.constant 2 : i8
    %full = xegpu.init_nbarrier %full_id, %two : i8, i8 -> !xegpu.nbarrier
    %empty = xegpu.init_nbarrier %empty_id, %two : i8, i8 -> !xegpu.nbarrier
    %in_line = memref.collapse_shape %in [[0, 1]] : memref<4x64xf32> into memref<256xf32>
    %out_line = memref.collapse_shape %out [[0, 1]] : memref<4x64xf32> into memref<256xf32>
    %shared = xegpu.create_nd_tdesc %slm[0] {mode = vc} : memref<64xf32, 3>
      -> !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>>
    %thread = gpu.thread_id x
    %produces = arith.cmpi eq, %thread, %c0 : index
    scf.for %round = %c0 to %c4 step %c1 {
      %at = arith.muli %round, %c64 : index
      scf.if %produces {
        %from = xegpu.create_nd_tdesc %in_line[%at] {mode = vc}
          : memref<256xf32> -> !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<boundary_check = false>>
        %x = xegpu.load_nd %from {mode = vc}
          : !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<boundary_check = false>> -> vector<64xf32>
        xegpu.store_nd %x, %shared {mode = vc} : vector<64xf32>,
          !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>>
        xegpu.fence {scope = workgroup, memory_kind = shared}
        xegpu.nbarrier_arrive %full
        xegpu.nbarrier_wait %full
        xegpu.nbarrier_arrive %empty
        xegpu.nbarrier_wait %empty
      } else {
        xegpu.nbarrier_arrive %full
        xegpu.nbarrier_wait %full
        %x = xegpu.load_nd %shared {mode = vc}
          : !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>> -> vector<64xf32>
        %doubled = arith.addf %x, %x : vector<64xf32>
        %to = xegpu.create_nd_tdesc %out_line[%at] {mode = vc}
          : memref<256xf32> -> !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<boundary_check = false>>
        xegpu.store_nd %doubled, %to {mode = vc}
          : vector<64xf32>, !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<boundary_check = false>>
        xegpu.nbarrier_arrive %empty
        xegpu.nbarrier_wait %empty
      }
    }
    gpu.return
  }
}
