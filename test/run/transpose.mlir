// The transpose of a 64x48 f32 matrix, by messages that transpose 16x8 blocks.

gpu.module @kernels {
  gpu.func @transpose(%in: memref<64x48xf32>, %out: memref<48x64xf32>) kernel {
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %row = arith.muli %x, %c16 : index
    %column = arith.muli %y, %c8 : index
    %from = xegpu.create_nd_tdesc %in[%row, %column] {mode = vc} : memref<64x48xf32> -> !xegpu.tensor_desc<16x8xf32>
    %block = xegpu.load_nd %from {transpose = [1, 0], mode = vc} : !xegpu.tensor_desc<16x8xf32> -> vector<8x16xf32>
    %to = xegpu.create_nd_tdesc %out[%column, %row] {mode = vc} : memref<48x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %block, %to {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
