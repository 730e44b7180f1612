// Steps of the Collatz sequence of the numbers 1 to N, one to a work item: each lane turns as often as it has to. The
// last subgroup is not full.

// RUN: xegpu-run %s zeros:i32:27 --block 27 --print 0 | FileCheck %s
// RUN: xegpu-run %s zeros:i32:27 --grid 3 --block 9 --print 0 | FileCheck %s
// CHECK: [  0   1   7   2   5   8  16   3  19   6  14   9   9  17  17   4  12  20
// CHECK-NEXT: 20   7   7  15  15  10  23  10 111]

gpu.module @kernels {
  gpu.func @collatz(%out: memref<?xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %zero = arith.constant 0 : i32
    %item = gpu.global_id x
    %i = arith.index_cast %item : index to i32
    %n = arith.addi %i, %one : i32
    %end:2 = scf.while (%x = %n, %steps = %zero) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi ne, %x, %one : i32
      scf.condition(%more) %x, %steps : i32, i32
    } do {
    ^bb0(%x: i32, %steps: i32):
      %low = arith.andi %x, %one : i32
      %odd = arith.trunci %low : i32 to i1
      %next = scf.if %odd -> i32 {
        %t = arith.muli %x, %three : i32
        %u = arith.addi %t, %one : i32
        scf.yield %u : i32
      } else {
        %h = arith.shrui %x, %one : i32
        scf.yield %h : i32
      }
      %more = arith.addi %steps, %one : i32
      scf.yield %next, %more : i32, i32
    }
    memref.store %end#1, %out[%item] : memref<?xi32>
    gpu.return
  }
}
