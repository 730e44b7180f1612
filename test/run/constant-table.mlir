// Elements of constant tables of the module, which kernels load at indices that they compute.
// RUN: xegpu-run %s zeros:f32:16 zeros:i32:16 --block 16 --print 0 --print 1 --engine both | filecheck %s
// RUN: xegpu-run %s zeros:f32:16 zeros:i32:16 --block 16 --print 0 --print 1 --engine reference | filecheck %s

// CHECK: [ 1. 2. 4. 8. 16. 32. 64. 128. 1. 2. 4. 8. 16. 32.
// CHECK-NEXT: 64. 128.]
// CHECK: [ 0 1 -2 3 4 5 9 9 0 1 -2 3 4 5 9 9]
gpu.module @k {
  memref.global "private" constant @powers : memref<8xf32> = dense<[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]>
  memref.global "private" constant @rows : memref<2x4xi32> = dense<[[0, 1, -2, 3], [4, 5, 9, 9]]>
  gpu.func @f(%o: memref<16xf32>, %p: memref<16xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %i = gpu.thread_id x
    %c4 = arith.constant 4 : index
    %c7 = arith.constant 7 : index
    %j = arith.andi %i, %c7 : index
    %t = memref.get_global @powers : memref<8xf32>
    %g = memref.load %t[%j] : memref<8xf32>
    memref.store %g, %o[%i] : memref<16xf32>
    %row = arith.divui %j, %c4 : index
    %column = arith.remui %j, %c4 : index
    %u = memref.get_global @rows : memref<2x4xi32>
    %h = memref.load %u[%row, %column] : memref<2x4xi32>
    memref.store %h, %p[%i] : memref<16xi32>
    gpu.return
  }
}
