// RUN: not xegpu-bisect --upstream %s zeros:i32:64 --grid 1 --block 128 --level workgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=subgroup},xegpu-wg-to-sg-distribute))'
// after 'xegpu-wg-to-sg-distribute', which follows 'xegpu-propagate-layout', %b differs first at [32]: 32 before, 0 after (32 of 64 elements differ)

gpu.module @k {
  gpu.func @f(%b: memref<64xi32>) kernel {
    %o = vector.step : vector<64xindex>
    %m = arith.constant dense<true> : vector<64xi1>
    %v = arith.index_cast %o : vector<64xindex> to vector<64xi32>
    xegpu.store %v, %b[%o], %m <{layout = #xegpu.slice<#xegpu.layout<sg_layout = [4, 2], sg_data = [8, 16]>, dims = [0]>}> : vector<64xi32>, memref<64xi32>, vector<64xindex>, vector<64xi1>
    gpu.return
  }
}
