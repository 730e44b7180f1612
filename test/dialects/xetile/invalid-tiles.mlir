// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%A: memref<64x64xf32>) {
  // expected-error @below {{'xetile.init_tile' op the tile's element type f16 does not match the memref's, f32}}
  %r = xetile.init_tile %A[0, 0] : memref<64x64xf32> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16, 3>) {
  // expected-error @below {{'xetile.init_tile' op memory_space = 0 does not match the memory space of memref<64x64xf16, 3>}}
  // expected-note @below {{memory space 3 is shared local memory; all other memory spaces are global memory}}
  %r = xetile.init_tile %A[0, 0] : memref<64x64xf16, 3> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16>) {
  // expected-error @below {{'xetile.init_tile' op memory_space = 3 does not match the memory space of memref<64x64xf16>}}
  // expected-note @below {{memory space 3 is shared local memory; all other memory spaces are global memory}}
  %r = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<32x64xf16, #xetile.tile_attr<memory_space = 3>>
  return
}

// -----

func.func @f(%A: memref<64x64xf16>, %i: vector<64xindex>) {
  // expected-error @below {{'xetile.init_tile' op accepts indices only for a scattered tile}}
  // expected-note @below {{add scattered = true to the tile}}
  %r = xetile.init_tile %A, %i : memref<64x64xf16>, vector<64xindex> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64xf16>) {
  // expected-error @below {{'xetile.init_tile' op requires a memref of rank 2 or higher, but got memref<64xf16>}}
  %r = xetile.init_tile %A[0] : memref<64xf16> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<4x64x64xf16>) {
  // expected-error @below {{'xetile.init_tile' op requires 3 offsets for memref<4x64x64xf16>, but got 2}}
  %r = xetile.init_tile %A[0, 0] : memref<4x64x64xf16> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16>) {
  // expected-error @below {{'xetile.init_tile' op requires 2 entries in 'shape' for memref<64x64xf16>, but got 1}}
  %r = xetile.init_tile %A[0, 0], [64], [64, 1] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16>) {
  // expected-error @below {{'xetile.init_tile' op requires 2 entries in 'strides' for memref<64x64xf16>, but got 1}}
  %r = xetile.init_tile %A[0, 0], [64, 64], [64] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16>) {
  // expected-error @below {{'xetile.init_tile' op 'shape' [64, 32] does not match memref<64x64xf16>}}
  %r = xetile.init_tile %A[0, 0], [64, 32], [64, 1] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16>) {
  // expected-error @below {{'xetile.init_tile' op 'strides' [32, 1] does not match memref<64x64xf16>}}
  %r = xetile.init_tile %A[0, 0], [64, 64], [32, 1] : memref<64x64xf16> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16, affine_map<(i, j) -> (i floordiv 8, j)>>) {
  // expected-error @below {{'xetile.init_tile' op requires 'shape' and 'strides', because the layout of memref<64x64xf16, affine_map<(d0, d1) -> (d0 floordiv 8, d1)>> has no strides}}
  %r = xetile.init_tile %A[0, 0] : memref<64x64xf16, affine_map<(i, j) -> (i floordiv 8, j)>> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16>) {
  // expected-error @below {{'xetile.init_tile' op order = [0, 1] requires a stride of 1 along the rows, but the strides are [64, 1]}}
  // expected-note @below {{order = [1, 0] matches strides [64, 1]}}
  %r = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<32x64xf16, #xetile.tile_attr<order = [0, 1]>>
  return
}

// -----

func.func @f(%A: memref<64x64xf16, strided<[1, 64]>>) {
  // expected-error @below {{'xetile.init_tile' op order = [1, 0] requires a stride of 1 along the columns, but the strides are [1, 64]}}
  // expected-note @below {{order = [0, 1] matches strides [1, 64]}}
  %r = xetile.init_tile %A[0, 0] : memref<64x64xf16, strided<[1, 64]>> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: memref<64x64xf16, strided<[128, 2]>>) {
  // expected-error @below {{'xetile.init_tile' op order = [1, 0] requires a stride of 1 along the columns, but the strides are [128, 2]}}
  %r = xetile.init_tile %A[0, 0] : memref<64x64xf16, strided<[128, 2]>> -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: i64) {
  // expected-error @below {{'xetile.init_tile' op requires two entries in 'shape' with an address, but got 0}}
  // expected-note @below {{write '%address[%row, %column], [%rows, %columns], [%stride, 1]'}}
  %r = xetile.init_tile %A[0, 0] : i64 -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: i64) {
  // expected-error @below {{'xetile.init_tile' op requires two entries in 'offsets' with an address, but got 1}}
  // expected-note @below {{write '%address[%row, %column], [%rows, %columns], [%stride, 1]'}}
  %r = xetile.init_tile %A[0], [64, 64], [64, 1] : i64 -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: i64) {
  // expected-error @below {{'xetile.init_tile' op order = [1, 0] requires a stride of 1 along the columns, but the strides are [64, 2]}}
  %r = xetile.init_tile %A[0, 0], [64, 64], [64, 2] : i64 -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%A: i64) {
  // expected-error @below {{'xetile.init_tile' op cannot make a tile in shared local memory from an address}}
  // expected-note @below {{use a memref in memory space 3}}
  %r = xetile.init_tile %A[0, 0], [64, 64], [64, 1] : i64 -> !xetile.tile<32x64xf16, #xetile.tile_attr<memory_space = 3>>
  return
}

