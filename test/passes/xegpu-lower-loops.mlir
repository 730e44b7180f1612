// RUN: xegpu-opt %s --xegpu-lower-loops --canonicalize --split-input-file | FileCheck %s
// RUN: xegpu-opt %s --xegpu-lower-loops=kernel=other --split-input-file | FileCheck %s --check-prefix=OTHER

gpu.module @m {
  // CHECK-LABEL: gpu.func @parallel
  // CHECK: scf.for %[[I:.+]] = %c0 to %c4 step %c1
  // CHECK: scf.for %[[J:.+]] = %c0 to %c8 step %c2
  // CHECK: memref.store %{{.+}}, %{{.+}}[%[[I]], %[[J]]]
  // CHECK: %[[R:.+]] = scf.for %[[I:.+]] = %c0 to %c4 step %c1 iter_args(%[[OUTER:.+]] = %{{.+}}) -> (f32)
  // CHECK: %[[INNER:.+]] = scf.for %[[J:.+]] = %c0 to %c8 step %c2 iter_args(%[[SUM:.+]] = %[[OUTER]]) -> (f32)
  // CHECK: %[[X:.+]] = memref.load %{{.+}}[%[[I]], %[[J]]]
  // CHECK: %[[NEXT:.+]] = arith.addf %[[SUM]], %[[X]]
  // CHECK: scf.yield %[[NEXT]]
  // CHECK: scf.yield %[[INNER]]
  // CHECK: memref.store %[[R]]
  // OTHER-LABEL: gpu.func @parallel
  // OTHER: scf.forall
  // OTHER: scf.parallel
  gpu.func @parallel(%m: memref<4x8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %x = arith.constant 1.0 : f32
    scf.forall (%i, %j) = (0, 0) to (4, 8) step (1, 2) {
      memref.store %x, %m[%i, %j] : memref<4x8xf32>
    }
    %r = scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c8) step (%c1, %c2) init (%x) -> f32 {
      %v = memref.load %m[%i, %j] : memref<4x8xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        scf.reduce.return %s : f32
      }
    }
    memref.store %r, %m[%c0, %c0] : memref<4x8xf32>
    gpu.return
  }
}

// -----

// Functions of the host are not changed.
// CHECK-LABEL: func.func @host
// CHECK: affine.for
// CHECK: linalg.fill
func.func @host(%m: memref<4x8xf32>, %x: f32) {
  affine.for %i = 0 to 4 {
    affine.store %x, %m[%i, 0] : memref<4x8xf32>
  }
  linalg.fill ins(%x : f32) outs(%m : memref<4x8xf32>)
  return
}
