// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Named barrier 0 is that of the whole workgroup: a kernel that has both numbers its own ones from 1 on.

gpu.module @m {
  // CHECK-LABEL: gpu.func @both({{.*}}NBarrierCnt = 3 : i64
  // CHECK: visa.add (M1_NM, 1) [[V0:%\w+]](0,0)<1> {{%\w+}}(0,0)<0;1,0> 0x1:ub
  // CHECK: visa.nbarrier_signal 0x2:ub 0x4:ub
  // CHECK-NEXT: visa.nbarrier_wait [[V0]](0,0)<0;1,0>
  // CHECK: visa.barrier
  gpu.func @both(%number: i8) kernel {
    xegpu.alloc_nbarrier 2
    %one = arith.constant 1 : i8
    %four = arith.constant 4 : i8
    %0 = xegpu.init_nbarrier %one, %four : i8, i8 -> !xegpu.nbarrier
    %1 = xegpu.init_nbarrier %number, %four : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %0
    xegpu.nbarrier_wait %1
    gpu.barrier
    gpu.return
  }
}
