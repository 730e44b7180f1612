// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc' | FileCheck %s

// dpas.

!a = !xegpu.tensor_desc<8x16xbf16>
!b = !xegpu.tensor_desc<16x16xbf16>
!u = !xegpu.tensor_desc<4x32xui8>
!s = !xegpu.tensor_desc<32x16xi8>
!t = !xegpu.tensor_desc<8x8xtf32>
!tall = !xegpu.tensor_desc<32x16xf16>
!wide = !xegpu.tensor_desc<16x16xf16>

gpu.module @m {
  // Operands are the registers that messages wrote, without moves.
  // CHECK-LABEL: gpu.func @bf16(
  // CHECK: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V0:%\w+]][0]:d16.16x8nn flat[%in0(0,0),0x7f,0x3f,0x7f,0x0,0x0]
  // CHECK-NEXT: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V1:%\w+]][0]:d16.16x16nt flat[%in1(0,0),0x7f,0x3f,0x7f,0x0,0x0]
  // CHECK-NEXT: visa.dpas.bf.bf.8.8 (M1, 16) [[V2:%\w+]][0] null [[V1]]_d[0] [[V0]]_d(0,0)
  // CHECK-NEXT: visa.dpas.bf.bf.8.8 (M1, 16) [[V3:%\w+]][0] [[V2]][0] [[V1]]_d[0] [[V0]]_d(0,0)
  gpu.func @bf16(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>) kernel {
    %a_desc = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<64x64xbf16> -> !a
    %b_desc = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<64x64xbf16> -> !b
    %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !a -> vector<8x8x2xbf16>
    %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0} : !b -> vector<8x16x2xbf16>
    %first = xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
    %second = xegpu.dpas %first, %a, %b {mode = vc}
      : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @integers(
  // CHECK: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V0:%\w+]][0]:d8.32x4nn flat[%in0(0,0),0x3f,0x3f,0x3f,0x0,0x0]
  // CHECK-NEXT: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V1:%\w+]][0]:d8.16x32nt flat[%in1(0,0),0x3f,0x3f,0x3f,0x0,0x0]
  // CHECK-NEXT: visa.dpas.s8.u8.8.4 (M1, 16) [[V2:%\w+]][0] null [[V1]]_d[0] [[V0]]_d(0,0)
  gpu.func @integers(%A: memref<64x64xui8>, %B: memref<64x64xi8>) kernel {
    %a_desc = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<64x64xui8> -> !u
    %b_desc = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<64x64xi8> -> !s
    %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !u -> vector<4x8x4xui8>
    %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0} : !s -> vector<8x16x4xi8>
    %r = xegpu.dpas %a, %b {mode = vc} : vector<4x8x4xui8>, vector<8x16x4xi8> -> vector<4x16xi32>
    gpu.return
  }

  // Slices of a larger block are parts of its registers.
  // CHECK-LABEL: gpu.func @rows_of_a_block(
  // CHECK: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V0:%\w+]][0]:d16.16x32nn flat[%in0(0,0),0x7f,0x3f,0x7f,0x0,0x0]
  // CHECK-NEXT: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V1:%\w+]][0]:d16.16x16nt flat[%in1(0,0),0x7f,0x3f,0x7f,0x0,0x0]
  // CHECK-NEXT: visa.dpas.hf.hf.8.8 (M1, 16) [[V2:%\w+]][0] null [[V1]]_d[0] [[V0]]_d(12,0)
  gpu.func @rows_of_a_block(%A: memref<64x64xf16>, %B: memref<64x64xf16>) kernel {
    %a_desc = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<64x64xf16> -> !tall
    %b_desc = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<64x64xf16> -> !wide
    %a = xegpu.load_nd %a_desc {mode = vc, vnni_axis = 1} : !tall -> vector<32x8x2xf16>
    %b = xegpu.load_nd %b_desc {mode = vc, vnni_axis = 0} : !wide -> vector<8x16x2xf16>
    %a3 = vector.extract_strided_slice %a {offsets = [24, 0, 0], sizes = [8, 8, 2], strides = [1, 1, 1]}
      : vector<32x8x2xf16> to vector<8x8x2xf16>
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %r = xegpu.dpas %zero, %a3, %b {mode = vc}
      : vector<8x16xf32>, vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
    gpu.return
  }
}