// -----

func.func @f(%A: i32) {
  // expected-error @below {{operand 'source' must be 64-bit integer address or memref, but got 'i32'}}
  %r = xetile.init_tile %A[0, 0], [64, 64], [64, 1] : i32 -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.load_tile' op 'value' must be vector<32x64xf16>, but got vector<64x32xf16>}}
  // expected-note @below {{this is the tile's shape and element type}}
  %r = xetile.load_tile %t : !xetile.tile<32x64xf16> -> vector<64x32xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.load_tile' op 'value' must be vector<32x64xf16>, but got vector<32x64xf32>}}
  // expected-note @below {{this is the tile's shape and element type}}
  %r = xetile.load_tile %t : !xetile.tile<32x64xf16> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.load_tile' op l1_hint = write_back is not a valid hint for a read}}
  // expected-note @below {{valid hints for a read are cached, uncached, streaming, read_invalidate}}
  %r = xetile.load_tile %t {l1_hint = write_back} : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.load_tile' op padding must be of type f16, but got 1 : i32}}
  %r = xetile.load_tile %t {padding = 1 : i32} : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{expected a number with its type, such as 1.0 : f32, but got 'true'}}
  %r = xetile.load_tile %t {padding = true} : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.load_tile' has no attribute 'pading'; did you mean 'padding'?}}
  %r = xetile.load_tile %t {pading = 1.0 : f16} : !xetile.tile<32x64xf16> -> vector<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>) {
  // expected-error @below {{'xetile.load_tile' op requires a tile that is not scattered, but got !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>}}
  // expected-note @below {{use xetile.load for this tile}}
  %r = xetile.load_tile %t : !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>> -> vector<64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>, %v: vector<32x32xf16>) {
  // expected-error @below {{'xetile.store_tile' op 'value' must be vector<32x64xf16>, but got vector<32x32xf16>}}
  // expected-note @below {{this is the tile's shape and element type}}
  xetile.store_tile %v, %t : vector<32x32xf16>, !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>, %v: vector<32x64xf16>) {
  // expected-error @below {{'xetile.store_tile' op l3_hint = read_invalidate is not a valid hint for a write}}
  // expected-note @below {{valid hints for a write are uncached, write_through, write_back, streaming}}
  xetile.store_tile %v, %t {l3_hint = read_invalidate} : vector<32x64xf16>, !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, %v: vector<64xf16>) {
  // expected-error @below {{'xetile.store_tile' op requires a tile that is not scattered, but got !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>}}
  // expected-note @below {{use xetile.store for this tile}}
  xetile.store_tile %v, %t : vector<64xf16>, !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.prefetch_tile' op l1_hint = write_through is not a valid hint for a read}}
  // expected-note @below {{valid hints for a read are cached, uncached, streaming, read_invalidate}}
  xetile.prefetch_tile %t {l1_hint = write_through} : !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.update_tile_offset' op requires two offsets, of rows and of columns, but got 1}}
  %r = xetile.update_tile_offset %t, [0] : !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>, %i: vector<32x64xindex>) {
  // expected-error @below {{'xetile.update_tile_offset' op requires two offsets, of rows and of columns, but got a vector}}
  %r = xetile.update_tile_offset %t, %i : !xetile.tile<32x64xf16>, vector<32x64xindex>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>) {
  // expected-error @below {{'xetile.update_tile_offset' op requires a vector of offsets for a scattered tile}}
  %r = xetile.update_tile_offset %t, [0, 1] : !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>
  return
}

// -----

func.func @f(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, %i: vector<32xindex>) {
  // expected-error @below {{'xetile.update_tile_offset' op requires one offset for each element, vector<64xindex>, but got vector<32xindex>}}
  %r = xetile.update_tile_offset %t, %i : !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, vector<32xindex>
  return
}


// -----

func.func @update(%t: !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, %i: vector<64xindex>) {
  // expected-error @below {{'xetile.update_tile_offset' op requires a vector of offsets for a scattered tile}}
  %r = xetile.update_tile_offset %t, [0, 1], %i : !xetile.tile<64xf16, #xetile.tile_attr<scattered = true>>, vector<64xindex>
  return
}

// -----

func.func @update(%t: !xetile.tile<32x64xf16>, %i: vector<32x64xindex>) {
  // expected-error @below {{'xetile.update_tile_offset' op requires two offsets, of rows and of columns, but got a vector}}
  %r = xetile.update_tile_offset %t, [0, 1], %i : !xetile.tile<32x64xf16>, vector<32x64xindex>
  return
}

// -----

func.func @update(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.update_tile_offset' op requires two offsets, of rows and of columns, but got 3}}
  %r = xetile.update_tile_offset %t, [0, 1, 2] : !xetile.tile<32x64xf16>
  return
}
