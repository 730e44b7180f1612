// RUN: not xegpu-bisect --upstream %s small:f32:64x64:seed=1 zeros:f32:64x64 --grid 1 --block 128 --level workgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=subgroup},xegpu-wg-to-sg-distribute))'
// in 'xegpu-wg-to-sg-distribute', which follows 'xegpu-propagate-layout', mlir-opt reports: 'arith.addf' op requires the same type for all operands and results

gpu.module @k {
  gpu.func @f(%a: memref<64x64xf32>, %b: memref<64x64xf32>) kernel {
    %tx = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<64x64xf32>
    %x = xegpu.load_nd %tx[0, 0] <{layout = #xegpu.layout<sg_layout = [4, 2], sg_data = [16, 32]>}> : !xegpu.tensor_desc<64x64xf32> -> vector<64x64xf32>
    %y = arith.addf %x, %x : vector<64x64xf32>
    %tys = xegpu.create_nd_tdesc %b : memref<64x64xf32> -> !xegpu.tensor_desc<64x64xf32>
    xegpu.store_nd %y, %tys[0, 0] <{layout = #xegpu.layout<sg_layout = [2, 4], sg_data = [32, 16]>}> : vector<64x64xf32>, !xegpu.tensor_desc<64x64xf32>
    gpu.return
  }
}
