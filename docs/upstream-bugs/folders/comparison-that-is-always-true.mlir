// canonicalize
// ends the process

func.func @f(%i: i32) -> i1 {
  %0 = arith.sitofp %i : i32 to f32
  %c = arith.constant 1.0 : f32
  %1 = arith.cmpf true, %0, %c : f32
  return %1 : i1
}
