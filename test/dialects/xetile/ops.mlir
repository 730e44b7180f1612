// Every op as it is printed; it is read from this form and from the generic form.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt --mlir-print-op-generic %s | xegpu-opt | FileCheck %s

// CHECK-LABEL: func.func @tiles
func.func @tiles(%A: memref<?x?xf16>, %S: memref<64x64xf16>, %cube: memref<4x64x64xf16>, %address: i64,
                 %slm: memref<64x64xf32, 3>, %wg: memref<64x64xf32, #gpu.address_space<workgroup>>,
                 %columns: memref<64x64xf16, strided<[1, 64]>>, %m: index, %h: index, %w: index) {
  %c1 = arith.constant 1 : index
  // CHECK: xetile.init_tile %{{.*}}[%{{.*}}, 16], [%{{.*}}, %{{.*}}], [%{{.*}}, %{{.*}}] : memref<?x?xf16> -> !xetile.tile<32x64xf16>
  %0 = xetile.init_tile %A[%m, 16], [%h, %w], [%w, %c1] : memref<?x?xf16> -> !xetile.tile<32x64xf16>
  // CHECK: xetile.init_tile %{{.*}}[%{{.*}}, 16] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
  %1 = xetile.init_tile %S[%m, 16] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
  // CHECK: xetile.init_tile %{{.*}}[1, %{{.*}}, 0] : memref<4x64x64xf16> -> !xetile.tile<32x64xf16>
  %2 = xetile.init_tile %cube[1, %m, 0] : memref<4x64x64xf16> -> !xetile.tile<32x64xf16>
  // CHECK: xetile.init_tile %{{.*}}[0, %{{.*}}], [%{{.*}}, 64], [64, 1] : i64 -> !xetile.tile<32x64xf16>
  %3 = xetile.init_tile %address[0, %m], [%h, 64], [64, 1] : i64 -> !xetile.tile<32x64xf16>
  // CHECK: -> !xetile.tile<32x64xf32, #xetile.tile_attr<memory_space = 3>>
  %4 = xetile.init_tile %slm[0, 0] : memref<64x64xf32, 3> -> !xetile.tile<32x64xf32, #xetile.tile_attr<memory_space = 3>>
  // CHECK: : memref<64x64xf32, #gpu.address_space<workgroup>> -> !xetile.tile<32x64xf32, #xetile.tile_attr<memory_space = 3>>
  %5 = xetile.init_tile %wg[0, 0] : memref<64x64xf32, #gpu.address_space<workgroup>> -> !xetile.tile<32x64xf32, #xetile.tile_attr<memory_space = 3>>
  // CHECK: -> !xetile.tile<32x64xf16, #xetile.tile_attr<order = [0, 1]>>
  %6 = xetile.init_tile %columns[0, 0] : memref<64x64xf16, strided<[1, 64]>> -> !xetile.tile<32x64xf16, #xetile.tile_attr<order = [0, 1]>>
  // CHECK: xetile.load_tile %{{.*}} : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  %7 = xetile.load_tile %0 : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  // CHECK: xetile.load_tile %{{.*}} {padding = 1.000000e-01 : f32, l1_hint = cached, l3_hint = uncached} : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  %8 = xetile.load_tile %0 {padding = 1.000000e-01 : f32, L1_hint = cached, l3_hint = uncached} : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  // CHECK: xetile.store_tile %{{.*}}, %{{.*}} {l1_hint = write_back} : vector<32x64xf16>, !xetile.tile<32x64xf16>
  xetile.store_tile %7, %0 {l1_hint = write_back} : vector<32x64xf16>, !xetile.tile<32x64xf16>
  // CHECK: xetile.prefetch_tile %{{.*}} {l1_hint = cached} : !xetile.tile<32x64xf16>
  xetile.prefetch_tile %0 {l1_hint = cached} : !xetile.tile<32x64xf16>
  // CHECK-COUNT-2: xetile.update_tile_offset %{{.*}}, [%{{.*}}, 32] : !xetile.tile<32x64xf16>
  %9 = xetile.update_tile_offset %0, [%c1, 32] : !xetile.tile<32x64xf16>
  %10 = xetile.update_tile_offset %0 [%c1, 32] : !xetile.tile<32x64xf16>
  return
}

