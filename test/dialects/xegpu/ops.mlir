// Operand and attribute forms that neither the RFC's examples nor spellings.mlir show.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt --mlir-print-op-generic %s | xegpu-opt | FileCheck %s

// CHECK-LABEL: func.func @create_nd_tdesc
func.func @create_nd_tdesc(%a: i64, %s: si64, %m: memref<?x?xf16, strided<[?, 1], offset: ?>>, %i: index,
                           %slm: memref<64x64xf16, 3>, %wg: memref<64x64xf16, #gpu.address_space<workgroup>>,
                           %cube: memref<4x8x16xf32>, %line: memref<128xi8>) {
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, %{{.*}}], [%{{.*}}, 64], [64, 1] {mode = vc} : i64 -> !xegpu.tensor_desc<8x16xf16>
  %0 = xegpu.create_nd_tdesc %a[0, %i], [%i, 64], [64, 1] {mode = vc} : i64 -> !xegpu.tensor_desc<8x16xf16>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}] {mode = vc} : si64 -> !xegpu.tensor_desc<32xf16>
  %1 = xegpu.create_nd_tdesc %s[%i] {mode = vc} : si64 -> !xegpu.tensor_desc<32xf16, boundary_check = false>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}], [128], [1] {mode = vc} : si64 ->
  %2 = xegpu.create_nd_tdesc %s[%i], [128], [1] {mode = vc} : si64 -> !xegpu.tensor_desc<32xf16, boundary_check = false>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}, 0] {mode = vc} : memref<?x?xf16, strided<[?, 1], offset: ?>> -> !xegpu.tensor_desc<8x16xf16>
  %3 = xegpu.create_nd_tdesc %m[%i, 0] {mode = vc} : memref<?x?xf16, strided<[?, 1], offset: ?>> -> !xegpu.tensor_desc<8x16xf16>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}, 0], [%{{.*}}, %{{.*}}], [%{{.*}}, 1] {mode = vc} : memref<?x?xf16, strided<[?, 1], offset: ?>> ->
  %4 = xegpu.create_nd_tdesc %m[%i, 0], [%i, %i], [%i, 1] {mode = vc} : memref<?x?xf16, strided<[?, 1], offset: ?>> -> !xegpu.tensor_desc<8x16xf16>
  // CHECK-COUNT-2: -> !xegpu.tensor_desc<8x16xf16, #xegpu.tdesc_attr<memory_scope = slm>>
  %5 = xegpu.create_nd_tdesc %slm[0, 0] {mode = vc} : memref<64x64xf16, 3> -> !xegpu.tensor_desc<8x16xf16, memory_scope = slm>
  %6 = xegpu.create_nd_tdesc %wg[0, 0] {mode = vc} : memref<64x64xf16, #gpu.address_space<workgroup>> -> !xegpu.tensor_desc<8x16xf16, memory_scope = slm>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[1, %{{.*}}, 2] {mode = vc} : memref<4x8x16xf32> -> !xegpu.tensor_desc<2x4x8xf32>
  %7 = xegpu.create_nd_tdesc %cube[1, %i, 2] {mode = vc} : memref<4x8x16xf32> -> !xegpu.tensor_desc<2x4x8xf32>
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, transpose = [2, 0, 1]} : !xegpu.tensor_desc<2x4x8xf32> -> vector<8x2x4xf32>
  %8 = xegpu.load_nd %7 {mode = vc, transpose = [2, 0, 1]} : !xegpu.tensor_desc<2x4x8xf32> -> vector<8x2x4xf32>
  // CHECK: xegpu.update_nd_offset %{{.*}}, [0, %{{.*}}, 8] {mode = vc} : !xegpu.tensor_desc<2x4x8xf32> -> !xegpu.tensor_desc<2x4x8xf32>
  %9 = xegpu.update_nd_offset %7, [0, %i, 8] {mode = vc} : !xegpu.tensor_desc<2x4x8xf32> -> !xegpu.tensor_desc<2x4x8xf32>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}] : memref<128xi8> -> !xegpu.tensor_desc<32xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 2]>>
  %10 = xegpu.create_nd_tdesc %line[%i] : memref<128xi8> -> !xegpu.tensor_desc<32xi8, boundary_check = false, map = <wi_layout = [1, 16], wi_data = [1, 2]>>
  // CHECK: xegpu.load_nd %{{.*}} : !xegpu.tensor_desc<32xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 2]>> -> vector<2xi8>
  %11 = xegpu.load_nd %10 : !xegpu.tensor_desc<32xi8, boundary_check = false, map = <wi_layout = [1, 16], wi_data = [1, 2]>> -> vector<2xi8>
  return
}

