// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%A: memref<64x64xf16>) {
  // expected-error @below {{'xetile.init_tile' op requires both 'shape' and 'strides', or neither}}
  %r = "xetile.init_tile"(%A) {static_offsets = array<i64: 0, 0>, static_shape = array<i64: 64, 64>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (memref<64x64xf16>) -> !xetile.tile<32x64xf16>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x64xf16>) {
  // expected-error @below {{'xetile.update_tile_offset' op result must have the tile's type !xetile.tile<32x64xf16>, but got !xetile.tile<64x32xf16>}}
  %r = "xetile.update_tile_offset"(%t) {static_offsets = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 0, 0>} : (!xetile.tile<32x64xf16>) -> !xetile.tile<64x32xf16>
  return
}
