// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Ids of threads and workgroups, and barriers.

gpu.module @m {
  // CHECK-LABEL: gpu.func @ids(
  // CHECK: visa.mov (M1_NM, 1) [[V0:%\w+]](0,0)<1> %group_id_y(0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<0;1,0> [[V2:%\w+]](0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V3:%\w+]](0,0)<1> [[V4:%\w+]](0,2)<0;1,0> %group_count_d(0,0)<0;1,0>
  gpu.func @ids() kernel {
    %group = gpu.block_id y
    %thread = gpu.thread_id x
    %threads = gpu.block_dim z
    %groups = gpu.grid_dim x
    %sum0 = arith.addi %group, %thread : index
    %sum1 = arith.addi %threads, %groups : index
    gpu.return
  }

  // CHECK-LABEL: gpu.func @place(
  // CHECK: visa.mov (M1_NM, 1) [[V0:%\w+]](0,0)<1> %group_id_x(0,0)<0;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<0;1,0> [[V2:%\w+]](0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V3:%\w+]](0,0)<1> [[V1]](0,0)<0;1,0> [[V4:%\w+]](0,0)<0;1,0>
  // CHECK-NEXT: visa.and (M1_NM, 1) [[V5:%\w+]](0,0)<1> %r0(0,2)<0;1,0> 0xff:ud
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V6:%\w+]](0,0)<1> [[V2]](0,0)<0;1,0> [[V2]](0,1)<0;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V7:%\w+]](0,0)<1> [[V6]](0,0)<0;1,0> [[V2]](0,2)<0;1,0>
  gpu.func @place() kernel {
    %all = gpu.global_id x
    %subgroup = gpu.subgroup_id : index
    %count = gpu.num_subgroups : index
    gpu.return
  }

  // A barrier orders memory too.
  // CHECK-LABEL: gpu.func @meet(
  // CHECK: visa.lsc_fence.slm.none.group
  // CHECK-NEXT: visa.lsc_fence.ugm.none.group
  // CHECK-NEXT: visa.barrier
  gpu.func @meet() kernel {
    gpu.barrier
    gpu.return
  }
}
