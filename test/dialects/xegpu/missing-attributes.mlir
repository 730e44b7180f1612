// Attributes without a default are required, in each form of an op.
// RUN: xegpu-opt %s --split-input-file --verify-diagnostics

func.func @dictionary(%i: i8) {
  // expected-error@+1 {{attribute 'num_producers' is missing}}
  %b = xegpu.create_nbarrier %i, %i : (i8, i8) -> !xegpu.nbarrier
  return
}

// -----

func.func @second(%i: i8) {
  // expected-error@+1 {{attribute 'num_consumers' is missing}}
  %b = xegpu.create_nbarrier %i, %i {num_producers = 2 : i8} : (i8, i8) -> !xegpu.nbarrier
  return
}

// -----

func.func @layout(%x: vector<32x32xf32>) {
  // expected-error@+1 {{attribute 'wg_map_result' is missing}}
  %y = xetile.convert_layout %x : vector<32x32xf32>
  return
}

// -----

func.func @generic(%x: vector<32x32xf32>) {
  // expected-error@+1 {{attribute "permutation" is expected but not provided}}
  %y = "xetile.transpose"(%x) : (vector<32x32xf32>) -> vector<32x32xf32>
  return
}
