// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a 2D descriptor requires 2 offsets, but got 1}}
  xegpu.create_nd_tdesc %s[%i] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a 2D descriptor requires 2 entries in 'shape', but got 1}}
  xegpu.create_nd_tdesc %s[%i, 0], [64], [64, 1] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a 2D descriptor requires 2 entries in 'strides', but got 3}}
  xegpu.create_nd_tdesc %s[%i, 0], [64, 64], [64, 1, 1] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a descriptor created from an address requires the tensor's shape and strides}}
  // expected-note @below {{write '%address[...], [%size, %size], [%stride, %stride]'}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op the innermost stride must be 1, but got 2}}
  xegpu.create_nd_tdesc %s[%i, 0], [64, 64], [64, 2] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16, strided<[64, 2]>>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op the innermost stride must be 1, but got 2 in memref<64x64xf16, strided<[64, 2]>>}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf16, strided<[64, 2]>> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a 2D descriptor requires a memref of rank 2, but got memref<64xf16>}}
  // expected-note @below {{use memref.subview to take a 2D slice of a memref of higher rank}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf32>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op the descriptor's element type f16 does not match the memref's, f32}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16, 3>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op memory_scope = global does not match the memory space of memref<64x64xf16, 3>}}
  // expected-note @below {{memory space 3 is shared local memory; all other memory spaces are global memory}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf16, 3> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op memory_scope = slm does not match the memory space of memref<64x64xf16>}}
  // expected-note @below {{memory space 3 is shared local memory; all other memory spaces are global memory}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, memory_scope = slm>
  return
}

// -----

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op 'shape' [32, 64] does not match memref<64x64xf16>}}
  xegpu.create_nd_tdesc %s[%i, 0], [32, 64], [64, 1] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op 'strides' [32, 1] does not match memref<64x64xf16>}}
  xegpu.create_nd_tdesc %s[%i, 0], [64, 64], [32, 1] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op in VC mode requires a descriptor without sg_map, but got #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>}}
  // expected-note @below {{in VC mode the op accesses the whole block; remove the sg_map, or remove 'mode = vc'}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
  return
}

// -----

func.func @f(%s: memref<64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op requires a block tensor descriptor, but got !xegpu.tensor_desc<16xf16, #xegpu.scattered>}}
  // expected-note @below {{use xegpu.create_nd_tdesc to create the descriptor}}
  xegpu.create_nd_tdesc %s[%i] {mode = vc} : memref<64xf16> -> !xegpu.tensor_desc<16xf16, #xegpu.scattered>
  return
}

// -----

func.func @f(%s: i32, %i: index) {
  // expected-error @below {{operand 'source' must be 64-bit integer address or memref, but got 'i32'}}
  xegpu.create_nd_tdesc %s[%i, 0], [64, 64], [64, 1] {mode = vc} : i32 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%m: memref<64x64xf16>) {
  // expected-error @below {{boundary_check is true, but the descriptor has none}}
  xegpu.create_nd_tdesc %m[0, 0] {mode = vc, boundary_check = true} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, #xegpu.tdesc_attr<boundary_check = false>>
  return
}

// -----

func.func @f(%m: memref<64x64xf16>) {
  // expected-error @below {{boundary_check must be true or false, but got 7}}
  xegpu.create_nd_tdesc %m[0, 0] {mode = vc, boundary_check = 7} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{a 2D descriptor requires 2 offsets, or offsets, shape and strides (6 values), but got 3 values}}
  xegpu.create_nd_tdesc %s, %i, %i, %i : ui64, index, index, index -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{operand 'offsets' must be index, but got 'i32'}}
  xegpu.create_nd_tdesc %s, %i, %i : ui64, index, i32 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'offsets' has 2 values, but 1 types}}
  xegpu.create_nd_tdesc %s, %i, %i : ui64, index -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{expected an SSA value or an integer in 'offsets', but got 'x'}}
  xegpu.create_nd_tdesc %s[%i, x] : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{result 'tdesc' must be !xegpu.tensor_desc, but got 'vector<8x16xf16>'}}
  xegpu.create_nd_tdesc %s[%i, 0] : ui64 -> vector<8x16xf16>
  return
}
