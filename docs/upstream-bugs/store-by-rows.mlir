// RUN: not xegpu-bisect --upstream %s arange:f32:16x16 zeros:f32:16x16 --block 16 --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-subgroup-distribute))'
// after 'xegpu-subgroup-distribute', which follows 'xevm-attach-target', %b differs first at [0, 1]: 1.0 before, 16.0 after (240 of 256 elements differ, by up to 33554432 units in the last place)

#rows = #xegpu.layout<lane_layout = [16, 1], lane_data = [1, 1]>
gpu.module @k {
  gpu.func @f(%a: memref<16x16xf32>, %b: memref<16x16xf32>) kernel {
    %da = xegpu.create_nd_tdesc %a : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32, #rows>
    %v = xegpu.load_nd %da[0, 0] <{layout = #rows}> : !xegpu.tensor_desc<16x16xf32, #rows> -> vector<16x16xf32>
    %db = xegpu.create_nd_tdesc %b : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32, #rows>
    xegpu.store_nd %v, %db[0, 0] <{layout = #rows}> : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32, #rows>
    gpu.return
  }
}
