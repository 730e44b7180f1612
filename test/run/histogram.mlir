// A histogram of bytes with 256 bins, by atomic additions. Each subgroup has 16 bytes of the input at a time; the mask
// keeps the last one within the input's length.

gpu.module @kernels {
  gpu.func @histogram(%in: memref<?xi8>, %bins: memref<256xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %length = memref.dim %in, %c0 : memref<?xi8>
    %group = gpu.block_id x
    %groups = gpu.grid_dim x
    %first = arith.muli %group, %c16 : index
    %step = arith.muli %groups, %c16 : index
    %lanes = vector.step : vector<16xindex>
    %ones = arith.constant dense<1> : vector<16xi32>
    scf.for %at = %first to %length step %step {
      %left = arith.subi %length, %at : index
      %mask = vector.create_mask %left : vector<16xi1>
      %ats = vector.broadcast %at : index to vector<16xindex>
      %places = arith.addi %ats, %lanes : vector<16xindex>
      %from = xegpu.create_tdesc %in, %places {mode = vc}
        : memref<?xi8>, vector<16xindex> -> !xegpu.tensor_desc<16xi8, #xegpu.scattered>
      %bytes = xegpu.load_gather %from, %mask {mode = vc}
        : !xegpu.tensor_desc<16xi8, #xegpu.scattered>, vector<16xi1> -> vector<16xi8>
      %values = arith.extui %bytes : vector<16xi8> to vector<16xi32>
      %bin = arith.index_cast %values : vector<16xi32> to vector<16xindex>
      %to = xegpu.create_tdesc %bins, %bin {mode = vc}
        : memref<256xi32>, vector<16xindex> -> !xegpu.tensor_desc<16xi32, #xegpu.scattered>
      %old = xegpu.atomic_rmw addi, %ones, %to, %mask {mode = vc}
        : vector<16xi32>, !xegpu.tensor_desc<16xi32, #xegpu.scattered>, vector<16xi1> -> vector<16xi32>
    }
    gpu.return
  }
}
