// RUN: xegpu-opt %s --xegpu-simt-to-vc --canonicalize --cse | FileCheck %s

gpu.module @k {
  // A counter that may wrap around in the last addition is compared before it as an unsigned number, too.
  // CHECK-LABEL: gpu.func @unsigned_for
  // CHECK: %[[LAST:.+]] = arith.index_cast %{{.+}} : vector<16xi32> to vector<16xindex>
  // CHECK: scf.while
  // CHECK: ^bb0(%[[AT:.+]]: vector<16xindex>, %[[ON:.+]]: vector<16xi1>):
  // CHECK: arith.addi %[[AT]], %[[STEP:.+]] : vector<16xindex>
  // CHECK: %[[LEFT:.+]] = arith.subi %[[LAST]], %[[AT]] : vector<16xindex>
  // CHECK: arith.cmpi ugt, %[[LEFT]], %[[STEP]] : vector<16xindex>
  gpu.func @unsigned_for(%m: memref<64xi32>)
      kernel attributes {xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %lane = gpu.lane_id
    %end = memref.load %m[%lane] : memref<64xi32>
    %last = arith.index_cast %end : i32 to index
    scf.for unsigned %i = %c0 to %last step %c8 {
      memref.store %end, %m[%i] : memref<64xi32>
    }
    gpu.return
  }
}
