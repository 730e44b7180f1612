// Messages: every kind, its shapes, its caches.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s --mlir-print-op-generic | xegpu-opt | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @loads()
  gpu.func @loads() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %DF = visa.decl "DF", df x 64, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    %Q = visa.decl "Q", uq x 64, align = GRF
    %P = visa.decl_pred "P", 16
    // CHECK: visa.lsc_load.ugm (M1, 16) %F[0]:d32 flat[%Q[0]]:a64
    visa.lsc_load.ugm (M1, 16) %F[0]:d32 flat[%Q[0]]:a64
    // CHECK: visa.lsc_load.ugm (M1, 16, %P) %F[0]:d32 flat(%Q(0,2))[0x4*%U[0]+0x10]:a32s
    visa.lsc_load.ugm (M1, 16, %P) %F[0]:d32 flat(%Q(0,2))[0x4*%U[0]+0x10]:a32s
    // CHECK: visa.lsc_load.ugm (M1, 16) %F[0]:d32 flat(0x100000)[0x4*%U[0]]:a32u
    visa.lsc_load.ugm (M1, 16) %F[0]:d32 flat(0x100000)[0x4*%U[0]]:a32u
    // CHECK: visa.lsc_load.ugm.ca.uc (M1, 16, %P) %F[0]:d32x4 flat[%Q[0]+0x40]:a64
    visa.lsc_load.ugm.ca.uc (M1, 16, %P) %F[0]:d32x4 flat[%Q[0]+0x40]:a64
    // CHECK: visa.lsc_load.ugm.st.uc (M1, 16) %F[64]:d16c32 flat[%Q[128]-0x8]:a64
    visa.lsc_load.ugm.st.uc (M1, 16) %F[64]:d16c32 flat[%Q[128]-0x8]:a64
    // CHECK: visa.lsc_load.slm (M1, 16) %F[0]:d8c32 flat[%U[0]]:a32
    visa.lsc_load.slm (M1, 16) %F[0]:d8c32 flat[%U[0]]:a32
    // CHECK: visa.lsc_load.slm (M1, 1) %F[0]:d32x16t flat[%U[4]]:a32
    visa.lsc_load.slm (M1, 1) %F[0]:d32x16t flat[%U[4]]:a32
    // CHECK: visa.lsc_load.ugm (M1, 1) %DF[0]:d64x8t flat[%Q[8]]:a64
    visa.lsc_load.ugm (M1, 1) %DF[0]:d64x8t flat[%Q[8]]:a64
    // CHECK: visa.lsc_load.ugm.ca.ca (M1, 16) null:d32 flat[%Q[0]]:a64
    visa.lsc_load.ugm.ca.ca (M1, 16) null:d32 flat[%Q[0]]:a64
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @stores()
  gpu.func @stores() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    %Q = visa.decl "Q", uq x 64, align = GRF
    // CHECK: visa.lsc_store.ugm (M1, 16) flat[%Q[0]]:a64 %F[0]:d32
    visa.lsc_store.ugm (M1, 16) flat[%Q[0]]:a64 %F[0]:d32
    // CHECK: visa.lsc_store.ugm.wb.wb (M1, 16) flat[%Q[0]]:a64 %F[0]:d32x2
    visa.lsc_store.ugm.wb.wb (M1, 16) flat[%Q[0]]:a64 %F[0]:d32x2
    // CHECK: visa.lsc_store.slm (M1, 1) flat[%U[0]]:a32 %F[0]:d32x64t
    visa.lsc_store.slm (M1, 1) flat[%U[0]]:a32 %F[0]:d32x64t
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @blocks()
  gpu.func @blocks() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %H = visa.decl "H", hf x 128, align = GRF
    %D = visa.decl "D", d x 128, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    %Q = visa.decl "Q", uq x 64, align = GRF
    // CHECK: visa.lsc_load_block2d.ugm.ca.ca (M1, 1) %H[0]:d16.16x8nn flat[%Q(0,0),0x7ff,0x3ff,0x7ff,%D(0,0),%D(0,1)]
    visa.lsc_load_block2d.ugm.ca.ca (M1, 1) %H[0]:d16.16x8nn flat[%Q(0,0),0x7ff,0x3ff,0x7ff,%D(0,0),%D(0,1)]
    // CHECK: visa.lsc_load_block2d.ugm (M1_NM, 1) %H[0]:d16.2x8x8nt flat[%Q(0,0),%U(0,0),%U(0,1),%U(0,2),0x0,0x10]
    visa.lsc_load_block2d.ugm (M1_NM, 1) %H[0]:d16.2x8x8nt flat[%Q(0,0),%U(0,0),%U(0,1),%U(0,2),0x0,0x10]
    // CHECK: visa.lsc_load_block2d.ugm (M1, 1) %D[0]:d32.8x8tn flat[%Q(0,0),0x7ff,0x3ff,0x7ff,0x0,0x0]
    visa.lsc_load_block2d.ugm (M1, 1) %D[0]:d32.8x8tn flat[%Q(0,0),0x7ff,0x3ff,0x7ff,0x0,0x0]
    // CHECK: visa.lsc_load_block2d.ugm.uc.ca (M1, 1) null:d8.4x16x4nn flat[%Q(0,0),0x7ff,0x3ff,0x7ff,0x0,0x0]
    visa.lsc_load_block2d.ugm.uc.ca (M1, 1) null:d8.4x16x4nn flat[%Q(0,0),0x7ff,0x3ff,0x7ff,0x0,0x0]
    // CHECK: visa.lsc_store_block2d.ugm.wb.wb (M1, 1) flat[%Q(0,0),0x7ff,0x3ff,0x7ff,0x0,0x0] %H[0]:d16.16x8nn
    visa.lsc_store_block2d.ugm.wb.wb (M1, 1) flat[%Q(0,0),0x7ff,0x3ff,0x7ff,0x0,0x0] %H[0]:d16.16x8nn
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }

  // CHECK-LABEL: gpu.func @atomics()
  gpu.func @atomics() kernel attributes {visa.attributes = {SimdSize = 16 : i64}} {
    %F = visa.decl "F", f x 128, align = GRF
    %U = visa.decl "U", ud x 128, align = GRF
    %Q = visa.decl "Q", uq x 64, align = GRF
    %P = visa.decl_pred "P", 16
    // CHECK: visa.lsc_atomic_iinc.ugm (M1, 16, %P) null:d32 flat[%Q[0]]:a64 null null
    visa.lsc_atomic_iinc.ugm (M1, 16, %P) null:d32 flat[%Q[0]]:a64 null null
    // CHECK: visa.lsc_atomic_idec.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 null null
    visa.lsc_atomic_idec.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 null null
    // CHECK: visa.lsc_atomic_load.ugm (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 null null
    visa.lsc_atomic_load.ugm (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 null null
    // CHECK: visa.lsc_atomic_store.ugm.uc.wb (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_store.ugm.uc.wb (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_iadd.ugm (M1, 16) null:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_iadd.ugm (M1, 16) null:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_isub.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_isub.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_smin.ugm (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_smin.ugm (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_smax.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_smax.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_umin.ugm (M1, 16) null:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_umin.ugm (M1, 16) null:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_umax.ugm.uc.wb (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_umax.ugm.uc.wb (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_and.ugm (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_and.ugm (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_or.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_or.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_xor.ugm (M1, 16, %P) null:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_xor.ugm (M1, 16, %P) null:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_icas.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] %F[64]
    visa.lsc_atomic_icas.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] %F[64]
    // CHECK: visa.lsc_atomic_fadd.ugm (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_fadd.ugm (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_fsub.ugm.uc.wb (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_fsub.ugm.uc.wb (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_fmin.ugm (M1, 16) null:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_fmin.ugm (M1, 16) null:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_fmax.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    visa.lsc_atomic_fmax.ugm.uc.wb (M1, 16) %U[0]:d32 flat[%Q[0]]:a64 %F[0] null
    // CHECK: visa.lsc_atomic_fcas.ugm (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] %F[64]
    visa.lsc_atomic_fcas.ugm (M1, 16, %P) %U[0]:d32 flat[%Q[0]]:a64 %F[0] %F[64]
    // CHECK: visa.ret (M1, 1)
    visa.ret (M1, 1)
    gpu.return
  }
}
