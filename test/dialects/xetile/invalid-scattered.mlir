// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%A: memref<64xf16>) {
  // expected-error @below {{'xetile.init_tile' op requires a vector of indices for a scattered tile}}
  %r = xetile.init_tile %A[0] : memref<64xf16> -> !xetile.tile<32xf16, #xetile.tile_attr<scattered = true>>
  return
}

// -----

func.func @f(%A: memref<64xf16>, %i: vector<16xindex>) {
  // expected-error @below {{'xetile.init_tile' op requires one index for each element, vector<32xindex>, but got vector<16xindex>}}
  %r = xetile.init_tile %A, %i : memref<64xf16>, vector<16xindex> -> !xetile.tile<32xf16, #xetile.tile_attr<scattered = true>>
  return
}

// -----

func.func @f(%A: memref<64xf16>, %i: vector<32xindex>) {
  // expected-error @below {{'xetile.init_tile' op does not accept offsets, shape or strides for a scattered tile}}
  %r = xetile.init_tile %A[0], %i : memref<64xf16>, vector<32xindex> -> !xetile.tile<32xf16, #xetile.tile_attr<scattered = true>>
  return
}

// -----

func.func @f(%A: memref<64xf16>, %i: vector<32xf32>) {
  // expected-error @below {{operand 'indices' must be vector of index or integer, but got 'vector<32xf32>'}}
  %r = xetile.init_tile %A, %i : memref<64xf16>, vector<32xf32> -> !xetile.tile<32xf16, #xetile.tile_attr<scattered = true>>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.load' op requires a scattered tile, but got !xetile.tile<32x64xf16>}}
  // expected-note @below {{use xetile.load_tile for this tile}}
  %r = xetile.load %t : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, %m: vector<32xi1>) {
  // expected-error @below {{'xetile.load' op requires a mask of type vector<64xi1>, but got vector<32xi1>}}
  %r = xetile.load %t, %m : !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, vector<32xi1> -> vector<64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>) {
  // expected-error @below {{'xetile.load' op padding must be of type f16, but got 1.000000e+00 : f64}}
  %r = xetile.load %t {padding = 1.0 : f64} : !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>> -> vector<64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>) {
  // expected-error @below {{'xetile.load' op l1_hint = write_back is not a valid hint for a read}}
  // expected-note @below {{valid hints for a read are cached, uncached, streaming, read_invalidate}}
  %r = xetile.load %t {l1_hint = write_back} : !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>> -> vector<64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>) {
  // expected-error @below {{'xetile.load' op 'value' must be vector<64xf16>, but got vector<64xf32>}}
  // expected-note @below {{this is the tile's shape and element type}}
  %r = xetile.load %t : !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>> -> vector<64xf32>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>, %v: vector<32x64xf16>) {
  // expected-error @below {{'xetile.store' op requires a scattered tile, but got !xetile.tile<32x64xf16>}}
  // expected-note @below {{use xetile.store_tile for this tile}}
  xetile.store %v, %t : vector<32x64xf16>, !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, %v: vector<32xf16>) {
  // expected-error @below {{'xetile.store' op 'value' must be vector<64xf16>, but got vector<32xf16>}}
  // expected-note @below {{this is the tile's shape and element type}}
  xetile.store %v, %t : vector<32xf16>, !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, %v: vector<64xf16>) {
  // expected-error @below {{'xetile.store' op l1_hint = cached is not a valid hint for a write}}
  // expected-note @below {{valid hints for a write are uncached, write_through, write_back, streaming}}
  xetile.store %v, %t {l1_hint = cached} : vector<64xf16>, !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, %v: vector<64xf16>, %m: vector<32xi1>) {
  // expected-error @below {{'xetile.store' op requires a mask of type vector<64xi1>, but got vector<32xi1>}}
  xetile.store %v, %t, %m : vector<64xf16>, !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, vector<32xi1>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, %v: vector<64xf32>) {
  // expected-error @below {{'xetile.atomic_rmw' op 'addi' requires integer elements, but got f32}}
  %r = xetile.atomic_rmw <addi>, %v, %t : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>> -> vector<64xf32>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xi32, #xetile.tile_attr<scattered = true>>, %v: vector<64xi32>) {
  // expected-error @below {{'xetile.atomic_rmw' op 'addf' requires floating-point elements, but got i32}}
  %r = xetile.atomic_rmw <addf>, %v, %t : vector<64xi32>, !xetile.tile<64xi32, #xetile.tile_attr<scattered = true>> -> vector<64xi32>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, %v: vector<64xf32>) {
  // expected-error @below {{expected one of addf, addi, andi, assign, maximumf, maxnumf, maxs, maxu, minimumf, minnumf, mins, minu, mulf, muli, ori, xori, but got 'plus'}}
  %r = xetile.atomic_rmw <plus>, %v, %t : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>> -> vector<64xf32>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, %v: vector<64xf32>) {
  // expected-error @below {{'xetile.atomic_rmw' op result must have the value's type vector<64xf32>, but got vector<32xf32>}}
  %r = xetile.atomic_rmw <addf>, %v, %t : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>> -> vector<32xf32>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, %v: vector<32xf32>) {
  // expected-error @below {{'xetile.atomic_rmw' op 'value' must be vector<64xf32>, but got vector<32xf32>}}
  // expected-note @below {{one value for each element of the tile}}
  %r = xetile.atomic_rmw <addf>, %v, %t : vector<32xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>> -> vector<32xf32>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xi32, #xetile.tile_attr<scattered = true>>, %v: vector<64xi32>) {
  // expected-error @below {{'xetile.atomic_rmw' op with an expected value must be of kind 'assign', but got 'addi'}}
  %r = xetile.atomic_rmw <addi>, %v, %t expecting %v : vector<64xi32>, !xetile.tile<64xi32, #xetile.tile_attr<scattered = true>> expecting vector<64xi32> -> vector<64xi32>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xi32, #xetile.tile_attr<scattered = true>>, %v: vector<64xi32>, %e: vector<32xi32>) {
  // expected-error @below {{'xetile.atomic_rmw' op the expected value must be vector<64xi32>, like the value, but got vector<32xi32>}}
  %r = xetile.atomic_rmw <assign>, %v, %t expecting %e : vector<64xi32>, !xetile.tile<64xi32, #xetile.tile_attr<scattered = true>> expecting vector<32xi32> -> vector<64xi32>
  return
}

// -----

func.func @f(%t: !xetile.tile<8x16xf32>, %v: vector<8x16xf32>, %m: vector<8x16xi1>) {
  // expected-error @below {{'xetile.atomic_rmw' op accepts a mask only for a scattered tile}}
  %r = xetile.atomic_rmw <addf>, %v, %t, %m : vector<8x16xf32>, !xetile.tile<8x16xf32>, vector<8x16xi1> -> vector<8x16xf32>
  return
}
