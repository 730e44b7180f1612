// cse
// has: vector.mask %arg1 { vector.yield

func.func @f(%v: vector<4xf32>, %m: vector<4xi1>, %a: f32) -> (f32, f32) {
  %0 = vector.reduction <add>, %v, %a : vector<4xf32> into f32
  %1 = vector.mask %m { vector.reduction <add>, %v, %a : vector<4xf32> into f32 } : vector<4xi1> -> f32
  return %0, %1 : f32, f32
}
