gpu.module @kernels {
  gpu.func @sum(%a: memref<8x16xf32>, %b: memref<8x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %from = xegpu.create_nd_tdesc %a[%c0, %c0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %to = xegpu.create_nd_tdesc %b[%c0, %c0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %from {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %twice = arith.addf %v, %v : vector<8x16xf32>
    xegpu.store_nd %twice, %to {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
  gpu.func @nothing() kernel {
    gpu.return
  }
}
