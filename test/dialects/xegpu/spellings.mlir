// Accepted spellings; all are printed in the canonical form.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt --mlir-print-op-generic %s | xegpu-opt | FileCheck %s

#m = #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>
#slm_map = #xegpu.tdesc_attr<memory_scope = slm, map = #m>
#slm_scattered = #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>
!tile = !xegpu.tensor_desc<8x16xbf16>
!same_tile = !tile
!value = vector<8x16xbf16>

// Every setting of a descriptor in each of its spellings.
// CHECK-LABEL: func.func private @settings(
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>,
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>,
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>,
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>,
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>,
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>)
func.func private @settings(
  !xegpu.tensor_desc<8x16xbf16, #m>,
  !xegpu.tensor_desc<8x16xbf16, sg = #m>,
  !xegpu.tensor_desc<8x16xbf16, map = #m>,
  !xegpu.tensor_desc<8x16xbf16, map = <wi_layout = [2, 8], wi_data = [1, 2]>>,
  !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<#m>>,
  !xegpu.tensor_desc<8 x 16 x bf16, #xegpu.sg_map<wi_data = [1, 2], wi_layout = [2, 8]>>)

// CHECK-LABEL: func.func private @scattered(
// CHECK-COUNT-6: !xegpu.tensor_desc<16xf32, #xegpu.scattered>
// CHECK-SAME: !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>)
func.func private @scattered(
  !xegpu.tensor_desc<16xf32, #scattered>, !xegpu.tensor_desc<16xf32, #Scattered>,
  !xegpu.tensor_desc<16xf32, #xegpu.scattered>, !xegpu.tensor_desc<16xf32, scattered = true>,
  !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<scattered = true>>,
  !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<#xegpu.scattered>>,
  !xegpu.tensor_desc<16xf32, #slm_scattered>)

// Settings are printed in one order, without those that have their default values.
// CHECK-LABEL: func.func private @order(
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<memory_scope = slm, array_length = 2, boundary_check = false, map = <wi_layout = [2, 8], wi_data = [1, 2]>>>,
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16>,
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16>,
// CHECK-SAME: !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<memory_scope = slm, map = <wi_layout = [2, 8], wi_data = [1, 2]>>>)
func.func private @order(
  !xegpu.tensor_desc<8x16xbf16, boundary_check = false, #m, array_length = 2, memory_scope = slm>,
  !xegpu.tensor_desc<8x16xbf16, memory_scope = global, array_length = 1, boundary_check = true, scattered = false>,
  !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<>>,
  !xegpu.tensor_desc<8x16xbf16, #slm_map>)

// CHECK-LABEL: func.func @existing_files
func.func @existing_files(%src: ui64, %x: index, %h: index, %w: index, %c1: index, %c0: index, %c16: index,
                          %s: !xegpu.tensor_desc<16xf32, #xegpu.scattered>, %mask: vector<16xi1>,
                          %v: vector<16xf32>, %a: vector<8x8x2xbf16>, %b: vector<8x16x2xbf16>,
                          %c: vector<8x16xf32>) {
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}, 4], [%{{.*}}, %{{.*}}], [%{{.*}}, %{{.*}}] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xbf16>
  %t = xegpu.create_nd_tdesc %src[%x, 4], [%h, %w], [%w, %c1] {mode = vc} : ui64 -> !same_tile
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, 0], [64, 64], [64, 1] : ui64 -> !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map
  %u = xegpu.create_nd_tdesc %src[0, 0], [64, 64], [64, 1] : ui64 -> !xegpu.tensor_desc<8x16xbf16, #m>
  // The descriptor's attribute may stand on the op.
  // CHECK-COUNT-2: xegpu.create_nd_tdesc %{{.*}}[0, 0], [64, 64], [64, 1] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xbf16>
  %checked = xegpu.create_nd_tdesc %src[0, 0], [64, 64], [64, 1] {mode = vc, boundary_check = true} : ui64 -> !tile
  %unchecked = xegpu.create_nd_tdesc %src[0, 0], [64, 64], [64, 1] {boundary_check = false, mode = vc} : ui64 -> !tile
  // CHECK: xegpu.update_nd_offset %{{.*}}, [%{{.*}}, %{{.*}}] {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> !xegpu.tensor_desc<8x16xbf16>
  %t2 = xegpu.update_nd_offset %t, [%c0, %c16] {mode = vc} : !tile -> !tile
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, l1_hint = cached, l2_hint = streaming, l3_hint = read_invalidate} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
  %l = xegpu.load_nd %t2 {l3_hint = read_invalidate, L2_hint = "streaming", L1 = #xegpu.cache_hint<cached>, mode = #xegpu.mode<vc>} : !tile to !value
  // CHECK: xegpu.load_gather %{{.*}}, %{{.*}} {mode = vc, l1_hint = cached} : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
  %g = xegpu.load %s, %mask {mode = vc, l1_hint = cached} : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
  // CHECK: xegpu.store_scatter %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>
  xegpu.store %v, %s, %mask {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>
  // CHECK-COUNT-6: xegpu.atomic_rmw addf, %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
  %r0 = xegpu.atomic_rmw "addf" %s, %mask, %v {mode = vc} : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>, vector<16xf32> -> vector<16xf32>
  %r1 = xegpu.atomic_rmw addf %s, %mask, %v {mode = vc} : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>, vector<16xf32> -> vector<16xf32>
  %r2 = xegpu.atomic_rmw addf %s, %mask, %v {mode = vc} : !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>, vector<16xf32>
  %r3 = xegpu.atomic_rmw addf, %v, %s, %mask {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1>
  %r4 = xegpu.atomic_rmw "addf", %v, %s, %mask {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> into vector<16xf32>
  %r5 = xegpu.atomic_rmw 0 %v, %s, %mask {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
  // CHECK-COUNT-2: xegpu.dpas %[[C:arg[0-9]+]], %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  %d0 = xegpu.dpas %c, %a, %b {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  %d1 = xegpu.dpas %a, %b, %c {mode = vc} : vector<8x8x2xbf16>, vector<8x16x2xbf16>, vector<8x16xf32> -> vector<8x16xf32>
  // The mode is inferred where types are those of matrices and not of fragments.
  // CHECK-COUNT-2: xegpu.dpas %[[C]], %[[A:arg[0-9]+]], %[[B:arg[0-9]+]] {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  %d2 = xegpu.dpas %a, %b, %c : vector<8x8x2xbf16>, vector<8x16x2xbf16>, vector<8x16xf32> -> vector<8x16xf32>
  %d3 = xegpu.dpas %c, %a, %b : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  // CHECK: xegpu.dpas %[[A]], %[[B]] {mode = vc} : vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  %d4 = xegpu.dpas %a, %b : vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  // CHECK: xegpu.alloc_nbarrier 8
  xegpu.alloc_nbarrier 8
  // CHECK-COUNT-4: xegpu.compile_hint{{$}}
  xegpu.compile_hint
  xegpu.compile_hint {schedule_barrier}
  xegpu.compile_hint {hint = schedule_barrier}
  xegpu.compile_hint {hint = #xegpu.hint<schedule_barrier>}
  // CHECK-COUNT-2: xegpu.fence {scope = workgroup, memory_kind = shared}
  xegpu.fence {memory_kind = "shared", scope = "workgroup"}
  xegpu.fence {scope = #xegpu.fence_scope<workgroup>, memory_kind = shared}
  return
}

// Text around and inside our ops must not confuse the reader: xegpu.load_nd %not_an_op.
// CHECK-LABEL: func.func @surroundings
// CHECK-SAME: attributes {note = "xegpu.load_nd %x : !xegpu.tensor_desc<", xegpu.kind = "kernel", xegpu.seen}
func.func @surroundings(%t: !tile, %c: i1) attributes {note = "xegpu.load_nd %x : !xegpu.tensor_desc<", xegpu.kind = "kernel", xegpu.seen} {
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, test.note = "a } : -> \22%t\22", test.unit} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
  %0 = xegpu.load_nd // a comment with } and : and -> vector<1xf32>
    %t  // xegpu.load_nd
    {mode = vc,  // {{
     test.note = "a } : -> \"%t\"",
     test.unit}
    : !tile
    -> !value
  // CHECK: scf.if
  // CHECK-NEXT: xegpu.prefetch_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<8x16xbf16>
  // CHECK-NEXT: xegpu.compile_hint
  // CHECK-NEXT: xegpu.compile_hint
  scf.if %c { xegpu.prefetch_nd %t {mode = vc} : !tile xegpu.compile_hint xegpu.compile_hint }
  // CHECK: xegpu.update_nd_offset %{{.*}}, [-8, 16] {mode = vc}
  %t-1.x$ = xegpu.update_nd_offset %t, [-8, 0x10] {mode = vc} : !tile -> !tile
  return
}

// Generic form with dialect syntax for types, and with MLIR's own.
// CHECK-LABEL: func.func @generic
func.func @generic(%t: !xegpu.tensor_desc<array<i64: 8, 16>, bf16, #xegpu.tdesc_attr<#xegpu.memory_scope<"global">, 1 : i64, true, false, unit>>) {
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 1, l1_hint = cached} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x8x2xbf16>
  %0 = "xegpu.load_nd"(%t) {mode = #xegpu.mode<vc>, vnni_axis = 1 : i64, l1_hint = #xegpu.cache_hint<"cached">} : (!xegpu.tensor_desc<8x16xbf16>) -> vector<8x8x2xbf16>
  // CHECK: xegpu.load_nd %{{.*}} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
  %1 = "xegpu.load_nd"(%t) {mode = #xegpu.mode<simt>} : (!tile) -> !value
  return
}
