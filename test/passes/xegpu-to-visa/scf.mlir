// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// Loops and branches on uniform conditions.

gpu.module @m {
  // A loop with at least one iteration has its test at the end only. Carried values are written in place, without
  // moves.
  // CHECK-LABEL: gpu.func @counted(
  // CHECK: visa.mov (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V1:%\w+]](0,0)<1> 0x0:d
  // CHECK-NEXT: visa.label For1
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[V0]](0,0)<1> [[V0]](0,0)<1;1,0> [[V0]](0,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V1]](0,0)<1> [[V1]](0,0)<0;1,0> 0x1:d
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 1) [[P0:%\w+]] [[V1]](0,0)<0;1,0> 0x8:d
  // CHECK-NEXT: visa.jmp (M1, 1, [[P0]]) For1
  // CHECK-NEXT: visa.label Done2
  gpu.func @counted(%x: vector<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %x) -> (vector<16xf32>) {
      %next = arith.mulf %acc, %acc : vector<16xf32>
      scf.yield %next : vector<16xf32>
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @any_count(
  // CHECK: visa.mov (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V1:%\w+]](0,0)<1> 0x0:d
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 1) [[P0:%\w+]] [[V1]](0,0)<0;1,0> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.jmp (M1, 1, ![[P0]]) Done2
  // CHECK-NEXT: visa.label For1
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V0]](0,0)<1> [[V0]](0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V1]](0,0)<1> [[V1]](0,0)<0;1,0> 0x1:d
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 1) [[P1:%\w+]] [[V1]](0,0)<0;1,0> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.jmp (M1, 1, [[P1]]) For1
  // CHECK-NEXT: visa.label Done2
  gpu.func @any_count(%n: index, %x: f32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> (f32) {
      %next = arith.mulf %acc, %x : f32
      scf.yield %next : f32
    }
    gpu.return
  }

  // The last addition may pass 2^31. A counter that saturates is not below the limit, and needs no 64 bits.
  // CHECK-LABEL: gpu.func @any_step(
  // CHECK: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 1) {{%\w+}} [[AT]](0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK: visa.add.sat (M1_NM, 1) [[AT]](0,0)<1> [[AT]](0,0)<0;1,0> %in2(0,0)<0;1,0>
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 1) [[MORE:%\w+]] [[AT]](0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.jmp (M1, 1, [[MORE]]) For1
  gpu.func @any_step(%a: i32, %b: i32, %c: i32, %x: f32) kernel {
    %from = arith.index_cast %a : i32 to index
    %to = arith.index_cast %b : i32 to index
    %step = arith.index_cast %c : i32 to index
    %r = scf.for %i = %from to %to step %step iter_args(%acc = %x) -> (f32) {
      %next = arith.mulf %acc, %x : f32
      scf.yield %next : f32
    }
    gpu.return
  }

  // Swapping two carried values needs a temporary variable.
  // CHECK-LABEL: gpu.func @swap(
  // CHECK: visa.mov (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V1:%\w+]](0,0)<1> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V2:%\w+]](0,0)<1> 0x0:d
  // CHECK-NEXT: visa.label For1
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V3:%\w+]](0,0)<1> [[V0]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V0]](0,0)<1> [[V1]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V1]](0,0)<1> [[V3]](0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V2]](0,0)<1> [[V2]](0,0)<0;1,0> 0x1:d
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 1) [[P0:%\w+]] [[V2]](0,0)<0;1,0> 0x8:d
  // CHECK-NEXT: visa.jmp (M1, 1, [[P0]]) For1
  // CHECK-NEXT: visa.label Done2
  gpu.func @swap(%a: f32, %b: f32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %a, %y = %b) -> (f32, f32) {
      scf.yield %y, %x : f32, f32
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @branch(
  // CHECK: visa.cmp.lt (M1_NM, 1) [[P0:%\w+]] %in0(0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.jmp (M1, 1, ![[P0]]) Else1
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in0(0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.jmp (M1, 1) EndIf2
  // CHECK-NEXT: visa.label Else1
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V0]](0,0)<1> %in0(0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.label EndIf2
  gpu.func @branch(%a: f32, %b: f32) kernel {
    %p = arith.cmpf olt, %a, %b : f32
    %r = scf.if %p -> (f32) {
      %x = arith.addf %a, %b : f32
      scf.yield %x : f32
    } else {
      %y = arith.mulf %a, %b : f32
      scf.yield %y : f32
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @while(
  // CHECK: visa.mov (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.label While1
  // CHECK-NEXT: visa.cmp.gt (M1_NM, 1) [[P0:%\w+]] [[V0]](0,0)<0;1,0> 0x1:d
  // CHECK-NEXT: visa.jmp (M1, 1, ![[P0]]) Done2
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V0]](0,0)<1> [[V0]](0,0)<0;1,0> -1:d
  // CHECK-NEXT: visa.jmp (M1, 1) While1
  // CHECK-NEXT: visa.label Done2
  gpu.func @while(%n: i32) kernel {
    %one = arith.constant 1 : i32
    %r = scf.while (%i = %n) : (i32) -> i32 {
      %more = arith.cmpi sgt, %i, %one : i32
      scf.condition(%more) %i : i32
    } do {
    ^bb0(%i: i32):
      %next = arith.subi %i, %one : i32
      scf.yield %next : i32
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @switch(
  // CHECK: visa.cmp.eq (M1_NM, 1) [[P0:%\w+]] %in0(0,0)<0;1,0> 0x0:d
  // CHECK-NEXT: visa.jmp (M1, 1, ![[P0]]) Case2
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in1(0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.jmp (M1, 1) EndSwitch1
  // CHECK-NEXT: visa.label Case2
  // CHECK-NEXT: visa.cmp.eq (M1_NM, 1) [[P1:%\w+]] %in0(0,0)<0;1,0> 0x5:d
  // CHECK-NEXT: visa.jmp (M1, 1, ![[P1]]) Case3
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V0]](0,0)<1> %in1(0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.jmp (M1, 1) EndSwitch1
  // CHECK-NEXT: visa.label Case3
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V0]](0,0)<1> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.label EndSwitch1
  gpu.func @switch(%n: index, %x: f32) kernel {
    %r = scf.index_switch %n -> f32
    case 0 {
      %a = arith.addf %x, %x : f32
      scf.yield %a : f32
    }
    case 5 {
      %b = arith.mulf %x, %x : f32
      scf.yield %b : f32
    }
    default {
      scf.yield %x : f32
    }
    gpu.return
  }

  // What one branch computes is not available in the other one. What both need of values before them precedes them.
  // CHECK-LABEL: gpu.func @available(
  // CHECK: visa.add (M1_NM, 1) [[BASE:%\w+]](0,0)<1> %in0(0,0)<0;1,0> 0x10:q
  // CHECK: visa.jmp (M1, 1, !{{%\w+}}) Else
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[BYTES:%\w+]](0,0)<1> %in1(0,0)<1;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 16) {{%\w+}}(0,0)<1> [[BYTES]](0,0)<1;1,0> [[BASE]](0,0)<0;1,0>
  // CHECK: visa.label Else
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[OTHER:%\w+]](0,0)<1> %in1(0,0)<1;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 16) {{%\w+}}(0,0)<1> [[OTHER]](0,0)<1;1,0> [[BASE]](0,0)<0;1,0>
  gpu.func @available(%m: memref<?xf32, strided<[1], offset: 4>>, %lanes: vector<16xi32>, %n: i32) kernel {
    %zero = arith.constant 0 : i32
    %is = arith.cmpi eq, %n, %zero : i32
    %places = arith.index_cast %lanes : vector<16xi32> to vector<16xindex>
    %all = vector.constant_mask [16] : vector<16xi1>
    scf.if %is {
      %d = xegpu.create_tdesc %m, %places {mode = vc} : memref<?xf32, strided<[1], offset: 4>>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
      %x = xegpu.load_gather %d, %all {mode = vc} : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
    } else {
      %d = xegpu.create_tdesc %m, %places {mode = vc} : memref<?xf32, strided<[1], offset: 4>>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
      %x = xegpu.load_gather %d, %all {mode = vc} : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
    }
    gpu.return
  }
}
