// RUN: xegpu-opt %s --xegpu-simt-to-vc --canonicalize --cse | FileCheck %s
// RUN: xegpu-opt %s --xegpu-simt-to-vc=max-index=65536 --canonicalize --cse | FileCheck %s --check-prefix=MAX

gpu.module @k {
  // A divergent loop runs while any lane is active; lanes that have left it keep their values.
  // CHECK-LABEL: gpu.func @parted_for
  // CHECK: %[[LANES:.+]] = vector.step : vector<16xindex>
  // CHECK: scf.while (%[[AT:.+]] = %{{.+}}, %[[ON:.+]] = %{{.+}}, %[[SUM:.+]] = %{{.+}}) : (vector<16xindex>, vector<16xi1>, vector<16xf32>)
  // CHECK: %[[ANY:.+]] = vector.reduction <or>, %[[ON]] : vector<16xi1> into i1
  // CHECK: scf.condition(%[[ANY]])
  // CHECK: ^bb0(%[[AT:.+]]: vector<16xindex>, %[[ON:.+]]: vector<16xi1>, %[[SUM:.+]]: vector<16xf32>):
  // CHECK: xegpu.load_gather %{{.+}}, %[[ON]] {mode = vc}
  // CHECK: %[[MORE:.+]] = arith.addf %[[SUM]], %{{.+}} : vector<16xf32>
  // CHECK: %[[LESS:.+]] = arith.cmpi slt, %{{.+}}, %[[LANES]] : vector<16xindex>
  // CHECK: %[[STILL:.+]] = arith.andi %[[LESS]], %[[ON]] : vector<16xi1>
  // CHECK: %[[KEPT:.+]] = arith.select %[[ON]], %[[MORE]], %[[SUM]] : vector<16xi1>, vector<16xf32>
  // CHECK: scf.yield %{{.+}}, %[[STILL]], %[[KEPT]]
  gpu.func @parted_for(%m: memref<?xf32>)
      kernel attributes {xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %lane = gpu.lane_id
    %s = scf.for %i = %c0 to %lane step %c1 iter_args(%x = %zero) -> f32 {
      %y = memref.load %m[%i] : memref<?xf32>
      %z = arith.addf %x, %y : f32
      scf.yield %z : f32
    }
    memref.store %s, %m[%lane] : memref<?xf32>
    gpu.return
  }

  // A counter that may wrap around in the last addition is compared before it, within the limits of launches.
  // MAX-LABEL: gpu.func @index_for
  // MAX: %[[MORE:.+]] = arith.addi
  // MAX: arith.cmpi slt, %[[MORE]], %{{.+}} : vector<16xindex>
  // CHECK-LABEL: gpu.func @index_for
  // CHECK: %[[LEFT:.+]] = arith.subi
  // CHECK: arith.cmpi ugt, %[[LEFT]], %{{.+}} : vector<16xindex>
  gpu.func @index_for(%m: memref<64xf32>, %n: index)
      kernel attributes {xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: 16, 1, 1>} {
    %c16 = arith.constant 16 : index
    %x = arith.constant 1.0 : f32
    %lane = gpu.lane_id
    scf.for %i = %lane to %n step %c16 {
      memref.store %x, %m[%i] : memref<64xf32>
    }
    gpu.return
  }

  // A loop with uniform bounds stays a loop with a uniform counter.
  // CHECK-LABEL: gpu.func @uniform_for
  // CHECK: scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(%{{.+}} = %{{.+}}) -> (vector<16xf32>)
  // CHECK: memref.load %{{.+}}[%[[I]]] : memref<?xf32>
  gpu.func @uniform_for(%m: memref<?xf32>, %n: index)
      kernel attributes {xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %lane = gpu.lane_id
    %first = memref.load %m[%lane] : memref<?xf32>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first) -> f32 {
      %y = memref.load %m[%i] : memref<?xf32>
      %z = arith.mulf %x, %y : f32
      scf.yield %z : f32
    }
    memref.store %s, %m[%lane] : memref<?xf32>
    gpu.return
  }

  // Both branches without side effects are computed, without a branch.
  // CHECK-LABEL: gpu.func @select
  // CHECK-NOT: scf.if
  // CHECK: arith.select %{{.+}}, %{{.+}}, %{{.+}} : vector<16xi1>, vector<16xf32>
  // CHECK: gpu.return
  gpu.func @select(%m: memref<?xf32>)
      kernel attributes {xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: 16, 1, 1>} {
    %zero = arith.constant 0.0 : f32
    %lane = gpu.lane_id
    %x = memref.load %m[%lane] : memref<?xf32>
    %below = arith.cmpf olt, %x, %zero : f32
    %y = scf.if %below -> f32 {
      %n = arith.negf %x : f32
      scf.yield %n : f32
    } else {
      %s = math.sqrt %x : f32
      scf.yield %s : f32
    }
    memref.store %y, %m[%lane] : memref<?xf32>
    gpu.return
  }

  // The mask of a nested branch is that of the lanes that reach it and take it. Stores are under this mask.
  // CHECK-LABEL: gpu.func @nested
  // CHECK: %[[A:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}} : vector<32xi32>
  // CHECK: scf.if
  // CHECK: %[[B:.+]] = arith.cmpi sgt, %{{.+}}, %{{.+}} : vector<32xi32>
  // CHECK: %[[AB:.+]] = arith.andi %[[A]], %[[B]] : vector<32xi1>
  // CHECK: xegpu.store_scatter %{{.+}}, %{{.+}}, %[[AB]] {mode = vc}
  gpu.func @nested(%m: memref<?xi32>)
      kernel attributes {xegpu.subgroup_size = 32 : i32, known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c9 = arith.constant 9 : i32
    %i = gpu.thread_id x
    %x = memref.load %m[%i] : memref<?xi32>
    %a = arith.cmpi slt, %x, %c9 : i32
    scf.if %a {
      %b = arith.cmpi sgt, %x, %c0 : i32
      scf.if %b {
        memref.store %c0, %m[%i] : memref<?xi32>
      }
    }
    gpu.return
  }

  // Lanes without a work item are masked off.
  // CHECK-LABEL: gpu.func @tail
  // CHECK: %[[THERE:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}} : vector<16xindex>
  // CHECK: xegpu.store_scatter %{{.+}}, %{{.+}}, %[[THERE]] {mode = vc}
  gpu.func @tail(%m: memref<?xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c0 = arith.constant 0 : i32
    %i = gpu.thread_id x
    memref.store %c0, %m[%i] : memref<?xi32>
    gpu.return
  }
}
