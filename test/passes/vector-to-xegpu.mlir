// RUN: xegpu-opt %s --vector-to-xegpu --canonicalize --cse | FileCheck %s
// RUN: xegpu-opt %s --vector-to-xegpu | xegpu-opt | FileCheck %s --check-prefix=AGAIN
// AGAIN: gpu.module @k

gpu.module @k {
  // A row is a 1D block.
  // CHECK-LABEL: gpu.func @row
  // CHECK: %[[ROW:.+]] = memref.subview %{{.+}}[%{{.+}}, 0] [1, 5] [1, 1] : memref<?x64xf32> to memref<5xf32, strided<[1], offset: ?>>
  // CHECK: %[[T:.+]] = xegpu.create_nd_tdesc %[[ROW]][0] {mode = vc} : {{.+}} -> !xegpu.tensor_desc<5xf32>
  // CHECK: %[[V:.+]] = xegpu.load_nd %[[T]] {mode = vc} : {{.+}} -> vector<5xf32>
  // CHECK: xegpu.store_nd %[[V]], %{{.+}} {mode = vc}
  gpu.func @row(%m: memref<?x64xf32>, %s: memref<8xf32, 3>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.load %m[%i, %c0] : memref<?x64xf32>, vector<5xf32>
    vector.store %x, %s[%c0] : memref<8xf32, 3>, vector<5xf32>
    gpu.return
  }

  // An atomic update of one element is an op of one lane.
  // CHECK-LABEL: gpu.func @atomic
  // CHECK: %[[T:.+]] = xegpu.create_tdesc %{{.+}}, %{{.+}} {mode = vc} : memref<?x64xi32>, vector<1xindex> -> !xegpu.tensor_desc<1xi32, #xegpu.scattered>
  // CHECK: %[[OLD:.+]] = xegpu.atomic_rmw maxs, %{{.+}}, %[[T]], %{{.+}} {mode = vc}
  // CHECK: vector.extract %[[OLD]][0] : i32 from vector<1xi32>
  gpu.func @atomic(%m: memref<?x64xi32>, %s: memref<8xi32>, %i: index, %x: i32) kernel {
    %old = memref.atomic_rmw maxs %x, %m[%i, %i] : (i32, memref<?x64xi32>) -> i32
    memref.store %old, %s[%i] : memref<8xi32>
    gpu.return
  }

  // A transfer that may be out of bounds is a gather of its in-bounds elements; the others are the padding.
  // CHECK-LABEL: gpu.func @edge
  // CHECK: %[[IN:.+]] = arith.cmpi {{slt|sgt}}, %{{.+}}, %{{.+}} : vector<8xindex>
  // CHECK: %[[T:.+]] = xegpu.create_tdesc %{{.+}}, %{{.+}} {mode = vc} : memref<?x64xf32>, vector<8xindex> -> !xegpu.tensor_desc<8xf32, #xegpu.scattered>
  // CHECK: %[[V:.+]] = xegpu.load_gather %[[T]], %[[IN]] {mode = vc}
  // CHECK: arith.select %[[IN]], %[[V]], %{{.+}} : vector<8xi1>, vector<8xf32>
  gpu.func @edge(%m: memref<?x64xf32>, %o: memref<8xf32>, %i: index, %pad: f32) kernel {
    %c0 = arith.constant 0 : index
    %x = vector.transfer_read %m[%c0, %i], %pad : memref<?x64xf32>, vector<8xf32>
    vector.transfer_write %x, %o[%c0] {in_bounds = [true]} : vector<8xf32>, memref<8xf32>
    gpu.return
  }

  // Kernels of work items are not changed; xegpu-simt-to-vc lowers them.
  // CHECK-LABEL: gpu.func @item
  // CHECK: vector.load
  gpu.func @item(%m: memref<64xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %c0 = arith.constant 0 : index
    %x = vector.load %m[%c0] : memref<64xf32>, vector<4xf32>
    vector.store %x, %m[%c0] : memref<64xf32>, vector<4xf32>
    gpu.return
  }
}
