// RUN: xegpu-opt %s --visa-optimize | FileCheck %s
// RUN: xegpu-opt %s --visa-optimize='schedule=false' | FileCheck %s --check-prefix=OFF
// RUN: xegpu-opt %s --visa-optimize | xegpu-translate --mlir-to-visaasm | FileCheck %s --check-prefix=TEXT

gpu.module @kernels {
  // The second load is issued before the uses of the first.
  // CHECK-LABEL: gpu.func @early
  // CHECK: visa.lsc_load.ugm (M1_NM, 1) %x[0]
  // CHECK-NEXT: visa.add (M1_NM, 1) %b(0,0)<1>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) %y[0]
  // CHECK-NEXT: visa.exp
  // CHECK-NEXT: visa.mul
  // OFF-LABEL: gpu.func @early
  // OFF: visa.exp
  // OFF: visa.lsc_load.ugm (M1_NM, 1) %y[0]
  gpu.func @early() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %n = visa.decl "n", ud x 1, align = dword
    %b = visa.decl "b", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.input %n, offset = 72, size = 4
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.exp (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0>
    visa.add (M1_NM, 1) %b(0,0)<1> %a(0,0)<0;1,0> %n(0,0)<0;1,0>
    visa.lsc_load.ugm (M1_NM, 1) %y[0]:d32x16t flat[%b[0]]:a64
    visa.mul (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // Nothing is moved over fence_sw, to which xegpu.compile_hint is lowered.
  // CHECK-LABEL: gpu.func @hint
  // CHECK: visa.exp
  // CHECK-NEXT: visa.fence_sw
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) %y[0]
  // TEXT: .kernel "hint"
  // TEXT: fence_sw
  gpu.func @hint() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.exp (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0>
    visa.fence_sw
    visa.lsc_load.ugm (M1_NM, 1) %y[0]:d32x16t flat[%a[0]+64]:a64
    visa.mul (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // Nothing is moved over a fence, a barrier or a store.
  // CHECK-LABEL: gpu.func @order
  // CHECK: visa.exp
  // CHECK-NEXT: visa.lsc_fence
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) %y[0]
  // CHECK-NEXT: visa.exp
  // CHECK-NEXT: visa.barrier
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) %z[0]
  // CHECK-NEXT: visa.mul
  // CHECK-NEXT: visa.lsc_store
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) %x[0]
  gpu.func @order() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    %z = visa.decl "z", f x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.exp (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0>
    visa.lsc_fence.ugm.none.gpu
    visa.lsc_load.ugm (M1_NM, 1) %y[0]:d32x16t flat[%a[0]+64]:a64
    visa.exp (M1_NM, 16) %y(0,0)<1> %y(0,0)<1;1,0>
    visa.barrier
    visa.lsc_load.ugm (M1_NM, 1) %z[0]:d32x16t flat[%a[0]+128]:a64
    visa.mul (M1_NM, 16) %z(0,0)<1> %x(0,0)<1;1,0> %z(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %z[0]:d32x16t
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.mul (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %y[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }
}
