// canonicalize
// lacks: arith.truncf

func.func @f(%i: i32) -> f16 {
  %0 = arith.sitofp %i : i32 to f32
  %1 = arith.truncf %0 : f32 to f16
  return %1 : f16
}
