// RUN: xegpu-opt %s --xegpu-simt-to-vc | FileCheck %s

// The canonicalizer makes it of a branch. Like the descriptors that it selects from, the result has no map afterwards.

!t = !xegpu.tensor_desc<8x16xf32, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
gpu.module @m {
  gpu.func @k(%m: memref<64x64xf32>, %c: i1) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %a = xegpu.create_nd_tdesc %m[0, 0] : memref<64x64xf32> -> !t
    %b = xegpu.create_nd_tdesc %m[8, 16] : memref<64x64xf32> -> !t
    // CHECK: %[[D:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : !xegpu.tensor_desc<8x16xf32>
    // CHECK: xegpu.load_nd %[[D]] {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %d = arith.select %c, %a, %b : !t
    %x = xegpu.load_nd %d : !t -> vector<8x1xf32>
    xegpu.store_nd %x, %a : vector<8x1xf32>, !t
    gpu.return
  }
}
