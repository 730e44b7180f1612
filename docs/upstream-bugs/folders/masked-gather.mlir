// canonicalize
// refuses its own result

func.func @f(%b: memref<?xf32>, %m: vector<4xi1>, %p: vector<4xf32>) -> vector<4xf32> {
  %c = arith.constant 0 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %i = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %0 = vector.mask %m { vector.gather %b[%c][%i], %all, %p : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32> } : vector<4xi1> -> vector<4xf32>
  return %0 : vector<4xf32>
}
