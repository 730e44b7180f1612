// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%t: !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 4], sg_data = [8, 16]>>>, %u: !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 2], sg_data = [4, 32]>>>) {
  // expected-note @below {{'xetile.load_tile' gives the operand this map}}
  %v = xetile.load_tile %t : !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 4], sg_data = [8, 16]>>> -> vector<32x64xf32>
  // expected-error @below {{'xetile.store_tile' op requires 'value' to have the map #xetile.wg_map<sg_layout = [8, 2], sg_data = [4, 32]>, but got #xetile.wg_map<sg_layout = [4, 4], sg_data = [8, 16]>}}
  // expected-note @below {{use xetile.convert_layout to change the map of a value}}
  xetile.store_tile %v, %u : vector<32x64xf32>, !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 2], sg_data = [4, 32]>>>
  return
}

// -----

func.func @f(%t: !xetile.tile<32x16xbf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 4], sg_data = [8, 4]>>>, %b: vector<16x64xbf16>) {
  // expected-note @below {{'xetile.load_tile' gives the operand this map}}
  %v = xetile.load_tile %t : !xetile.tile<32x16xbf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 4], sg_data = [8, 4]>>> -> vector<32x16xbf16>
  // expected-error @below {{'xetile.tile_mma' op requires 'a' to have the map #xetile.wg_map<sg_layout = [4, 4], sg_data = [8, 16]>, but got #xetile.wg_map<sg_layout = [4, 4], sg_data = [8, 4]>}}
  // expected-note @below {{use xetile.convert_layout to change the map of a value}}
  %r = xetile.tile_mma %v, %b {wg_map_a = <sg_layout = [4, 4], sg_data = [8, 16]>} : vector<32x16xbf16>, vector<16x64xbf16> -> vector<32x64xf32>
  return
}

// -----

func.func @f(%v: vector<32x64xf32>) {
  // expected-note @below {{'arith.mulf' gives the operand this map}}
  %w = arith.mulf %v, %v {map = #xetile.wg_map<sg_layout = [4, 4], sg_data = [8, 16]>} : vector<32x64xf32>
  // expected-error @below {{'xetile.convert_layout' op requires 'value' to have the map #xetile.wg_map<sg_layout = [16, 1], sg_data = [2, 64]>, but got #xetile.wg_map<sg_layout = [4, 4], sg_data = [8, 16]>}}
  // expected-note @below {{use xetile.convert_layout to change the map of a value}}
  %r = xetile.convert_layout %w {wg_map_result = <sg_layout = [2, 8], sg_data = [16, 8]>, wg_map_source = <sg_layout = [16, 1], sg_data = [2, 64]>} : vector<32x64xf32>
  return
}

// -----

func.func @f(%v: vector<32x64xf32>, %t: !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 1], sg_data = [4, 32]>>>) {
  // expected-note @below {{'xetile.reduction' gives the operand this map}}
  %w = xetile.reduction <add>, %v [1] {reduction_size = 2, map = <sg_layout = [4, 2], sg_data = [8, 16]>} : vector<32x64xf32> -> vector<32x32xf32>
  // expected-error @below {{'xetile.store_tile' op requires 'value' to have the map #xetile.wg_map<sg_layout = [8, 1], sg_data = [4, 32]>, but got #xetile.wg_map<sg_layout = [4, 2], sg_data = [8, 16]>}}
  // expected-note @below {{use xetile.convert_layout to change the map of a value}}
  xetile.store_tile %w, %t : vector<32x32xf32>, !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 1], sg_data = [4, 32]>>>
  return
}
