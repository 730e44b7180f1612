// RUN: not xegpu-bisect --upstream %s small:f32:8x16:seed=1 zeros:f32:8x16 --grid 1 --block 16 --level subgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=inst},xegpu-blocking,canonicalize,xegpu-propagate-layout{layout-kind=lane},xegpu-subgroup-distribute))'
// in 'xegpu-subgroup-distribute', which follows 'xegpu-propagate-layout', mlir-opt aborts: LLVM ERROR: scf.yield created with unregistered dialect. If this is intended, please call allowUnregisteredDialects() on the MLIRContext, or use -allow-unregistered-dialect with the MLIR tool used.

gpu.module @k {
  gpu.func @f(%a: memref<8x16xf32>, %o: memref<8x16xf32>) kernel {
    %dx = xegpu.create_nd_tdesc %a : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %dx[0, 0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %c = arith.constant dense<0.0> : vector<8xf32>
    %r = vector.multi_reduction <add>, %x, %c [1] : vector<8x16xf32> to vector<8xf32>
    %s = vector.shape_cast %r : vector<8xf32> to vector<8x1xf32>
    %b = vector.broadcast %s : vector<8x1xf32> to vector<8x16xf32>
    %eb = xegpu.create_nd_tdesc %o : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %b, %eb[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