// The parts of a tile's attribute in any order; defaults are not printed.
// CHECK-LABEL: func.func private @attributes
func.func private @attributes(
  // CHECK-SAME: !xetile.tile<256x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 32]>>>
  !xetile.tile<256x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 32]>>>,
  // CHECK-SAME: !xetile.tile<256x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 32]>, sg_map = <wi_layout = [1, 16], wi_data = [1, 1]>, order = [0, 1], memory_space = 3>>
  !xetile.tile<256x32xbf16, #xetile.tile_attr<memory_space = 3, order = [0, 1], scattered = false,
    sg_map = #xetile.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>, wg_map = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 32]>>>,
  // CHECK-SAME: !xetile.tile<8x16xf32>, !xetile.tile<8x16xf32>
  !xetile.tile<8x16xf32, #xetile.tile_attr<order = [1, 0]>>, !xetile.tile<8x16xf32, #xetile.tile_attr<>>,
  // CHECK-SAME: !xetile.tile<64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4], sg_data = [16]>, scattered = true>>
  !xetile.tile<64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4], sg_data = [16]>, scattered = true>>)

// CHECK-LABEL: func.func @scattered
func.func @scattered(%m: memref<1024xf32>, %a: i64, %i: vector<64xindex>, %j: vector<8x16xi32>, %mask: vector<64xi1>) {
  // CHECK: xetile.init_tile %{{.*}}, %{{.*}} : memref<1024xf32>, vector<64xindex> -> !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>
  %0 = xetile.init_tile %m, %i : memref<1024xf32>, vector<64xindex> -> !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>
  // CHECK: xetile.init_tile %{{.*}}, %{{.*}} : i64, vector<8x16xi32> -> !xetile.tile<8x16xf32, #xetile.tile_attr<scattered = true>>
  %1 = xetile.init_tile %a, %j : i64, vector<8x16xi32> -> !xetile.tile<8x16xf32, #xetile.tile_attr<scattered = true>>
  // CHECK: xetile.load %{{.*}}, %{{.*}} {padding = 1.000000e+00 : f32} : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1> -> vector<64xf32>
  %2 = xetile.load %0, %mask {padding = 1.000000e+00 : f32} : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1> -> vector<64xf32>
  // CHECK: xetile.load %{{.*}} : !xetile.tile<8x16xf32, #xetile.tile_attr<scattered = true>> -> vector<8x16xf32>
  %3 = xetile.load %1 : !xetile.tile<8x16xf32, #xetile.tile_attr<scattered = true>> -> vector<8x16xf32>
  // CHECK: xetile.store %{{.*}}, %{{.*}}, %{{.*}} : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1>
  xetile.store %2, %0, %mask : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1>
  // CHECK: xetile.store %{{.*}}, %{{.*}} : vector<8x16xf32>, !xetile.tile<8x16xf32, #xetile.tile_attr<scattered = true>>
  xetile.store %3, %1 : vector<8x16xf32>, !xetile.tile<8x16xf32, #xetile.tile_attr<scattered = true>>
  // CHECK: xetile.atomic_rmw <addf>, %{{.*}}, %{{.*}}, %{{.*}} : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1> -> vector<64xf32>
  %4 = xetile.atomic_rmw <addf>, %2, %0, %mask : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1> -> vector<64xf32>
  // CHECK: xetile.atomic_rmw <assign>, %{{.*}}, %{{.*}}, %{{.*}} expecting %{{.*}} : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1> expecting vector<64xf32> -> vector<64xf32>
  %swap = xetile.atomic_rmw <assign>, %2, %0, %mask expecting %4 : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1> expecting vector<64xf32> -> vector<64xf32>
  // CHECK: xetile.atomic_rmw <assign>, %{{.*}}, %{{.*}} expecting %{{.*}} : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>> expecting vector<64xf32> -> vector<64xf32>
  %swap_all = xetile.atomic_rmw <assign>, %2, %0 expecting %4 : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>> expecting vector<64xf32> -> vector<64xf32>
  // CHECK: xetile.update_tile_offset %{{.*}}, %{{.*}} : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xindex>
  %5 = xetile.update_tile_offset %0, %i : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xindex>
  xetile.prefetch_tile %5 : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>
  return
}

