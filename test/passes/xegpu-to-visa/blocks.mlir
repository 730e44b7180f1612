// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc max-bytes=2147418112 max-index=536870912' | FileCheck %s

// Blocks of two dimensions and of one.

!a = !xegpu.tensor_desc<8x16xf16>
!wide = !xegpu.tensor_desc<16x16xf16, #xegpu.tdesc_attr<array_length = 2>>
!line = !xegpu.tensor_desc<64xf32, #xegpu.tdesc_attr<boundary_check = false>>
!slab = !xegpu.tensor_desc<1x8x16xf32>
!unchecked = !xegpu.tensor_desc<1x8x16xf32, #xegpu.tdesc_attr<boundary_check = false>>
!one = !xegpu.tensor_desc<1xf16, #xegpu.tdesc_attr<boundary_check = false>>

gpu.module @m {
  // A descriptor becomes operands of its messages: base, width, height and pitch less one, x and y.
  // CHECK-LABEL: gpu.func @load(
  // CHECK: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V0:%\w+]][0]:d16.16x8nn flat[%in0(0,0),0xff,0x3f,0xff,%in2(0,0),%in1(0,0)]
  // CHECK-NEXT: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V1:%\w+]][0]:d16.16x8nt flat[%in0(0,0),0xff,0x3f,0xff,%in2(0,0),%in1(0,0)]
  // CHECK-NEXT: visa.shl (M1_NM, 1) [[EVEN:%\w+]](0,0)<1> %in2(0,0)<0;1,0> 0x1:d
  // CHECK-NEXT: visa.asr (M1_NM, 1) [[V2:%\w+]](0,0)<1> [[EVEN]](0,0)<0;1,0> 0x1:uw
  // CHECK-NEXT: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V3:%\w+]][0]:d32.8x8tn flat[%in0(0,0),0xff,0x3f,0xff,[[V2]](0,0),%in1(0,0)]
  gpu.func @load(%m: memref<64x128xf16>, %y: index, %x: index) kernel {
    %two = arith.constant 2 : index
    %d = xegpu.create_nd_tdesc %m[%y, %x] {mode = vc} : memref<64x128xf16> -> !a
    %plain = xegpu.load_nd %d {mode = vc} : !a -> vector<8x16xf16>
    %packed = xegpu.load_nd %d {mode = vc, vnni_axis = 0} : !a -> vector<4x16x2xf16>
    %even = arith.muli %x, %two : index
    %u = xegpu.create_nd_tdesc %m[%y, %even] {mode = vc} : memref<64x128xf16> -> !a
    %pairs = xegpu.load_nd %u {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !a -> vector<8x16xf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @two_blocks(
  // CHECK: visa.lsc_load_block2d.ugm.ca.uc (M1_NM, 1) [[V0:%\w+]][0]:d16.2x16x16nt flat[%in0(0,0),0xff,0x3f,0xff,0x20,0x0]
  gpu.func @two_blocks(%m: memref<64x128xf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 32] {mode = vc} : memref<64x128xf16> -> !wide
    %x = xegpu.load_nd %d {mode = vc, vnni_axis = 0, l1_hint = cached, l3_hint = uncached} : !wide -> vector<2x8x16x2xf16>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @store(
  // CHECK: visa.lsc_load_block2d.ugm (M1_NM, 1) [[V0:%\w+]][0]:d16.16x8nn flat[%in0(0,0),0xff,0x3f,0xff,0x0,0x18]
  // CHECK-NEXT: visa.lsc_store_block2d.ugm.wb.wb (M1_NM, 1) flat[%in0(0,0),0xff,0x3f,0xff,0x0,0x18] [[V0]][0]:d16.16x8nn
  gpu.func @store(%m: memref<64x128xf16>) kernel {
    %d = xegpu.create_nd_tdesc %m[24, 0] {mode = vc} : memref<64x128xf16> -> !a
    %x = xegpu.load_nd %d {mode = vc} : !a -> vector<8x16xf16>
    xegpu.store_nd %x, %d {mode = vc, l1_hint = write_back, l3_hint = write_back} : vector<8x16xf16>, !a
    gpu.return
  }

  // Moving a descriptor adds to its x or y; known extents stay immediates.
  // CHECK-LABEL: gpu.func @update(
  // CHECK: visa.add (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in0_size0(0,0)<0;1,0> -1:d
  // CHECK-NEXT: visa.shl (M1_NM, 1) [[V1:%\w+]](0,0)<1> %in0_size1(0,0)<0;1,0> 0x1:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V2:%\w+]](0,0)<1> [[V1]](0,0)<0;1,0> -1:d
  // A message has both coordinates in registers or both immediate.
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[Y:%\w+]](0,0)<1> 0x0:d
  // CHECK-NEXT: visa.lsc_load_block2d.ugm.ca.ca (M1_NM, 1) null:d16.16x8nn flat[%in0(0,0),[[V2]](0,0),[[V0]](0,0),[[V2]](0,0),%in1(0,0),[[Y]](0,0)]
  gpu.func @update(%m: memref<?x?xf16>, %by: index) kernel {
    %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<?x?xf16> -> !a
    %moved = xegpu.update_nd_offset %d, [0, %by] {mode = vc} : !a -> !a
    xegpu.prefetch_nd %moved {mode = vc, l1_hint = cached, l3_hint = cached} : !a
    gpu.return
  }

  // One dimension: transposed loads of up to 64 dwords, and single elements. An address is computed once,
  // and moved to the start of a register, where messages read it.
  // CHECK-LABEL: gpu.func @lines(
  // CHECK: visa.mul (M1_NM, 1) [[V0:%\w+]](0,0)<1> %in2(0,0)<0;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 1) [[V1:%\w+]](0,0)<1> %in0(0,0)<0;1,0> [[V0]](0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1> [[V1]](0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) [[V2:%\w+]][0]:d32x64t flat[[[AT]][0]]:a64
  // CHECK-NEXT: visa.lsc_store.ugm (M1_NM, 1) flat[[[AT]][0]]:a64 [[V2]][0]:d32x64t
  // CHECK-NEXT: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1> %in1(0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 1) {{%\w+}}[0]:d16c32 flat[[[AT]][0]]:a64
  gpu.func @lines(%m: memref<1024xf32>, %h: memref<1024xf16>, %i: index) kernel {
    %d = xegpu.create_nd_tdesc %m[%i] {mode = vc} : memref<1024xf32> -> !line
    %x = xegpu.load_nd %d {mode = vc} : !line -> vector<64xf32>
    xegpu.store_nd %x, %d {mode = vc} : vector<64xf32>, !line
    %o = xegpu.create_nd_tdesc %h[0] {mode = vc} : memref<1024xf16> -> !one
    %y = xegpu.load_nd %o {mode = vc} : !one -> vector<1xf16>
    gpu.return
  }

  // Messages check the innermost two dimensions only: a block that is out of bounds in others is moved below the
  // matrix.
  // CHECK-LABEL: gpu.func @outer_bound(
  // CHECK: visa.cmp.lt (M1_NM, 1) [[P:%\w+]] {{%\w+}}(0,0)<0;1,0> 0x4:ud
  // CHECK-NEXT: visa.sel (M1_NM, 1, [[P]]) [[SLAB:%\w+]](0,0)<1> %in1(0,0)<0;1,0> 0x0:d
  // CHECK-NEXT: visa.sel (M1_NM, 1, [[P]]) [[Y:%\w+]](0,0)<1> %in2(0,0)<0;1,0> 0x1000000:d
  // CHECK-NEXT: visa.shl (M1_NM, 1) {{%\w+}}(0,0)<1> [[SLAB]](0,0)<0;1,0> 0xa:d
  // CHECK: visa.lsc_load_block2d.ugm (M1_NM, 1) {{.*}}:d32.16x8nn flat[{{%\w+}}(0,0),0xff,0xf,0xff,{{%\w+}}(0,0),[[Y]](0,0)]
  // Constant offsets are checked at compile time.
  // CHECK: visa.lsc_store_block2d.ugm (M1_NM, 1) flat[%in0(0,0),0xff,0xf,0xff,0x0,0x1000000]
  // With boundary_check = false nothing is compared.
  // CHECK-NOT: visa.cmp
  // CHECK: visa.lsc_load_block2d
  gpu.func @outer_bound(%m: memref<4x16x64xf32>, %slab: index, %y: index) kernel {
    %d = xegpu.create_nd_tdesc %m[%slab, %y, 16] {mode = vc} : memref<4x16x64xf32> -> !slab
    %x = xegpu.load_nd %d {mode = vc} : !slab -> vector<1x8x16xf32>
    %e = xegpu.create_nd_tdesc %m[-1, 0, 0] {mode = vc} : memref<4x16x64xf32> -> !slab
    xegpu.store_nd %x, %e {mode = vc} : vector<1x8x16xf32>, !slab
    %f = xegpu.create_nd_tdesc %m[%slab, 0, 0] {mode = vc} : memref<4x16x64xf32> -> !unchecked
    xegpu.prefetch_nd %f {mode = vc} : !unchecked
    gpu.return
  }
}
