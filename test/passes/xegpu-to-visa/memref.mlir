// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc max-bytes=2147418112 max-index=1073741824' | FileCheck %s

// Addresses and single elements. Indices have 32 bits here because of the limits of launches in the options; an offset
// that may exceed 32 bits has 64.

gpu.module @m {
  // Static strides are folded into one offset, in bytes if no index has stride 1, and constants into the messages;
  // dynamic strides are inputs.
  // The address of one element begins at a register, and other variables may share the rest of it.
  // CHECK-LABEL: gpu.func @static(
  // CHECK-COUNT-2: visa.decl "{{v[0-9]+}}", uq x 1, align = GRF
  // CHECK-NOT: uq x 8
  // CHECK: visa.mul (M1_NM, 1) [[V2:%\w+]](0,0)<1> %in1(0,0)<0;1,0> 0x80:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V3:%\w+]](0,0)<1> %in0(0,0)<0;1,0> [[V2]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1> [[V3]](0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) [[V4:%\w+]][0]:d32x1t flat[[[AT]][0]+0xc]:a64
  // CHECK-NEXT: visa.mul (M1_NM, 1) [[V6:%\w+]](0,0)<1> %in1(0,0)<0;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V7:%\w+]](0,0)<1> %in0(0,0)<0;1,0> [[V6]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V8:%\w+]](0,0)<1> [[V4]]_f(0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1> [[V7]](0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_store.ugm (M1_NM, 1) flat[[[AT]][0]+0x180]:a64 [[V9:%\w+]][0]:d32x1t
  gpu.func @static(%m: memref<8x32xf32>, %i: index) kernel {
    %c3 = arith.constant 3 : index
    %x = memref.load %m[%i, %c3] : memref<8x32xf32>
    memref.store %x, %m[%c3, %i] : memref<8x32xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @dynamic(
  // CHECK: visa.mul (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in1(0,0)<0;1,0> %in0_stride0(0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V1:%\w+]](0,0)<1> %in0_offset(0,0)<0;1,0> [[V0]](0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V2:%\w+]](0,0)<1> [[V1]](0,0)<0;1,0> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.shl (M1_NM, 1) [[V3:%\w+]](0,0)<1> [[V2]](0,0)<0;1,0> 0x1:uw
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V4:%\w+]](0,0)<1> %in0(0,0)<0;1,0> [[V3]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1> [[V4]](0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) [[V5:%\w+]][0]:d16c32 flat[[[AT]][0]]:a64
  gpu.func @dynamic(%m: memref<?x?xf16, strided<[?, 1], offset: ?>>, %i: index) kernel {
    %x = memref.load %m[%i, %i] : memref<?x?xf16, strided<[?, 1], offset: ?>>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @subview(
  // CHECK: visa.mul (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in1(0,0)<0;1,0> 0x40:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<0;1,0> 0x10:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V4:%\w+]](0,0)<1> %in0(0,0)<0;1,0> [[V1]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1> [[V4]](0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) [[V5:%\w+]][0]:d8c32 flat[[[AT]][0]+0x81]:a64
  gpu.func @subview(%m: memref<64x64xi8>, %i: index) kernel {
    %c1 = arith.constant 1 : index
    %s = memref.subview %m[%i, 16] [4, 4] [2, 1] : memref<64x64xi8> to memref<4x4xi8, strided<[128, 1], offset: ?>>
    %x = memref.load %s[%c1, %c1] : memref<4x4xi8, strided<[128, 1], offset: ?>>
    gpu.return
  }

  // Addresses of shared local memory have 32 bits and begin at 0. Messages add the address of an allocation.
  // CHECK-LABEL: gpu.func @shared(
  // CHECK: visa.mul.sat (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in0(0,0)<0;1,0> 0x4:w
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V1:%\w+]](0,0)<1> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1> [[V0]]_ud(0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_store.slm (M1_NM, 1) flat[[[AT]][0]]:a32 [[V2:%\w+]][0]:d32x1t
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[V5:%\w+]](0,0)<1> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_store.slm (M1_NM, 1) flat[[[AT]][0]+0x40]:a32 [[V6:%\w+]][0]:d32x1t
  gpu.func @shared(%i: index, %x: f32) workgroup(%first: memref<16xf32, 3>) kernel {
    %second = memref.alloc() : memref<16xf32, 3>
    memref.store %x, %first[%i] : memref<16xf32, 3>
    memref.store %x, %second[%i] : memref<16xf32, 3>
    gpu.return
  }
}
