// RUN: not xegpu-bisect --upstream %s arange:i32:4x16 zeros:i16:4x32 --grid 1 --block 16 --level subgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=lane},xegpu-subgroup-distribute))'
// after 'xegpu-subgroup-distribute', which follows 'xegpu-propagate-layout', %b differs first at [0, 1]: 0 before, 1 after (92 of 128 elements differ)

#lanes = #xegpu.layout<lane_layout = [1, 16], lane_data = [1, 1]>
gpu.module @kernels {
  gpu.func @bitcast(%a: memref<4x16xi32>, %b: memref<4x32xi16>) kernel {
    %d = xegpu.create_nd_tdesc %a : memref<4x16xi32> -> !xegpu.tensor_desc<4x16xi32>
    %v = xegpu.load_nd %d[0, 0] <{layout = #lanes}> : !xegpu.tensor_desc<4x16xi32> -> vector<4x16xi32>
    %r = vector.bitcast %v : vector<4x16xi32> to vector<4x32xi16>
    %e = xegpu.create_nd_tdesc %b : memref<4x32xi16> -> !xegpu.tensor_desc<4x32xi16>
    xegpu.store_nd %r, %e[0, 0] <{layout = #lanes}> : vector<4x32xi16>, !xegpu.tensor_desc<4x32xi16>
    gpu.return
  }
}
