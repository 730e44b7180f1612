// RUN: xegpu-run %s arange:f32:8 zeros:f32:8 --engine=both --print 1 | FileCheck %s
// RUN: xegpu-run %s arange:f32:8 zeros:f32:8 --engine=reference --print 1 | FileCheck %s
// RUN: sed 's/kernel {/kernel attributes {xegpu.subgroup_size = 16 : i32} {/' %s | xegpu-run - arange:f32:8 zeros:f32:8 --engine=both --print 1 | FileCheck %s

// Ops of `affine` in a function that a kernel calls, and a prefetch of an element, which is a hint.

// CHECK: [1. 2. 3. 4. 5. 6. 7. 8.]
gpu.module @m {
  func.func private @increment(%x: memref<8xf32>, %y: memref<8xf32>) {
    %one = arith.constant 1.0 : f32
    affine.for %i = 0 to 8 {
      %a = affine.load %x[%i] : memref<8xf32>
      %b = arith.addf %a, %one : f32
      affine.store %b, %y[%i] : memref<8xf32>
    }
    return
  }
  gpu.func @k(%x: memref<8xf32>, %y: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    memref.prefetch %x[%c0], read, locality<3>, data : memref<8xf32>
    func.call @increment(%x, %y) : (memref<8xf32>, memref<8xf32>) -> ()
    gpu.return
  }
}
