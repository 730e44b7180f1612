// Barriers, fences, labels and jumps.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s --mlir-print-op-generic | xegpu-opt | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @waits()
  gpu.func @waits() kernel attributes {visa.attributes = {NBarrierCnt = 2 : i64, SimdSize = 16 : i64}} {
    %B = visa.decl "B", ub x 128, align = GRF
    // CHECK: visa.barrier
    visa.barrier
    // CHECK: visa.sbarrier_signal
    visa.sbarrier_signal
    // CHECK: visa.sbarrier_wait
    visa.sbarrier_wait
    // CHECK: visa.nbarrier_signal 0x1:ub 0x10:ub
    visa.nbarrier_signal 0x1:ub 0x10:ub
    // CHECK: visa.nbarrier_signal %B(0,0)<0;1,0> %B(0,1)<0;1,0>
    visa.nbarrier_signal %B(0,0)<0;1,0> %B(0,1)<0;1,0>
    // CHECK: visa.nbarrier_wait 0x1:ub
    visa.nbarrier_wait 0x1:ub
    // CHECK: visa.lsc_fence.ugm.evict.gpu
    visa.lsc_fence.ugm.evict.gpu
    // CHECK: visa.lsc_fence.slm.none.group
    visa.lsc_fence.slm.none.group
    // CHECK: visa.fence_sw
    visa.fence_sw
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @jumps()
  gpu.func @jumps() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %P = visa.decl_pred "P", 16
    %S = visa.decl_pred "S", 1
    // CHECK: visa.label L0
    visa.label L0
    // CHECK: visa.goto (M1, 16, !%P) L1
    visa.goto (M1, 16, !%P) L1
    // CHECK: visa.jmp (M1, 1, %S) L0
    visa.jmp (M1, 1, %S) L0
    // CHECK: visa.jmp (M1, 1, %P any) L0
    visa.jmp (M1, 1, %P any) L0
    // CHECK: visa.jmp (M1, 1, !%P all) L1
    visa.jmp (M1, 1, !%P all) L1
    // CHECK: visa.label L1
    visa.label L1
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }
}
