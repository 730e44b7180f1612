// Loops that measure time run as they stand, and a note says what the times are worth. An integer is the exit status.
// RUN: not xegpu-run %s -e main 2> %t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTE < %t.err
// RUN: not xegpu-run %s -e main --stats 2>&1 | FileCheck %s --check-prefix=STATS

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%a: memref<1x16xi32>) kernel {
      %c0 = arith.constant 0 : index
      %one = arith.constant dense<1> : vector<16xi32>
      %v = vector.load %a[%c0, %c0] : memref<1x16xi32>, vector<16xi32>
      %w = arith.addi %v, %one : vector<16xi32>
      vector.store %w, %a[%c0, %c0] : memref<1x16xi32>, vector<16xi32>
      gpu.return
    }
  }
  func.func private @rtclock() -> f64
  func.func @main() -> i32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c100 = arith.constant 100 : index
    %a = gpu.alloc () : memref<1x16xi32>
    %start = call @rtclock() : () -> f64
    scf.for %i = %c0 to %c100 step %c1 {
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<1x16xi32>)
    }
    %end = call @rtclock() : () -> f64
    %passes = arith.cmpf ogt, %end, %start : f64
    // CHECK: 1
    vector.print %passes : i1
    %n = memref.load %a[%c0, %c0] : memref<1x16xi32>
    // CHECK: 100
    vector.print %n : i32
    %three = arith.constant 3 : i32
    return %three : i32
  }
}
// NOTE: note: kernel 'add' was launched 100 times; times that the program measures are those of this simulation
// STATS: launch 1: kernel 'add': 1 hardware threads
// STATS: launch 100: kernel 'add'