// An array of blocks, as blocks and as the area that they cover; loads and stores.
// CHECK-LABEL: func.func @arrays
func.func @arrays(%t: !xegpu.tensor_desc<16x16xf16, array_length = 2>) {
  // CHECK: -> vector<2x16x16xf16>
  %0 = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<16x16xf16, array_length = 2> -> vector<2x16x16xf16>
  // CHECK: -> vector<16x32xf16>
  %1 = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<16x16xf16, array_length = 2> -> vector<16x32xf16>
  // CHECK: -> vector<2x8x16x2xf16>
  %2 = xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x16xf16, array_length = 2> -> vector<2x8x16x2xf16>
  // CHECK: -> vector<8x32x2xf16>
  %3 = xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x16xf16, array_length = 2> -> vector<8x32x2xf16>
  // CHECK: xegpu.store_nd %{{.*}}, %{{.*}} {mode = vc} : vector<2x16x16xf16>,
  xegpu.store_nd %0, %t {mode = vc} : vector<2x16x16xf16>, !xegpu.tensor_desc<16x16xf16, array_length = 2>
  return
}

// CHECK-LABEL: func.func @dpas_elements
func.func @dpas_elements(%i8: vector<8x8x4xi8>, %ui8: vector<8x16x4xui8>, %si4: vector<8x4x8xsi4>, %b4: vector<4x16x8xi4>,
                         %f8: vector<8x8x4xf8E5M2>, %hf8: vector<8x16x4xf8E4M3FN>, %a: vector<8x16xbf16>,
                         %b: vector<8x16x2xbf16>, %c: vector<8x16xbf16>, %ta: vector<4x8xtf32>, %tb: vector<8x16xtf32>,
                         %d: vector<8x16xf64>, %e: vector<16x16xf64>, %acc: vector<8x16xsi32>) {
  // CHECK: vector<8x8x4xi8>, vector<8x16x4xui8> -> vector<8x16xi32>
  %0 = xegpu.dpas %i8, %ui8 {mode = vc} : vector<8x8x4xi8>, vector<8x16x4xui8> -> vector<8x16xi32>
  // CHECK: vector<8x16xsi32>, vector<8x4x8xsi4>, vector<4x16x8xi4> -> vector<8x16xui32>
  %1 = xegpu.dpas %acc, %si4, %b4 {mode = vc} : vector<8x16xsi32>, vector<8x4x8xsi4>, vector<4x16x8xi4> -> vector<8x16xui32>
  // CHECK: vector<8x8x4xf8E5M2>, vector<8x16x4xf8E4M3FN> -> vector<8x16xf32>
  %2 = xegpu.dpas %f8, %hf8 {mode = vc} : vector<8x8x4xf8E5M2>, vector<8x16x4xf8E4M3FN> -> vector<8x16xf32>
  // CHECK: vector<8x16xbf16>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  %3 = xegpu.dpas %c, %a, %b {mode = vc} : vector<8x16xbf16>, vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  // CHECK: vector<4x8xtf32>, vector<8x16xtf32> -> vector<4x16xf32>
  %4 = xegpu.dpas %ta, %tb {mode = vc} : vector<4x8xtf32>, vector<8x16xtf32> -> vector<4x16xf32>
  // CHECK: vector<8x16xf64>, vector<16x16xf64> -> vector<8x16xf64>
  %5 = xegpu.dpas %d, %e {mode = vc} : vector<8x16xf64>, vector<16x16xf64> -> vector<8x16xf64>
  // CHECK: xegpu.dpas %{{.*}}, %{{.*}}, %{{.*}} : vector<8x1xf32>, vector<4x2xf16>, vector<8x2xf16> -> vector<8x1xf32>
  %fragment:3 = "builtin.unrealized_conversion_cast"(%a) : (vector<8x16xbf16>) -> (vector<8x1xf32>, vector<4x2xf16>, vector<8x2xf16>)
  %6 = xegpu.dpas %fragment#0, %fragment#1, %fragment#2 : vector<8x1xf32>, vector<4x2xf16>, vector<8x2xf16> -> vector<8x1xf32>
  return
}

