// Rows of a table chosen by an index of each work item; indices below zero give zeros, and four elements are moved at
// once.

// RUN: xegpu-run %s randn:f16:50x12:seed=1 arange:i32:40 zeros:f16:40x12 --grid 2 --block 20 --print 2 | FileCheck %s
// CHECK: {{\[\[ 3.4570e-01  8.2178e-01}}

gpu.module @kernels {
  gpu.func @gather(%table: memref<50x12xf16>, %index: memref<?xi32>, %out: memref<?x12xf16>)
      kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c12 = arith.constant 12 : index
    %zero = arith.constant 0 : i32
    %nothing = arith.constant dense<0.0> : vector<4xf16>
    %item = gpu.global_id x
    %i = memref.load %index[%item] : memref<?xi32>
    %there = arith.cmpi sge, %i, %zero : i32
    %row = arith.index_cast %i : i32 to index
    scf.for %j = %c0 to %c12 step %c4 {
      %x = scf.if %there -> vector<4xf16> {
        %found = vector.load %table[%row, %j] : memref<50x12xf16>, vector<4xf16>
        scf.yield %found : vector<4xf16>
      } else {
        scf.yield %nothing : vector<4xf16>
      }
      vector.store %x, %out[%item, %j] : memref<?x12xf16>, vector<4xf16>
    }
    gpu.return
  }
}
