// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Conversions.

gpu.module @m {
  // CHECK-LABEL: gpu.func @floats(
  // CHECK: visa.mov (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V1:%\w+]](0,0)<1> %in2(0,0)<1;1,0>
  // CHECK-NEXT: visa.fcvt (M1_NM, 16) [[V2:%\w+]](0,0)<1> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.fcvt (M1_NM, 16) [[V3:%\w+]](0,0)<1> [[V2]](0,0)<1;1,0>
  gpu.func @floats(%f: vector<16xf32>, %h: vector<16xf16>, %b: vector<16xbf16>) kernel {
    %to_half = arith.truncf %f : vector<16xf32> to vector<16xf16>
    %to_float = arith.extf %b : vector<16xbf16> to vector<16xf32>
    // There is no mov between hf and bf.
    %to_bf8 = arith.truncf %h : vector<16xf16> to vector<16xf8E5M2>
    %from_bf8 = arith.extf %to_bf8 : vector<16xf8E5M2> to vector<16xf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @integers(
  // CHECK: visa.mov (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V1:%\w+]](0,0)<1> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V2:%\w+]](0,0)<1> %in1_ub(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V3:%\w+]](0,0)<1> %in0_ud(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V4:%\w+]](0,0)<1> [[V3]](0,0)<1;1,0>
  gpu.func @integers(%i: vector<16xi32>, %s: vector<16xi8>) kernel {
    %narrow = arith.trunci %i : vector<16xi32> to vector<16xi16>
    %signed = arith.extsi %s : vector<16xi8> to vector<16xi32>
    %unsigned = arith.extui %s : vector<16xi8> to vector<16xi32>
    %float = arith.uitofp %i : vector<16xi32> to vector<16xf32>
    %whole = arith.fptosi %float : vector<16xf32> to vector<16xi32>
    gpu.return
  }

  // An index that is cast from i32 has 32 bits in registers, and the cast no instruction.
  // CHECK-LABEL: gpu.func @index(
  // CHECK: visa.max (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> 0x0:d
  gpu.func @index(%i: vector<16xi32>) kernel {
    %zero = arith.constant dense<0> : vector<16xindex>
    %r = arith.index_cast %i : vector<16xi32> to vector<16xindex>
    %sum = arith.maxsi %r, %zero : vector<16xindex>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @truth(
  // CHECK: visa.cmp.gt (M1_NM, 16) [[P0:%\w+]] %in0(0,0)<1;1,0> 0x0:d
  // CHECK-NEXT: visa.sel (M1_NM, 16, [[P0]]) [[V0:%\w+]](0,0)<1> 0x1:d 0x0:d
  // CHECK-NEXT: visa.and (M1_NM, 16) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<1;1,0> 0x1:d
  // CHECK-NEXT: visa.cmp.ne (M1_NM, 16) [[P1:%\w+]] [[V1]](0,0)<1;1,0> 0x0:d
  gpu.func @truth(%i: vector<16xi32>) kernel {
    %zero = arith.constant dense<0> : vector<16xi32>
    %p = arith.cmpi sgt, %i, %zero : vector<16xi32>
    %ones = arith.extui %p : vector<16xi1> to vector<16xi32>
    %back = arith.trunci %ones : vector<16xi32> to vector<16xi1>
    gpu.return
  }
}
