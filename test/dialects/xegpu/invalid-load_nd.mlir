// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op 'value' must be vector<8x16xf16>, but got vector<16x8xf16>}}
  // expected-note @below {{that is the block after the load's transforms}}
  xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<16x8xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op 'value' must be vector<8x16xf16>, but got vector<8x16xf32>}}
  // expected-note @below {{that is the block after the load's transforms}}
  xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16, array_length = 2>) {
  // expected-error @below {{'xegpu.load_nd' op 'value' must be vector<2x8x16xf16> or vector<8x32xf16>, but got vector<8x16xf16>}}
  // expected-note @below {{that is the block after the load's transforms}}
  xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16, array_length = 2> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>) {
  // expected-error @below {{'xegpu.load_nd' op 'value' must be vector<8x1xf16>, but got vector<8x16xf16>}}
  // expected-note @below {{that is a work item's part of the block after the load's transforms}}
  xegpu.load_nd %t : !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>) {
  // expected-error @below {{'xegpu.load_nd' op in VC mode requires a descriptor without sg_map, but got #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>}}
  // expected-note @below {{in VC mode the op accesses the whole block; remove the sg_map, or remove 'mode = vc'}}
  xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, #xegpu.scattered>) {
  // expected-error @below {{'xegpu.load_nd' op requires a block tensor descriptor, but got !xegpu.tensor_desc<16xf16, #xegpu.scattered>}}
  // expected-note @below {{use xegpu.create_nd_tdesc to create the descriptor}}
  xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<16xf16, #xegpu.scattered> -> vector<16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op VNNI transformation and transpose cannot be combined}}
  xegpu.load_nd %t {mode = vc, transpose = [1, 0], vnni_axis = 0} : !xegpu.tensor_desc<8x16xf16> -> vector<8x8x2xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op transpose must be a permutation of the 2 dimensions, but got [1, 1]}}
  xegpu.load_nd %t {mode = vc, transpose = [1, 1]} : !xegpu.tensor_desc<8x16xf16> -> vector<16x8xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op transpose_bit_width requires transpose}}
  xegpu.load_nd %t {mode = vc, transpose_bit_width = 32} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op transpose_bit_width is available in VC mode only}}
  xegpu.load_nd %t {transpose = [1, 0], transpose_bit_width = 32} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op transpose_bit_width = 24 is not a multiple of the element's 16 bits}}
  xegpu.load_nd %t {mode = vc, transpose = [1, 0], transpose_bit_width = 24} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x3xf16>) {
  // expected-error @below {{'xegpu.load_nd' op rows of 3 x f16 are not divisible into units of 32 bits}}
  xegpu.load_nd %t {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !xegpu.tensor_desc<8x3xf16> -> vector<8x3xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op vnni_axis must be 0 or 1, but got 2}}
  xegpu.load_nd %t {mode = vc, vnni_axis = 2} : !xegpu.tensor_desc<8x16xf16> -> vector<8x8x2xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf32>) {
  // expected-error @below {{'xegpu.load_nd' op vnni_axis requires elements narrower than 32 bits, but got f32}}
  // expected-note @below {{remove vnni_axis: the transform packs narrow elements into 32 bits}}
  xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<7x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op 7 elements along vnni_axis = 0 are not divisible by 2}}
  xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<7x16xf16> -> vector<7x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16xf16, boundary_check = false>) {
  // expected-error @below {{'xegpu.load_nd' op vnni_axis requires a 2D block}}
  xegpu.load_nd %t {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16xf16, boundary_check = false> -> vector<8x2xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>) {
  // expected-error @below {{'xegpu.load_nd' op wi_data along vnni_axis = 0 must be 2, but got 1}}
  // expected-note @below {{2 elements of f16 fill 32 bits}}
  xegpu.load_nd %t {vnni_axis = 0} : !xegpu.tensor_desc<16x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>> -> vector<8x1x2xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' op l1_hint = write_back is not a valid hint for a read}}
  // expected-note @below {{valid hints for a read are cached, uncached, streaming, read_invalidate}}
  xegpu.load_nd %t {mode = vc, l1_hint = write_back} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{expected one of cached, uncached, streaming, read_invalidate, write_through, write_back, but got 'hot'}}
  xegpu.load_nd %t {mode = vc, l1_hint = hot} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{'xegpu.load_nd' has no attribute 'vnni'; did you mean 'vnni_axis'?}}
  xegpu.load_nd %t {mode = vc, vnni = 0} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{attribute 'mode' is given twice}}
  xegpu.load_nd %t {mode = vc, mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{expected an integer, but got '"0"'}}
  xegpu.load_nd %t {mode = vc, vnni_axis = "0"} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: i32) {
  // expected-error @below {{operand 'tdesc' must be !xegpu.tensor_desc, but got 'i32'}}
  xegpu.load_nd %t {mode = vc} : i32 -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{result 'value' must be vector, but got 'f16'}}
  xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> f16
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{expected ':', but got '!xegpu.tensor_desc'}}
  xegpu.load_nd %t {mode = vc} !xegpu.tensor_desc<8x16xf16> -> f16
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below {{unknown operation 'xegpu.lod_nd'; did you mean 'xegpu.load_nd'?}}
  xegpu.lod_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}

// -----

func.func @f(%t: !xegpu.tensor_desc<16x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>>) {
  // expected-error @below {{'xegpu.load_nd' op the elements of a fragment with wi_data = [2, 1] are not contiguous}}
  // expected-note @below {{add vnni_axis = 0 to load a fragment that is part of a column}}
  xegpu.load_nd %t : !xegpu.tensor_desc<16x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>> -> vector<16x1xf16>
  return
}
