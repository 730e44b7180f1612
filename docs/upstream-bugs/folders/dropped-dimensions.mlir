// canonicalize
// ends the process

func.func @one_of_two(%m: memref<?x8xf32>) -> memref<?xf32, strided<[?], offset: ?>> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = memref.subview %m[%c1, %c0] [%c1, 1] [%c1, 1] : memref<?x8xf32> to memref<?xf32, strided<[?], offset: ?>>
  return %r : memref<?xf32, strided<[?], offset: ?>>
}
