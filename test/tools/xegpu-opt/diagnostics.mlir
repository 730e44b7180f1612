// Diagnostics show the place in the user's text, the line and a caret, and our syntax in what MLIR says.

// RUN: not xegpu-opt --split-input-file %s 2>&1 | FileCheck %s --strict-whitespace

// CHECK:diagnostics.mlir:10:22: error: use of undeclared SSA value name
// CHECK-NEXT:  %0 = xegpu.load_nd %missing {mode = vc}
// CHECK-NEXT:{{^}}                     ^

func.func @undeclared() {
  %0 = xegpu.load_nd %missing {mode = vc} : !xegpu.tensor_desc<8 x 16 x f16> -> vector<8x16xf16>
  return
}

// -----

// CHECK:diagnostics.mlir:21:16: error: use of value '%t' expects different type than prior uses: '!xegpu.tensor_desc<8x16xf16>' vs '!xegpu.tensor_desc<16x16xf16>'
// CHECK-NEXT:  func.call @h(%t)
// CHECK-NEXT:{{^}}               ^
// CHECK-NEXT:diagnostics.mlir:20:14: note: prior use here
func.func @g(%t: !xegpu.tensor_desc<16x16xf16>) {
  func.call @h(%t) : (!xegpu.tensor_desc<8x16xf16>) -> ()
  return
}

// -----

// CHECK:diagnostics.mlir:30:3: error: expected base type 'xegpu.tensor_desc' but got 'builtin.integer'
// CHECK:diagnostics.mlir:30:3: note: see current operation: "xegpu.prefetch_nd"(%arg0) : (i32) -> ()
func.func @generic(%t: i32) {
  "xegpu.prefetch_nd"(%t) : (i32) -> ()
  return
}

// -----

// CHECK:error: custom op 'arith.adff' is unknown; did you mean 'arith.addf'?{{$}}
func.func @misspelt(%a: f32) {
  %b = arith.adff %a, %a : f32
  return
}

// -----

// CHECK:error: custom op 'retrun' is unknown (tried 'func.retrun' as well); did you mean 'func.return'?{{$}}
func.func @misspelt() {
  retrun
}

// -----

// CHECK:error: custom op 'foo' is unknown (tried 'func.foo' as well){{$}}
func.func @unlike() {
  foo
}

// -----

// CHECK:error: unregistered operation 'gpu.retrun' found in dialect ('gpu') that does not allow unknown operations; did you mean 'gpu.return'?{{$}}
func.func @generic() {
  "gpu.retrun"() : () -> ()
  return
}

// -----

// CHECK:error: unregistered operation 'vcix.lod' found in dialect ('vcix') that does not allow unknown operations{{$}}
func.func @no_bindings() {
  "vcix.lod"() : () -> ()
  return
}
