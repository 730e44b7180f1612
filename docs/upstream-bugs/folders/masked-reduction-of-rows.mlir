// canonicalize
// has: arith.select %0, %2, %1

func.func @f(%v: vector<4x1xf32>, %m: vector<4x1xi1>, %a: vector<4xf32>) -> vector<4xf32> {
  %0 = vector.mask %m { vector.multi_reduction <add>, %v, %a [1] : vector<4x1xf32> to vector<4xf32> } : vector<4x1xi1> -> vector<4xf32>
  return %0 : vector<4xf32>
}
