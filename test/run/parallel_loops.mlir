// Parallel loops run in row-major order, and so do their reductions.

// RUN: xegpu-run %s arange:f32:6x5 zeros:f32:6x5 i64:5 zeros:f32:2 --engine=both --print 1 --print 3 | FileCheck %s

// CHECK: 1 =
// CHECK-NEXT: {{\[\[ *0. *1. *2. *3. *4.\]}}
// CHECK-NEXT: {{\[ *0. *0. *0. *0. *0.\]}}
// CHECK-NEXT: {{\[ *0. *11. *12. *13. *14.\]}}
// CHECK: 3 =
// CHECK-NEXT: [150.5 24. ]
gpu.module @kernels {
  gpu.func @sum(%a: memref<6x5xf32>, %o: memref<6x5xf32>, %n: index, %sums: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %half = arith.constant 0.5 : f32
    %less = arith.constant -1.0 : f32
    %r:2 = scf.parallel (%i, %j) = (%c0, %c1) to (%c6, %n) step (%c2, %c1) init (%half, %less) -> (f32, f32) {
      %x = memref.load %a[%i, %j] : memref<6x5xf32>
      memref.store %x, %o[%i, %j] : memref<6x5xf32>
      scf.reduce(%x, %x : f32, f32) {
      ^bb0(%p: f32, %q: f32):
        %s = arith.addf %p, %q : f32
        scf.reduce.return %s : f32
      }, {
      ^bb0(%p: f32, %q: f32):
        %m = arith.maximumf %p, %q : f32
        scf.reduce.return %m : f32
      }
    }
    memref.store %r#0, %sums[%c0] : memref<2xf32>
    memref.store %r#1, %sums[%c1] : memref<2xf32>
    gpu.return
  }
}
