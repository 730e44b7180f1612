// RUN: not xegpu-bisect --upstream %s small:i8:8x64:seed=1 zeros:i8:8x64 --grid 1 --block 16 --level subgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=lane}))'
// in 'xegpu-propagate-layout', which follows 'xevm-attach-target', mlir-opt aborts: succeeded( ConcreteT::verifyInvariants(getDefaultDiagnosticEmitFn(ctx), args...))

gpu.module @k {
  gpu.func @f(%a: memref<8x64xi8>, %o: memref<8x64xi8>) kernel {
    %dx = xegpu.create_nd_tdesc %a : memref<8x64xi8> -> !xegpu.tensor_desc<8x16xi8>
    %x = xegpu.load_nd %dx[0, 0] : !xegpu.tensor_desc<8x16xi8> -> vector<8x16xi8>
    %ex = xegpu.create_nd_tdesc %o : memref<8x64xi8> -> !xegpu.tensor_desc<8x16xi8>
    xegpu.store_nd %x, %ex[0, 0] : vector<8x16xi8>, !xegpu.tensor_desc<8x16xi8>
    gpu.return
  }
}
