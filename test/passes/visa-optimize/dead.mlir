// RUN: xegpu-opt %s --visa-optimize='fold=false copies=false schedule=false' | FileCheck %s
// RUN: xegpu-opt %s --visa-optimize='fold=false copies=false dead=false' | FileCheck %s --check-prefix=OFF

gpu.module @kernels {
  // What nobody reads goes, loads and what only counts itself included; so do variables, idle jumps and labels.
  // CHECK-LABEL: gpu.func @unread
  // CHECK-NEXT: visa.ret
  // OFF-LABEL: gpu.func @unread
  // OFF: visa.jmp
  gpu.func @unread() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", d x 16, align = GRF
    %i = visa.decl "i", d x 1, align = dword
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.add (M1_NM, 1) %i(0,0)<1> %i(0,0)<0;1,0> 1:d
    visa.jmp (M1, 1) Next
    visa.label Next
    visa.ret (M1, 1)
    gpu.return
  }

  // What is written again before it is read goes, but not by what may leave some of it: a predicated instruction, or
  // one that writes a part. Prefetches, stores and atomic operations stay.
  // CHECK-LABEL: gpu.func @overwritten
  // CHECK: visa.mov (M1_NM, 16) %x(0,0)<1> 0x2:d
  // CHECK-NEXT: visa.setp
  // CHECK-NEXT: visa.mov (M1_NM, 16, %p) %x(0,0)<1> 0x3:d
  // CHECK-NEXT: visa.mov (M1_NM, 8) %x(0,0)<1> 0x4:d
  // CHECK-NEXT: visa.lsc_load.ugm.ca.ca (M1_NM, 1) null:d32x16t
  // CHECK-NEXT: visa.lsc_store
  // CHECK-NEXT: visa.lsc_atomic_iinc
  // CHECK-NEXT: visa.ret
  gpu.func @overwritten() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", d x 16, align = GRF
    %p = visa.decl_pred "p", 16
    visa.input %a, offset = 64, size = 8
    visa.mov (M1_NM, 16) %x(0,0)<1> 1:d
    visa.mov (M1_NM, 16) %x(0,0)<1> 2:d
    visa.setp (M1_NM, 16) %p 0x5555:uw
    visa.mov (M1_NM, 16, %p) %x(0,0)<1> 3:d
    visa.mov (M1_NM, 8) %x(0,0)<1> 4:d
    visa.lsc_load.ugm.ca.ca (M1_NM, 1) null:d32x16t flat[%a[0]]:a64
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
    visa.lsc_atomic_iinc.ugm (M1_NM, 1) null:d32 flat[%a[0]]:a64 null null
    visa.mov (M1_NM, 8) %x(0,0)<1> 5:d
    visa.ret (M1, 1)
    gpu.return
  }
}
