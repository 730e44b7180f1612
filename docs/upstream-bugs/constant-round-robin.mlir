// RUN: not xegpu-bisect --upstream %s zeros:f32:8x64 --block 64 --level workgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=subgroup},xegpu-wg-to-sg-distribute))'
// after 'xegpu-wg-to-sg-distribute', which follows 'xegpu-propagate-layout', %a differs first at [0, 32]: 2.0 before, 0.0 after (384 of 512 elements differ, by up to 1073741824 units in the last place)

gpu.module @k {
  gpu.func @f(%a: memref<8x64xf32>) kernel {
    %c = arith.constant dense<2.0> : vector<8x64xf32>
    %t = xegpu.create_nd_tdesc %a : memref<8x64xf32> -> !xegpu.tensor_desc<8x64xf32>
    xegpu.store_nd %c, %t[0, 0] <{layout = #xegpu.layout<sg_layout = [4, 1], sg_data = [1, 32]>}> : vector<8x64xf32>, !xegpu.tensor_desc<8x64xf32>
    gpu.return
  }
}
