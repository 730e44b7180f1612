// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Arithmetic.

gpu.module @m {
  // One instruction works on at most 32 lanes and two registers of each operand.
  // CHECK-LABEL: gpu.func @in_pieces(
  // CHECK: visa.add (M1_NM, 32) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 32) [[V0]](2,0)<1> %in0(2,0)<1;1,0> %in1(2,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 32) [[V1:%\w+]](0,0)<1> %in2(0,0)<1;1,0> %in2(0,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V1]](1,0)<1> %in2(1,0)<1;1,0> %in2(1,0)<1;1,0>
  gpu.func @in_pieces(%a: vector<64xf32>, %b: vector<64xf32>, %h: vector<48xf16>) kernel {
    %sum = arith.addf %a, %b : vector<64xf32>
    %double = arith.addf %h, %h : vector<48xf16>
    gpu.return
  }

  // Constants are immediates, in the last source.
  // CHECK-LABEL: gpu.func @constants(
  // CHECK: visa.add (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> 0x5:d
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V1:%\w+]](0,0)<1> %in0(0,0)<1;1,0> -5:d
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V2:%\w+]](0,0)<1> (-)%in0(0,0)<1;1,0> 0x5:d
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V3:%\w+]](0,0)<1> %in1(0,0)<0;1,0> 0x3:d
  gpu.func @constants(%a: vector<16xi32>, %n: i32) kernel {
    %five = arith.constant dense<5> : vector<16xi32>
    %first = arith.addi %five, %a : vector<16xi32>
    %less = arith.subi %a, %five : vector<16xi32>
    %from = arith.subi %five, %a : vector<16xi32>
    %c3 = arith.constant 3 : i32
    %product = arith.muli %c3, %n : i32
    gpu.return
  }

  // A scalar is read by all lanes, without a broadcast.
  // CHECK-LABEL: gpu.func @scalars(
  // CHECK-NOT: visa.mov
  // CHECK: visa.mul (M1_NM, 16) {{%\w+}}(0,0)<1> %in0(0,0)<1;1,0> %in1(0,0)<0;1,0>
  gpu.func @scalars(%a: vector<16xf32>, %s: f32) kernel {
    %all = vector.broadcast %s : f32 to vector<16xf32>
    %r = arith.mulf %a, %all : vector<16xf32>
    gpu.return
  }

  // Unsigned ops read the same registers with an unsigned type.
  // CHECK-LABEL: gpu.func @unsigned(
  // CHECK: visa.max (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0_ud(0,0)<1;1,0> %in1_ud(0,0)<1;1,0>
  // CHECK-NEXT: visa.shr (M1_NM, 16) [[V1:%\w+]](0,0)<1> %in0_ud(0,0)<1;1,0> %in1_ud(0,0)<1;1,0>
  // CHECK-NEXT: visa.asr (M1_NM, 16) [[V2:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in1_ud(0,0)<1;1,0>
  gpu.func @unsigned(%a: vector<16xi32>, %b: vector<16xi32>) kernel {
    %most = arith.maxui %a, %b : vector<16xi32>
    %high = arith.shrui %a, %b : vector<16xi32>
    %sign = arith.shrsi %a, %b : vector<16xi32>
    gpu.return
  }

  // Division by a power of two is a shift, toward zero for signed numbers; other divisions use f64.
  // CHECK-LABEL: gpu.func @division(
  // CHECK: visa.shr (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in0_ud(0,0)<0;1,0> 0x3:uw
  // CHECK-NEXT: visa.and (M1_NM, 1) [[V1:%\w+]](0,0)<1> %in0_ud(0,0)<0;1,0> 0x7:ud
  // CHECK-NEXT: visa.asr (M1_NM, 1) [[V2:%\w+]](0,0)<1> %in0(0,0)<0;1,0> 0x1f:uw
  // CHECK-NEXT: visa.and (M1_NM, 1) [[V3:%\w+]](0,0)<1> [[V2]](0,0)<0;1,0> 0x7:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V4:%\w+]](0,0)<1> %in0(0,0)<0;1,0> [[V3]](0,0)<0;1,0>
  // CHECK-NEXT: visa.asr (M1_NM, 1) [[V5:%\w+]](0,0)<1> [[V4]](0,0)<0;1,0> 0x3:uw
  // CHECK-NEXT: visa.asr (M1_NM, 1) [[V6:%\w+]](0,0)<1> %in0(0,0)<0;1,0> 0x3:uw
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V7:%\w+]](0,0)<1> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V8:%\w+]](0,0)<1> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.div (M1_NM, 1) [[V9:%\w+]](0,0)<1> [[V7]](0,0)<0;1,0> [[V8]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V10:%\w+]](0,0)<1> [[V9]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V11:%\w+]](0,0)<1> [[V10]](0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V12:%\w+]](0,0)<1> (-)[[V11]](0,0)<0;1,0> %in0(0,0)<0;1,0>
  gpu.func @division(%a: i32, %b: i32) kernel {
    %c8 = arith.constant 8 : i32
    %quotient = arith.divui %a, %c8 : i32
    %rest = arith.remui %a, %c8 : i32
    %signed = arith.divsi %a, %c8 : i32
    %floor = arith.floordivsi %a, %c8 : i32
    %any = arith.remsi %a, %b : i32
    gpu.return
  }

  // vISA's min returns the operand that is a number; for minimumf, a NaN operand gives the canonical NaN.
  // CHECK-LABEL: gpu.func @minima(
  // CHECK: visa.min (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.min (M1_NM, 16) [[V1:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.cmp.eq (M1_NM, 16) [[P0:%\w+]] %in0(0,0)<1;1,0> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.cmp.eq (M1_NM, 16) [[P1:%\w+]] %in1(0,0)<1;1,0> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.and (M1_NM, 16) [[P2:%\w+]] [[P0]] [[P1]]
  // CHECK-NEXT: visa.sel (M1_NM, 16, [[P2]]) [[V2:%\w+]](0,0)<1> [[V1]](0,0)<1;1,0> 0x7fc00000:f
  gpu.func @minima(%a: vector<16xf32>, %b: vector<16xf32>) kernel {
    %number = arith.minnumf %a, %b : vector<16xf32>
    %nan = arith.minimumf %a, %b : vector<16xf32>
    gpu.return
  }

  // A comparison writes a predicate for each 16 lanes, which sel reads.
  // CHECK-LABEL: gpu.func @choice(
  // CHECK: visa.cmp.lt (M1_NM, 16) [[P0:%\w+]] %in0(0,0)<1;1,0> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 16) [[P1:%\w+]] %in0(1,0)<1;1,0> %in1(1,0)<1;1,0>
  // CHECK-NEXT: visa.sel (M1_NM, 16, [[P0]]) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.sel (M1_NM, 16, [[P1]]) [[V0]](1,0)<1> %in0(1,0)<1;1,0> %in1(1,0)<1;1,0>
  // CHECK-NEXT: visa.cmp.ge (M1_NM, 16) [[P2:%\w+]] %in0(0,0)<1;1,0> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.cmp.ge (M1_NM, 16) [[P3:%\w+]] %in0(1,0)<1;1,0> %in1(1,0)<1;1,0>
  // CHECK-NEXT: visa.not (M1_NM, 16) [[P4:%\w+]] [[P2]]
  // CHECK-NEXT: visa.not (M1_NM, 16) [[P5:%\w+]] [[P3]]
  gpu.func @choice(%a: vector<32xf32>, %b: vector<32xf32>) kernel {
    %less = arith.cmpf olt, %a, %b : vector<32xf32>
    %r = arith.select %less, %a, %b : vector<32xi1>, vector<32xf32>
    %unordered = arith.cmpf ult, %a, %b : vector<32xf32>
    gpu.return
  }

  // Both halves of products: for 16 bits those of a 32-bit product; for 32 bits the upper half is `mulh`.
  // CHECK-LABEL: gpu.func @extended(
  // CHECK: visa.mulh (M1_NM, 16) [[HIGH:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[LOW:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in0(0,0)<1;1,0>
  // CHECK: visa.mul (M1_NM, 16) [[WHOLE:%\w+]](0,0)<1> %{{\w+}}(0,0)<1;1,0> %{{\w+}}(0,0)<1;1,0>
  // CHECK-NEXT: visa.shr (M1_NM, 16) %{{\w+}}(0,0)<1> [[WHOLE]](0,0)<1;1,0> 0x10:uw
  // CHECK: visa.add (M1_NM, 16) [[SUM:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 16) %{{\w+}} %{{\w+}}(0,0)<1;1,0> %{{\w+}}(0,0)<1;1,0>
  gpu.func @extended(%a: vector<16xi32>, %b: vector<16xi16>) kernel {
    %low, %high = arith.mulsi_extended %a, %a : vector<16xi32>
    %less, %more = arith.mului_extended %b, %b : vector<16xi16>
    %sum, %carry = arith.addui_extended %a, %a : vector<16xi32>, vector<16xi1>
    gpu.return
  }
}
