// Values that depend on the lane only are computed at compile time: a permutation of lanes is one shuffle, and tables are
// folded.

// RUN: xegpu-opt %s --xegpu-simt-to-vc --canonicalize | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @table
  gpu.func @table(%out: memref<16xf32>) kernel attributes {xegpu.subgroup_size = 8 : i32, known_block_size = array<i32: 8, 1, 1>} {
    %lane = gpu.lane_id
    %t = arith.constant dense<[0.5, 1.5, 2.5, 3.5]> : vector<4xf32>
    %c2 = arith.constant 2 : index
    %p = arith.divui %lane, %c2 : index
    // CHECK: %[[X:.*]] = arith.constant dense<[5.000000e-01, 5.000000e-01, 1.500000e+00, 1.500000e+00, 2.500000e+00, 2.500000e+00, 3.500000e+00, 3.500000e+00]> : vector<8xf32>
    // CHECK: xegpu.store_scatter %[[X]]
    %x = vector.extract %t[%p] : f32 from vector<4xf32>
    memref.store %x, %out[%lane] : memref<16xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @shuffles
  gpu.func @shuffles(%in: memref<16xf32>, %out: memref<16xf32>) kernel attributes {xegpu.subgroup_size = 8 : i32, known_block_size = array<i32: 8, 1, 1>} {
    %lane = gpu.lane_id
    %n = arith.constant 8 : i32
    %one = arith.constant 1 : i32
    // CHECK: %[[X:.*]] = xegpu.load_gather
    %x = memref.load %in[%lane] : memref<16xf32>
    %l = arith.index_cast %lane : index to i32
    %next = arith.addi %l, %one : i32
    %round = arith.remui %next, %n : i32
    // CHECK: vector.shuffle %[[X]], %[[X]] [1, 2, 3, 4, 5, 6, 7, 0]
    %y, %0 = gpu.shuffle idx %x, %round, %n : f32
    %order = arith.constant dense<[7, 6, 5, 4, 3, 2, 1, 0]> : vector<8xi32>
    %from = vector.extract %order[%lane] : i32 from vector<8xi32>
    // CHECK: vector.shuffle %[[X]], %[[X]] [7, 6, 5, 4, 3, 2, 1, 0]
    %z, %1 = gpu.shuffle idx %x, %from, %n : f32
    %s = arith.addf %y, %z : f32
    memref.store %s, %out[%lane] : memref<16xf32>
    gpu.return
  }

  // A shuffle that reads one lane is uniform: its value can be the offset of a block.
  // CHECK-LABEL: gpu.func @one_lane
  gpu.func @one_lane(%in: memref<64x8xf32>) kernel attributes {xegpu.subgroup_size = 8 : i32, known_block_size = array<i32: 8, 1, 1>} {
    %item = gpu.thread_id x
    %n = arith.constant 8 : i32
    %three = arith.constant 3 : i32
    // CHECK: %[[I:.*]] = arith.index_cast %{{.*}} : vector<8xindex> to vector<8xi32>
    %i = arith.index_cast %item : index to i32
    // CHECK: %[[S:.*]] = vector.extract %[[I]][3] : i32 from vector<8xi32>
    %s, %valid = gpu.shuffle idx %i, %three, %n : i32
    // CHECK: %[[R:.*]] = arith.index_cast %[[S]] : i32 to index
    %row = arith.index_cast %s : i32 to index
    // CHECK: xegpu.create_nd_tdesc %{{.*}}[%[[R]], 0]
    %t = xegpu.create_nd_tdesc %in[%row, 0] : memref<64x8xf32> -> !xegpu.tensor_desc<8x8xf32, #xegpu.sg_map<wi_layout = [1, 8], wi_data = [1, 1]>>
    %v = xegpu.load_nd %t : !xegpu.tensor_desc<8x8xf32, #xegpu.sg_map<wi_layout = [1, 8], wi_data = [1, 1]>> -> vector<8x1xf32>
    xegpu.store_nd %v, %t : vector<8x1xf32>, !xegpu.tensor_desc<8x8xf32, #xegpu.sg_map<wi_layout = [1, 8], wi_data = [1, 1]>>
    gpu.return
  }

  // Lanes choose among registers by masks that are known at compile time.
  // CHECK-LABEL: gpu.func @registers
  gpu.func @registers(%in: memref<8x2xf32>, %out: memref<16xf32>) kernel attributes {xegpu.subgroup_size = 8 : i32, known_block_size = array<i32: 8, 1, 1>} {
    // CHECK-DAG: %[[ODD:.*]] = arith.constant dense<[false, true, false, true, false, true, false, true]> : vector<8xi1>
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %odd = arith.andi %lane, %c1 : index
    %v = vector.load %in[%lane, %c0] : memref<8x2xf32>, vector<2xf32>
    // CHECK: %[[A:.*]] = vector.extract %{{.*}}[0] : vector<8xf32>
    // CHECK: %[[B:.*]] = vector.extract %{{.*}}[1] : vector<8xf32>
    // CHECK: arith.select %[[ODD]], %[[B]], %[[A]]
    %x = vector.extract %v[%odd] : f32 from vector<2xf32>
    memref.store %x, %out[%lane] : memref<16xf32>
    gpu.return
  }

  // Positions outside of the table give poison, of which any lane's value may follow.
  // CHECK-LABEL: gpu.func @beyond_a_table
  gpu.func @beyond_a_table(%out: memref<8xi32>) kernel attributes {xegpu.subgroup_size = 8 : i32, known_block_size = array<i32: 8, 1, 1>} {
    %lane = gpu.lane_id
    %t = arith.constant dense<[3, 2, 1, 0]> : vector<4xi32>
    %width = arith.constant 8 : i32
    %from = vector.extract %t[%lane] : i32 from vector<4xi32>
    %own = memref.load %out[%lane] : memref<8xi32>
    // CHECK: vector.shuffle %[[OWN:.*]], %[[OWN]] [3, 2, 1, 0, {{[0-7], [0-7], [0-7], [0-7]}}]
    %x, %valid = gpu.shuffle idx %own, %from, %width : i32
    memref.store %x, %out[%lane] : memref<8xi32>
    gpu.return
  }
}
