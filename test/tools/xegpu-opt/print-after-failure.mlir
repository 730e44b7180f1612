// The IR on which a pass failed comes before the error.
// RUN: not xegpu-opt --xegpu-dce --xegpu-verify-target --mlir-print-ir-after-failure %s 2>&1 | FileCheck %s
// RUN: not xegpu-opt --xegpu-dce --xegpu-verify-target %s 2>&1 | FileCheck %s --check-prefix=PLAIN

// CHECK-NOT: IR Dump After xegpu-dce
// CHECK: // -----// IR Dump After xegpu-verify-target Failed //----- //
// CHECK: gpu.func @exponents
// CHECK: arith.addf
// CHECK: error: 'arith.addf' op arithmetic on f8E8M0FNU is not supported
// PLAIN-NOT: IR Dump
gpu.module @m {
  gpu.func @exponents(%v: vector<16xf8E8M0FNU>, %p: memref<16xf8E8M0FNU>) kernel {
    %x = arith.addf %v, %v : vector<16xf8E8M0FNU>
    %c0 = arith.constant 0 : index
    vector.store %x, %p[%c0] : memref<16xf8E8M0FNU>, vector<16xf8E8M0FNU>
    gpu.return
  }
}
