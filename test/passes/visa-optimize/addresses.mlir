// RUN: xegpu-opt %s --visa-optimize='schedule=false' | FileCheck %s

gpu.module @kernels {
  // Sums are folded into the offsets of messages, and products by powers of two become shifts.
  // CHECK-LABEL: gpu.func @offsets
  // CHECK: visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%a[0]+0x140]:a64
  // CHECK-NEXT: visa.shl (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> 0x3:ud
  // CHECK-NEXT: visa.lsc_store.ugm (M1_NM, 1) flat[%a[0]-0x40]:a64 %x[0]:d32x16t
  gpu.func @offsets() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %b = visa.decl "b", uq x 1, align = qword
    %c = visa.decl "c", uq x 1, align = qword
    %x = visa.decl "x", d x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.add (M1_NM, 1) %b(0,0)<1> %a(0,0)<0;1,0> 256:ud
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%b[0]+64]:a64
    visa.mul (M1_NM, 16) %x(0,0)<1> %x(0,0)<1;1,0> 8:d
    visa.add (M1_NM, 1) %c(0,0)<1> %a(0,0)<0;1,0> -64:d
    visa.lsc_store.ugm (M1_NM, 1) flat[%c[0]]:a64 %x[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }

  // An address with other uses, a constant that messages cannot add, or a saturating sum is not folded.
  // CHECK-LABEL: gpu.func @no_offsets
  // CHECK: flat[%b[0]]
  // CHECK: flat[%b[0]+0x40]
  // CHECK: flat[%c[0]]
  // CHECK: flat[%d[0]]
  gpu.func @no_offsets() kernel {
    %a = visa.decl "a", uq x 1, align = qword
    %b = visa.decl "b", uq x 1, align = qword
    %c = visa.decl "c", uq x 1, align = qword
    %d = visa.decl "d", uq x 1, align = qword
    %x = visa.decl "x", d x 16, align = GRF
    visa.input %a, offset = 64, size = 8
    visa.add (M1_NM, 1) %b(0,0)<1> %a(0,0)<0;1,0> 256:ud
    visa.add (M1_NM, 1) %c(0,0)<1> %a(0,0)<0;1,0> 0x100000:ud
    visa.add.sat (M1_NM, 1) %d(0,0)<1> %a(0,0)<0;1,0> 256:ud
    visa.lsc_load.ugm (M1_NM, 1) %x[0]:d32x16t flat[%b[0]]:a64
    visa.lsc_store.ugm (M1_NM, 1) flat[%b[0]+64]:a64 %x[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%c[0]]:a64 %x[0]:d32x16t
    visa.lsc_store.ugm (M1_NM, 1) flat[%d[0]]:a64 %x[0]:d32x16t
    visa.ret (M1, 1)
    gpu.return
  }
}
