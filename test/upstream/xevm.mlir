// RUN: xegpu-opt %s --import-upstream | FileCheck %s

gpu.module @kernels [#xevm.target] {
  llvm.func spir_funccc @_Z12get_group_idj(i32) -> i64

  // A pointer is an argument that is a memref of bytes, and its address in the kernel.
  // CHECK-LABEL: gpu.func @blocks(
  // CHECK-SAME: %[[A:.*]]: memref<?xi8>, %[[N:.*]]: i32) kernel attributes {xegpu.exact_addresses, xegpu.subgroup_size = 16 : i32}
  llvm.func spir_kernelcc @blocks(%a: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, intel_reqd_sub_group_size = 16 : i32} {
    %c8 = llvm.mlir.constant(8 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    // CHECK: %[[P:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
    // CHECK: %[[I:.*]] = arith.index_cast %[[P]] : index to i64
    // CHECK: gpu.block_id x
    %x = llvm.call spir_funccc @_Z12get_group_idj(%c0) : (i32) -> i64
    %at = llvm.trunc %x : i64 to i32
    // What a message takes of the subgroup is what its first lane has.
    // CHECK: %[[R:.*]] = gpu.subgroup_broadcast %[[N]],{{ *}}first_active_lane : i32
    // CHECK: %[[H:.*]] = arith.index_castui %[[R]] : i32 to index
    // CHECK: %[[B:.*]] = gpu.subgroup_broadcast %[[I]],{{ *}}first_active_lane : i64
    // CHECK: %[[D:.*]] = xegpu.create_nd_tdesc %[[B]][%{{.*}}, 0], [%[[H]], 128], [128, 1] : i64 -> !xegpu.tensor_desc<8x16xi16, #xegpu.tdesc_attr<message = true, map = <wi_layout = [1, 16], wi_data = [1, 1]>>>
    // CHECK: xegpu.load_nd %[[D]] : {{.*}} -> vector<8x1xi16>
    %v = xevm.blockload2d %a, %c128, %n, %c128, %c0, %at <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi16>
    // CHECK: xegpu.prefetch_nd
    xevm.blockprefetch2d %a, %c128, %n, %c128, %c0, %at <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, cache_control = #xevm.load_cache_control<Use_Default>}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32)
    // CHECK: xegpu.fence {scope = workgroup, memory_kind = shared}
    xevm.memfence <{addrspace = #xevm.addr_space<shared>, scope = #xevm.mem_scope<workgroup>}>
    xevm.blockstore2d %a, %c128, %n, %c128, %c0, %at, %v <{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 8 : i32}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32, vector<8xi16>)
    // CHECK: gpu.return
    llvm.return
  }

  // Elements are those of a memref at address 0.
  // CHECK-LABEL: gpu.func @elements(
  gpu.func @elements(%a: !llvm.ptr<1>) kernel {
    // CHECK: %[[M:.*]] = builtin.unrealized_conversion_cast %{{.*}} : i64 to memref<?xf32>
    %lane = xevm.lane_id : i32
    // CHECK: %[[E:.*]] = arith.shrui %{{.*}}, %{{.*}} exact : i64
    // CHECK: %[[I:.*]] = arith.index_cast %[[E]] : i64 to index
    // CHECK: memref.load %[[M]][%[[I]]] : memref<?xf32>
    %p = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %w = arith.addf %v, %v : f32
    // CHECK: memref.store %{{.*}}, %[[M]]
    llvm.store %w, %p : f32, !llvm.ptr<1>
    gpu.return
  }
}
