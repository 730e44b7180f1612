// Softmax over the rows of a matrix, one to a subgroup: each work item takes every 16th column, and the work items of a
// subgroup find the largest number and the sum together, one time by a reduction and one time by shuffles.

// RUN: xegpu-run %s randn:f32:8x100:seed=1 zeros:f32:8x100 --grid 4 --block 16,2 --print 1 | FileCheck %s
// CHECK: 0.0

gpu.module @kernels {
  gpu.func @softmax(%in: memref<?x?xf32>, %out: memref<?x?xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %width = arith.constant 16 : i32
    %lowest = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %columns = memref.dim %in, %c1 : memref<?x?xf32>
    %lane = gpu.lane_id
    %rows = gpu.num_subgroups : index
    %group = gpu.block_id x
    %subgroup = gpu.subgroup_id : index
    %first = arith.muli %group, %rows : index
    %row = arith.addi %first, %subgroup : index

    %mine = scf.for %j = %lane to %columns step %c16 iter_args(%m = %lowest) -> f32 {
      %x = memref.load %in[%row, %j] : memref<?x?xf32>
      %next = arith.maximumf %m, %x : f32
      scf.yield %next : f32
    }
    %max = gpu.subgroup_reduce maximumf %mine uniform : (f32) -> f32

    %part = scf.for %j = %lane to %columns step %c16 iter_args(%s = %zero) -> f32 {
      %x = memref.load %in[%row, %j] : memref<?x?xf32>
      %d = arith.subf %x, %max : f32
      %e = math.exp %d : f32
      memref.store %e, %out[%row, %j] : memref<?x?xf32>
      %next = arith.addf %s, %e : f32
      scf.yield %next : f32
    }
    %o8 = arith.constant 8 : i32
    %o4 = arith.constant 4 : i32
    %o2 = arith.constant 2 : i32
    %o1 = arith.constant 1 : i32
    %p8, %v8 = gpu.shuffle xor %part, %o8, %width : f32
    %s8 = arith.addf %part, %p8 : f32
    %p4, %v4 = gpu.shuffle xor %s8, %o4, %width : f32
    %s4 = arith.addf %s8, %p4 : f32
    %p2, %v2 = gpu.shuffle xor %s4, %o2, %width : f32
    %s2 = arith.addf %s4, %p2 : f32
    %p1, %v1 = gpu.shuffle xor %s2, %o1, %width : f32
    %sum = arith.addf %s2, %p1 : f32

    scf.for %j = %lane to %columns step %c16 {
      %e = memref.load %out[%row, %j] : memref<?x?xf32>
      %y = arith.divf %e, %sum : f32
      memref.store %y, %out[%row, %j] : memref<?x?xf32>
    }
    gpu.return
  }
}
