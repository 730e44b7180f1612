// RUN: xegpu-opt %s --visa-optimize='hoist=false schedule=false' | FileCheck %s
// RUN: xegpu-opt %s --visa-optimize='fold=false hoist=false schedule=false' | FileCheck %s --check-prefix=OFF

gpu.module @kernels {
  // Instructions on constants are folded, lane by lane.
  // CHECK-LABEL: gpu.func @fold
  // CHECK: visa.mov (M1_NM, 1) %x(0,0)<1> 0x2a:d
  // CHECK-NEXT: visa.mov (M1_NM, 1) %x(0,1)<1> 0x54:d
  // CHECK-NEXT: visa.lsc_store
  // OFF-LABEL: gpu.func @fold
  // OFF: visa.add
  gpu.func @fold() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", d x 2, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.mov (M1_NM, 1) %x(0,0)<1> 40:d
    visa.add (M1_NM, 1) %x(0,0)<1> %x(0,0)<0;1,0> 2:d
    visa.shl (M1_NM, 1) %x(0,1)<1> %x(0,0)<0;1,0> 1:d
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x2t
    visa.ret (M1, 1)
    gpu.return
  }

  // Constants are moved to operands that can be immediate: the second source, and coordinates of blocks.
  // CHECK-LABEL: gpu.func @immediates
  // CHECK-NOT: visa.mov
  // CHECK: visa.lsc_load_block2d.ugm (M1_NM, 1) %x[0]:d32.16x8nn flat[%a(0,0),0xff,0x3f,0xff,0x10,0x8]
  // CHECK-NEXT: visa.mul (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> 0x40000000:f
  // CHECK-NEXT: visa.add (M1_NM, 16) %x(1,0)<1> (-)%x(1,0)<1;1,0> 0xc0000000:f
  gpu.func @immediates() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %i = visa.decl "i", d x 2, align = GRF
    %two = visa.decl "two", f x 1, align = GRF
    %x = visa.decl "x", f x 128, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.mov (M1_NM, 1) %i(0,0)<1> 16:d
    visa.asr (M1_NM, 1) %i(0,1)<1> %i(0,0)<0;1,0> 1:uw
    visa.mov (M1_NM, 1) %two(0,0)<1> 2.0:f
    visa.lsc_load_block2d.ugm (M1_NM, 1) %x[0]:d32.16x8nn flat[%a(0,0), 255, 63, 255, %i(0,0), %i(0,1)]
    visa.mul (M1_NM, 16) %x(0,0)<1> %two(0,0)<0;1,0> %x(0,0)<1;1,0>
    visa.add (M1_NM, 16) %x(1,0)<1> (-)%x(1,0)<1;1,0> (-)%two(0,0)<0;1,0>
    visa.lsc_store_block2d.ugm (M1_NM, 1) flat[%a(0,0), 255, 63, 255, 0, 0] %x[0]:d32.16x8nn
    visa.ret (M1, 1)
    gpu.return
  }

  // A third source and that of a reciprocal cannot be immediate.
  // CHECK-LABEL: gpu.func @no_immediates
  // CHECK: visa.mad (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> %two(0,0)<0;1,0> %two(0,0)<0;1,0>
  gpu.func @no_immediates() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %two = visa.decl "two", f x 1, align = GRF
    %x = visa.decl "x", f x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.mov (M1_NM, 1) %two(0,0)<1> 2.0:f
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.mad (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> %two(0,0)<0;1,0> %two(0,0)<0;1,0>
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // x + 0 is folded for integers, but not for floats: -0 + +0 is +0, and a NaN times one is another NaN. Saturation keeps
  // a number of the result's type, but not one of another type.
  // CHECK-LABEL: gpu.func @identities
  // CHECK-NEXT: %a = visa.decl
  // CHECK: visa.lsc_load
  // CHECK-NEXT: visa.mul (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> 0x3f800000:f
  // CHECK-NEXT: visa.add (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> 0x0:f
  // CHECK-NEXT: visa.add.sat (M1_NM, 16) %n(0,0)<1> %u(0,0)<1;1,0> 0x0:d
  // CHECK-NEXT: visa.lsc_store
  gpu.func @identities() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", f x 16, align = GRF
    %n = visa.decl "n", d x 16, align = GRF, alias = %x
    %u = visa.decl "u", ud x 16, align = GRF, alias = %x
    visa.input %a, offset = 64, size = 8
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]]:a64
    visa.add (M1_NM, 16) %n(0,0)<1> %n(0,0)<1;1,0> 0:d
    visa.add.sat (M1_NM, 16) %n(0,0)<1> %n(0,0)<1;1,0> 0:d
    visa.mul.sat (M1_NM, 16) %n(0,0)<1> %n(0,0)<1;1,0> 1:d
    visa.mul (M1_NM, 16) %n(0,0)<1> %n(0,0)<1;1,0> 1:d
    visa.or (M1_NM, 16) %n(0,0)<1> %n(0,0)<1;1,0> 0:d
    visa.shl (M1_NM, 16) %n(0,0)<1> %n(0,0)<1;1,0> 0:d
    visa.mul (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> 1.0:f
    visa.add (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> 0.0:f
    visa.add.sat (M1_NM, 16) %n(0,0)<1> %u(0,0)<1;1,0> 0:d
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // Branches on known predicates are folded, and unreachable instructions removed.
  // CHECK-LABEL: gpu.func @predicates
  // CHECK-NOT: visa.jmp
  // CHECK: visa.mov (M1_NM, 1) %x(0,0)<1> 0x1:d
  // CHECK-NEXT: visa.lsc_store
  // CHECK-NEXT: visa.ret
  gpu.func @predicates() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %x = visa.decl "x", d x 1, align = GRF
    %p = visa.decl_pred "p", 1
    visa.input %a, offset = 64, size = 8
    visa.mov (M1_NM, 1) %x(0,0)<1> 0:d
    visa.cmp.lt (M1_NM, 1) %p %x(0,0)<0;1,0> 4:d
    visa.mov (M1_NM, 1) %x(0,0)<1> 1:d
    visa.jmp (M1, 1, %p) Over
    visa.mov (M1_NM, 1) %x(0,0)<1> 2:d
    visa.label Over
    visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]]:a64 %x[0]:d32
    visa.ret (M1, 1)
    gpu.return
  }
}
