// RUN: xegpu-opt %s --xegpu-spelling=rfc | FileCheck %s
// RUN: xegpu-opt %s --xegpu-spelling=rfc | xegpu-opt --xetile-to-visa-pipeline=target=pvc -o /dev/null

#c = #xegpu.layout<sg_layout = [4, 2], sg_data = [16, 32], inst_data = [8, 16], order = [0, 1]>
#a = #xegpu.layout<sg_layout = [4, 2], sg_data = [16, 32], inst_data = [8, 16]>
#other = #xegpu.layout<sg_layout = [8, 1], sg_data = [8, 32]>

gpu.module @kernels {
  // Of a product's layouts that of the result is kept; the rest follows from it.
  // CHECK-LABEL: gpu.func @product
  // CHECK-SAME: attributes {xegpu.lanes_per_subgroup = 16 : i32}
  gpu.func @product(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %o: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %da = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<64x32xf16, #a>
    %db = xegpu.create_nd_tdesc %b : memref<64x64xf16> -> !xegpu.tensor_desc<64x32xf16, #xegpu.block_tdesc_attr<boundary_check = false>>
    // CHECK: %[[A:.*]] = xetile.init_tile %{{.*}}[%{{.*}}, 32] : memref<64x64xf16> -> !xetile.tile<64x32xf16>
    // CHECK: xetile.load_tile %[[A]]
    %va = xegpu.load_nd %da[%c0, 32] <{layout = #a}> : !xegpu.tensor_desc<64x32xf16, #a> -> vector<64x32xf16>
    // CHECK: xetile.init_tile %{{.*}}[0, 0] {in_bounds = true}
    %vb = xegpu.load_nd %db : !xegpu.tensor_desc<64x32xf16, #xegpu.block_tdesc_attr<boundary_check = false>> -> vector<64x32xf16>
    // CHECK: %[[T:.*]] = xetile.transpose %{{.*}}, [1, 0] : vector<64x32xf16> -> vector<32x64xf16>
    %vt = vector.transpose %vb, [1, 0] : vector<64x32xf16> to vector<32x64xf16>
    // CHECK-NOT: convert_layout
    %vc = xegpu.convert_layout %va <{input_layout = #a, target_layout = #other}> : vector<64x32xf16>
    // CHECK: xetile.tile_mma %{{.*}}, %[[T]], %{{.*}} {wg_map_c = #xetile.wg_map<sg_layout = [4, 2], sg_data = [16, 32]>}
    %r = xegpu.dpas %vc, %vt, %zero {layout_a = #a, layout_b = #a, layout_cd = #c} : vector<64x32xf16>, vector<32x64xf16>, vector<64x64xf32> -> vector<64x64xf32>
    %do = xegpu.create_nd_tdesc %o : memref<64x64xf32> -> !xegpu.tensor_desc<64x64xf32>
    // CHECK: xetile.store_tile {{.*}} !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [16, 32]>>>
    xegpu.store_nd %r, %do <{layout = #c}> : vector<64x64xf32>, !xegpu.tensor_desc<64x64xf32>
    gpu.return
  }

  // Vectors of other ranks are matrices; what is repeated along a column is a column from its beginning.
  // CHECK-LABEL: gpu.func @softmax
  gpu.func @softmax(%a: memref<64x32xf32>) kernel {
    %low = arith.constant dense<0xFF800000> : vector<64xf32>
    %da = xegpu.create_nd_tdesc %a : memref<64x32xf32> -> !xegpu.tensor_desc<64x32xf32, #other>
    %v = xegpu.load_nd %da[0, 0] <{layout = #other}> : !xegpu.tensor_desc<64x32xf32, #other> -> vector<64x32xf32>
    // CHECK: %[[M:.*]] = xetile.reduction <maximumf>, %{{.*}} [1] : vector<64x32xf32> -> vector<64x1xf32>
    // CHECK: %[[N:.*]] = arith.maximumf %[[M]], %{{.*}} : vector<64x1xf32>
    %m = vector.multi_reduction <maximumf>, %v, %low [1] : vector<64x32xf32> to vector<64xf32>
    // CHECK: xetile.broadcast %[[N]] [1] : vector<64x1xf32> -> vector<64x32xf32>
    // CHECK-NOT: transpose
    %b = vector.broadcast %m : vector<64xf32> to vector<32x64xf32>
    %t = vector.transpose %b, [1, 0] : vector<32x64xf32> to vector<64x32xf32>
    %s = arith.subf %v, %t : vector<64x32xf32>
    xegpu.store_nd %s, %da[0, 0] <{layout = #other}> : vector<64x32xf32>, !xegpu.tensor_desc<64x32xf32, #other>
    gpu.return
  }

  // Offsets that are those of a block make a block's tile, others a scattered one.
  // CHECK-LABEL: gpu.func @gathers
  gpu.func @gathers(%a: memref<4096xf32>, %o: memref<4096xf32>) kernel {
    %true = arith.constant dense<true> : vector<1x32x32xi1>
    %c64 = arith.constant dense<64> : vector<32xindex>
    %step = vector.step : vector<32xindex>
    %down = arith.muli %step, %c64 : vector<32xindex>
    %rows = vector.shape_cast %down : vector<32xindex> to vector<32x1xindex>
    %r = vector.broadcast %rows : vector<32x1xindex> to vector<1x32x32xindex>
    %c = vector.broadcast %step : vector<32xindex> to vector<1x32x32xindex>
    %at = arith.addi %r, %c : vector<1x32x32xindex>
    // CHECK: xetile.init_tile %{{.*}}[0, 0], [32, 32], [64, 1] {in_bounds = true} : i64 -> !xetile.tile<32x32xf32
    // CHECK: xetile.load_tile
    %v = xegpu.load %a[%at], %true : memref<4096xf32>, vector<1x32x32xindex>, vector<1x32x32xi1> -> vector<1x32x32xf32>
    %swapped = arith.addi %at, %at : vector<1x32x32xindex>
    // CHECK: xetile.init_tile %{{.*}}, %{{.*}} : memref<4096xf32>, vector<32x32xindex> -> !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 1], sg_data = [4, 32]>, scattered = true>>
    // CHECK: xetile.store
    xegpu.store %v, %o[%swapped], %true <{layout = #xegpu.layout<sg_layout = [1, 8, 1], sg_data = [1, 4, 32]>}> : vector<1x32x32xf32>, memref<4096xf32>, vector<1x32x32xindex>, vector<1x32x32xi1>
    gpu.return
  }

  // A part that a range of subgroups runs is run by all.
  // CHECK-LABEL: gpu.func @ranges
  gpu.func @ranges(%a: memref<64x32xf32>) kernel {
    %c4 = arith.constant 4 : index
    %s = gpu.subgroup_id : index
    %in = arith.cmpi ult, %s, %c4 : index
    // CHECK: %[[T:.*]] = arith.constant true
    // CHECK: scf.if %[[T]] {
    scf.if %in {
      %da = xegpu.create_nd_tdesc %a : memref<64x32xf32> -> !xegpu.tensor_desc<64x32xf32, #other>
      %v = xegpu.load_nd %da[0, 0] : !xegpu.tensor_desc<64x32xf32, #other> -> vector<64x32xf32>
      %w = arith.addf %v, %v : vector<64x32xf32>
      xegpu.store_nd %w, %da[0, 0] <{layout = #other}> : vector<64x32xf32>, !xegpu.tensor_desc<64x32xf32, #other>
    } {sg_id_range = #xegpu.range<[0, 4]>}
    gpu.return
  }

  // How large a block is, and that it is a row, is known here.
  // CHECK-LABEL: gpu.func @threads
  // CHECK-NOT: known_block_size
  // CHECK-DAG: arith.constant 32 : index
  // CHECK-NOT: gpu.block_dim
  gpu.func @threads(%a: memref<128x32xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %n = gpu.block_dim x
    %y = gpu.thread_id y
    %m = arith.addi %n, %y : index
    %da = xegpu.create_nd_tdesc %a : memref<128x32xf32> -> !xegpu.tensor_desc<64x32xf32, #other>
    %v = xegpu.load_nd %da[%m, 0] : !xegpu.tensor_desc<64x32xf32, #other> -> vector<64x32xf32>
    xegpu.store_nd %v, %da[0, 0] <{layout = #other}> : vector<64x32xf32>, !xegpu.tensor_desc<64x32xf32, #other>
    gpu.return
  }
}
