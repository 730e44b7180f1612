// Generic form: an attribute for how each operand is accessed, with % for the variable.

// RUN: xegpu-opt %s --mlir-print-op-generic | FileCheck %s

gpu.module @kernels {
  gpu.func @generic() kernel {
    // CHECK: %[[X:.*]] = "visa.decl"() {align = "GRF", count = 128 : i64, element = "f", var_name = "X"} : () -> !visa.var
    %X = visa.decl "X", f x 128, align = GRF
    // CHECK: %[[Q:.*]] = "visa.decl"
    %Q = visa.decl "Q", uq x 16, align = GRF
    // CHECK: %[[P:.*]] = "visa.decl_pred"() {count = 16 : i64, var_name = "P"} : () -> !visa.pred
    %P = visa.decl_pred "P", 16
    // CHECK: "visa.add"(%[[X]], %[[X]], %[[P]])
    // CHECK-SAME: {control = "any", dst_access = "%(0,0)<1>", exec_size = 16 : i64, inverted = true, mask = "M1",
    // CHECK-SAME: operandSegmentSizes = array<i32: 1, 1, 0, 1>,
    // CHECK-SAME: saturate = true, src0_access = "(-)%(1,0)<1;1,0>", src1_access = "0x3f800000:f"}
    // CHECK-SAME: : (!visa.var, !visa.var, !visa.pred) -> ()
    visa.add.sat (M1, 16, !%P any) %X(0,0)<1> (-)%X(1,0)<1;1,0> 1.0:f
    // CHECK: "visa.and"(%[[P]], %[[P]], %[[P]]) {dst_access = "%", {{.*}} : (!visa.pred, !visa.pred, !visa.pred) -> ()
    visa.and (M1, 16) %P %P %P
    // CHECK: "visa.lsc_load"(%[[Q]])
    // CHECK-SAME: address_access = "flat[%[0]+0x40]", address_size = "a64", caches = "ca.ca", data = "d32", dst_access = "null"
    visa.lsc_load.ugm.ca.ca (M1, 16) null:d32 flat[%Q[0]+0x40]:a64
    // CHECK: "visa.ret"() {exec_size = 1 : i64, mask = "M1"} : () -> ()
    visa.ret (M1, 1)
    gpu.return
  }
}
