// canonicalize
// lacks: scf.for

func.func @f(%m: memref<1xi8>) {
  %lower = arith.constant -100 : i8
  %upper = arith.constant 100 : i8
  %step = arith.constant 1 : i8
  %zero = arith.constant 0 : index
  scf.for %i = %lower to %upper step %step : i8 {
    memref.store %i, %m[%zero] : memref<1xi8>
  }
  return
}
