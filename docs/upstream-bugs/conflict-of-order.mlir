// RUN: not xegpu-bisect --upstream %s small:f32:64x64:seed=1 zeros:f32:64x64 --grid 1 --block 128 --level workgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=subgroup},xegpu-wg-to-sg-distribute))'
// after 'xegpu-wg-to-sg-distribute', which follows 'xegpu-propagate-layout', %b differs first at [0, 32]: 4.0 before, -3.0 after (2740 of 4096 elements differ, by up to 2164260864 units in the last place)

gpu.module @k {
  gpu.func @f(%a: memref<64x64xf32>, %b: memref<64x64xf32>) kernel {
    %tx = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<64x64xf32>
    %x = xegpu.load_nd %tx[0, 0] <{layout = #xegpu.layout<sg_layout = [4, 2], sg_data = [16, 32], order = [0, 1]>}> : !xegpu.tensor_desc<64x64xf32> -> vector<64x64xf32>
    %tys = xegpu.create_nd_tdesc %b : memref<64x64xf32> -> !xegpu.tensor_desc<64x64xf32>
    xegpu.store_nd %x, %tys[0, 0] <{layout = #xegpu.layout<sg_layout = [4, 2], sg_data = [16, 32]>}> : vector<64x64xf32>, !xegpu.tensor_desc<64x64xf32>
    gpu.return
  }
}
