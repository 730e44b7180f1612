// RUN: xegpu-opt %s --split-input-file --verify-diagnostics

func.func @precisions(%a: vector<8x32xf8E5M2>, %b: vector<8x16x4xi8>) {
  // expected-error @+2 {{'xegpu.dpas_mx' op cannot multiply f8E5M2 by i8}}
  // expected-note @+1 {{both factors must be bf16, f16, f4E2M1FN, or 8-bit floats (f8E5M2, f8E4M3FN)}}
  %0 = xegpu.dpas_mx %a, %b {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xi8>) -> vector<8x16xf32>
  return
}

// -----

func.func @result(%a: vector<8x32xf8E5M2>, %b: vector<8x16x4xf8E5M2>) {
  // expected-error @+1 {{result of f8E5M2 x f8E5M2 must be of f32 or bf16, but got f16}}
  %0 = xegpu.dpas_mx %a, %b {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E5M2>) -> vector<8x16xf16>
  return
}

// -----

func.func @accumulator(%a: vector<8x32xf8E5M2>, %b: vector<8x16x4xf8E5M2>, %c: vector<8x8xf32>) {
  // expected-error @+1 {{accumulator vector<8x8xf32> and result vector<8x16xf32> must have the same shape}}
  %0 = xegpu.dpas_mx %a, %b, %c {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E5M2>, vector<8x8xf32>) -> vector<8x16xf32>
  return
}

// -----

func.func @depth(%a: vector<8x32xf8E5M2>, %b: vector<4x16x4xf8E5M2>) {
  // expected-error @+1 {{lhs has 32 columns, but rhs has 16 rows}}
  %0 = xegpu.dpas_mx %a, %b {mode = vc} : (vector<8x32xf8E5M2>, vector<4x16x4xf8E5M2>) -> vector<8x16xf32>
  return
}

// -----

func.func @blocks(%a: vector<8x64xf4E2M1FN>, %b: vector<8x16x8xf4E2M1FN>, %p: vector<8x1xf8E8M0FNU>) {
  // expected-error @+2 {{scale_a must be vector<8x2xf8E8M0FNU>, but got vector<8x1xf8E8M0FNU>}}
  // expected-note @+1 {{32 elements of K share a scale}}
  %0 = xegpu.dpas_mx %a, %b scale_a = %p {mode = vc} : (vector<8x64xf4E2M1FN>, vector<8x16x8xf4E2M1FN>, vector<8x1xf8E8M0FNU>) -> vector<8x16xf32>
  return
}

// -----

func.func @scale(%a: vector<8x32xf8E5M2>, %b: vector<8x16x4xf8E5M2>, %q: vector<1x16xf8E5M2>) {
  // expected-error @+1 {{scale_b must have elements of type f8E8M0FNU, but got vector<1x16xf8E5M2>}}
  %0 = xegpu.dpas_mx %a, %b scale_b = %q {mode = vc} : (vector<8x32xf8E5M2>, vector<8x16x4xf8E5M2>, vector<1x16xf8E5M2>) -> vector<8x16xf32>
  return
}

// -----

func.func @truncf(%x: vector<16xf32>) {
  // expected-error @+2 {{'xegpu.truncf' op cannot round f32 to f16}}
  // expected-note @+1 {{it rounds f32, f16, bf16 to f8E5M2, f8E4M3FN, f4E2M1FN; use arith.truncf for others}}
  %0 = xegpu.truncf %x : vector<16xf32> -> vector<16xf16>
  return
}

// -----

func.func @halves(%x: vector<2x3xf32>) {
  // expected-error @+1 {{requires rows of even length to pack f4E2M1FN in bytes, but got vector<2x3xf4E2M1FN>}}
  %0 = xegpu.truncf %x : vector<2x3xf32> -> vector<2x3xf4E2M1FN>
  return
}

// -----

func.func @lane_shuffle(%x: vector<4xf4E2M1FN>) {
  // expected-error @+2 {{'xegpu.lane_shuffle' op requires elements of whole bytes, but got vector<4xf4E2M1FN>}}
  // expected-note @+1 {{use vector.bitcast to i8}}
  %0 = xegpu.lane_shuffle %x pack : vector<4xf4E2M1FN>
  return
}

// -----

func.func @lane_shuffle_of_matrices(%x: vector<4x2xf16>) {
  // expected-error @+1 {{requires a 1D vector, the fragment of a work item, but got vector<4x2xf16>}}
  %0 = xegpu.lane_shuffle %x pack : vector<4x2xf16>
  return
}

// -----

func.func @truncf(%x: vector<2x16xf16>) {
  // expected-error @+1 {{'xegpu.truncf' op result must have the operand's shape 2x16, but got vector<16x2xf8E5M2>}}
  %0 = xegpu.truncf %x : vector<2x16xf16> -> vector<16x2xf8E5M2>
  return
}

// -----

func.func @truncf(%x: vector<3xf16>) {
  // expected-error @+1 {{'xegpu.truncf' op requires rows of even length to pack f4E2M1FN in bytes, but got vector<3xf4E2M1FN>}}
  %0 = xegpu.truncf %x : vector<3xf16> -> vector<3xf4E2M1FN>
  return
}
