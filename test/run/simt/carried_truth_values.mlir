// Truth values that a loop carries change places: all are read before one is written.

// RUN: xegpu-run %s zeros:i8:2x3 i64:0 --grid 2 --print 0 | FileCheck %s
// RUN: xegpu-run %s zeros:i8:2x3 i64:0 --grid 2 --print 0 --engine reference | FileCheck %s

// CHECK: {{\[}}[0 1 0]
// CHECK-NEXT: [1 0 1]]
gpu.module @kernels {
  gpu.func @swap(%out: memref<2x3xi8>, %s: i64) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %group = gpu.block_id x
    %item = gpu.thread_id x
    %b = arith.index_cast %group : index to i64
    %p = arith.cmpi sle, %s, %b : i64
    %q = arith.cmpi sgt, %item, %c1 : index
    %r:3 = scf.for %i = %c0 to %group step %c1 iter_args(%x = %q, %y = %p, %z = %q) -> (i1, i1, i1) {
      scf.yield %p, %q, %y : i1, i1, i1
    }
    %0 = arith.extui %r#0 : i1 to i8
    %1 = arith.extui %r#1 : i1 to i8
    %2 = arith.extui %r#2 : i1 to i8
    memref.store %0, %out[%group, %c0] : memref<2x3xi8>
    memref.store %1, %out[%group, %c1] : memref<2x3xi8>
    memref.store %2, %out[%group, %c2] : memref<2x3xi8>
    gpu.return
  }
}
