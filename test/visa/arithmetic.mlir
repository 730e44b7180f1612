// Every form of arithmetic: regions, modifiers, constants, saturation, masks, guards.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s --mlir-print-op-generic | xegpu-opt | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @regions()
  gpu.func @regions() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %H = visa.decl "H", hf x 128, align = GRF
    // CHECK: visa.mov (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.mov (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.mov (M1, 8) %F(0,0)<2> %F(1,0)<2;1,0>
    visa.mov (M1, 8) %F(0,0)<2> %F(1,0)<2;1,0>
    // CHECK: visa.mov (M1, 16) %F(0,0)<1> %F(1,3)<0;1,0>
    visa.mov (M1, 16) %F(0,0)<1> %F(1,3)<0;1,0>
    // CHECK: visa.mov (M1, 16) %F(0,0)<1> %H(1,0)<16;8,2>
    visa.mov (M1, 16) %F(0,0)<1> %H(1,0)<16;8,2>
    // CHECK: visa.mov (M1, 16) %F(0,0)<1> %H(1,1)<8;8,1>
    visa.mov (M1, 16) %F(0,0)<1> %H(1,1)<8;8,1>
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @masks()
  gpu.func @masks() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    // CHECK: visa.mov (M1_NM, 16) %F(0,0)<1> %F(0,0)<1;1,0>
    visa.mov (M1_NM, 16) %F(0,0)<1> %F(0,0)<1;1,0>
    // CHECK: visa.mov (M5, 16) %F(0,0)<1> %F(0,0)<1;1,0>
    visa.mov (M5, 16) %F(0,0)<1> %F(0,0)<1;1,0>
    // CHECK: visa.mov (M7_NM, 8) %F(0,0)<1> %F(0,0)<1;1,0>
    visa.mov (M7_NM, 8) %F(0,0)<1> %F(0,0)<1;1,0>
    // CHECK: visa.mov (M8, 1) %F(0,0)<1> %F(0,0)<1;1,0>
    visa.mov (M8, 1) %F(0,0)<1> %F(0,0)<1;1,0>
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @guards()
  gpu.func @guards() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %D = visa.decl "D", d x 128, align = GRF
    %P = visa.decl_pred "P", 16
    // CHECK: visa.add (M1, 16, %P) %F(0,0)<1> %F(0,0)<1;1,0> %F(0,0)<1;1,0>
    visa.add (M1, 16, %P) %F(0,0)<1> %F(0,0)<1;1,0> %F(0,0)<1;1,0>
    // CHECK: visa.add (M1, 16, !%P) %F(0,0)<1> %F(0,0)<1;1,0> %F(0,0)<1;1,0>
    visa.add (M1, 16, !%P) %F(0,0)<1> %F(0,0)<1;1,0> %F(0,0)<1;1,0>
    // CHECK: visa.add (M1, 16, %P any) %F(0,0)<1> %F(0,0)<1;1,0> %F(0,0)<1;1,0>
    visa.add (M1, 16, %P any) %F(0,0)<1> %F(0,0)<1;1,0> %F(0,0)<1;1,0>
    // CHECK: visa.add (M1, 16, !%P all) %F(0,0)<1> %F(0,0)<1;1,0> %F(0,0)<1;1,0>
    visa.add (M1, 16, !%P all) %F(0,0)<1> %F(0,0)<1;1,0> %F(0,0)<1;1,0>
    // CHECK: visa.sel (M1, 16, %P) %D(0,0)<1> %D(0,0)<1;1,0> 0x0:d
    visa.sel (M1, 16, %P) %D(0,0)<1> %D(0,0)<1;1,0> 0x0:d
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @constants()
  gpu.func @constants() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %H = visa.decl "H", hf x 128, align = GRF
    %DF = visa.decl "DF", df x 64, align = GRF
    %D = visa.decl "D", d x 128, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    // CHECK: visa.mov (M1, 16) %F(0,0)<1> 0x3f800000:f
    visa.mov (M1, 16) %F(0,0)<1> 0x3f800000:f
    // CHECK: visa.mov (M1, 16) %D(0,0)<1> -1:d
    visa.mov (M1, 16) %D(0,0)<1> -1:d
    // CHECK: visa.mov (M1, 16) %D(0,0)<1> -32768:w
    visa.mov (M1, 16) %D(0,0)<1> -32768:w
    // CHECK: visa.mov (M1, 16) %U(0,0)<1> 0xffffffff:ud
    visa.mov (M1, 16) %U(0,0)<1> 0xffffffff:ud
    // CHECK: visa.mov (M1, 16) %H(0,0)<1> 0x3c00:hf
    visa.mov (M1, 16) %H(0,0)<1> 0x3c00:hf
    // CHECK: visa.mov (M1, 8) %DF(0,0)<1> 0x3ff0000000000000:df
    visa.mov (M1, 8) %DF(0,0)<1> 0x3ff0000000000000:df
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @operations()
  gpu.func @operations() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %H = visa.decl "H", hf x 128, align = GRF
    %D = visa.decl "D", d x 128, align = GRF
    // CHECK: visa.mov.sat (M1, 16) %F(0,0)<1> (-)%F(1,0)<1;1,0>
    visa.mov.sat (M1, 16) %F(0,0)<1> (-)%F(1,0)<1;1,0>
    // CHECK: visa.add.sat (M1, 16) %F(0,0)<1> (abs)%F(1,0)<1;1,0> (-abs)%F(1,0)<1;1,0>
    visa.add.sat (M1, 16) %F(0,0)<1> (abs)%F(1,0)<1;1,0> (-abs)%F(1,0)<1;1,0>
    // CHECK: visa.mul (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0> %F(1,0)<1;1,0>
    visa.mul (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0> %F(1,0)<1;1,0>
    // CHECK: visa.mulh (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> %D(1,0)<1;1,0>
    visa.mulh (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> %D(1,0)<1;1,0>
    // CHECK: visa.mad (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0> %F(2,0)<1;1,0> %F(3,0)<1;1,0>
    visa.mad (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0> %F(2,0)<1;1,0> %F(3,0)<1;1,0>
    // CHECK: visa.min (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0> %F(2,0)<1;1,0>
    visa.min (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0> %F(2,0)<1;1,0>
    // CHECK: visa.max (M1, 16) %H(0,0)<1> %H(1,0)<1;1,0> %H(2,0)<1;1,0>
    visa.max (M1, 16) %H(0,0)<1> %H(1,0)<1;1,0> %H(2,0)<1;1,0>
    // CHECK: visa.rndd (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.rndd (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.rndu (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.rndu (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.rnde (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.rnde (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.rndz (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.rndz (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @mathematics()
  gpu.func @mathematics() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %DF = visa.decl "DF", df x 64, align = GRF
    // CHECK: visa.div (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0> %F(2,0)<1;1,0>
    visa.div (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0> %F(2,0)<1;1,0>
    // CHECK: visa.div (M1, 8) %DF(0,0)<1> %DF(1,0)<1;1,0> %DF(2,0)<1;1,0>
    visa.div (M1, 8) %DF(0,0)<1> %DF(1,0)<1;1,0> %DF(2,0)<1;1,0>
    // CHECK: visa.inv (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.inv (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.sqrt (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.sqrt (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.rsqrt (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.rsqrt (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.exp (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.exp (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.log (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.log (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.sin (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.sin (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.cos (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    visa.cos (M1, 16) %F(0,0)<1> %F(1,0)<1;1,0>
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @bits()
  gpu.func @bits() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %D = visa.decl "D", d x 128, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    // CHECK: visa.and (M1, 16) %D(0,0)<1> (~)%D(1,0)<1;1,0> 0xff:ud
    visa.and (M1, 16) %D(0,0)<1> (~)%D(1,0)<1;1,0> 0xff:ud
    // CHECK: visa.or (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> %D(2,0)<1;1,0>
    visa.or (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> %D(2,0)<1;1,0>
    // CHECK: visa.xor (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> %D(2,0)<1;1,0>
    visa.xor (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> %D(2,0)<1;1,0>
    // CHECK: visa.not (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0>
    visa.not (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0>
    // CHECK: visa.shl (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> 0x4:d
    visa.shl (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> 0x4:d
    // CHECK: visa.shr (M1, 16) %U(0,0)<1> %U(1,0)<1;1,0> 0x4:d
    visa.shr (M1, 16) %U(0,0)<1> %U(1,0)<1;1,0> 0x4:d
    // CHECK: visa.asr (M1, 16) %D(0,0)<1> (-)%D(1,0)<1;1,0> 0x4:d
    visa.asr (M1, 16) %D(0,0)<1> (-)%D(1,0)<1;1,0> 0x4:d
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @predicates()
  gpu.func @predicates() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %D = visa.decl "D", d x 128, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    %P = visa.decl_pred "P", 16
    // CHECK: visa.and (M1, 16) %P %P %P
    visa.and (M1, 16) %P %P %P
    // CHECK: visa.or (M1, 16) %P %P %P
    visa.or (M1, 16) %P %P %P
    // CHECK: visa.xor (M1, 16) %P %P %P
    visa.xor (M1, 16) %P %P %P
    // CHECK: visa.not (M1, 16) %P %P
    visa.not (M1, 16) %P %P
    // CHECK: visa.cmp.eq (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.cmp.eq (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    // CHECK: visa.cmp.ne (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.cmp.ne (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    // CHECK: visa.cmp.gt (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.cmp.gt (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    // CHECK: visa.cmp.ge (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.cmp.ge (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    // CHECK: visa.cmp.lt (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.cmp.lt (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    // CHECK: visa.cmp.le (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.cmp.le (M1, 16) %P %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    // CHECK: visa.cmp.lt (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> (-)%D(2,0)<1;1,0>
    visa.cmp.lt (M1, 16) %D(0,0)<1> %D(1,0)<1;1,0> (-)%D(2,0)<1;1,0>
    // CHECK: visa.setp (M1, 16) %P %U(0,0)<0;1,0>
    visa.setp (M1, 16) %P %U(0,0)<0;1,0>
    // CHECK: visa.setp (M1_NM, 16) %P 0xffff:uw
    visa.setp (M1_NM, 16) %P 0xffff:uw
    // CHECK: visa.mov (M1, 1) %U(0,0)<1> %P
    visa.mov (M1, 1) %U(0,0)<1> %P
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @rounding()
  gpu.func @rounding() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %H = visa.decl "H", hf x 128, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    %B = visa.decl "B", ub x 128, align = GRF
    // CHECK: visa.srnd (M1_NM, 16) %H(0,0)<1> %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.srnd (M1_NM, 16) %H(0,0)<1> %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    // CHECK: visa.srnd (M1_NM, 16) %B(0,0)<1> %H(0,0)<1;1,0> 0x55:hf
    visa.srnd (M1_NM, 16) %B(0,0)<1> %H(0,0)<1;1,0> 0x55:hf
    // CHECK: visa.fcvt (M1_NM, 16) %B(0,0)<1> %H(0,0)<1;1,0>
    visa.fcvt (M1_NM, 16) %B(0,0)<1> %H(0,0)<1;1,0>
    // CHECK: visa.fcvt (M1, 16) %H(0,0)<1> %B(0,0)<1;1,0>
    visa.fcvt (M1, 16) %H(0,0)<1> %B(0,0)<1;1,0>
    // CHECK: visa.fcvt (M1, 16) %U(0,0)<1> %F(0,0)<1;1,0>
    visa.fcvt (M1, 16) %U(0,0)<1> %F(0,0)<1;1,0>
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }
}
