// A kernel that fails says in which launch, and from where.
// RUN: not xegpu-run %s -e main > %t 2> %t.err
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=ERROR < %t.err
// RUN: not xegpu-run %s -e main --engine=interpreter 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not xegpu-run %s -e main --check=uninit 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not xegpu-run %s -e shapes 2>&1 | FileCheck %s --check-prefix=SHAPES
// RUN: not xegpu-run %s -e freed 2>&1 | FileCheck %s --check-prefix=FREED
// RUN: xegpu-run %s -e hosts 2>&1 | FileCheck %s --check-prefix=HOSTS
// RUN: not xegpu-run %s -e asserts 2>&1 | FileCheck %s --check-prefix=ASSERT
// RUN: xegpu-run %s -e block 2>&1 | FileCheck %s --check-prefix=BLOCK

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @store(%a: memref<16xf32>, %at: index) kernel {
      %v = arith.constant dense<1.0> : vector<8xf32>
      vector.store %v, %a[%at] : memref<16xf32>, vector<8xf32>
      gpu.return
    }
    gpu.func @known() kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c9 = arith.constant 9 : index
    %a = gpu.alloc () : memref<16xf32>
    gpu.launch_func @kernels::@store blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<16xf32>, %c8 : index)
    // CHECK: launched
    vector.print str "launched\n"
    gpu.launch_func @kernels::@store blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<16xf32>, %c9 : index)
    // CHECK-NOT: again
    vector.print str "again\n"
    return
  }
  func.func @shapes() {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %a = gpu.alloc (%c1) : memref<?xf32>
    %b = memref.alloc (%c8) : memref<?xf32>
    gpu.memcpy %a, %b : memref<?xf32>, memref<?xf32>
    return
  }
  func.func @freed() {
    %a = gpu.alloc () : memref<8xf32>
    gpu.dealloc %a : memref<8xf32>
    gpu.dealloc %a : memref<8xf32>
    return
  }
  func.func @asserts() {
    %no = arith.constant false
    cf.assert %no, "the impossible"
    return
  }
  func.func @block() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@known blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  func.func @hosts() {
    %a = memref.alloc() : memref<8xf32>
    gpu.dealloc %a : memref<8xf32>
    memref.dealloc %a : memref<8xf32>
    return
  }
}
// HOSTS: warning: 'gpu.dealloc' op frees memory that gpu.alloc has not allocated; it stays allocated
// ERROR: fault.mlir:17:7: error: {{.*}}reaching 4 bytes over the end
// ERROR: fault.mlir:32:5: note: in launch 2 of the program, of kernel 'store'
// SHAPES: fault.mlir:42:5: error: 'gpu.memcpy' op copies an array of sizes (8,) to one of (1,)
// FREED: fault.mlir:48:5: error: 'gpu.dealloc' op frees memory that is not allocated
// ASSERT: fault.mlir:53:5: error: assertion failed: the impossible
// BLOCK: fault.mlir:58:5: warning: kernel 'known' promises a known_block_size (4, 1, 1), but is launched with (1, 1, 1); the promise is ignored
