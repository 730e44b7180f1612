// RUN: not xegpu-bisect --upstream %s arange:f32:1x64 zeros:f32:16x64 --grid 1 --block 32 --level workgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=subgroup},xegpu-wg-to-sg-distribute))'
// after 'xegpu-wg-to-sg-distribute', which follows 'xegpu-propagate-layout', %b differs first at [8, 1]: 1.0 before, 0.0 after (504 of 1024 elements differ, by up to 1115422720 units in the last place)

gpu.module @kernels {
  gpu.func @broadcast(%a: memref<1x64xf32>, %b: memref<16x64xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a : memref<1x64xf32> -> !xegpu.tensor_desc<1x64xf32>
    %v = xegpu.load_nd %d[0, 0] <{layout = #xegpu.layout<sg_layout = [1, 2], sg_data = [1, 32]>}> : !xegpu.tensor_desc<1x64xf32> -> vector<1x64xf32>
    %r = vector.broadcast %v : vector<1x64xf32> to vector<16x64xf32>
    %e = xegpu.create_nd_tdesc %b : memref<16x64xf32> -> !xegpu.tensor_desc<16x64xf32>
    xegpu.store_nd %r, %e[0, 0] <{layout = #xegpu.layout<sg_layout = [1, 2], sg_data = [8, 32]>}> : vector<16x64xf32>, !xegpu.tensor_desc<16x64xf32>
    gpu.return
  }
}
