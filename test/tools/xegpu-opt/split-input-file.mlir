// RUN: not xegpu-opt --split-input-file %s 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: xegpu-opt --split-input-file %S/Inputs/two.mlir | FileCheck %s
// RUN: sed "s/ -----/ ===/" %S/Inputs/two.mlir | xegpu-opt --split-input-file="// ===" --output-split-marker="// ~~~" | FileCheck %s --check-prefix=MARKER

// The file's own line numbers are reported, and a bad piece does not hide the next one.
// ERROR: split-input-file.mlir:8:41: error: a tensor descriptor must have positive dimensions
// ERROR: split-input-file.mlir:11:1: error: unknown operation 'xegpu.nothing'
func.func private @f(!xegpu.tensor_desc<0x16xf16>)
// -----
// ERROR-NOT: module
xegpu.nothing
// -----
func.func private @g()

// CHECK: func.func private @one()
// CHECK: // -----
// CHECK: func.func private @two()

// MARKER: func.func private @one()
// MARKER: // ~~~
// MARKER: func.func private @two()
