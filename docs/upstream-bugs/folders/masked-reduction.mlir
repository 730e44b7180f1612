// canonicalize
// lacks: arith.select

func.func @f(%v: vector<1xf32>, %m: vector<1xi1>) -> f32 {
  %0 = vector.mask %m { vector.reduction <add>, %v : vector<1xf32> into f32 } : vector<1xi1> -> f32
  return %0 : f32
}
