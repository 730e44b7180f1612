// DPAS: accumulators, precisions, offsets.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s --mlir-print-op-generic | xegpu-opt | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @dpas()
  gpu.func @dpas() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %BF = visa.decl "BF", bf x 128, align = GRF
    %D = visa.decl "D", d x 128, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    // CHECK: visa.dpas.bf.bf.8.8 (M1, 16) %F[0] %F[0] %D[0] %U(0,0)
    visa.dpas.bf.bf.8.8 (M1, 16) %F[0] %F[0] %D[0] %U(0,0)
    // CHECK: visa.dpas.hf.hf.8.4 (M1, 16) %F[256] null %D[0] %U(1,0)
    visa.dpas.hf.hf.8.4 (M1, 16) %F[256] null %D[0] %U(1,0)
    // CHECK: visa.dpas.u8.s4.8.1 (M1, 16) %D[0] %U[64] %D[0] %D(0,8)
    visa.dpas.u8.s4.8.1 (M1, 16) %D[0] %U[64] %D[0] %D(0,8)
    // CHECK: visa.dpas.tf32.tf32.8.2 (M1_NM, 16) %F[0] null %D[0] %D(0,0)
    visa.dpas.tf32.tf32.8.2 (M1_NM, 16) %F[0] null %D[0] %D(0,0)
    // CHECK: visa.dpas.bf.bf.8.1 (M1, 16) %BF[0] %BF[0] %D[0] %U(0,0)
    visa.dpas.bf.bf.8.1 (M1, 16) %BF[0] %BF[0] %D[0] %U(0,0)
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }
}
