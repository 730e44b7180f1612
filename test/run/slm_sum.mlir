// Sums of 1024 numbers, one to a workgroup of 4 subgroups: each sums a quarter of them, the sums meet in shared local
// memory, and behind the barrier the first subgroup adds them up.

gpu.module @kernels {
  gpu.func @sum(%in: memref<8192xf32>, %out: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %c1024 = arith.constant 1024 : index
    %slm = memref.alloc() : memref<4xf32, 3>
    %group = gpu.block_id x
    %thread = gpu.thread_id x
    %group_first = arith.muli %group, %c1024 : index
    %thread_first = arith.muli %thread, %c256 : index
    %first = arith.addi %group_first, %thread_first : index
    %from = xegpu.create_nd_tdesc %in[%first] {mode = vc}
      : memref<8192xf32> -> !xegpu.tensor_desc<256xf32, #xegpu.tdesc_attr<boundary_check = false>>
    %x = xegpu.load_nd %from {mode = vc}
      : !xegpu.tensor_desc<256xf32, #xegpu.tdesc_attr<boundary_check = false>> -> vector<256xf32>
    %part = vector.reduction <add>, %x : vector<256xf32> into f32
    memref.store %part, %slm[%thread] : memref<4xf32, 3>
    gpu.barrier
    %is_first = arith.cmpi eq, %thread, %c0 : index
    scf.if %is_first {
      %zero = arith.constant 0.0 : f32
      %total = scf.for %i = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> f32 {
        %one = memref.load %slm[%i] : memref<4xf32, 3>
        %next = arith.addf %sum, %one : f32
        scf.yield %next : f32
      }
      memref.store %total, %out[%group] : memref<8xf32>
    }
    gpu.return
  }
}
