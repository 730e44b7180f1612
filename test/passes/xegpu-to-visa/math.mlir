// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Functions that vISA has, and some that it lacks.

gpu.module @m {
  // CHECK-LABEL: gpu.func @instructions(
  // CHECK: visa.exp (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.log (M1_NM, 16) [[V1:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.sqrt (M1_NM, 16) [[V2:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.rsqrt (M1_NM, 16) [[V3:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.sin (M1_NM, 16) [[V4:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.cos (M1_NM, 16) [[V5:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.rndd (M1_NM, 16) [[V6:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.rndu (M1_NM, 16) [[V7:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.rnde (M1_NM, 16) [[V8:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V9:%\w+]](0,0)<1> (abs)%in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mad (M1_NM, 16) [[V10:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in0(0,0)<1;1,0> %in0(0,0)<1;1,0>
  gpu.func @instructions(%x: vector<16xf32>) kernel {
    %exp2 = math.exp2 %x : vector<16xf32>
    %log2 = math.log2 %x : vector<16xf32>
    %sqrt = math.sqrt %x : vector<16xf32>
    %rsqrt = math.rsqrt %x : vector<16xf32>
    %sin = math.sin %x : vector<16xf32>
    %cos = math.cos %x : vector<16xf32>
    %floor = math.floor %x : vector<16xf32>
    %ceil = math.ceil %x : vector<16xf32>
    %even = math.roundeven %x : vector<16xf32>
    %size = math.absf %x : vector<16xf32>
    %fma = math.fma %x, %x, %x : vector<16xf32>
    gpu.return
  }

  // exp is exp2 of the scaled number, corrected by the rounding error of the scaling.
  // CHECK-LABEL: gpu.func @exp(
  // CHECK: visa.mul (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> 0x3fb8aa3b:f
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V1:%\w+]](0,0)<1> 0x3fb8aa3b:f
  // CHECK-NEXT: visa.mad (M1_NM, 16) [[V2:%\w+]](0,0)<1> %in0(0,0)<1;1,0> [[V1]](0,0)<0;1,0> (-)[[V0]](0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V3:%\w+]](0,0)<1> 0x32a57060:f
  // CHECK-NEXT: visa.mad (M1_NM, 16) [[V4:%\w+]](0,0)<1> %in0(0,0)<1;1,0> [[V3]](0,0)<0;1,0> [[V2]](0,0)<1;1,0>
  // CHECK-NEXT: visa.exp (M1_NM, 16) [[V5:%\w+]](0,0)<1> [[V0]](0,0)<1;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[V6:%\w+]](0,0)<1> [[V5]](0,0)<1;1,0> 0x3f317218:f
  // CHECK-NEXT: visa.mad (M1_NM, 16) [[V7:%\w+]](0,0)<1> [[V6]](0,0)<1;1,0> [[V4]](0,0)<1;1,0> [[V5]](0,0)<1;1,0>
  // CHECK-NEXT: visa.cmp.eq (M1_NM, 16) [[P0:%\w+]] [[V7]](0,0)<1;1,0> [[V7]](0,0)<1;1,0>
  // CHECK-NEXT: visa.sel (M1_NM, 16, [[P0]]) [[V8:%\w+]](0,0)<1> [[V7]](0,0)<1;1,0> [[V5]](0,0)<1;1,0>
  gpu.func @exp(%x: vector<16xf32>) kernel {
    %y = math.exp %x : vector<16xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @log(
  // CHECK: visa.log (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<1;1,0> 0x3f317218:f
  gpu.func @log(%x: vector<16xf32>) kernel {
    %y = math.log %x : vector<16xf32>
    gpu.return
  }
}
