// RUN: xegpu-opt --xegpu-dce %s | FileCheck %s
// RUN: xegpu-opt --xegpu-dce=keep-loads %s | FileCheck %s --check-prefix=KEEP

// A chain of unused ops is removed.
// CHECK-LABEL: func.func @dead
// CHECK-NEXT: return
// KEEP-LABEL: func.func @dead
// KEEP-NEXT: xegpu.create_nd_tdesc
// KEEP-NEXT: xegpu.update_nd_offset
// KEEP-NEXT: xegpu.load_nd
// KEEP-NEXT: return
func.func @dead(%m: memref<64x64xf16>, %n: i8, %a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>) {
  %0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  %1 = xegpu.update_nd_offset %0, [8, 0] {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<8x16xf16>
  %2 = xegpu.load_nd %1 {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  %3 = xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
  %4 = xegpu.init_nbarrier %n, %n : i8, i8 -> !xegpu.nbarrier
  return
}

// Ops with uses or side effects stay.
// CHECK-LABEL: func.func @alive
// CHECK: xegpu.create_nd_tdesc
// CHECK: xegpu.load_nd
// CHECK: scf.for
// CHECK: xegpu.update_nd_offset
// CHECK: xegpu.store_nd
// CHECK: xegpu.prefetch_nd
// CHECK: xegpu.atomic_rmw
// CHECK: xegpu.alloc_nbarrier
// CHECK: xegpu.nbarrier_wait
// CHECK: xegpu.fence
// CHECK: xegpu.compile_hint
func.func @alive(%m: memref<64x64xf16>, %c0: index, %c8: index, %c64: index, %nb: !xegpu.nbarrier,
                 %v: vector<16xf32>, %s: !xegpu.tensor_desc<16xf32, #xegpu.scattered>, %mask: vector<16xi1>) {
  %0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  %1 = xegpu.load_nd %0 {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  %2 = scf.for %i = %c0 to %c64 step %c8 iter_args(%d = %0) -> !xegpu.tensor_desc<8x16xf16> {
    %3 = xegpu.update_nd_offset %d, [8, 0] {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    scf.yield %3 : !xegpu.tensor_desc<8x16xf16>
  }
  xegpu.store_nd %1, %2 {mode = vc} : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>
  xegpu.prefetch_nd %0 {mode = vc} : !xegpu.tensor_desc<8x16xf16>
  %4 = xegpu.atomic_rmw addf, %v, %s, %mask {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
  xegpu.alloc_nbarrier 8
  xegpu.nbarrier_wait %nb : !xegpu.nbarrier
  xegpu.fence {scope = gpu, memory_kind = global}
  xegpu.compile_hint
  return
}

// Arithmetic between dead xegpu ops is removed too.
// CHECK-LABEL: func.func @between
// CHECK-NEXT: return
func.func @between(%a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>) {
  %0 = xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
  %1 = arith.truncf %0 : vector<8x16xf32> to vector<8x16xf16>
  %2 = vector.shape_cast %1 : vector<8x16xf16> to vector<8x8x2xf16>
  %3 = xegpu.dpas %2, %b {mode = vc} : vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
  return
}
