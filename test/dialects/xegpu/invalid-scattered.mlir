// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%s: ui64, %o: vector<16xindex>) {
  // expected-error @below {{'xegpu.create_tdesc' op is available in VC mode only}}
  // expected-note @below {{add 'mode = vc'}}
  xegpu.create_tdesc %s, %o : ui64, vector<16xindex> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%s: ui64, %o: vector<16xindex>) {
  // expected-error @below {{'xegpu.create_tdesc' op requires a scattered tensor descriptor, but got !xegpu.tensor_desc<16xf16>}}
  // expected-note @below {{use xegpu.create_tdesc to create the descriptor}}
  xegpu.create_tdesc %s, %o {mode = vc} : ui64, vector<16xindex> -> !xegpu.tensor_desc<16xf16, boundary_check = false>
  return
}

// -----

func.func @f(%s: ui64, %o: vector<16xindex>) {
  // expected-error @below {{'xegpu.create_tdesc' op chunk_size_per_lane must be 1, 2, 3, 4 or 8, but got 5}}
  xegpu.create_tdesc %s, %o {mode = vc, chunk_size_per_lane = 5} : ui64, vector<16xindex> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%s: ui64, %o: vector<16xindex>) {
  // expected-error @below {{'xegpu.create_tdesc' op chunk_size_per_lane = 4 does not match the descriptor's 16x2}}
  // expected-note @below {{its dimensions are the lanes, and the chunk if that is larger than 1}}
  xegpu.create_tdesc %s, %o {mode = vc, chunk_size_per_lane = 4} : ui64, vector<16xindex> -> !xegpu.tensor_desc<16x2xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%s: ui64, %o: vector<8xindex>) {
  // expected-error @below {{'xegpu.create_tdesc' op requires one offset for each of 16 lanes, but got vector<8xindex>}}
  xegpu.create_tdesc %s, %o {mode = vc} : ui64, vector<8xindex> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%s: ui64, %o: vector<16xf32>) {
  // expected-error @below {{operand 'offsets' must be vector of index or integer, but got 'vector<16xf32>'}}
  xegpu.create_tdesc %s, %o {mode = vc} : ui64, vector<16xf32> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%s: memref<64xf32>, %o: vector<16xindex>) {
  // expected-error @below {{'xegpu.create_tdesc' op the descriptor's element type f16 does not match the memref's, f32}}
  xegpu.create_tdesc %s, %o {mode = vc} : memref<64xf32>, vector<16xindex> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%s: memref<64xf16, 3>, %o: vector<16xindex>) {
  // expected-error @below {{'xegpu.create_tdesc' op memory_scope = global does not match the memory space of memref<64xf16, 3>}}
  xegpu.create_tdesc %s, %o {mode = vc} : memref<64xf16, 3>, vector<16xindex> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.load_gather' op is available in VC mode only}}
  // expected-note @below {{add 'mode = vc'}}
  xegpu.load_gather %t, %m : !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xi1> -> vector<16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %m: vector<8xi1>) {
  // expected-error @below {{'xegpu.load_gather' op requires a mask of type vector<16xi1>, but got vector<8xi1>}}
  // expected-note @below {{the mask has one bit for each lane, not for each element of its chunk}}
  xegpu.load_gather %t, %m {mode = vc} : !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<8xi1> -> vector<16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %m: vector<16xi8>) {
  // expected-error @below {{operand 'mask' must be vector of i1, but got 'vector<16xi8>'}}
  xegpu.load_gather %t, %m {mode = vc} : !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xi8> -> vector<16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16x8xf16, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.load_gather' op 'value' must be vector<8x16xf16>, but got vector<16x8xf16>}}
  // expected-note @below {{the chunk is the outer dimension}}
  xegpu.load_gather %t, %m {mode = vc} : !xegpu.tensor_desc<16x8xf16, #xegpu.scattered>, vector<16xi1> -> vector<16x8xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16x8xf16, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.load_gather' op transpose must be [1, 0] on a descriptor with a chunk, but got [0, 1]}}
  xegpu.load_gather %t, %m {mode = vc, transpose = [0, 1]} : !xegpu.tensor_desc<16x8xf16, #xegpu.scattered>, vector<16xi1> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.load_gather' op l1_hint = write_back is not a valid hint for a read}}
  // expected-note @below {{valid hints for a read are cached, uncached, streaming, read_invalidate}}
  xegpu.load_gather %t, %m {mode = vc, l1_hint = write_back} : !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xi1> -> vector<16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>, %m: vector<8xi1>) {
  // expected-error @below {{'xegpu.load_gather' op requires a scattered tensor descriptor, but got !xegpu.tensor_desc<8x16xf16>}}
  // expected-note @below {{use xegpu.create_tdesc to create the descriptor}}
  xegpu.load_gather %t, %m {mode = vc} : !xegpu.tensor_desc<8x16xf16>, vector<8xi1> -> vector<16x8xf16>
  return
}

// -----

func.func @f(%v: vector<16xf16>, %t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.store_scatter' op is available in VC mode only}}
  // expected-note @below {{add 'mode = vc'}}
  xegpu.store_scatter %v, %t, %m : vector<16xf16>, !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xi1>
  return
}

// -----

func.func @f(%v: vector<8xf16>, %t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.store_scatter' op 'value' must be vector<16xf16>, but got vector<8xf16>}}
  // expected-note @below {{the chunk is the outer dimension}}
  xegpu.store_scatter %v, %t, %m {mode = vc} : vector<8xf16>, !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xi1>
  return
}

