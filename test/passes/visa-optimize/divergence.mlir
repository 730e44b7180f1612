// RUN: xegpu-opt %s --visa-optimize | FileCheck %s

gpu.module @kernels {
  // Lanes have diverged: a move without NoMask does not write inactive lanes, so it is not a copy, and the value before it
  // is live. One group of lanes reads what the other group writes with NoMask, although it jumps over this instruction.
  // CHECK-LABEL: gpu.func @diverged
  // CHECK: visa.goto (M1, 16, %p) Else
  // CHECK-NEXT: visa.mov (M1, 16) %y(0,0)<1> %x(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) %z(0,0)<1> %y(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) %n(0,0)<1> 0x7:d
  // CHECK-NEXT: visa.jmp (M1, 1) End
  // CHECK-NEXT: visa.label Else
  // CHECK-NEXT: visa.add (M1_NM, 16) %z(0,0)<1> %z(0,0)<1;1,0> %n(0,0)<0;1,0>
  gpu.func @diverged() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", d x 16, align = GRF
    %y = visa.decl "y", d x 16, align = GRF
    %z = visa.decl "z", d x 16, align = GRF
    %n = visa.decl "n", d x 16, align = GRF
    %p = visa.decl_pred "p", 16
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.lsc_load.ugm (M1_NM, 1) %y[0]:d32x16t flat[%a[0]+64]:a64
    visa.mov (M1_NM, 16) %z(0,0)<1> 0:d
    visa.mov (M1_NM, 1) %n(0,0)<1> 1:d
    visa.cmp.gt (M1_NM, 16) %p %x(0,0)<1;1,0> 0:d
    visa.goto (M1, 16, %p) Else
    visa.mov (M1, 16) %y(0,0)<1> %x(0,0)<1;1,0>
    visa.mov (M1_NM, 16) %z(0,0)<1> %y(0,0)<1;1,0>
    visa.mov (M1_NM, 1) %n(0,0)<1> 7:d
    visa.jmp (M1, 1) End
    visa.label Else
    visa.add (M1_NM, 16) %z(0,0)<1> %z(0,0)<1;1,0> %n(0,0)<0;1,0>
    visa.label End
    visa.mov (M1_NM, 1) %n(0,0)<1> 0:d
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %z[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]+64]:a64 %n[0]:d32
    visa.ret (M1, 1)
    gpu.return
  }

  // A product without NoMask leaves the columns of disabled lanes as the move wrote them.
  // CHECK-LABEL: gpu.func @product
  // CHECK: visa.goto
  // CHECK-NEXT: visa.mov (M1_NM, 16) %d(0,0)<1> 0x3f800000:f
  // CHECK-NEXT: visa.dpas.bf.bf.8.1 (M1, 16) %d[0] null %b[0] %x(0,0)
  gpu.func @product() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", d x 16, align = GRF
    %b = visa.decl "b", d x 128, align = GRF
    %d = visa.decl "d", f x 16, align = GRF
    %p = visa.decl_pred "p", 16
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.lsc_load.ugm (M1_NM, 1) %b[0]:d32x64t flat[%a[0]]:a64
    visa.lsc_load.ugm (M1_NM, 1) %b[256]:d32x64t flat[%a[0]+256]:a64
    visa.cmp.gt (M1_NM, 16) %p %x(0,0)<1;1,0> 0:d
    visa.goto (M1, 16, %p) Over
    visa.mov (M1_NM, 16) %d(0,0)<1> 1.0:f
    visa.dpas.bf.bf.8.1 (M1, 16) %d[0] null %b[0] %x(0,0)
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %d[0]:d32x16t
    visa.label Over
    visa.ret (M1, 1)
    gpu.return
  }

  // The same without a goto: no lane is ever disabled, and the copy is one.
  // CHECK-LABEL: gpu.func @together
  // CHECK: visa.lsc_load
  // CHECK-NEXT: visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
  gpu.func @together() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", d x 16, align = GRF
    %y = visa.decl "y", d x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.mov (M1, 16) %y(0,0)<1> %x(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %y[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }
}
