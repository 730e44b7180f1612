// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

func.func @f(%a: vector<8x8x2xf16>, %b: vector<8x16x2xbf16>) {
  // expected-error @below {{'xegpu.dpas' op cannot multiply f16 by bf16}}
  // expected-note @below {{both factors must be integers of up to 8 bits, bf16, f16, tf32, f64, or 8-bit floats (f8E5M2, f8E4M3FN)}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x8xf32>, %b: vector<8x16xf32>) {
  // expected-error @below {{'xegpu.dpas' op cannot multiply f32 by f32}}
  // expected-note @below {{both factors must be integers of up to 8 bits, bf16, f16, tf32, f64, or 8-bit floats (f8E5M2, f8E4M3FN)}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x8xf32>, vector<8x16xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op result of f16 x f16 must be of f32 or f16, but got bf16}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xbf16>
  return
}

// -----

func.func @f(%c: vector<8x16xi32>, %a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op accumulator of f16 x f16 must be of f32 or f16, but got i32}}
  xegpu.dpas %c, %a, %b {mode = vc} : vector<8x16xi32>, vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%c: vector<4x16xf32>, %a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op accumulator vector<4x16xf32> and result vector<8x16xf32> must have the same shape}}
  xegpu.dpas %c, %a, %b {mode = vc} : vector<4x16xf32>, vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op result must be 2D, but got vector<128xf32>}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<128xf32>
  return
}

// -----

func.func @f(%a: vector<16xf16>, %b: vector<8x16x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op lhs must be 2D, or 3D in VNNI layout, but got vector<16xf16>}}
  xegpu.dpas %a, %b {mode = vc} : vector<16xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x4x4xf16>, %b: vector<8x16x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op the VNNI dimension of lhs is 2, but vector<8x4x4xf16> has 4}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x4x4xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x4x2xtf32>, %b: vector<8x16xtf32>) {
  // expected-error @below {{'xegpu.dpas' op the VNNI dimension of lhs is for elements below 32 bits, not for tf32, but vector<8x4x2xtf32> has 2}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x4x2xtf32>, vector<8x16xtf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x4x1xtf32>, %b: vector<8x16xtf32>) {
  // expected-error @below {{'xegpu.dpas' op the VNNI dimension of lhs is for elements below 32 bits, not for tf32, but vector<8x4x1xtf32> has 1}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x4x1xtf32>, vector<8x16xtf32> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x16xf16>, %b: vector<16x16xf16>) {
  // expected-error @below {{'xegpu.dpas' op rhs must be in VNNI layout, vector<8x16x2xf16>, but got vector<16x16xf16>}}
  // expected-note @below {{load rhs with vnni_axis = 0}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x16xf16>, vector<16x16xf16> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x8x2xf16>, %b: vector<4x16x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op lhs has 16 columns, but rhs has 8 rows}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<4x16x2xf16> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op result must be 8x16 for 8x16 times 16x16, but got 8x32}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x8x2xf16>, vector<8x16x2xf16> -> vector<8x32xf32>
  return
}

// -----

func.func @f(%a: vector<8x32xi16>, %b: vector<8x16x4xi8>) {
  // expected-error @below {{'xegpu.dpas' op cannot multiply i16 by i8}}
  // expected-note @below {{both factors must be integers of up to 8 bits, bf16, f16, tf32, f64, or 8-bit floats (f8E5M2, f8E4M3FN)}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x32xi16>, vector<8x16x4xi8> -> vector<8x16xi32>
  return
}

// -----

func.func @f(%a: vector<8x8x4xi8>, %b: vector<8x16x4xi8>) {
  // expected-error @below {{'xegpu.dpas' op result of i8 x i8 must be of i32 or si32 or ui32, but got f32}}
  xegpu.dpas %a, %b {mode = vc} : vector<8x8x4xi8>, vector<8x16x4xi8> -> vector<8x16xf32>
  return
}

// -----

func.func @f(%a: vector<4x2xf16>, %b: vector<7x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op fragments 4x2 and 7x2 do not multiply to 8x1 in a subgroup of 8, 16 or 32}}
  // expected-note @below {{a lane holds M*K, K*N and M*N elements divided by the number of lanes}}
  xegpu.dpas %a, %b : vector<4x2xf16>, vector<7x2xf16> -> vector<8x1xf32>
  return
}

// -----

func.func @f(%a: vector<8xf16>, %b: vector<8x2xf16>) {
  // expected-error @below {{'xegpu.dpas' op lhs and rhs must be 2D, or 3D in VNNI layout}}
  xegpu.dpas %a, %b : vector<8xf16>, vector<8x2xf16> -> vector<8x1xf32>
  return
}

// -----

func.func @f(%a: vector<16x16xf64>) {
  // expected-error @below {{the accumulator can be the first or the last operand; with {mode = vc} it is the first}}
  %0 = xegpu.dpas %a, %a, %a : vector<16x16xf64>, vector<16x16xf64>, vector<16x16xf64> -> vector<16x16xf64>
  return
}

// -----

func.func @f(%a: vector<8x8x2xf16>, %b: vector<8x16x2xf16>, %c: vector<8x16xf32>) {
  // expected-error @below {{'xegpu.dpas' op cannot multiply f32 by f16}}
  // expected-note @below {{both factors must be integers of up to 8 bits, bf16, f16, tf32, f64, or 8-bit floats (f8E5M2, f8E4M3FN)}}
  %0 = xegpu.dpas %b, %c, %a : vector<8x16x2xf16>, vector<8x16xf32>, vector<8x8x2xf16> -> vector<8x16xf32>
  return
}
