// RUN: not xegpu-bisect --upstream %s small:f32:32x64:seed=1 zeros:f32:8x16 --grid 1 --block 16 --level subgroup --pass-pipeline='builtin.module(xegpu-fold-alias-ops)'
// in 'xegpu-fold-alias-ops' mlir-opt aborts: Index < Length && "Invalid index!"

gpu.module @k {
  gpu.func @f(%a: memref<32x64xf32>, %o: memref<8x16xf32>) kernel {
    %s = memref.subview %a[8, 0] [16, 64] [1, 1] : memref<32x64xf32> to memref<16x64xf32, strided<[64, 1], offset: 512>>
    %d = xegpu.create_nd_tdesc %s : memref<16x64xf32, strided<[64, 1], offset: 512>> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %d[0, 0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %ex = xegpu.create_nd_tdesc %o : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %x, %ex[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
