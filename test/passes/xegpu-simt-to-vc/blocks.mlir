// RUN: xegpu-opt %s --xegpu-simt-to-vc --canonicalize | FileCheck %s

#wide = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
#pairs = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>
#two = #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>
gpu.module @k {
  // Fragments are already in the order of the block, so their product is that of blocks.
  // CHECK-LABEL: gpu.func @multiply
  // CHECK: %[[A:.+]] = xegpu.load_nd %{{.+}} {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
  // CHECK: %[[B:.+]] = xegpu.load_nd %{{.+}} {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x16xbf16> -> vector<8x16x2xbf16>
  // CHECK-NOT: vector.
  // CHECK: %[[C:.+]] = xegpu.dpas %[[A]], %[[B]] {mode = vc} : vector<8x16xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  // CHECK-NOT: vector.
  // CHECK: xegpu.store_nd %[[C]], %{{.+}} {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
  gpu.func @multiply(%a: memref<8x16xbf16>, %b: memref<16x16xbf16>, %c: memref<8x16xf32>) kernel {
    %ta = xegpu.create_nd_tdesc %a[0, 0] : memref<8x16xbf16> -> !xegpu.tensor_desc<8x16xbf16, #two>
    %tb = xegpu.create_nd_tdesc %b[0, 0] : memref<16x16xbf16> -> !xegpu.tensor_desc<16x16xbf16, #pairs>
    %tc = xegpu.create_nd_tdesc %c[0, 0] : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32, #wide>
    %va = xegpu.load_nd %ta : !xegpu.tensor_desc<8x16xbf16, #two> -> vector<4x2xbf16>
    %vb = xegpu.load_nd %tb {vnni_axis = 0} : !xegpu.tensor_desc<16x16xbf16, #pairs> -> vector<8x1x2xbf16>
    %vc = xegpu.dpas %va, %vb : vector<4x2xbf16>, vector<8x1x2xbf16> -> vector<8x1xf32>
    xegpu.store_nd %vc, %tc : vector<8x1xf32>, !xegpu.tensor_desc<8x16xf32, #wide>
    gpu.return
  }

  // A fragment that is loaded by one map and stored by another is permuted: lane 1 holds row 0, columns 2 and 3, and
  // stores them to column 1 of rows 0 and 1, and so on.
  // CHECK-LABEL: gpu.func @deal
  // CHECK: %[[X:.+]] = xegpu.load_nd %{{.+}} {mode = vc} : !xegpu.tensor_desc<2x16xf32> -> vector<2x16xf32>
  // CHECK: %[[FLAT:.+]] = vector.shape_cast %[[X]] : vector<2x16xf32> to vector<32xf32>
  // CHECK: %[[MOVED:.+]] = vector.shuffle %[[FLAT]], %[[FLAT]] [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31]
  // CHECK: %[[Y:.+]] = vector.shape_cast %[[MOVED]] : vector<32xf32> to vector<2x16xf32>
  // CHECK: xegpu.store_nd %[[Y]]
  gpu.func @deal(%m: memref<2x16xf32>) kernel {
    %from = xegpu.create_nd_tdesc %m[0, 0] : memref<2x16xf32> -> !xegpu.tensor_desc<2x16xf32, #two>
    %to = xegpu.create_nd_tdesc %m[0, 0] : memref<2x16xf32> -> !xegpu.tensor_desc<2x16xf32, #wide>
    %x = xegpu.load_nd %from : !xegpu.tensor_desc<2x16xf32, #two> -> vector<1x2xf32>
    %y = vector.shape_cast %x : vector<1x2xf32> to vector<2x1xf32>
    xegpu.store_nd %y, %to : vector<2x1xf32>, !xegpu.tensor_desc<2x16xf32, #wide>
    gpu.return
  }

  // Elementwise ops do not permute elements.
  // CHECK-LABEL: gpu.func @scale
  // CHECK: %[[X:.+]] = xegpu.load_nd
  // CHECK-NOT: vector.shuffle
  // CHECK: %[[Y:.+]] = arith.mulf %[[X]], %{{.+}} : vector<2x16xf32>
  // CHECK-NOT: vector.shuffle
  // CHECK: xegpu.store_nd %[[Y]]
  gpu.func @scale(%m: memref<2x16xf32>) kernel {
    %t = xegpu.create_nd_tdesc %m[0, 0] : memref<2x16xf32> -> !xegpu.tensor_desc<2x16xf32, #two>
    %two = arith.constant dense<2.0> : vector<1x2xf32>
    %x = xegpu.load_nd %t : !xegpu.tensor_desc<2x16xf32, #two> -> vector<1x2xf32>
    %y = arith.mulf %x, %two : vector<1x2xf32>
    xegpu.store_nd %y, %t : vector<1x2xf32>, !xegpu.tensor_desc<2x16xf32, #two>
    gpu.return
  }

  // A descriptor without a map: each work item has the whole block, and the value is uniform.
  // CHECK-LABEL: gpu.func @whole
  // CHECK: xegpu.load_nd %{{.+}} {mode = vc} : !xegpu.tensor_desc<2x16xf32> -> vector<2x16xf32>
  gpu.func @whole(%m: memref<2x16xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = xegpu.create_nd_tdesc %m[0, 0] : memref<2x16xf32> -> !xegpu.tensor_desc<2x16xf32>
    %x = xegpu.load_nd %t : !xegpu.tensor_desc<2x16xf32> -> vector<2x16xf32>
    xegpu.store_nd %x, %t : vector<2x16xf32>, !xegpu.tensor_desc<2x16xf32>
    gpu.return
  }

  // This also holds in a kernel without attributes whose ops are in SIMT mode.
  // CHECK-LABEL: gpu.func @default_mode
  // CHECK-SAME: xegpu.work_items = 16 : i32
  // CHECK: xegpu.load_nd %{{.+}} {mode = vc} : !xegpu.tensor_desc<2x16xf32> -> vector<2x16xf32>
  gpu.func @default_mode(%m: memref<2x16xf32>) kernel {
    %t = xegpu.create_nd_tdesc %m[0, 0] : memref<2x16xf32> -> !xegpu.tensor_desc<2x16xf32>
    %x = xegpu.load_nd %t : !xegpu.tensor_desc<2x16xf32> -> vector<2x16xf32>
    xegpu.store_nd %x, %t : vector<2x16xf32>, !xegpu.tensor_desc<2x16xf32>
    gpu.return
  }

  // Kernels of subgroups are not changed.
  // CHECK-LABEL: gpu.func @vc(
  // CHECK-NOT: xegpu.work_items
  // CHECK: gpu.return
  gpu.func @vc(%m: memref<2x16xf32>) kernel {
    %t = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<2x16xf32> -> !xegpu.tensor_desc<2x16xf32>
    xegpu.prefetch_nd %t {mode = vc} : !xegpu.tensor_desc<2x16xf32>
    gpu.return
  }
}
