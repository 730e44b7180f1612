// RUN: not xegpu-bisect --upstream %s arange:f32:16x16 zeros:f32:16x16 --grid 1 --block 16 --level subgroup --pass-pipeline='builtin.module(gpu.module(xegpu-blocking))'
// in 'xegpu-blocking' mlir-opt aborts: SIGSEGV

gpu.module @kernels {
  gpu.func @copy(%a: memref<16x16xf32>, %b: memref<16x16xf32>) kernel {
    %d = xegpu.create_nd_tdesc %a : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32>
    %v = xegpu.load_nd %d[0, 0] <{layout = #xegpu.layout<inst_data = [8, 16]>}> : !xegpu.tensor_desc<16x16xf32> -> vector<16x16xf32>
    %e = xegpu.create_nd_tdesc %b : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32>
    xegpu.store_nd %v, %e[0, 0] <{layout = #xegpu.layout<inst_data = [8, 16]>}> : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32>
    gpu.return
  }
}
