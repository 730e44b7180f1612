// RUN: not xegpu-bisect --upstream %s small:f32:8x64:seed=1 zeros:f32:16 --grid 1 --block 64 --level workgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=subgroup},xegpu-wg-to-sg-distribute))'
// in 'xegpu-wg-to-sg-distribute', which follows 'xegpu-propagate-layout', mlir-opt aborts: isa<To>(Val) && "cast<Ty>() argument of incompatible type!"

gpu.module @k {
  gpu.func @f(%a: memref<8x64xf32>, %o: memref<16xf32>) kernel {
    %tx = xegpu.create_nd_tdesc %a : memref<8x64xf32> -> !xegpu.tensor_desc<8x64xf32>
    %x = xegpu.load_nd %tx[0, 0] : !xegpu.tensor_desc<8x64xf32> -> vector<8x64xf32>
    %y = vector.shape_cast %x : vector<8x64xf32> to vector<8x16x4xf32>
    %c = arith.constant dense<3.0> : vector<16xf32>
    %r = vector.multi_reduction <add>, %y, %c [0, 2] : vector<8x16x4xf32> to vector<16xf32>
    %i = vector.step : vector<16xindex>
    %m = arith.constant dense<true> : vector<16xi1>
    xegpu.store %r, %o[%i], %m <{layout = #xegpu.layout<sg_layout = [4], sg_data = [4]>}> : vector<16xf32>, memref<16xf32>, vector<16xindex>, vector<16xi1>
    gpu.return
  }
}