// CHECK-LABEL: func.func @compute
func.func @compute(%a: vector<128x128xbf16>, %b: vector<128x256xbf16>, %c: vector<128x256xf32>, %v: vector<64x32xf32>,
                   %row: vector<1x32xf32>, %part: vector<64x4xf32>, %t: !xetile.tile<64x32xf32>) {
  // CHECK: xetile.tile_mma %{{.*}}, %{{.*}}, %{{.*}} {wg_map_a = #xetile.wg_map<sg_layout = [4, 4], sg_data = [32, 128]>, wg_map_b = #xetile.wg_map<sg_layout = [4, 4], sg_data = [128, 64]>, wg_map_c = #xetile.wg_map<sg_layout = [4, 4], sg_data = [32, 64]>} : vector<128x128xbf16>, vector<128x256xbf16>, vector<128x256xf32> -> vector<128x256xf32>
  %0 = xetile.tile_mma %a, %b, %c {wg_map_a = #xetile.wg_map<sg_layout = [4, 4], sg_data = [32, 128]>, wg_map_b = <sg_layout = [4, 4], sg_data = [128, 64]>, wg_map_c = #xetile.wg_map<sg_layout = [4, 4], sg_data = [32, 64]>} : vector<128x128xbf16>, vector<128x256xbf16>, vector<128x256xf32> -> vector<128x256xf32>
  // CHECK: xetile.tile_mma %{{.*}}, %{{.*}} : vector<128x128xbf16>, vector<128x256xbf16> -> vector<128x256xf32>
  %1 = xetile.tile_mma %a, %b : vector<128x128xbf16>, vector<128x256xbf16> -> vector<128x256xf32>
  // CHECK-COUNT-2: xetile.reduction <add>, %{{.*}} [1] : vector<64x32xf32> -> vector<64x1xf32>
  %2 = xetile.reduction <add>, %v [1] : vector<64x32xf32> -> vector<64x1xf32>
  %3 = xetile.reduction <add>, %v, [1] : vector<64x32xf32> -> vector<64x1xf32>
  // CHECK: xetile.reduction <maximumf>, %{{.*}} [1] {reduction_size = 8} : vector<64x32xf32> -> vector<64x4xf32>
  %4 = xetile.reduction <maximumf>, %v [1] {reduction_size = 8} : vector<64x32xf32> -> vector<64x4xf32>
  // CHECK-COUNT-2: xetile.transpose %{{.*}}, [1, 0] : vector<64x32xf32> -> vector<32x64xf32>
  %5 = xetile.transpose %v, [1, 0] : vector<64x32xf32> -> vector<32x64xf32>
  %6 = xetile.transpose %v [1, 0] : vector<64x32xf32> -> vector<32x64xf32>
  // CHECK-COUNT-2: xetile.broadcast %{{.*}} [0] : vector<1x32xf32> -> vector<64x32xf32>
  %7 = xetile.broadcast %row [0] : vector<1x32xf32> -> vector<64x32xf32>
  %8 = xetile.broadcast %row, [0] : vector<1x32xf32> -> vector<64x32xf32>
  // CHECK: xetile.broadcast %{{.*}} [1] {broadcast_size = 8, map = #xetile.wg_map<sg_layout = [4, 4], sg_data = [16, 8]>} : vector<64x4xf32> -> vector<64x32xf32>
  %9 = xetile.broadcast %part [1] {broadcast_size = 8, map = <sg_layout = [4, 4], sg_data = [16, 8]>} : vector<64x4xf32> -> vector<64x32xf32>
  // CHECK: xetile.convert_layout %{{.*}} {wg_map_result = #xetile.wg_map<sg_layout = [4, 4], sg_data = [16, 8]>, wg_map_source = #xetile.wg_map<sg_layout = [16, 1], sg_data = [4, 32]>} : vector<64x32xf32>
  %10 = xetile.convert_layout %v {wg_map_result = #xetile.wg_map<sg_layout = [4, 4], sg_data = [16, 8]>, wg_map_source = #xetile.wg_map<sg_layout = [16, 1], sg_data = [4, 32]>} : vector<64x32xf32>
  // CHECK: arith.addf %{{.*}}, %{{.*}} {map = #xetile.wg_map<sg_layout = [4, 4], sg_data = [16, 8]>} : vector<64x32xf32>
  %11 = arith.addf %v, %v {map = #xetile.wg_map<sg_layout = [4, 4], sg_data = [16, 8]>} : vector<64x32xf32>
  // CHECK: xetile.atomic_rmw <addf>, %{{.*}}, %{{.*}} : vector<64x32xf32>, !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %12 = xetile.atomic_rmw <addf>, %v, %t : vector<64x32xf32>, !xetile.tile<64x32xf32> -> vector<64x32xf32>
  return
}

// Other accepted spellings.
// CHECK-LABEL: func.func @spellings
func.func @spellings(%A: memref<128x128xf32>, %t: !xetile.tile<64x32xf32>, %v: vector<64x32xf32>) {
  // CHECK-COUNT-4: xetile.atomic_rmw <addf>, %{{.*}}, %{{.*}} : vector<64x32xf32>, !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %0 = xetile.atomic_rmw addf, %v, %t : vector<64x32xf32>, !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %1 = xetile.atomic_rmw addf %v, %t : vector<64x32xf32>, !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %2 = xetile.atomic_rmw "addf" %v, %t : vector<64x32xf32>, !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %3 = xetile.atomic_rmw "addf", %v, %t : vector<64x32xf32>, !xetile.tile<64x32xf32> -> vector<64x32xf32>
  // CHECK-COUNT-3: xetile.update_tile_offset %{{.*}}, [%{{.*}}, {{.*}}] : !xetile.tile<64x32xf32>
  %c0 = arith.constant 0 : index
  %6 = xetile.update_tile_offset %t, [%c0, %c0] : !xetile.tile<64x32xf32>, index, index -> !xetile.tile<64x32xf32>
  %7 = xetile.update_tile_offset %t, [%c0, 32] : !xetile.tile<64x32xf32>, index -> !xetile.tile<64x32xf32>
  %8 = xetile.update_tile_offset %t [%c0, 32] : !xetile.tile<64x32xf32>
  // CHECK: xetile.reduction <add>, %{{.*}} [1] : vector<64x32xf32> -> vector<64x1xf32>
  %9 = xetile.reduce <add>, %v [1] : vector<64x32xf32> -> vector<64x1xf32>
  // CHECK: xetile.prefetch_tile %{{.*}} {l1_hint = uncached, l2_hint = cached} : !xetile.tile<64x32xf32>
  xetile.prefetch_tile %t {l1_hint = #xetile.cache_hint<uncached>, l2_hint = #xetile.cache_hint<cached>} : !xetile.tile<64x32xf32>
  // CHECK: xetile.load_tile %{{.*}} {l1_hint = streaming} : !xetile.tile<64x32xf32> -> vector<64x32xf32>
  %4 = xetile.load_tile %t {l1_hint = #xetile.cache_hint<"streaming">} : !xetile.tile<64x32xf32> -> vector<64x32xf32>
  // CHECK: xetile.init_tile %{{.*}}[0, 0] : memref<128x128xf32> -> !xetile.tile<64x32xf32>
  %5 = xetile.init_tile %A[0, 0] : memref<128x128xf32> -> !xetile.tile<64x32xf32, #xetile.tile_attr<inner_blocks = [8, 16], memory_space = 0, scatter = false>>
  return
}
