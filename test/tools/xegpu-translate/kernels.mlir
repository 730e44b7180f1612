// One kernel of several, by name, and the target of each.

// RUN: xegpu-translate --mlir-to-visaasm %s | FileCheck %s --check-prefixes=FIRST,SECOND
// RUN: xegpu-translate -mlir-to-visaasm -kernel=second %s | FileCheck %s --check-prefix=ONLY
// RUN: xegpu-translate --mlir-to-visaasm --kernel second %s | xegpu-translate --visaasm-to-mlir --target dg2 | FileCheck %s --check-prefix=BACK
// RUN: not xegpu-translate --mlir-to-visaasm --kernel=third %s 2>&1 | FileCheck %s --check-prefix=THIRD
// RUN: not xegpu-translate --mlir-to-visaasm --target=dg2 %s 2>&1 | FileCheck %s --check-prefix=DG2
// RUN: not xegpu-translate --mlir-to-gen --kernel=second --target=any %s 2>&1 | FileCheck %s --check-prefix=ANY

// FIRST:      .version 3.8
// FIRST-NEXT: .kernel "first"
// SECOND:     .kernel "second"

// ONLY-NOT: first
// ONLY: .kernel "second"
// ONLY-NOT: first

// BACK: gpu.module @kernels attributes {visa.target = "dg2"}
// BACK-NEXT: gpu.func @second() kernel {

// THIRD: kernels.mlir:1:1: error: there is no kernel 'third'; there are first, second

// DG2: kernels.mlir:30:5: error: 'visa.fcvt' op is not supported on target 'dg2'
// ANY: kernels.mlir:34:3: error: 'gpu.func' op the finalizer does not know target any; it knows pvc, pvcxt, dg2, bmg, lnl, ptl, cri

gpu.module @a attributes {visa.target = "pvc"} {
  gpu.func @first() kernel attributes {visa.target = "pvcxt"} {
    %U = visa.decl "U", ud x 16, align = GRF
    %F = visa.decl "F", f x 16, align = GRF
    visa.fcvt (M1, 16) %U(0,0)<1> %F(0,0)<1;1,0>
    visa.ret (M1, 1)
    gpu.return
  }
  gpu.func @second() kernel {
    visa.ret (M1, 1)
    gpu.return
  }
}
