// Functions that are no kernels, as tests of passes have them: each is rebuilt at its level.
// RUN: xegpu-opt %s --xegpu-spelling=rfc | FileCheck %s

// CHECK-LABEL: func.func @returns_descriptor
// CHECK-SAME: -> !xegpu.tensor_desc<8x16xf32, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
func.func @returns_descriptor(%a: memref<64x64xf32>, %i: index) -> !xegpu.tensor_desc<8x16xf32> {
  %part = memref.subview %a[%i, 0] [32, 32] [1, 1] : memref<64x64xf32> to memref<32x32xf32, strided<[64, 1], offset: ?>>
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[0, %{{.*}}] : memref<32x32xf32, strided<[64, 1], offset: ?>>
  %d = xegpu.create_nd_tdesc %part[0, %i] : memref<32x32xf32, strided<[64, 1], offset: ?>> -> !xegpu.tensor_desc<8x16xf32>
  return %d : !xegpu.tensor_desc<8x16xf32>
}

// CHECK-LABEL: func.func @of_subgroup
// CHECK-SAME: (%{{.*}}: !xegpu.tensor_desc<16x16xf16>) -> vector<16x16xf16>
func.func @of_subgroup(%d: !xegpu.tensor_desc<16x16xf16>) -> vector<16x16xf16> {
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc}
  %v = xegpu.load_nd %d[0, 0] : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
  return %v : vector<16x16xf16>
}

