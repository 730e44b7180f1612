// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Named barriers and fences.

gpu.module @m {
  // CHECK-LABEL: gpu.func @named({{.*}}NBarrierCnt = 2 : i64
  // CHECK: visa.mov (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.nbarrier_signal 0x1:ub [[V0]](0,0)<0;1,0>
  // CHECK-NEXT: visa.nbarrier_wait 0x1:ub
  gpu.func @named(%threads: i8) kernel {
    xegpu.alloc_nbarrier 2
    %one = arith.constant 1 : i8
    %barrier = xegpu.init_nbarrier %one, %threads : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %barrier
    xegpu.nbarrier_wait %barrier
    gpu.return
  }

  // CHECK-LABEL: gpu.func @fences(
  // CHECK: visa.lsc_fence.slm.none.group
  // CHECK-NEXT: visa.lsc_fence.ugm.none.gpu
  gpu.func @fences() kernel {
    xegpu.fence {scope = workgroup, memory_kind = shared}
    xegpu.fence {scope = gpu, memory_kind = global}
    xegpu.compile_hint
    gpu.return
  }
}
