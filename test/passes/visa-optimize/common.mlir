// RUN: xegpu-opt %s --visa-optimize='schedule=false' | FileCheck %s
// RUN: xegpu-opt %s --visa-optimize='schedule=false common=false' | FileCheck %s --check-prefix=OFF

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @twice
  // CHECK: visa.exp (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0>
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 16) %p %x(0,0)<1;1,0> %y(0,0)<1;1,0>
  // CHECK-NEXT: visa.sel (M1_NM, 16, %p) %v(0,0)<1> %x(0,0)<1;1,0> %y(0,0)<1;1,0>
  // CHECK-NEXT: visa.sel (M1_NM, 16, %p) %w(0,0)<1> %y(0,0)<1;1,0> %v(0,0)<1;1,0>
  // OFF-LABEL: gpu.func @twice
  // OFF-COUNT-2: visa.exp
  gpu.func @twice() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    %z = visa.decl "z", f x 16, align = GRF
    %v = visa.decl "v", f x 16, align = GRF
    %w = visa.decl "w", f x 16, align = GRF
    %p = visa.decl_pred "p", 16
    %q = visa.decl_pred "q", 16
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.exp (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0>
    visa.cmp.lt (M1_NM, 16) %p %x(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.sel (M1_NM, 16, %p) %v(0,0)<1> %x(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.exp (M1_NM, 16) %z(0,0)<1> %x(0,0)<1;1,0>
    visa.cmp.lt (M1_NM, 16) %q %x(0,0)<1;1,0> %z(0,0)<1;1,0>
    visa.sel (M1_NM, 16, %q) %w(0,0)<1> %z(0,0)<1;1,0> %v(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %v[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %w[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // Equal loads may return different values; equal sums differ if an operand was written in between.
  // CHECK-LABEL: gpu.func @not_twice
  // CHECK-COUNT-2: visa.lsc_load
  // CHECK-COUNT-2: visa.exp
  gpu.func @not_twice() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    %z = visa.decl "z", f x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.lsc_load.ugm (M1_NM, 1) %y[0]:d32x16t flat[%a[0]]:a64
    visa.mul (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.exp (M1_NM, 16) %z(0,0)<1> %x(0,0)<1;1,0>
    visa.mul (M1_NM, 1) %x(0,7)<1> %x(0,7)<0;1,0> %y(0,7)<0;1,0>
    visa.exp (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %z[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %y[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }
}
