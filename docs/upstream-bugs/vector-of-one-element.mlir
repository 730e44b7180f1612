// RUN: not xegpu-bisect --upstream %s zeros:f32:1 --grid 1 --block 16 --level subgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=inst},xegpu-blocking))'
// in 'xegpu-blocking', which follows 'xegpu-propagate-layout', mlir-opt aborts: ratio && "The shape of the type must be a multiple of tileShape."

gpu.module @k {
  gpu.func @f(%o: memref<1xf32>) kernel {
    %c = arith.constant dense<3.0> : vector<1xf32>
    %i = arith.constant dense<0> : vector<1xindex>
    %m = arith.constant dense<true> : vector<1xi1>
    xegpu.store %c, %o[%i], %m : vector<1xf32>, memref<1xf32>, vector<1xindex>, vector<1xi1>
    gpu.return
  }
}
