// RUN: xegpu-opt %s --visa-optimize='hoist=false schedule=false' | FileCheck %s

gpu.module @kernels {
  // Reads of a copy are replaced by reads of the original, with composed regions.
  // CHECK-LABEL: gpu.func @regions
  // CHECK: visa.add (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> %y(0,3)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 32) %z(0,0)<1> %z(0,0)<1;1,0> %y(0,0)<0;16,1>
  gpu.func @regions() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    %z = visa.decl "z", f x 32, align = GRF
    %s = visa.decl "s", f x 16, align = GRF
    %t = visa.decl "t", f x 32, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.lsc_load.ugm (M1_NM, 1) %y[0]:d32x16t flat[%a[0]+64]:a64
    visa.lsc_load.ugm (M1_NM, 1) %z[0]:d32x32t flat[%a[0]+128]:a64
    visa.mov (M1_NM, 16) %s(0,0)<1> %y(0,3)<0;1,0>
    visa.add (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> %s(0,0)<1;1,0>
    visa.mov (M1_NM, 32) %t(0,0)<1> %y(0,0)<0;16,1>
    visa.add (M1_NM, 32) %z(0,0)<1> %z(0,0)<1;1,0> %t(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %z[0]:d32x32t
    visa.ret (M1, 1)
    gpu.return
  }

  // The original of a copy of rows is read by a move, which takes the copy's place, but not by arithmetic, for which the
  // finalizer may insert a copy again.
  // CHECK-LABEL: gpu.func @rows
  // CHECK: visa.mov (M1_NM, 16) %n(0,0)<1> %b_ub(0,0)<1;4,4>
  // CHECK-NEXT: visa.mov (M1_NM, 16) %t(0,0)<1> %x(0,0)<1;4,4>
  // CHECK-NEXT: visa.add (M1_NM, 16) %s(0,0)<1> %t(0,0)<1;1,0> 0x1:d
  gpu.func @rows() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %b = visa.decl "b", b x 64, align = GRF
    %c = visa.decl "c", b x 16, align = GRF
    %n = visa.decl "n", ud x 16, align = GRF
    %s = visa.decl "s", d x 16, align = GRF
    %t = visa.decl "t", d x 16, align = GRF
    %x = visa.decl "x", d x 32, align = GRF
    %b_ub = visa.decl "b_ub", ub x 64, align = GRF, alias = %b
    %c_ub = visa.decl "c_ub", ub x 16, align = GRF, alias = %c
    %b_ud = visa.decl "b_ud", ud x 16, align = GRF, alias = %b
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %b_ud[0]:d32x16t flat[%a[0]]:a64
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x32t flat[%a[0]+64]:a64
    visa.mov (M1_NM, 16) %c(0,0)<1> %b(0,0)<1;4,4>
    visa.mov (M1_NM, 16) %n(0,0)<1> %c_ub(0,0)<1;1,0>
    visa.mov (M1_NM, 16) %t(0,0)<1> %x(0,0)<1;4,4>
    visa.add (M1_NM, 16) %s(0,0)<1> %t(0,0)<1;1,0> 0x1:d
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %n[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %s[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // Arithmetic that reads rows of a copy reads the same rows of the original.
  // CHECK-LABEL: gpu.func @same_rows
  // CHECK: visa.add (M1_NM, 16) %s(0,0)<1> %x(0,0)<8;4,1> 0x1:d
  gpu.func @same_rows() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %s = visa.decl "s", d x 16, align = GRF
    %t = visa.decl "t", d x 32, align = GRF
    %x = visa.decl "x", d x 32, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x32t flat[%a[0]]:a64
    visa.mov (M1_NM, 32) %t(0,0)<1> %x(0,0)<1;1,0>
    visa.add (M1_NM, 16) %s(0,0)<1> %t(0,0)<8;4,1> 0x1:d
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %s[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // A message sends the original of a copy, of any type.
  // CHECK-LABEL: gpu.func @messages
  // CHECK-NOT: visa.mov
  // CHECK: visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
  gpu.func @messages() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", ud x 16, align = GRF
    %y_f = visa.decl "y_f", f x 16, align = GRF, alias = %y
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.mov (M1_NM, 16) %y_f(0,0)<1> %x(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %y[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // A value that is only computed to be moved is computed in place.
  // CHECK-LABEL: gpu.func @results
  // CHECK: visa.add (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> 0x1:ud
  // CHECK-NEXT: visa.cmp
  gpu.func @results() kernel {
    %p = visa.decl_pred "p", 1
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", ud x 16, align = GRF
    %y = visa.decl "y", ud x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.label Again
    visa.add (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0> 1:ud
    visa.mov (M1_NM, 16) %x(0,0)<1> %y(0,0)<1;1,0>
    visa.cmp.lt (M1_NM, 1) %p %x(0,0)<0;1,0> 4:ud
    visa.jmp (M1, 1, %p) Again
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // Not if the original or the copy has been written since, and not if the move converts, saturates or negates.
  // CHECK-LABEL: gpu.func @changed
  // CHECK: visa.mov (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) %x(0,4)<1> %x(0,4)<0;1,0> 0x3f800000:f
  // CHECK-NEXT: visa.add (M1_NM, 16) %z(0,0)<1> %y(0,0)<1;1,0> %y(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov.sat (M1_NM, 16) %y(0,0)<1> %z(0,0)<1;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 16) %z(0,0)<1> %y(0,0)<1;1,0> %y(0,0)<1;1,0>
  gpu.func @changed() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    %z = visa.decl "z", f x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.mov (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0>
    visa.add (M1_NM, 1) %x(0,4)<1> %x(0,4)<0;1,0> 1.0:f
    visa.add (M1_NM, 16) %z(0,0)<1> %y(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.mov.sat (M1_NM, 16) %y(0,0)<1> %z(0,0)<1;1,0>
    visa.mul (M1_NM, 16) %z(0,0)<1> %y(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %z[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // A predicated move copies some lanes only; after a predicated write the two values differ.
  // CHECK-LABEL: gpu.func @predicated
  // CHECK: visa.mov (M1_NM, 16, %p) %y(0,0)<1> %x(0,0)<1;1,0>
  // CHECK-NEXT: visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %y[0]:d32x16t
  // CHECK-NEXT: visa.mov (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 16, %p) %y(0,0)<1> %x(0,0)<1;1,0> 0x3f800000:f
  // CHECK-NEXT: visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %y[0]:d32x16t
  gpu.func @predicated() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    %p = visa.decl_pred "p", 16
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.lsc_load.ugm (M1_NM, 1) %y[0]:d32x16t flat[%a[0]+64]:a64
    visa.cmp.gt (M1_NM, 16) %p %x(0,0)<1;1,0> 0.0:f
    visa.mov (M1_NM, 16, %p) %y(0,0)<1> %x(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %y[0]:d32x16t
    visa.mov (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0>
    visa.add (M1_NM, 16, %p) %y(0,0)<1> %y(0,0)<1;1,0> 1.0:f
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %y[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // Writes of other parts of a variable leave a copy of one part as it is.
  // CHECK-LABEL: gpu.func @parts
  // CHECK-NOT: %y(
  // CHECK: visa.add (M1_NM, 16) %z(0,0)<1> %x(0,0)<1;1,0> %x(0,0)<1;1,0>
  gpu.func @parts() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 48, align = GRF
    %y = visa.decl "y", f x 16, align = GRF
    %z = visa.decl "z", f x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.mov (M1_NM, 16) %y(0,0)<1> %x(0,0)<1;1,0>
    visa.mul (M1_NM, 16) %x(1,0)<1> %x(0,0)<1;1,0> 3.0:f
    visa.mul (M1_NM, 16) %x(2,0)<1> %x(1,0)<1;1,0> 5.0:f
    visa.add (M1_NM, 16) %z(0,0)<1> %y(0,0)<1;1,0> %y(0,0)<1;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %z[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[128]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }
}
