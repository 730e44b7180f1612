// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Vectors of constants take no registers before an instruction needs them, and are moved to registers once: several in
// a constant of 64 bits, or by additions to those that are in registers, whichever takes fewer instructions.

gpu.module @m {
  // CHECK-LABEL: gpu.func @late(
  // CHECK-NOT: visa.mov
  // CHECK: visa.mul (M1_NM, 16) [[X:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[BYTES:%\w+]](0,0)<1> 0x706050403020100:q
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[BYTES]](0,1)<1> 0xf0e0d0c0b0a0908:q
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[STEP:%\w+]](0,0)<1> [[BYTES]]_b(0,0)<1;1,0>
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
  // CHECK: visa.mov (M1_NM, 1) [[NUMBERS:%\w+]]_q(0,0)<1> 0x400000003f800000:q
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[NUMBERS]]_q(0,1)<1> 0x80000000:q
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

  // CHECK-LABEL: gpu.func @forms(
  gpu.func @forms(%d: vector<16xi32>, %w: vector<4xi16>, %u: vector<8xui32>, %three: vector<3xi32>) kernel {
    // Additions follow the first two.
    // CHECK: visa.mov (M1_NM, 1) [[FIRST:%\w+]]_q(0,0)<1> 0x182b8fffffc18:q
    // CHECK-NEXT: visa.add (M1_NM, 2) [[FIRST]](0,2)<1> [[FIRST]](0,0)<1;1,0> 0x30d40:d
    // CHECK-NEXT: visa.add (M1_NM, 4) [[FIRST]](0,4)<1> [[FIRST]](0,0)<1;1,0> 0x61a80:d
    // CHECK-NEXT: visa.add (M1_NM, 8) [[FIRST]](0,8)<1> [[FIRST]](0,0)<1;1,0> 0xc3500:d
    %far = arith.constant dense<[-1000, 99000, 199000, 299000, 399000, 499000, 599000, 699000,
                                 799000, 899000, 999000, 1099000, 1199000, 1299000, 1399000, 1499000]> : vector<16xi32>
    %a = arith.addi %d, %far : vector<16xi32>
    // CHECK: visa.mov (M1_NM, 1) [[WORDS:%\w+]]_q(0,0)<1> -9223372015379742720:q
    // CHECK-NEXT: visa.add (M1_NM, 4) {{.*}} [[WORDS]](0,0)<1;1,0>
    %words = arith.constant dense<[0, 3, 5, -32768]> : vector<4xi16>
    %b = arith.addi %w, %words : vector<4xi16>
    // Words of 16 bits are sign-extended.
    // CHECK: visa.mov (M1_NM, 1) [[V:%\w+]](0,0)<1> 0x7fff00ff00800000:q
    // CHECK-NEXT: visa.mov (M1_NM, 1) [[V]](0,1)<1> 0x12c00078000ffff:q
    // CHECK-NEXT: visa.mov (M1_NM, 8) {{.*}} [[V]]_w(0,0)<1;1,0>
    %mixed = arith.constant dense<[0, 128, 255, 32767, -1, -32768, 7, 300]> : vector<8xi32>
    %u0 = vector.bitcast %u : vector<8xui32> to vector<8xi32>
    %c = arith.addi %u0, %mixed : vector<8xi32>
    // Equal ones take one instruction, and three no more than as many.
    // CHECK: visa.mov (M1_NM, 2) [[THREE:%\w+]](0,0)<1> 0x7:d
    // CHECK-NEXT: visa.mov (M1_NM, 1) [[THREE]](0,2)<1> 0x9:d
    %sevens = arith.constant dense<[7, 7, 9]> : vector<3xi32>
    %e = arith.addi %three, %sevens : vector<3xi32>
    gpu.return
  }
}
