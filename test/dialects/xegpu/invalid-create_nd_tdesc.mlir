// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a 2D descriptor needs 2 offsets, but got 1}}
  xegpu.create_nd_tdesc %s[%i] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a 2D descriptor needs 2 entries in 'shape', but got 1}}
  xegpu.create_nd_tdesc %s[%i, 0], [64], [64, 1] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a 2D descriptor needs 2 entries in 'strides', but got 3}}
  xegpu.create_nd_tdesc %s[%i, 0], [64, 64], [64, 1, 1] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a descriptor made from an address needs the tensor's shape and strides}}
  // expected-note @below {{write '%address[...], [%size, %size], [%stride, %stride]'}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op the innermost stride must be 1, but is 2}}
  xegpu.create_nd_tdesc %s[%i, 0], [64, 64], [64, 2] {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16, strided<[64, 2]>>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op the innermost stride must be 1, but is 2 in memref<64x64xf16, strided<[64, 2]>>}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf16, strided<[64, 2]>> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op a 2D descriptor needs a memref of rank 2, but got memref<64xf16>}}
  // expected-note @below {{take a block of a larger memref with memref.subview}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf32>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op the descriptor's element type f16 differs from the memref's, f32}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16, 3>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op memory_scope = global does not fit memref<64x64xf16, 3>}}
  // expected-note @below {{memrefs in memory space 3 lie in shared local memory, all others in global memory}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf16, 3> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op memory_scope = slm does not fit memref<64x64xf16>}}
  // expected-note @below {{memrefs in memory space 3 lie in shared local memory, all others in global memory}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, memory_scope = slm>
  return
}

// -----

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op 'shape' [32, 64] differs from that of memref<64x64xf16>}}
  xegpu.create_nd_tdesc %s[%i, 0], [32, 64], [64, 1] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op 'strides' [32, 1] differs from that of memref<64x64xf16>}}
  xegpu.create_nd_tdesc %s[%i, 0], [64, 64], [32, 1] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: memref<64x64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op in VC mode works on a descriptor without sg_map, but this one has #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>}}
  // expected-note @below {{the op works on the whole block then; drop the sg_map, or drop 'mode = vc'}}
  xegpu.create_nd_tdesc %s[%i, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
  return
}

// -----

func.func @f(%s: memref<64xf16>, %i: index) {
  // expected-error @below {{'xegpu.create_nd_tdesc' op needs an n-dimensional block's tensor descriptor, but got !xegpu.tensor_desc<16xf16, #xegpu.scattered>}}
  // expected-note @below {{xegpu.create_nd_tdesc makes such descriptors}}
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

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{a 2D descriptor needs 2 offsets, or offsets, shape and strides (6 values), but got 3 values}}
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
  // expected-error @below {{expected an SSA value or an integer in 'offsets', found 'x'}}
  xegpu.create_nd_tdesc %s[%i, x] : ui64 -> !xegpu.tensor_desc<8x16xf16>
  return
}

// -----

func.func @f(%s: ui64, %i: index) {
  // expected-error @below {{result 'tdesc' must be !xegpu.tensor_desc, but got 'vector<8x16xf16>'}}
  xegpu.create_nd_tdesc %s[%i, 0] : ui64 -> vector<8x16xf16>
  return
}
