// Alternative spellings, and the one that is printed.

// RUN: xegpu-opt %s | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @spellings
  gpu.func @spellings() kernel {
    %x = visa.decl "X", f x 128, align = GRF
    %d-1 = visa.decl "D", d x 128, align = GRF
    %q.0 = visa.decl "Q", uq x 16, align = GRF
    %p = visa.decl_pred "P", 16

    // The mask M1 may be left out, and so may the offset of an operand at its variable's start.
    // CHECK: visa.mov (M1, 16) %X(0,0)<1> %X(0,0)<1;1,0>
    visa.mov (16) %x<1> %x<1;1,0>
    // CHECK: visa.mov (M1, 16) %X(1,2)<1> %X(0,0)<1;1,0>
    visa.mov ( M1 , 16 ) %x ( 1 , 0x2 ) < 1 > %x(0,0) < 1 ; 1 , 0 >
    // CHECK: visa.dpas.bf.bf.8.8 (M1, 16) %X[0] null %D[0] %D(0,0)
    visa.dpas.bf.bf.8.8 (M1, 16) %x null %d-1 %d-1
    // CHECK: visa.lsc_load.ugm (M1, 16) %X[64]:d32 flat[%Q[0]]:a64
    visa.lsc_load.ugm (M1, 16) %x[ 64 ]:d32 flat[%q.0]:a64
    // CHECK: visa.lsc_load.ugm (M1, 16) null:d16c32 flat[%Q[0]+0x10]:a64
    visa.lsc_load.ugm (M1, 16) null:d16u32 flat[%q.0 + 16]:a64

    // Constants.
    // CHECK: visa.mov (M1, 16) %X(0,0)<1> 0x3fc00000:f
    visa.mov (M1, 16) %x(0,0)<1> 1.5:f
    // CHECK: visa.mov (M1, 16) %X(0,0)<1> 0xbf800000:f
    visa.mov (M1, 16) %x(0,0)<1> -1e0:f
    // CHECK: visa.mov (M1, 16) %D(0,0)<1> 0x10:d
    visa.mov (M1, 16) %d-1(0,0)<1> 16:d
    // CHECK: visa.mov (M1, 16) %D(0,0)<1> -1:d
    visa.mov (M1, 16) %d-1(0,0)<1> 0xffffffff:d

    // An instruction may go on in the next line.
    // CHECK: visa.mad.sat (M1, 16, !%P any) %X(0,0)<1> %X(0,0)<1;1,0> %X(0,0)<1;1,0> 0x0:f
    visa.mad.sat (M1, 16, ! %p any) // to
      %x(0,0)<1>
      %x(0,0)<1;1,0> %x(0,0)<1;1,0> 0x0:f

    // Discardable attributes follow.
    // CHECK: visa.mov (M1, 16) %X(0,0)<1> 0x0:f {test.a, test.b = 1 : i32}
    visa.mov (M1, 16) %x(0,0)<1> 0x0:f {test.b = 1 : i32, test.a}
    // CHECK: visa.barrier {test.a = [#gpu.address_space<global>]}
    visa.barrier {test.a = [#gpu.address_space<global>]}
    visa.ret (M1, 1)
    gpu.return
  }
}