// CHECK-LABEL: func.func @of_workgroup
// CHECK-SAME: -> vector<2x8x32xf32>
func.func @of_workgroup(%a: memref<2x8x32xf32>) -> vector<2x8x32xf32> {
  %d = xegpu.create_nd_tdesc %a : memref<2x8x32xf32> -> !xegpu.tensor_desc<2x8x32xf32>
  // CHECK: xetile.load 
  // CHECK: return %{{.*}} : vector<2x8x32xf32>
  %v = xegpu.load_nd %d[0, 0, 0] <{layout = #xegpu.layout<sg_layout = [2, 1, 1], sg_data = [1, 8, 32]>}>
    : !xegpu.tensor_desc<2x8x32xf32> -> vector<2x8x32xf32>
  return %v : vector<2x8x32xf32>
}

gpu.module @kernels {
  // A matrix in shared local memory is passed as its buffer.
  // CHECK-LABEL: gpu.func @takes_matrix
  // CHECK-SAME: (%{{.*}}: memref<16x64xf16, 3>)
  gpu.func @takes_matrix(%m: !xegpu.mem_desc<16x64xf16>) {
    %v = xegpu.load_matrix %m[8, 8] : !xegpu.mem_desc<16x64xf16> -> vector<8x16xf16>
    xegpu.store_matrix %v, %m[0, 0] : vector<8x16xf16>, !xegpu.mem_desc<16x64xf16>
    gpu.return
  }

  // A descriptor alone: lanes do not divide matrices.
  // CHECK-LABEL: gpu.func @prefetches
  gpu.func @prefetches(%a: memref<4x8x16xf16>) {
    %d = xegpu.create_nd_tdesc %a : memref<4x8x16xf16> -> !xegpu.tensor_desc<4x8x16xf16>
    // CHECK: xegpu.prefetch_nd %{{.*}} {mode = vc}
    xegpu.prefetch_nd %d[0, 0, 0] : !xegpu.tensor_desc<4x8x16xf16>
    gpu.return
  }

  // The packed blocks of an array, one below the other.
  // CHECK-LABEL: gpu.func @array
  gpu.func @array(%a: memref<24x32xf16>) -> vector<16x16x2xf16> {
    %d = xegpu.create_nd_tdesc %a
      : memref<24x32xf16> -> !xegpu.tensor_desc<16x16xf16, #xegpu.block_tdesc_attr<array_length = 2>>
    // CHECK: vector.shape_cast %{{.*}} : vector<2x8x16x2xf16> to vector<16x16x2xf16>
    %v = xegpu.load_nd %d[0, 0] <{packed}>
      : !xegpu.tensor_desc<16x16xf16, #xegpu.block_tdesc_attr<array_length = 2>> -> vector<16x16x2xf16>
    gpu.return %v : vector<16x16x2xf16>
  }
}

// Ops that store a vector of the workgroup have no results.
// CHECK-LABEL: func.func @stores_vector
func.func @stores_vector(%a: memref<2x8x32xf32>, %b: memref<2x8x32xf32>) {
  %c0 = arith.constant 0 : index
  %d = xegpu.create_nd_tdesc %a : memref<2x8x32xf32> -> !xegpu.tensor_desc<2x8x32xf32>
  %v = xegpu.load_nd %d[0, 0, 0] <{layout = #xegpu.layout<sg_layout = [2, 1, 1], sg_data = [1, 8, 32]>}>
    : !xegpu.tensor_desc<2x8x32xf32> -> vector<2x8x32xf32>
  // CHECK: vector.store %{{.*}}, %{{.*}} : memref<2x8x32xf32>, vector<2x8x32xf32>
  vector.store %v, %b[%c0, %c0, %c0] : memref<2x8x32xf32>, vector<2x8x32xf32>
  return
}

// A descriptor of several lanes is one of a subgroup, which returns it.
// CHECK-LABEL: func.func @returns_lanes
// CHECK-SAME: -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
func.func @returns_lanes(%a: ui64) -> !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>> {
  %o = vector.step : vector<16xindex>
  // CHECK: xegpu.create_tdesc
  %d = xegpu.create_tdesc %a, %o : ui64, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>
  return %d : !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>
}

gpu.module @more {
  // One offset is that of all lanes; a condition may be any value; a default attribute of a descriptor is none.
  // CHECK-LABEL: gpu.func @one_offset
  gpu.func @one_offset(%a: memref<256xf16>, %t: memref<16xf16>) kernel {
    %c3 = arith.constant 3 : index
    %m = arith.constant dense<true> : vector<16xi1>
    // CHECK: ub.poison : i1
    %if = llvm.mlir.poison : i1
    scf.if %if {
      // CHECK: %[[AT:.*]] = vector.broadcast %{{.*}} : index to vector<16xindex>
      // CHECK: xegpu.create_tdesc %{{.*}}, %[[AT]]
      %v = xegpu.load %a[%c3], %m : memref<256xf16>, index, vector<16xi1> -> vector<16xf16>
      %d = xegpu.create_nd_tdesc %t : memref<16xf16> -> !xegpu.tensor_desc<16xf16, #xegpu.block_tdesc_attr<>>
      // CHECK: xegpu.load_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<16xf16>
      %w = xegpu.load_nd %d[0] <{packed}> : !xegpu.tensor_desc<16xf16> -> vector<16xf16>
      %s = arith.addf %v, %w : vector<16xf16>
      xegpu.store_nd %s, %d[0] : vector<16xf16>, !xegpu.tensor_desc<16xf16>
    }
    gpu.return
  }

  // Rows of the block are no subgroups: its vectors are those of a workgroup.
  // CHECK-LABEL: gpu.func @counted_along_y
  // CHECK: xetile.load
  gpu.func @counted_along_y(%a: memref<64x32xf32>) kernel attributes {known_block_size = array<i32: 1, 4, 16>} {
    %d = xegpu.create_nd_tdesc %a : memref<64x32xf32> -> !xegpu.tensor_desc<64x32xf32>
    %v = xegpu.load_nd %d[0, 0] : !xegpu.tensor_desc<64x32xf32> -> vector<64x32xf32>
    xegpu.store_nd %v, %d[0, 0] : vector<64x32xf32>, !xegpu.tensor_desc<64x32xf32>
    gpu.return
  }
}

gpu.module @divided {
  // A pass left the layout of the whole block at the load of what one of 8 subgroups has.
  // CHECK-LABEL: gpu.func @one_of_eight
  // CHECK: gpu.subgroup_id
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<12x8xf32>
  gpu.func @one_of_eight(%a: memref<24x32xf32>) kernel {
    %c12 = arith.constant 12 : index
    %c8 = arith.constant 8 : index
    %c4 = arith.constant 4 : index
    %id = gpu.subgroup_id : index
    %row = arith.divui %id, %c4 : index
    %column = arith.remui %id, %c4 : index
    %y = arith.muli %row, %c12 : index
    %x = arith.muli %column, %c8 : index
    %d = xegpu.create_nd_tdesc %a : memref<24x32xf32> -> !xegpu.tensor_desc<12x8xf32, #xegpu.layout<lane_layout = [2, 8], lane_data = [1, 1]>>
    %v = xegpu.load_nd %d[%y, %x] <{layout = #xegpu.layout<sg_layout = [2, 4], sg_data = [12, 8], lane_layout = [2, 8], lane_data = [1, 1]>}>
      : !xegpu.tensor_desc<12x8xf32, #xegpu.layout<lane_layout = [2, 8], lane_data = [1, 1]>> -> vector<12x8xf32>
    xegpu.store_nd %v, %d[%y, %x] : vector<12x8xf32>, !xegpu.tensor_desc<12x8xf32, #xegpu.layout<lane_layout = [2, 8], lane_data = [1, 1]>>
    // CHECK: xegpu.store_nd %{{.*}} {mode = vc} : vector<1x8xf32>
    %e = xegpu.create_nd_tdesc %a : memref<24x32xf32> -> !xegpu.tensor_desc<1x8xf32, #xegpu.slice<#xegpu.layout<sg_layout = [2, 4, 1], sg_data = [1, 8, 4]>, dims = [2]>>
    %w = vector.extract_strided_slice %v {offsets = [0, 0], sizes = [1, 8], strides = [1, 1]} : vector<12x8xf32> to vector<1x8xf32>
    xegpu.store_nd %w, %e[%y, %x] <{layout = #xegpu.slice<#xegpu.layout<sg_layout = [2, 4, 1], sg_data = [1, 8, 4]>, dims = [2]>}>
      : vector<1x8xf32>, !xegpu.tensor_desc<1x8xf32, #xegpu.slice<#xegpu.layout<sg_layout = [2, 4, 1], sg_data = [1, 8, 4]>, dims = [2]>>
    gpu.return
  }
}
