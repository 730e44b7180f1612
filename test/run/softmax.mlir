// Softmax over the rows of a 32x1024 matrix: a subgroup to a row.

gpu.module @kernels {
  gpu.func @softmax(%in: memref<32x1024xf32>, %out: memref<32x1024xf32>) kernel {
    %row = gpu.block_id x
    %length = arith.constant 1024 : index
    %first = arith.muli %row, %length : index
    %in_line = memref.collapse_shape %in [[0, 1]] : memref<32x1024xf32> into memref<32768xf32>
    %out_line = memref.collapse_shape %out [[0, 1]] : memref<32x1024xf32> into memref<32768xf32>
    %from = xegpu.create_nd_tdesc %in_line[%first] {mode = vc}
      : memref<32768xf32> -> !xegpu.tensor_desc<1024xf32, #xegpu.tdesc_attr<boundary_check = false>>
    %to = xegpu.create_nd_tdesc %out_line[%first] {mode = vc}
      : memref<32768xf32> -> !xegpu.tensor_desc<1024xf32, #xegpu.tdesc_attr<boundary_check = false>>
    %x = xegpu.load_nd %from {mode = vc}
      : !xegpu.tensor_desc<1024xf32, #xegpu.tdesc_attr<boundary_check = false>> -> vector<1024xf32>
    %most = vector.reduction <maximumf>, %x : vector<1024xf32> into f32
    %mosts = vector.broadcast %most : f32 to vector<1024xf32>
    %shifted = arith.subf %x, %mosts : vector<1024xf32>
    %powers = math.exp %shifted : vector<1024xf32>
    %sum = vector.reduction <add>, %powers : vector<1024xf32> into f32
    %sums = vector.broadcast %sum : f32 to vector<1024xf32>
    %result = arith.divf %powers, %sums : vector<1024xf32>
    xegpu.store_nd %result, %to {mode = vc}
      : vector<1024xf32>, !xegpu.tensor_desc<1024xf32, #xegpu.tdesc_attr<boundary_check = false>>
    gpu.return
  }
}
