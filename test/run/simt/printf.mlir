// RUN: xegpu-run %s arange:f32:40 --block 20 --engine both | FileCheck %s
// RUN: xegpu-run %s arange:f32:40 --block 20 --engine reference | FileCheck %s

// Work items print under divergence, each subgroup's lines together.
// CHECK: item 0 has 0.00
// CHECK-NEXT: item 7 has 7.00
// CHECK-NEXT: item 14 has 14.00
// CHECK-NOT: item
gpu.module @m {
  gpu.func @k(%x: memref<40xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : index
    %id = gpu.thread_id x
    %v = memref.load %x[%id] : memref<40xf32>
    %left = arith.remui %id, %c7 : index
    %here = arith.cmpi eq, %left, %c0 : index
    scf.if %here {
      gpu.printf "item %d has %.2f\n", %id, %v : index, f32
    }
    gpu.return
  }
}