// -----

func.func @f(%v: vector<16xf16>, %t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.store_scatter' op l2_hint = read_invalidate is not a valid hint for a write}}
  // expected-note @below {{valid hints for a write are uncached, write_through, write_back, streaming}}
  xegpu.store_scatter %v, %t, %m {mode = vc, l2_hint = read_invalidate} : vector<16xf16>, !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xi1>
  return
}

// -----

func.func @f(%v: vector<16xf16>, %t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.store_scatter' op memory_scope = slm does not match the descriptor's global}}
  xegpu.store_scatter %v, %t, %m {mode = vc, memory_scope = slm} : vector<16xf16>, !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xi1>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>) {
  // expected-error @below {{'xegpu.prefetch' op is available in VC mode only}}
  // expected-note @below {{add 'mode = vc'}}
  xegpu.prefetch %t : !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.prefetch' op requires a scattered tensor descriptor, but got !xegpu.tensor_desc<8x16xf16>}}
  // expected-note @below {{use xegpu.create_tdesc to create the descriptor}}
  xegpu.prefetch %t {mode = vc} : !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>) {
  // expected-error @below {{'xegpu.prefetch' op l1_hint = write_through is not a valid hint for a read}}
  // expected-note @below {{valid hints for a read are cached, uncached, streaming, read_invalidate}}
  xegpu.prefetch %t {mode = vc, l1_hint = write_through} : !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %o: vector<16xindex>) {
  // expected-error @below {{'xegpu.update_offset' op is available in VC mode only}}
  // expected-note @below {{add 'mode = vc'}}
  xegpu.update_offset %t, %o : !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xindex> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %o: vector<8xindex>) {
  // expected-error @below {{'xegpu.update_offset' op requires one offset for each of 16 lanes, but got vector<8xindex>}}
  xegpu.update_offset %t, %o {mode = vc} : !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<8xindex> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>, %o: vector<16xindex>) {
  // expected-error @below {{'xegpu.update_offset' op result must have the tdesc's type !xegpu.tensor_desc<16xf16, #xegpu.scattered>, but got !xegpu.tensor_desc<16xf32, #xegpu.scattered>}}
  xegpu.update_offset %t, %o {mode = vc} : !xegpu.tensor_desc<16xf16, #xegpu.scattered>, vector<16xindex> -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
  return
}

// -----

func.func @f(%v: vector<16xf32>, %t: !xegpu.tensor_desc<16xf32, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.atomic_rmw' op is available in VC mode only}}
  // expected-note @below {{add 'mode = vc'}}
  xegpu.atomic_rmw addf, %v, %t, %m : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
  return
}

// -----

func.func @f(%v: vector<16xf32>, %t: !xegpu.tensor_desc<16xf32, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.atomic_rmw' op 'addi' requires integer elements, but got f32}}
  xegpu.atomic_rmw addi, %v, %t, %m {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
  return
}

// -----

func.func @f(%v: vector<16xi32>, %t: !xegpu.tensor_desc<16xi32, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.atomic_rmw' op 'maximumf' requires floating-point elements, but got i32}}
  xegpu.atomic_rmw maximumf, %v, %t, %m {mode = vc} : vector<16xi32>, !xegpu.tensor_desc<16xi32, #xegpu.scattered>, vector<16xi1> -> vector<16xi32>
  return
}

// -----

func.func @f(%v: vector<16xui32>, %t: !xegpu.tensor_desc<16xui32, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.atomic_rmw' op 'maxs' does not match the signedness of ui32}}
  xegpu.atomic_rmw maxs, %v, %t, %m {mode = vc} : vector<16xui32>, !xegpu.tensor_desc<16xui32, #xegpu.scattered>, vector<16xi1> -> vector<16xui32>
  return
}

// -----

func.func @f(%v: vector<16xf32>, %t: !xegpu.tensor_desc<16xf32, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.atomic_rmw' op with an expected value must be of kind 'assign', but got 'addf'}}
  xegpu.atomic_rmw addf, %v, %t, %m expecting %v {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> expecting vector<16xf32> -> vector<16xf32>
  return
}

// -----

func.func @f(%v: vector<16xf32>, %t: !xegpu.tensor_desc<16xf32, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.atomic_rmw' op result must have the value's type vector<16xf32>, but got vector<8xf32>}}
  xegpu.atomic_rmw addf, %v, %t, %m {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<8xf32>
  return
}

// -----

func.func @f(%v: vector<16xf32>, %t: !xegpu.tensor_desc<16xf32, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{expected one of addf, addi, andi, assign, maximumf, maxnumf, maxs, maxu, minimumf, minnumf, mins, minu, mulf, muli, ori, xori, but got 'sub'}}
  xegpu.atomic_rmw sub, %v, %t, %m {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<16xf32>
  return
}

// -----

func.func @f(%v: vector<8xf32>, %t: !xegpu.tensor_desc<16xf32, #xegpu.scattered>, %m: vector<16xi1>) {
  // expected-error @below {{'xegpu.atomic_rmw' op 'value' must be vector<16xf32>, but got vector<8xf32>}}
  // expected-note @below {{one value for each element accessed}}
  xegpu.atomic_rmw addf, %v, %t, %m {mode = vc} : vector<8xf32>, !xegpu.tensor_desc<16xf32, #xegpu.scattered>, vector<16xi1> -> vector<8xf32>
  return
}
