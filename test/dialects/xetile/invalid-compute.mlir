// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%a: vector<32x16xbf16>, %b: vector<32x64xbf16>) {
  // expected-error @below {{'xetile.tile_mma' op 'a' has 16 columns, but 'b' has 32 rows}}
  %r = xetile.tile_mma %a, %b : vector<32x16xbf16>, vector<32x64xbf16> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%a: vector<32x16xbf16>, %b: vector<16x64xbf16>) {
  // expected-error @below {{'xetile.tile_mma' op 'd' must be 32x64 for 32x16 times 16x64, but got 64x32}}
  %r = xetile.tile_mma %a, %b : vector<32x16xbf16>, vector<16x64xbf16> -> vector<64x32xf32>
  return
}

// -----

func.func @f(%a: vector<32x16xbf16>, %b: vector<16x64xbf16>, %c: vector<32x64xbf16>) {
  // expected-error @below {{'xetile.tile_mma' op 'c' must have the type of the result, vector<32x64xf32>, but got vector<32x64xbf16>}}
  %r = xetile.tile_mma %a, %b, %c : vector<32x16xbf16>, vector<16x64xbf16>, vector<32x64xbf16> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%a: vector<32x16xbf16>, %b: vector<16xbf16>) {
  // expected-error @below {{'xetile.tile_mma' op 'b' must be a matrix, but got vector<16xbf16>}}
  %r = xetile.tile_mma %a, %b : vector<32x16xbf16>, vector<16xbf16> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%a: vector<32x16xbf16>, %b: vector<16x64xf16>) {
  // expected-error @below {{'xetile.tile_mma' op cannot multiply bf16 by f16}}
  // expected-note @below {{both factors must be integers of up to 8 bits, bf16, f16, tf32, f64, or 8-bit floats (f8E5M2, f8E4M3FN)}}
  %r = xetile.tile_mma %a, %b : vector<32x16xbf16>, vector<16x64xf16> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%a: vector<32x16xf32>, %b: vector<16x64xf32>) {
  // expected-error @below {{'xetile.tile_mma' op cannot multiply f32 by f32}}
  // expected-note @below {{both factors must be integers of up to 8 bits, bf16, f16, tf32, f64, or 8-bit floats (f8E5M2, f8E4M3FN)}}
  %r = xetile.tile_mma %a, %b : vector<32x16xf32>, vector<16x64xf32> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%a: vector<32x16xbf16>, %b: vector<16x64xbf16>) {
  // expected-error @below {{'xetile.tile_mma' op result of bf16 x bf16 must be of f32 or bf16, but got f16}}
  %r = xetile.tile_mma %a, %b : vector<32x16xbf16>, vector<16x64xbf16> -> vector<32x64xf16>
  return
}

// -----

func.func @f(%a: vector<32x16xbf16>, %b: vector<16x64xbf16>) {
  // expected-error @below {{'xetile.tile_mma' op 'wg_map_a' is not valid for this shape: 32 rows are not divisible by sg_data = 12}}
  %r = xetile.tile_mma %a, %b {wg_map_a = <sg_layout = [2, 4], sg_data = [12, 16]>} : vector<32x16xbf16>, vector<16x64xbf16> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%a: vector<32x16xbf16>, %b: vector<16x64xbf16>) {
  // expected-error @below {{'xetile.tile_mma' op requires maps of the same number of subgroups, but wg_map_a has 8, wg_map_b has 16}}
  %r = xetile.tile_mma %a, %b {wg_map_a = <sg_layout = [2, 4], sg_data = [16, 16]>, wg_map_b = <sg_layout = [4, 4], sg_data = [16, 32]>} : vector<32x16xbf16>, vector<16x64xbf16> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%v: vector<4x8x16xf32>) {
  // expected-error @below {{'xetile.transpose' op requires a matrix, but got vector<4x8x16xf32>}}
  %r = xetile.transpose %v, [1, 0] : vector<4x8x16xf32> -> vector<8x4x16xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.transpose' op permutation must be [1, 0] or [0, 1], but got [1, 1]}}
  %r = xetile.transpose %v, [1, 1] : vector<8x16xf32> -> vector<16x8xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.transpose' op result must be vector<16x8xf32>, but got vector<8x16xf32>}}
  %r = xetile.transpose %v, [1, 0] : vector<8x16xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.transpose' op 'map' is not valid for this shape: 16 rows are not divisible by sg_data = 3}}
  %r = xetile.transpose %v, [1, 0] {map = <sg_layout = [4, 1], sg_data = [3, 8]>} : vector<8x16xf32> -> vector<16x8xf32>
  return
}

// -----

