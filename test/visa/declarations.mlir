// Variables, predicates, inputs and built-in variables. SSA values have the names of the declarations.

// RUN: xegpu-opt %s | FileCheck %s
// RUN: xegpu-opt %s | xegpu-opt | FileCheck %s
// RUN: xegpu-opt %s --mlir-print-op-generic | xegpu-opt | FileCheck %s

// CHECK: gpu.module @kernels attributes {visa.target = "any"}
gpu.module @kernels attributes {visa.target = "any"} {
  // CHECK: gpu.func @variables() kernel attributes {visa.attributes = {SLMSize = 4 : i64, SimdSize = 32 : i64, Target = "cm"}, visa.target = "pvc"}
  gpu.func @variables() kernel attributes {
    visa.attributes = {SimdSize = 32, Target = "cm", SLMSize = 4}, visa.target = "pvc"
  } {
    // CHECK-NEXT: %acc = visa.decl "acc", f x 64, align = GRF
    %0 = visa.decl "acc", f x 64, align = GRF
    // CHECK-NEXT: %half = visa.decl "half", hf x 16, align = GRFx2
    %1 = visa.decl "half", hf x 16, align = GRFx2
    // CHECK-NEXT: %bytes = visa.decl "bytes", ub x 3
    %2 = visa.decl "bytes", ub x 3, align = byte
    // CHECK-NEXT: %row = visa.decl "row", f x 16, alias = %acc + 64
    %3 = visa.decl "row", f x 16, alias = %0 + 64
    // CHECK-NEXT: %bits = visa.decl "bits", ud x 16, align = GRF, alias = %row
    %4 = visa.decl "bits", ud x 16, align = GRF, alias = %3 + 0
    // CHECK-NEXT: %base = visa.decl "base", uq x 1, align = qword {test.note = "kept"}
    %5 = visa.decl "base", uq x 1, align = qword {test.note = "kept"}
    // CHECK-NEXT: %groups = visa.decl "groups", ud x 3, align = dword
    %6 = visa.decl "groups", ud x 3, align = dword
    // CHECK-NEXT: %lanes = visa.decl_pred "lanes", 32
    %7 = visa.decl_pred "lanes", 32
    // CHECK-NEXT: visa.input %base, offset = 64, size = 8
    visa.input %5, offset = 64, size = 8
    // CHECK-NEXT: visa.input %groups, offset = 96, size = 12, kind = GROUP_COUNT
    visa.input %6, offset = 96, size = 12, kind = GROUP_COUNT
    // CHECK-NEXT: %r0 = visa.builtin r0
    %8 = visa.builtin r0
    // CHECK-NEXT: %group_id_x = visa.builtin group_id_x
    %9 = visa.builtin group_id_x
    // CHECK-NEXT: visa.mov (M1, 1) %bits(0,0)<1> %group_id_x(0,0)<0;1,0>
    visa.mov (M1, 1) %4(0,0)<1> %9(0,0)<0;1,0>
    // CHECK-NEXT: visa.ret (M1, 1)
    visa.ret (M1, 1)
    // CHECK-NEXT: gpu.return
    gpu.return
  }

  // Two kernels may have variables of one name.
  // CHECK-LABEL: gpu.func @other
  gpu.func @other() kernel {
    // CHECK-NEXT: %sum = visa.decl "sum", d x 16
    %0 = visa.decl "sum", d x 16
    // CHECK-NEXT: %acc = visa.decl "acc", d x 16
    %1 = visa.decl "acc", d x 16
    // CHECK-NEXT: visa.mov (M1, 16) %acc(0,0)<1> %sum(0,0)<1;1,0>
    visa.mov (M1, 16) %1(0,0)<1> %0(0,0)<1;1,0>
    visa.ret (M1, 1)
    gpu.return
  }
}
