// RUN: xegpu-run %s -e main | FileCheck %s

// A block of 32x2 work items is one of 2x2 subgroups. Each adds its number to two lines of its own.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @number(%a: memref<8x16xf32>) kernel {
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c10 = arith.constant 10 : index
      %c16 = arith.constant 16 : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %s = arith.divui %x, %c16 : index
      %down = arith.muli %y, %c4 : index
      %further = arith.muli %s, %c2 : index
      %row = arith.addi %down, %further : index
      %tens = arith.muli %y, %c10 : index
      %n = arith.addi %tens, %s : index
      %i = arith.index_cast %n : index to i32
      %f = arith.sitofp %i : i32 to f32
      %v = vector.broadcast %f : f32 to vector<2x16xf32>
      %d = xegpu.create_nd_tdesc %a : memref<8x16xf32> -> !xegpu.tensor_desc<2x16xf32>
      xegpu.store_nd %v, %d[%row, 0] : vector<2x16xf32>, !xegpu.tensor_desc<2x16xf32>
      gpu.return
    }
  }

  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %a = gpu.alloc () : memref<8x16xf32>
    gpu.launch_func @kernels::@number blocks in (%c1, %c1, %c1) threads in (%c32, %c2, %c1) args(%a : memref<8x16xf32>)
    %host = memref.alloc() : memref<8x16xf32>
    gpu.memcpy %host, %a : memref<8x16xf32>, memref<8x16xf32>
    // CHECK: 0
    // CHECK-NEXT: 0
    // CHECK-NEXT: 1
    // CHECK-NEXT: 1
    // CHECK-NEXT: 10
    // CHECK-NEXT: 10
    // CHECK-NEXT: 11
    // CHECK-NEXT: 11
    scf.for %i = %c0 to %c8 step %c1 {
      %v = memref.load %host[%i, %c8] : memref<8x16xf32>
      vector.print %v : f32
    }
    gpu.dealloc %a : memref<8x16xf32>
    return
  }
}
