// RUN: xegpu-run %s -e main | FileCheck %s

// Pointers that host code passes are those of memrefs.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%src: !llvm.ptr<1>, %n: i32, %dst: !llvm.ptr<1>) kernel {
      %c64 = arith.constant 64 : i32
      %c1 = arith.constant 1 : i32
      %c8 = arith.constant 8 : i32
      %c0 = arith.constant 0 : i32
      %lane = xevm.lane_id : i32
      %v = xevm.blockload2d %src, %c64, %c8, %c64, %c0, %c0 <{elem_size_in_bits = 32 : i32, tile_width = 16 : i32, tile_height = 8 : i32, v_blocks = 1 : i32, transpose = false, pack_register = false}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi32>
      %own = arith.addi %lane, %n : i32
      %each = vector.broadcast %own : i32 to vector<8xi32>
      %w = arith.addi %v, %each : vector<8xi32>
      xevm.blockstore2d %dst, %c64, %c8, %c64, %c0, %c0, %w <{elem_size_in_bits = 32 : i32, tile_width = 16 : i32, tile_height = 8 : i32}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32, vector<8xi32>)
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %n = arith.constant 100 : i32
    %five = arith.constant 5 : i32
    %a = gpu.alloc() : memref<8x16xi32>
    %b = gpu.alloc() : memref<8x16xi32>
    memref.store %five, %a[%c1, %c1] : memref<8x16xi32>
    %pa = memref.extract_aligned_pointer_as_index %a : memref<8x16xi32> -> index
    %ia = arith.index_cast %pa : index to i64
    %qa = llvm.inttoptr %ia : i64 to !llvm.ptr
    %ra = llvm.addrspacecast %qa : !llvm.ptr to !llvm.ptr<1>
    %pb = memref.extract_aligned_pointer_as_index %b : memref<8x16xi32> -> index
    %ib = arith.index_cast %pb : index to i64
    %rb = llvm.inttoptr %ib : i64 to !llvm.ptr<1>
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
      args(%ra : !llvm.ptr<1>, %n : i32, %rb : !llvm.ptr<1>)
    %u = memref.cast %b : memref<8x16xi32> to memref<*xi32>
    call @printMemrefI32(%u) : (memref<*xi32>) -> ()
    return
  }
  func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}
}
// CHECK: sizes = [8, 16]
// CHECK-NEXT: [100, 101, 102, {{.*}}115]
// CHECK-NEXT: [100, 106, 102, {{.*}}115]
