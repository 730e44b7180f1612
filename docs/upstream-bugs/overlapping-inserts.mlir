// RUN: not xegpu-bisect --upstream %s small:f32:64x64:seed=1 zeros:f32:64x64 --grid 1 --block 16 --level subgroup --pass-pipeline='builtin.module(canonicalize)'
// after 'canonicalize' %o differs first at [4, 0]: -2.0 before, -1.0 after (58 of 4096 elements differ, by up to 2164260864 units in the last place)

gpu.module @k {
  gpu.func @f(%a: memref<64x64xf32>, %o: memref<64x64xf32>) kernel {
    %dx = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %dx[0, 0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %dz = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %z = xegpu.load_nd %dz[32, 32] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %c = arith.constant dense<0.0> : vector<16x16xf32>
    %v = vector.insert_strided_slice %x, %c {offsets = [0, 0], strides = [1, 1]} : vector<8x16xf32> into vector<16x16xf32>
    %w = vector.insert_strided_slice %z, %v {offsets = [4, 0], strides = [1, 1]} : vector<8x16xf32> into vector<16x16xf32>
    %y = vector.extract_strided_slice %w {offsets = [0, 0], sizes = [8, 16], strides = [1, 1]} : vector<16x16xf32> to vector<8x16xf32>
    %ey = xegpu.create_nd_tdesc %o : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %y, %ey[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