func.func @f(%v: vector<16xf32>) {
  // expected-error @below {{'xetile.reduction' op requires a matrix, but got vector<16xf32>}}
  %r = xetile.reduction <add>, %v [0] : vector<16xf32> -> vector<1xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.reduction' op dimension must be [0] or [1], but got [2]}}
  %r = xetile.reduction <add>, %v [2] : vector<8x16xf32> -> vector<8x1xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.reduction' op dimension must be [0] or [1], but got [0, 1]}}
  %r = xetile.reduction <add>, %v [0, 1] : vector<8x16xf32> -> vector<1x1xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.reduction' op result must be vector<8x1xf32>, but got vector<1x16xf32>}}
  %r = xetile.reduction <add>, %v [1] : vector<8x16xf32> -> vector<1x16xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.reduction' op reduction_size = 3 does not divide the 16 elements along dimension 1}}
  %r = xetile.reduction <add>, %v [1] {reduction_size = 3} : vector<8x16xf32> -> vector<8x5xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.reduction' op reduction_size = 0 does not divide the 16 elements along dimension 1}}
  %r = xetile.reduction <add>, %v [1] {reduction_size = 0} : vector<8x16xf32> -> vector<8x5xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.reduction' op <maxsi> requires integer elements, but got f32}}
  %r = xetile.reduction <maxsi>, %v [1] : vector<8x16xf32> -> vector<8x1xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xi32>) {
  // expected-error @below {{'xetile.reduction' op <maximumf> requires floating-point elements, but got i32}}
  %r = xetile.reduction <maximumf>, %v [1] : vector<8x16xi32> -> vector<8x1xi32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{expected one of add, mul, minui, minsi, minnumf, minimumf, maxui, maxsi, maxnumf, maximumf, and, or, xor, but got 'sum'}}
  %r = xetile.reduction <sum>, %v [1] : vector<8x16xf32> -> vector<8x1xf32>
  return
}

// -----

func.func @f(%v: vector<8x16xf32>) {
  // expected-error @below {{'xetile.reduction' op 'map' is not valid for this shape: 8 rows are not divisible by sg_data = 3}}
  %r = xetile.reduction <add>, %v [1] {map = <sg_layout = [4, 2], sg_data = [3, 1]>} : vector<8x16xf32> -> vector<8x1xf32>
  return
}

// -----

func.func @f(%v: vector<2x16xf32>) {
  // expected-error @below {{'xetile.broadcast' op requires size 1 along dimension 0, but got vector<2x16xf32>}}
  // expected-note @below {{with broadcast_size = n each element is repeated n times}}
  %r = xetile.broadcast %v [0] : vector<2x16xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%v: vector<1x16xf32>) {
  // expected-error @below {{'xetile.broadcast' op cannot broadcast vector<1x16xf32> to vector<8x32xf32> along dimension 0}}
  %r = xetile.broadcast %v [0] : vector<1x16xf32> -> vector<8x32xf32>
  return
}

// -----

func.func @f(%v: vector<1x16xf32>) {
  // expected-error @below {{'xetile.broadcast' op cannot broadcast vector<1x16xf32> to vector<8x16xf16> along dimension 0}}
  %r = xetile.broadcast %v [0] : vector<1x16xf32> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%v: vector<1x16xf32>) {
  // expected-error @below {{'xetile.broadcast' op dimension must be [0] or [1], but got [0, 1]}}
  %r = xetile.broadcast %v [0, 1] : vector<1x16xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%v: vector<16xf32>) {
  // expected-error @below {{'xetile.broadcast' op requires a matrix, but got vector<16xf32>}}
  %r = xetile.broadcast %v [0] : vector<16xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%v: vector<8x4xf32>) {
  // expected-error @below {{'xetile.broadcast' op broadcast_size = 3 makes 4 elements 12, not 16}}
  %r = xetile.broadcast %v [1] {broadcast_size = 3} : vector<8x4xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%v: vector<8x1xf32>) {
  // expected-error @below {{'xetile.broadcast' op 'map' is not valid for this shape: 8 rows are not divisible by sg_data = 3}}
  %r = xetile.broadcast %v [1] {map = <sg_layout = [4, 2], sg_data = [3, 1]>} : vector<8x1xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%v: vector<32x64xf32>) {
  // expected-error @below {{attribute 'wg_map_result' is missing}}
  %r = xetile.convert_layout %v : vector<32x64xf32>
  return
}

// -----

func.func @f(%v: vector<32x64xf32>) {
  // expected-error @below {{'xetile.convert_layout' op 'wg_map_result' is not valid for this shape: 32 rows are not divisible by sg_data = 3}}
  %r = xetile.convert_layout %v {wg_map_result = <sg_layout = [4, 2], sg_data = [3, 1]>} : vector<32x64xf32>
  return
}

// -----

func.func @f(%v: vector<32x64xf32>) {
  // expected-error @below {{'xetile.convert_layout' op 'wg_map_source' is not valid for this shape: 64 columns are not divisible by sg_data = 3}}
  %r = xetile.convert_layout %v {wg_map_result = <sg_layout = [4, 2], sg_data = [8, 32]>, wg_map_source = <sg_layout = [4, 2], sg_data = [8, 3]>} : vector<32x64xf32>
  return
}

// -----

func.func @f(%v: vector<32x64xf32>) {
  // expected-error @below {{'xetile.convert_layout' op needs as many subgroups in both maps, but 16 have the source and 8 the result}}
  %r = xetile.convert_layout %v {wg_map_result = <sg_layout = [4, 2], sg_data = [8, 32]>, wg_map_source = <sg_layout = [4, 4], sg_data = [8, 16]>} : vector<32x64xf32>
  return
}

// -----

func.func @f(%v: vector<32x64xf32>) {
  // expected-error @below {{'xetile.convert_layout' op result must have the value's type vector<32x64xf32>, but got vector<64x32xf32>}}
  %r = "xetile.convert_layout"(%v) {wg_map_result = #xetile.wg_map<array<i64: 4, 2>, array<i64: 8, 32>>} : (vector<32x64xf32>) -> vector<64x32xf32>
  return
}
