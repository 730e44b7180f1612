// RUN: xegpu-opt %s --visa-optimize='schedule=false' | FileCheck %s
// RUN: xegpu-opt %s --visa-optimize='schedule=false hoist=false' | FileCheck %s --check-prefix=OFF

gpu.module @kernels {
  // Loop-invariant instructions are hoisted out of both loops. Loads stay, since memory changes, and so do instructions
  // that depend on them or on the loop.
  // CHECK-LABEL: gpu.func @nest
  // CHECK: visa.mul (M1_NM, 1) %k(0,0)<1> %n(0,0)<0;1,0> %n(0,0)<0;1,0>
  // CHECK-NEXT: visa.label Outer
  // CHECK-NEXT: visa.mov (M1_NM, 1) %j(0,0)<1> 0x0:d
  // CHECK-NEXT: visa.mul (M1_NM, 1) %l(0,0)<1> %i(0,0)<0;1,0> %i(0,0)<0;1,0>
  // CHECK-NEXT: visa.label Inner
  // CHECK-NEXT: visa.lsc_load
  // CHECK-NEXT: visa.add (M1_NM, 1) %y(0,0)<1> %x(0,0)<0;1,0> %k(0,0)<0;1,0>
  // OFF-LABEL: gpu.func @nest
  // OFF: visa.label Inner
  // OFF-NEXT: visa.mul
  gpu.func @nest() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %n = visa.decl "n", d x 1, align = dword
    %i = visa.decl "i", d x 1, align = dword
    %j = visa.decl "j", d x 1, align = dword
    %k = visa.decl "k", d x 1, align = dword
    %l = visa.decl "l", d x 1, align = dword
    %x = visa.decl "x", d x 1, align = GRF
    %y = visa.decl "y", d x 1, align = GRF
    %z = visa.decl "z", d x 1, align = GRF
    %p = visa.decl_pred "p", 1
    %q = visa.decl_pred "q", 1
    visa.input %a, offset = 64, size = 8
    visa.input %n, offset = 72, size = 4
    visa.mov (M1_NM, 1) %i(0,0)<1> 0:d
    visa.label Outer
    visa.mov (M1_NM, 1) %j(0,0)<1> 0:d
    visa.label Inner
    visa.mul (M1_NM, 1) %k(0,0)<1> %n(0,0)<0;1,0> %n(0,0)<0;1,0>
    visa.mul (M1_NM, 1) %l(0,0)<1> %i(0,0)<0;1,0> %i(0,0)<0;1,0>
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32 flat[%a[0]]:a64
    visa.add (M1_NM, 1) %y(0,0)<1> %x(0,0)<0;1,0> %k(0,0)<0;1,0>
    visa.add (M1_NM, 1) %z(0,0)<1> %y(0,0)<0;1,0> %l(0,0)<0;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %z[0]:d32
    visa.add (M1_NM, 1) %j(0,0)<1> %j(0,0)<0;1,0> 1:d
    visa.cmp.lt (M1_NM, 1) %p %j(0,0)<0;1,0> %n(0,0)<0;1,0>
    visa.jmp (M1, 1, %p) Inner
    visa.add (M1_NM, 1) %i(0,0)<1> %i(0,0)<0;1,0> 1:d
    visa.cmp.lt (M1_NM, 1) %q %i(0,0)<0;1,0> %n(0,0)<0;1,0>
    visa.jmp (M1, 1, %q) Outer
    visa.ret (M1, 1)
    gpu.return
  }

  // A result that the loop writes twice, and one that is read before it is written, differ in each iteration.
  // CHECK-LABEL: gpu.func @changing
  // CHECK: visa.label Again
  // CHECK-NEXT: visa.add (M1_NM, 1) %x(0,0)<1> %x(0,0)<0;1,0> %s(0,0)<0;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 1) %s(0,0)<1> %n(0,0)<0;1,0> %n(0,0)<0;1,0>
  gpu.func @changing() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %n = visa.decl "n", d x 1, align = dword
    %s = visa.decl "s", d x 1, align = dword
    %x = visa.decl "x", d x 1, align = GRF
    %p = visa.decl_pred "p", 1
    visa.input %a, offset = 64, size = 8
    visa.input %n, offset = 72, size = 4
    visa.mov (M1_NM, 1) %x(0,0)<1> 0:d
    visa.mov (M1_NM, 1) %s(0,0)<1> 1:d
    visa.label Again
    visa.add (M1_NM, 1) %x(0,0)<1> %x(0,0)<0;1,0> %s(0,0)<0;1,0>
    visa.mul (M1_NM, 1) %s(0,0)<1> %n(0,0)<0;1,0> %n(0,0)<0;1,0>
    visa.cmp.lt (M1_NM, 1) %p %x(0,0)<0;1,0> %n(0,0)<0;1,0>
    visa.jmp (M1, 1, %p) Again
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32
    visa.ret (M1, 1)
    gpu.return
  }
}
