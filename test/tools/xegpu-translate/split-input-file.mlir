// RUN: xegpu-translate --mlir-to-visaasm --split-input-file %s | FileCheck %s

// CHECK: .version 3.8
// CHECK-NEXT: .kernel "one"
gpu.module @kernels {
  gpu.func @one() kernel {
    visa.ret (M1, 1)
    gpu.return
  }
}

// CHECK: // -----
// CHECK-NEXT: .version 3.8
// CHECK-NEXT: .kernel "two"
// -----

gpu.module @kernels {
  gpu.func @two() kernel {
    visa.ret (M1, 1)
    gpu.return
  }
}
