// Kernels written in place, in any dialect; local memory whose size the launch says.
// RUN: xegpu-run %s -e main | FileCheck %s
// RUN: xegpu-run %s -e main --engine=both | FileCheck %s

module attributes {gpu.container_module} {
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %seven = arith.constant 7 : i32
    %a = gpu.alloc () : memref<8x16xi32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
      %row = arith.muli %bx, %c4 : index
      %m = arith.addi %row, %tx : index
      %to = xegpu.create_nd_tdesc %a[%m, %c0] {mode = vc} : memref<8x16xi32> -> !xegpu.tensor_desc<1x16xi32>
      %number = arith.index_cast %m : index to i32
      %sum = arith.addi %number, %seven : i32
      %v = vector.broadcast %sum : i32 to vector<1x16xi32>
      xegpu.store_nd %v, %to {mode = vc} : vector<1x16xi32>, !xegpu.tensor_desc<1x16xi32>
      gpu.terminator
    }
    // CHECK: sizes = [8, 16]
    // CHECK-NEXT: 7,   7,
    // CHECK-NEXT: {{^}} [8,   8,
    // CHECK-COUNT-5: {{^}} [
    // CHECK-NEXT: {{^}} [14,   14,
    %cast = memref.cast %a : memref<8x16xi32> to memref<*xi32>
    call @printMemrefI32(%cast) : (memref<*xi32>) -> ()

    %b = gpu.alloc () : memref<16xi32>
    %bytes = arith.constant 64 : i32
    gpu.launch_func @kernels::@through_local blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        dynamic_shared_memory_size %bytes args(%a : memref<8x16xi32>, %b : memref<16xi32>)
    %flat = memref.cast %b : memref<16xi32> to memref<*xi32>
    // CHECK: [10,  10,  10,  10,
    call @printMemrefI32(%flat) : (memref<*xi32>) -> ()
    return
  }

  gpu.module @kernels {
    gpu.func @through_local(%a: memref<8x16xi32>, %b: memref<16xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %local = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %words = memref.view %local[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<16xi32, #gpu.address_space<workgroup>>
      %v = vector.load %a[%c3, %c0] : memref<8x16xi32>, vector<16xi32>
      vector.store %v, %words[%c0] : memref<16xi32, #gpu.address_space<workgroup>>, vector<16xi32>
      %w = vector.load %words[%c0] : memref<16xi32, #gpu.address_space<workgroup>>, vector<16xi32>
      vector.store %w, %b[%c0] : memref<16xi32>, vector<16xi32>
      gpu.return
    }
  }

  func.func private @printMemrefI32(memref<*xi32>)
}
