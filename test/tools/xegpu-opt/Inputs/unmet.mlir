xegpu.wrong // expected-error {{wrong words}}
// -----


xegpu.other
// -----

// expected-error @below {{nothing is wrong}}
module {}
// -----
// expected-warning @below {{unknown operation}}
xegpu.line
