// RUN: xegpu-opt %s --xegpu-simt-to-vc | FileCheck %s

// Descriptors and fragments that a branch yields have no map afterwards.

#map = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
!t = !xegpu.tensor_desc<8x16xf32, #xegpu.tdesc_attr<map = #map>>
gpu.module @m {
  gpu.func @k(%m: memref<64x64xf32>, %n: index) kernel attributes {xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: 16, 1, 1>} {
    %c2 = arith.constant 2 : index
    %c = arith.cmpi slt, %n, %c2 : index
    %a = xegpu.create_nd_tdesc %m[0, 0] : memref<64x64xf32> -> !t
    %b = xegpu.create_nd_tdesc %m[8, 16] : memref<64x64xf32> -> !t
    // CHECK: %[[D:.*]] = scf.if %{{.*}} -> (!xegpu.tensor_desc<8x16xf32>)
    // CHECK: scf.yield %{{.*}} : !xegpu.tensor_desc<8x16xf32>
    // CHECK: scf.yield %{{.*}} : !xegpu.tensor_desc<8x16xf32>
    %d = scf.if %c -> !t {
      scf.yield %a : !t
    } else {
      scf.yield %b : !t
    }
    // CHECK: %[[X:.*]] = xegpu.load_nd %[[D]] {mode = vc}
    %x = xegpu.load_nd %d : !t -> vector<8x1xf32>
    // CHECK: %[[Y:.*]] = scf.execute_region -> vector<8x16xf32>
    // CHECK-NEXT: %[[Z:.*]] = arith.addf %[[X]], %[[X]] : vector<8x16xf32>
    // CHECK-NEXT: scf.yield %[[Z]] : vector<8x16xf32>
    // CHECK: xegpu.store_nd %[[Y]]
    %y = scf.execute_region -> vector<8x1xf32> {
      %z = arith.addf %x, %x : vector<8x1xf32>
      scf.yield %z : vector<8x1xf32>
    }
    xegpu.store_nd %y, %a : vector<8x1xf32>, !t
    gpu.return
  }
}
