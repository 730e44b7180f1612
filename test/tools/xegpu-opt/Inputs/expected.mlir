// expected-error @below {{unknown operation 'xegpu.below'}}
xegpu.below
// -----
xegpu.above
// expected-error @above {{unknown operation}}
// -----
xegpu.same // expected-error {{'xegpu.same'}}
// -----
// expected-error @+2 {{unknown operation}}

xegpu.plus
// -----
xegpu.minus

// expected-error @-2 {{unknown operation}}
// -----
// expected-error-re @below {{unknown {{o[a-z]+}} 'xegpu.{{.*}}'}}
xegpu.regex
// -----
func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  // expected-error @below 1 {{memory_scope = slm does not match}}
  xegpu.prefetch_nd %t {mode = vc, memory_scope = slm} : !xegpu.tensor_desc<8x16xf16>
  // expected-error @+2 {{is not a valid hint for a read}}
  // expected-note @below {{valid hints for a read are cached}}
  xegpu.prefetch_nd %t {mode = vc, l1_hint = write_back} : !xegpu.tensor_desc<8x16xf16>
  return
}
