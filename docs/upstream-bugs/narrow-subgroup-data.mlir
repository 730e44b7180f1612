// RUN: not xegpu-bisect --upstream %s small:f16:16x32:seed=1 zeros:f16:16x32 --grid 1 --block 64 --level workgroup --pass-pipeline='builtin.module(xevm-attach-target{chip=pvc},gpu.module(xegpu-propagate-layout{layout-kind=subgroup},xegpu-wg-to-sg-distribute,cse,xegpu-propagate-layout{layout-kind=inst},xegpu-blocking))'
// in 'xegpu-propagate-layout', which follows 'cse', mlir-opt aborts: llvm::all_of(subShape, [](int64_t s) { return s > 0; }) && "subShape must be nonnegative"

gpu.module @k {
  gpu.func @f(%a: memref<16x32xf16>, %o: memref<16x32xf16>) kernel {
    %tx = xegpu.create_nd_tdesc %a : memref<16x32xf16> -> !xegpu.tensor_desc<16x32xf16>
    %x = xegpu.load_nd %tx[0, 0] <{layout = #xegpu.layout<sg_layout = [1, 4], sg_data = [16, 8]>}> : !xegpu.tensor_desc<16x32xf16> -> vector<16x32xf16>
    %txs = xegpu.create_nd_tdesc %o : memref<16x32xf16> -> !xegpu.tensor_desc<16x32xf16>
    xegpu.store_nd %x, %txs[0, 0] <{layout = #xegpu.layout<sg_layout = [1, 4], sg_data = [16, 8]>}> : vector<16x32xf16>, !xegpu.tensor_desc<16x32xf16>
    gpu.return
  }
}
