// Messages of GPUs before Xe2, and switchjmp.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s --mlir-print-op-generic | xegpu-opt | FileCheck %s
// RUN: xegpu-translate --mlir-to-visaasm %s | FileCheck %s --check-prefix=TEXT
// RUN: xegpu-translate --mlir-to-visaasm %s | xegpu-translate --visaasm-to-mlir | FileCheck %s

gpu.module @kernels {
  gpu.func @older() kernel attributes {visa.attributes = {SLMSize = 1 : i64}} {
    %A = visa.decl "A", uq x 16, align = GRF
    %U = visa.decl "U", ud x 64, align = GRF
    %D = visa.decl "D", ud x 128, align = GRF
    %P = visa.decl_pred "P", 16
    // CHECK: visa.svm_block_ld (4) %A(0,0)<0;1,0> %D[0]
    // TEXT: svm_block_ld (4) A(0,0)<0;1,0> D.0
    visa.svm_block_ld (4) %A(0,0)<0;1,0> %D[0]
    // CHECK: visa.svm_block_st.aligned (8) %A(0,1)<0;1,0> %D[64]
    // TEXT: svm_block_st.aligned (8) A(0,1)<0;1,0> D.64
    visa.svm_block_st.aligned (8) %A(0,1)<0;1,0> %D[64]
    // CHECK: visa.svm_gather.4.2 (M1, 16, %P) %A[0] %D[0]
    // TEXT: (P) svm_gather.4.2 (M1, 16) A.0 D.0
    visa.svm_gather.4.2 (M1, 16, %P) %A[0] %D[0]
    // CHECK: visa.svm_scatter4scaled.RB (M1, 8) %A(0,0)<0;1,0> %A[0] %D[0]
    visa.svm_scatter4scaled.RB (M1, 8) %A(0,0)<0;1,0> %A[0] %D[0]
    // CHECK: visa.svm_atomic.cmpxchg (M1, 8) %A[0] %D[0] %D[64] %D[128]
    visa.svm_atomic.cmpxchg (M1, 8) %A[0] %D[0] %D[64] %D[128]
    // CHECK: visa.svm_atomic.add.64 (M1, 8) %A[0] null %A[0] null
    // TEXT: svm_atomic.add.64 (M1, 8) A.0 %null.0 A.0 %null.0
    visa.svm_atomic.add.64 (M1, 8) %A[0] null %A[0] null
    // CHECK: visa.gather.2 (M1, 8).mod %slm 0x1:ud %U[0] %D[0]
    // TEXT: gather.2 (M1, 8).mod %slm 0x1:ud U.0 D.0
    visa.gather.2 (M1, 8).mod %slm 0x1:ud %U[0] %D[0]
    // CHECK: visa.scatter_scaled.4 (M1, 16) %slm %U(0,0)<0;1,0> %U[0] %D[0]
    visa.scatter_scaled.4 (M1, 16) %slm %U(0,0)<0;1,0> %U[0] %D[0]
    // CHECK: visa.gather4_scaled.GBA (M1, 16) %slm 0x0:ud %U[0] %D[0]
    visa.gather4_scaled.GBA (M1, 16) %slm 0x0:ud %U[0] %D[0]
    // CHECK: visa.qw_gather.1 (M1, 8) %slm %U[0] %A[0]
    visa.qw_gather.1 (M1, 8) %slm %U[0] %A[0]
    // CHECK: visa.dword_atomic.min (M1, 8) %slm %U[0] %D[0] null %D[64]
    // TEXT: dword_atomic.min (M1, 8) %slm U.0 D.0 %null.0 D.64
    visa.dword_atomic.min (M1, 8) %slm %U[0] %D[0] null %D[64]
    // CHECK: visa.oword_ld (16) %slm 0x10:ud %D[0]
    visa.oword_ld (16) %slm 0x10:ud %D[0]
    // CHECK: visa.oword_ld_unaligned.mod (1) %slm %U(0,3)<0;1,0> %D[0]
    visa.oword_ld_unaligned.mod (1) %slm %U(0,3)<0;1,0> %D[0]
    // CHECK: visa.switchjmp (M1, 1) %U(0,0)<0;1,0> (one, two, one)
    // TEXT: switchjmp (M1, 1) U(0,0)<0;1,0> (one, two, one)
    visa.switchjmp (M1, 1) %U(0,0)<0;1,0> (one, two, one)
    // CHECK: visa.fence_local.E
    visa.fence_local.E
    // CHECK: visa.fence_global.EL1
    // TEXT: fence_global.EL1
    visa.fence_global.EL1
    // CHECK: visa.fence_global{{$}}
    visa.fence_global
    visa.label one
    visa.label two
    visa.ret (M1, 1)
    gpu.return
  }
}
