// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc max-bytes=2147418112 max-index=1073741824' | FileCheck %s

// Vectors: shapes and slices need no instructions, permutations are moves.

gpu.module @m {
  // Shape casts are no instructions; rows and aligned parts of rows are parts of the same registers.
  // CHECK-LABEL: gpu.func @parts(
  // CHECK: visa.add (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(3,0)<1;1,0> %in0(3,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 32) [[V1:%\w+]](0,0)<1> %in0(4,0)<1;1,0> %in0(4,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V2:%\w+]](0,0)<1> %in0(2,5)<0;1,0> %in0(2,5)<0;1,0>
  gpu.func @parts(%m: vector<8x16xf32>) kernel {
    %flat = vector.shape_cast %m : vector<8x16xf32> to vector<128xf32>
    %square = vector.shape_cast %flat : vector<128xf32> to vector<16x8xf32>
    %row = vector.extract %m[3] : vector<16xf32> from vector<8x16xf32>
    %rows = vector.extract_strided_slice %m {offsets = [4], sizes = [2], strides = [1]}
      : vector<8x16xf32> to vector<2x16xf32>
    %element = vector.extract %m[2, 5] : f32 from vector<8x16xf32>
    %bits = vector.bitcast %row : vector<16xf32> to vector<16xi32>
    %sum = arith.addf %row, %row : vector<16xf32>
    %sums = arith.addf %rows, %rows : vector<2x16xf32>
    %single = arith.addf %element, %element : f32
    gpu.return
  }

  // Permutations are moves with strided regions.
  // CHECK-LABEL: gpu.func @order(
  // CHECK: visa.mov (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;4,4>
  // CHECK-NEXT: visa.mov (M1_NM, 8) [[V1:%\w+]](0,0)<2> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 8) [[V1]](0,1)<2> %in2(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 4) [[V2:%\w+]](0,0)<1> %in1(0,0)<2;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 4) [[V3:%\w+]](0,0)<1> %in1(0,1)<2;1,0>
  gpu.func @order(%m: vector<4x4xf32>, %a: vector<8xf32>, %b: vector<8xf32>) kernel {
    %t = vector.transpose %m, [1, 0] : vector<4x4xf32> to vector<4x4xf32>
    %both = vector.interleave %a, %b : vector<8xf32> -> vector<16xf32>
    %even, %odd = vector.deinterleave %a : vector<8xf32> -> vector<4xf32>
    gpu.return
  }

  // VNNI form: the first move writes zeros between its numbers, so that it defines the registers as a whole.
  // CHECK-LABEL: gpu.func @pairs(
  // CHECK: visa.mov (M1_NM, 32) [[D:%\w+]](0,0)<1> %in0_uw(0,0)<32;16,1>
  // CHECK-NEXT: visa.mov (M1_NM, 32) [[W:%\w+]](0,1)<2> %in0_uw(0,16)<32;16,1>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[D4:%\w+]](0,0)<1> %in1_ub(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[B:%\w+]](0,1)<4> %in1_ub(0,16)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[B]](0,2)<4> %in1_ub(0,32)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[B]](0,3)<4> %in1_ub(0,48)<1;1,0>
  // CHECK-NEXT: visa.ret
  gpu.func @pairs(%m: vector<2x2x16xbf16>, %n: vector<1x4x16xi8>) kernel {
    %two = vector.transpose %m, [0, 2, 1] : vector<2x2x16xbf16> to vector<2x16x2xbf16>
    %four = vector.transpose %n, [0, 2, 1] : vector<1x4x16xi8> to vector<1x16x4xi8>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @columns(
  // CHECK: visa.mov (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,8)<16;8,1>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V0]](1,0)<1> %in0(2,8)<16;8,1>
  gpu.func @columns(%m: vector<4x16xf32>) kernel {
    %half = vector.extract_strided_slice %m {offsets = [0, 8], sizes = [4, 8], strides = [1, 1]}
      : vector<4x16xf32> to vector<4x8xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @insertion(
  // CHECK: visa.mov (M1_NM, 32) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 32) [[V0]](2,0)<1> %in0(2,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V0]](2,0)<1> %in1(0,0)<1;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V0]](0,1)<1> %in2(0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 32) [[V1:%\w+]](0,0)<1> %in0(0,0)<1;1,0> [[V0]](0,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 32) [[V1]](2,0)<1> %in0(2,0)<1;1,0> [[V0]](2,0)<1;1,0>
  gpu.func @insertion(%m: vector<4x16xf32>, %row: vector<16xf32>, %s: f32) kernel {
    %with_row = vector.insert %row, %m [2] : vector<16xf32> into vector<4x16xf32>
    %with_one = vector.insert %s, %with_row [0, 1] : f32 into vector<4x16xf32>
    %other = arith.addf %m, %with_one : vector<4x16xf32>
    gpu.return
  }

  // Reductions add halves.
  // CHECK-LABEL: gpu.func @reductions(
  // CHECK: visa.add (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> %in0(1,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 8) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<1;1,0> [[V0]](0,8)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 4) [[V2:%\w+]](0,0)<1> [[V1]](0,0)<1;1,0> [[V1]](0,4)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 2) [[V3:%\w+]](0,0)<1> [[V2]](0,0)<1;1,0> [[V2]](0,2)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V4:%\w+]](0,0)<1> [[V3]](0,0)<0;1,0> [[V3]](0,1)<0;1,0>
  // CHECK-NEXT: visa.max (M1_NM, 32) [[V5:%\w+]](0,0)<1> %in1(0,0)<1;1,0> %in1(2,0)<1;1,0>
  // CHECK-NEXT: visa.max (M1_NM, 16) [[V6:%\w+]](0,0)<1> [[V5]](0,0)<1;1,0> [[V5]](1,0)<1;1,0>
  // CHECK-NEXT: visa.max (M1_NM, 16) [[V7:%\w+]](0,0)<1> %in2(0,0)<1;1,0> [[V6]](0,0)<1;1,0>
  gpu.func @reductions(%x: vector<32xf32>, %m: vector<4x16xf32>, %acc: vector<16xf32>) kernel {
    %sum = vector.reduction <add>, %x : vector<32xf32> into f32
    %columns = vector.multi_reduction <maxnumf>, %m, %acc [0] : vector<4x16xf32> to vector<16xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @masks(
  // CHECK: visa.mov (M1_NM, 1) [[BYTES:%\w+]](0,0)<1> 0x706050403020100:q
  // CHECK-NEXT: visa.mov (M1_NM, 8) [[V0:%\w+]](0,0)<1> [[BYTES]]_b(0,0)<1;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 8) [[V0]](0,8)<1> [[V0]](0,0)<1;1,0> 0x8:d
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V0]](1,0)<1> [[V0]](0,0)<1;1,0> 0x10:d
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 16) [[P0:%\w+]] [[V0]](0,0)<1;1,0> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.cmp.lt (M1_NM, 16) [[P1:%\w+]] [[V0]](1,0)<1;1,0> %in0(0,0)<0;1,0>
  gpu.func @masks(%n: index) kernel {
    %some = vector.create_mask %n : vector<32xi1>
    %c40 = arith.constant 40 : index
    %all = vector.create_mask %c40 : vector<32xi1>
    gpu.return
  }
}
