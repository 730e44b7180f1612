// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%v: vector<16x8xf16>, %t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.store_nd' op 'value' must be vector<8x16xf16>, but got vector<16x8xf16>}}
  // expected-note @below {{this is the descriptor's block}}
  xegpu.store_nd %v, %t {mode = vc} : vector<16x8xf16>, !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%v: vector<8x16xf16>, %t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.store_nd' op l1_hint = cached is not a valid hint for a write}}
  // expected-note @below {{valid hints for a write are uncached, write_through, write_back, streaming}}
  xegpu.store_nd %v, %t {mode = vc, l1_hint = cached} : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%v: vector<8x16xf16>, %t: !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>) {
  // expected-error @below {{'xegpu.store_nd' op in VC mode requires a descriptor without sg_map, but got #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>}}
  // expected-note @below {{in VC mode the op accesses the whole block; remove the sg_map, or remove 'mode = vc'}}
  xegpu.store_nd %v, %t {mode = vc} : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.prefetch_nd' op l3_hint = write_through is not a valid hint for a read}}
  // expected-note @below {{valid hints for a read are cached, uncached, streaming, read_invalidate}}
  xegpu.prefetch_nd %t {mode = vc, l3_hint = write_through} : !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.prefetch_nd' op memory_scope = slm does not match the descriptor's global}}
  xegpu.prefetch_nd %t {mode = vc, memory_scope = slm} : !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>, %i: index) {
  // expected-error @below {{'xegpu.update_nd_offset' op a 2D descriptor moves by 2 offsets, but got 1}}
  xegpu.update_nd_offset %t, [%i] {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>, %i: index) {
  // expected-error @below {{'xegpu.update_nd_offset' op result must have the tdesc's type !xegpu.tensor_desc<8x16xf16>, but got !xegpu.tensor_desc<16x16xf16>}}
  xegpu.update_nd_offset %t, [%i, 0] {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<16x16xf16>
  return
}

// -----

func.func @f(%v: vector<8x1xf16>, %t: !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>>) {
  // expected-error @below {{'xegpu.store_nd' op the elements of a fragment with wi_data = [2, 1] are not contiguous}}
  // expected-note @below {{add vnni_axis = 0 to load a fragment that is part of a column}}
  xegpu.store_nd %v, %t : vector<8x1xf16>, !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>>
  return
}
