// canonicalize
// lacks: arith.index_cast

func.func @f(%i: index) -> index {
  %0 = arith.index_cast %i : index to i8
  %1 = arith.index_cast %0 : i8 to index
  return %1 : index
}
