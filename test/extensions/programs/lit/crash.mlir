// Host code that crashes is an error; what it had printed is there.
// RUN: not xegpu-run %s -e main > %t 2> %t.err
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=ERROR < %t.err
// RUN: not xegpu-run %s -e no_launch 2>&1 | FileCheck %s --check-prefix=BEFORE

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @nothing() kernel {
      gpu.return
    }
  }
  func.func @no_launch() {
        // An index of which the compiler does not know that it is out of bounds.
    %time = call @nanoTime() : () -> i64
    %far = arith.index_cast %time : i64 to index
    %a = memref.get_global @words : memref<4xi32>
    %c0 = arith.constant 0 : index
    %one = arith.trunci %time : i64 to i32
    memref.store %one, %a[%far] : memref<4xi32>
    %x = memref.load %a[%c0] : memref<4xi32>
    vector.print %x : i32
    return
  }
  memref.global "private" @words : memref<4xi32> = dense<1>
  func.func private @nanoTime() -> i64
  func.func @main() {
    %c1 = arith.constant 1 : index
    %x = arith.constant 42 : i32
    // CHECK: 42
    vector.print %x : i32
    gpu.launch_func @kernels::@nothing blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @kernels::@nothing blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    call @no_launch() : () -> ()
    return
  }
}
// ERROR: crash.mlir:27:3: error: host function 'main' crashed with SIGSEGV (segmentation fault) after launch 2, of kernel 'nothing'
// ERROR: note: compiled host code is not checked
// ERROR-NOT: Traceback
// BEFORE: crash.mlir:13:3: error: host function 'no_launch' crashed with SIGSEGV (segmentation fault){{$}}
