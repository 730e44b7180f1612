// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc max-bytes=2147418112 max-index=1073741824' | FileCheck %s

// Gathers, scatters and atomics.

!lanes = !xegpu.tensor_desc<16xf32, #xegpu.scattered>
!chunks = !xegpu.tensor_desc<16x4xf32, #xegpu.scattered>
!bytes = !xegpu.tensor_desc<32xi8, #xegpu.scattered>
!shared = !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>

gpu.module @m {
  // Each lane's address is computed once.
  // CHECK-LABEL: gpu.func @gather(
  // CHECK: visa.cmp.ne (M1_NM, 16) [[P0:%\w+]] %in3(0,0)<1;1,0> 0x0:b
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in1(0,0)<1;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<1;1,0> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 16) [[V2:%\w+]][0]:d32 flat[[[V1]][0]]:a64
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V3:%\w+]](0,0)<1> 0x0:f
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 16, [[P0]]) [[V3]][0]:d32 flat[[[V1]][0]]:a64
  // CHECK-NEXT: visa.mul (M1_NM, 16) [[V4:%\w+]](0,0)<1> %in2(0,0)<1;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V5:%\w+]](0,0)<1> [[V1]](0,0)<1;1,0> [[V4]](0,0)<1;1,0>
  // CHECK-NEXT: visa.lsc_store.ugm.st.wb (M1_NM, 16, [[P0]]) flat[[[V5]][0]]:a64 [[V2]]_ud[0]:d32
  // CHECK-NEXT: visa.lsc_load.ugm.ca.ca (M1_NM, 16) null:d32 flat[[[V5]][0]]:a64
  gpu.func @gather(%m: memref<1024xf32>, %places: vector<16xindex>, %by: vector<16xindex>, %mask: vector<16xi8>) kernel {
    %zero = arith.constant dense<0> : vector<16xi8>
    %some = arith.cmpi ne, %mask, %zero : vector<16xi8>
    %all = arith.constant dense<true> : vector<16xi1>
    %d = xegpu.create_tdesc %m, %places {mode = vc} : memref<1024xf32>, vector<16xindex> -> !lanes
    %x = xegpu.load_gather %d, %all {mode = vc} : !lanes, vector<16xi1> -> vector<16xf32>
    %y = xegpu.load_gather %d, %some {mode = vc} : !lanes, vector<16xi1> -> vector<16xf32>
    %e = xegpu.update_offset %d, %by {mode = vc} : !lanes, vector<16xindex> -> !lanes
    xegpu.store_scatter %x, %e, %some {mode = vc, l1_hint = streaming, l3_hint = write_back} : vector<16xf32>, !lanes, vector<16xi1>
    xegpu.prefetch %e {mode = vc} : !lanes
    gpu.return
  }

  // A chunk is a vector message.
  // CHECK-LABEL: gpu.func @chunk(
  // CHECK: visa.mul (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in1(0,0)<1;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<1;1,0> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 16) [[V2:%\w+]][0]:d32x4 flat[[[V1]][0]]:a64
  // CHECK-NEXT: visa.lsc_store.ugm (M1_NM, 16) flat[[[V1]][0]]:a64 [[V2]]_ud[0]:d32x4
  gpu.func @chunk(%m: memref<1024xf32>, %places: vector<16xindex>) kernel {
    %all = arith.constant dense<true> : vector<16xi1>
    %d = xegpu.create_tdesc %m, %places {chunk_size_per_lane = 4, mode = vc} : memref<1024xf32>, vector<16xindex> -> !chunks
    %x = xegpu.load_gather %d, %all {mode = vc} : !chunks, vector<16xi1> -> vector<4x16xf32>
    xegpu.store_scatter %x, %d, %all {mode = vc} : vector<4x16xf32>, !chunks, vector<16xi1>
    gpu.return
  }

  // Bytes are loaded as dwords, and packed.
  // CHECK-LABEL: gpu.func @narrow(
  // CHECK: visa.add (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in1(0,0)<1;1,0> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V0]](2,0)<1> %in1(1,0)<1;1,0> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 32) [[V1:%\w+]][0]:d8c32 flat[[[V0]][0]]:a64
  // CHECK-NEXT: visa.mov (M1_NM, 32) [[V2:%\w+]](0,0)<1> [[V1]](0,0)<1;1,0>
  gpu.func @narrow(%m: memref<1024xi8>, %places: vector<32xindex>) kernel {
    %all = arith.constant dense<true> : vector<32xi1>
    %d = xegpu.create_tdesc %m, %places {mode = vc} : memref<1024xi8>, vector<32xindex> -> !bytes
    %x = xegpu.load_gather %d, %all {mode = vc} : !bytes, vector<32xi1> -> vector<32xi8>
    gpu.return
  }

  // An atomic message without uses of its result returns none.
  // CHECK-LABEL: gpu.func @atomics(
  // CHECK: visa.mul (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in1(0,0)<1;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V1:%\w+]](0,0)<1> [[V0]](0,0)<1;1,0> %in0(0,0)<0;1,0>
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V2:%\w+]](0,0)<1> %in2_ud(0,0)<1;1,0>
  // CHECK-NEXT: visa.lsc_atomic_fadd.ugm (M1_NM, 16) null:d32 flat[[[V1]][0]]:a64 [[V2]][0] null
  // CHECK-NEXT: visa.mov (M1_NM, 16) [[V3:%\w+]](0,0)<1> %in2_ud(0,0)<1;1,0>
  // CHECK-NEXT: visa.lsc_atomic_fmax.ugm (M1_NM, 16) [[V4:%\w+]][0]:d32 flat[[[V1]][0]]:a64 [[V3]][0] null
  // CHECK-NEXT: visa.add (M1_NM, 16) [[V5:%\w+]](0,0)<1> [[V4]](0,0)<1;1,0> [[V4]](0,0)<1;1,0>
  gpu.func @atomics(%m: memref<1024xf32>, %places: vector<16xindex>, %x: vector<16xf32>) kernel {
    %all = arith.constant dense<true> : vector<16xi1>
    %d = xegpu.create_tdesc %m, %places {mode = vc} : memref<1024xf32>, vector<16xindex> -> !lanes
    %unused = xegpu.atomic_rmw addf, %x, %d, %all {mode = vc} : vector<16xf32>, !lanes, vector<16xi1> -> vector<16xf32>
    %old = xegpu.atomic_rmw maxnumf, %x, %d, %all {mode = vc} : vector<16xf32>, !lanes, vector<16xi1> -> vector<16xf32>
    %sum = arith.addf %old, %old : vector<16xf32>
    gpu.return
  }

  // The offset of a view in shared local memory is added: 64 bytes.
  // CHECK-LABEL: gpu.func @shared_view(
  // CHECK: visa.mul.sat (M1_NM, 16) [[V0:%\w+]](0,0)<1> %in0(0,0)<1;1,0> 0x4:w
  // CHECK-NEXT: visa.add.sat (M1_NM, 16) [[V1:%\w+]]_d(0,0)<1> [[V0]](0,0)<1;1,0> 0x40:d
  // CHECK-NEXT: visa.lsc_load.slm (M1_NM, 16) {{.*}} flat[[[V1]][0]]:a32
  gpu.func @shared_view(%places: vector<16xindex>, %out: memref<16xf32>) kernel {
    %all = arith.constant dense<true> : vector<16xi1>
    %buffer = memref.alloc() : memref<64xf32, 3>
    %part = memref.subview %buffer[16] [32] [1] : memref<64xf32, 3> to memref<32xf32, strided<[1], offset: 16>, 3>
    %d = xegpu.create_tdesc %part, %places {mode = vc} : memref<32xf32, strided<[1], offset: 16>, 3>, vector<16xindex> -> !shared
    %x = xegpu.load_gather %d, %all {mode = vc} : !shared, vector<16xi1> -> vector<16xf32>
    %to = xegpu.create_tdesc %out, %places {mode = vc} : memref<16xf32>, vector<16xindex> -> !lanes
    xegpu.store_scatter %x, %to, %all {mode = vc} : vector<16xf32>, !lanes, vector<16xi1>
    gpu.return
  }

  // The registers of all messages of a gather are set to zero at once; accesses at the same lanes scale them once.
  // CHECK-LABEL: gpu.func @two_messages(
  // CHECK: visa.shl (M1_NM, 32) [[AT:%\w+]](0,0)<1>
  // CHECK-NOT: visa.shl
  // CHECK: visa.add (M1_NM, 16) {{.*}} [[AT]](0,0)<1;1,0>
  // CHECK: visa.mov (M1_NM, 32) [[V:%\w+]](0,0)<1> 0x0:ud
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 16, %{{.*}}) [[V]][0]:d16c32
  // CHECK-NEXT: visa.lsc_load.ugm (M1_NM, 16, %{{.*}}) [[V]][64]:d16c32
  // CHECK-NEXT: visa.mov (M1_NM, 32) %{{.*}}(0,0)<1> [[V]](0,0)<1;1,0>
  // CHECK-NOT: visa.shl
  // CHECK: visa.ret
  gpu.func @two_messages(%m: memref<?xbf16>, %n: memref<?xbf16>, %mask: vector<32xi8>) kernel {
    %zero = arith.constant dense<0> : vector<32xi8>
    %on = arith.cmpi ne, %mask, %zero : vector<32xi8>
    %at = vector.step : vector<32xindex>
    %d = xegpu.create_tdesc %m, %at {mode = vc} : memref<?xbf16>, vector<32xindex> -> !xegpu.tensor_desc<32xbf16, #xegpu.scattered>
    %x = xegpu.load_gather %d, %on {mode = vc} : !xegpu.tensor_desc<32xbf16, #xegpu.scattered>, vector<32xi1> -> vector<32xbf16>
    %e = xegpu.create_tdesc %n, %at {mode = vc} : memref<?xbf16>, vector<32xindex> -> !xegpu.tensor_desc<32xbf16, #xegpu.scattered>
    xegpu.store_scatter %x, %e, %on {mode = vc} : vector<32xbf16>, !xegpu.tensor_desc<32xbf16, #xegpu.scattered>, vector<32xi1>
    gpu.return
  }
}