// Every kind of atomic on what it is for.
// CHECK-LABEL: func.func @atomics
func.func @atomics(%t: !xegpu.tensor_desc<8xf32, #xegpu.scattered>, %v: vector<8xf32>, %m: vector<8xi1>,
                   %ti: !xegpu.tensor_desc<4x2xi64, #xegpu.scattered>, %vi: vector<2x4xi64>, %mi: vector<4xi1>) {
  // CHECK-COUNT-7: xegpu.atomic_rmw {{[a-z]+}}, %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #xegpu.scattered>, vector<8xi1> -> vector<8xf32>
  %0 = xegpu.atomic_rmw addf, %v, %t, %m {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #scattered>, vector<8xi1> -> vector<8xf32>
  %1 = xegpu.atomic_rmw mulf, %v, %t, %m {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #scattered>, vector<8xi1> -> vector<8xf32>
  %2 = xegpu.atomic_rmw maximumf, %v, %t, %m {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #scattered>, vector<8xi1> -> vector<8xf32>
  %3 = xegpu.atomic_rmw minimumf, %v, %t, %m {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #scattered>, vector<8xi1> -> vector<8xf32>
  %4 = xegpu.atomic_rmw maxnumf, %v, %t, %m {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #scattered>, vector<8xi1> -> vector<8xf32>
  %5 = xegpu.atomic_rmw minnumf, %v, %t, %m {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #scattered>, vector<8xi1> -> vector<8xf32>
  %6 = xegpu.atomic_rmw assign, %v, %t, %m {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #scattered>, vector<8xi1> -> vector<8xf32>
  // CHECK-COUNT-4: : vector<2x4xi64>, !xegpu.tensor_desc<4x2xi64, #xegpu.scattered>, vector<4xi1> -> vector<2x4xi64>
  %7 = xegpu.atomic_rmw addi, %vi, %ti, %mi {mode = vc} : vector<2x4xi64>, !xegpu.tensor_desc<4x2xi64, #scattered>, vector<4xi1> -> vector<2x4xi64>
  %8 = xegpu.atomic_rmw maxs, %vi, %ti, %mi {mode = vc} : vector<2x4xi64>, !xegpu.tensor_desc<4x2xi64, #scattered>, vector<4xi1> -> vector<2x4xi64>
  %9 = xegpu.atomic_rmw minu, %vi, %ti, %mi {mode = vc} : vector<2x4xi64>, !xegpu.tensor_desc<4x2xi64, #scattered>, vector<4xi1> -> vector<2x4xi64>
  %10 = xegpu.atomic_rmw xori, %vi, %ti, %mi {mode = vc} : vector<2x4xi64>, !xegpu.tensor_desc<4x2xi64, #scattered>, vector<4xi1> -> vector<2x4xi64>
  // CHECK: xegpu.atomic_rmw assign, %{{.*}}, %{{.*}}, %{{.*}} expecting %{{.*}} {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #xegpu.scattered>, vector<8xi1> expecting vector<8xf32> -> vector<8xf32>
  %11 = xegpu.atomic_rmw assign, %v, %t, %m expecting %0 {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<8xf32, #scattered>, vector<8xi1> expecting vector<8xf32> -> vector<8xf32>
  return
}
