// canonicalize
// ends the process

module {
  gpu.module @m {
    gpu.func @k(%arg0: memref<?xi8>, %arg1: memref<8xi8>) kernel {
      %c-1 = arith.constant -1 : index
      %dim = memref.dim %arg0, %c-1 : memref<?xi8>
      %0 = arith.index_cast %dim : index to i8
      %c0 = arith.constant 0 : index
      memref.store %0, %arg1[%c0] : memref<8xi8>
      gpu.return
    }
  }
}
