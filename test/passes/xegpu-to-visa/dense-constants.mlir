// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Vectors of constants take no registers before an instruction needs them, and are moved to registers once.

gpu.module @m {
  // CHECK-LABEL: gpu.func @late(
  // CHECK-NOT: visa.mov
  // CHECK: visa.mul (M1_NM, 16) [[X:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[STEP:%\w+]](0,0)<1> 0x0:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[STEP]](0,1)<1>
  // CHECK-NEXT: visa.add (M1_NM, 2) [[STEP]](0,2)<1>
  // CHECK-NEXT: visa.add (M1_NM, 4) [[STEP]](0,4)<1>
  // CHECK-NEXT: visa.add (M1_NM, 8) [[STEP]](0,8)<1>
  // CHECK-NEXT: visa.add (M1_NM, 16) [[Y:%\w+]](0,0)<1> [[X]](0,0)<1;1,0> [[STEP]](0,0)<1;1,0>
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[Z:%\w+]](0,0)<1> [[Y]](0,0)<1;1,0> [[STEP]](0,0)<1;1,0>
  gpu.func @late(%x: vector<16xi32>) kernel {
    %step = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>
    %y = arith.muli %x, %x : vector<16xi32>
    %z = arith.addi %y, %step : vector<16xi32>
    %w = arith.muli %z, %step : vector<16xi32>
    gpu.return
  }

  // A loop that needs them does not move them in each iteration.
  // CHECK-LABEL: gpu.func @loop(
  // CHECK: visa.mov (M1_NM, 1) [[NUMBERS:%\w+]](0,0)<1> 0x3f800000:f
  // CHECK: visa.label For1
  // CHECK-NEXT: visa.mul (M1_NM, 4) {{.*}} [[NUMBERS]](0,0)<1;1,0>
  gpu.func @loop(%x: vector<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %numbers = arith.constant dense<[1.0, 2.0, -0.0, 0.0]> : vector<4xf32>
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %x) -> (vector<4xf32>) {
      %next = arith.mulf %acc, %numbers : vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    gpu.return
  }

  // Branches that need them share them.
  // CHECK-LABEL: gpu.func @branches(
  // CHECK: visa.mov (M1_NM, 1) [[A:%\w+]](0,0)<1> 0x3:d
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[A]](0,1)<1> 0x5:d
  // CHECK: visa.jmp (M1, 1,
  // CHECK: visa.add (M1_NM, 2) {{.*}} [[A]](0,0)<1;1,0>
  // CHECK: visa.mul (M1_NM, 2) {{.*}} [[A]](0,0)<1;1,0>
  gpu.func @branches(%x: vector<2xi32>, %flag: i32) kernel {
    %numbers = arith.constant dense<[3, 5]> : vector<2xi32>
    %zero = arith.constant 0 : i32
    %one = arith.cmpi eq, %flag, %zero : i32
    %r = scf.if %one -> vector<2xi32> {
      %a = arith.addi %x, %numbers : vector<2xi32>
      scf.yield %a : vector<2xi32>
    } else {
      %b = arith.muli %x, %numbers : vector<2xi32>
      scf.yield %b : vector<2xi32>
    }
    gpu.return
  }
}
