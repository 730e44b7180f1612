// Operand groups of ops in generic form: what the verifier refuses.

// RUN: xegpu-opt %s --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @access_without_operand() kernel {
    %X = visa.decl "X", f x 16
    // expected-error @+1 {{'visa.mov' op 'src0_access' requires the operand 'src0'}}
    "visa.mov"(%X) {dst_access = "%(0,0)<1>", src0_access = "%(0,0)<1;1,0>", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 0, 0>} : (!visa.var) -> ()
    // expected-error @+1 {{'visa.mov' op 'src0_access' does not allow the operand 'src0'}}
    "visa.mov"(%X, %X) {dst_access = "%(0,0)<1>", src0_access = "0x0:f", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 1, 0>} : (!visa.var, !visa.var) -> ()
    // expected-error @+1 {{'visa.mov' op 'inverted' and 'control' require the operand 'guard'}}
    "visa.mov"(%X) {dst_access = "%(0,0)<1>", src0_access = "0x0:f", inverted = true, exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 0, 0>} : (!visa.var) -> ()
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @base_without_operand() kernel attributes {visa.target = "cri"} {
    %X = visa.decl "X", ud x 16, align = GRF
    %B = visa.decl "B", uq x 1, align = GRF
    // expected-error @+1 {{'visa.lsc_load' op 'address_access' requires the operand 'address_base'}}
    "visa.lsc_load"(%X, %X) {address_access = "flat(%)[0x4*%[0]]", address_size = "a32s", data = "d32", dst_access = "%[0]", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 1, 0, 0>, sfid = "ugm"} : (!visa.var, !visa.var) -> ()
    // expected-error @+1 {{'visa.lsc_load' op 'address_access' does not allow the operand 'address_base'}}
    "visa.lsc_load"(%X, %X, %B) {address_access = "flat[%[0]]", address_size = "a32", data = "d32", dst_access = "%[0]", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 1, 1, 0>, sfid = "ugm"} : (!visa.var, !visa.var, !visa.var) -> ()
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @access_of_another_kind() kernel {
    %X = visa.decl "X", f x 16
    %P = visa.decl_pred "P", 16
    // expected-error @+1 {{'visa.mov' op operand 'src0' is the predicate 'P', but must be a general variable}}
    "visa.mov"(%X, %P) {dst_access = "%(0,0)<1>", src0_access = "%(0,0)<1;1,0>", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 1, 0>} : (!visa.var, !visa.pred) -> ()
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @access_text() kernel {
    %X = visa.decl "X", f x 16
    // expected-error @+1 {{'visa.mov' op attribute 'dst_access': '%(0,0)<1;1,0>': expected the destination's region}}
    "visa.mov"(%X) {dst_access = "%(0,0)<1;1,0>", src0_access = "0x0:f", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 0, 0>} : (!visa.var) -> ()
    // expected-error @+1 {{'visa.mov' op attribute 'src0_access': '0x0:f 1': unexpected '1'}}
    "visa.mov"(%X) {dst_access = "%(0,0)<1>", src0_access = "0x0:f 1", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 0, 0>} : (!visa.var) -> ()
    // expected-error @+1 {{'visa.label' op attribute 'label': '1': expected a label, but got '1'}}
    "visa.label"() {label = "1"} : () -> ()
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @operand_of_another_dialect(%c: i32) kernel {
    %X = visa.decl "X", f x 16
    // expected-error @+1 {{'i32' does not satisfy the constraint}}
    "visa.mov"(%X, %c) {dst_access = "%(0,0)<1>", src0_access = "%(0,0)<1;1,0>", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 1, 0>} : (!visa.var, i32) -> ()
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @element_of_another_kind() kernel {
    %X = visa.decl "X", ud x 16
    %A = visa.decl_address "A", 16
    // expected-error @+1 {{'visa.mov' op 'dst_access' must name the element by %(column)}}
    "visa.mov"(%A) {dst_access = "%(0,0)<1>", src0_access = "0x0:uw", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 0, 0>} : (!visa.address) -> ()
    // expected-error @+1 {{'visa.mov' op 'dst_access' must name the element by %(row,column)}}
    "visa.mov"(%X) {dst_access = "%(0)<1>", src0_access = "0x0:uw", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 0, 0>} : (!visa.var) -> ()
    // expected-error @+1 {{'visa.mov' op 'src0_access' must be of an address variable}}
    "visa.mov"(%X, %X) {dst_access = "%(0,0)<1>", src0_access = "r[%(0),0]<1,0>:ud", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 1, 0>} : (!visa.var, !visa.var) -> ()
    // expected-error @+1 {{'visa.addr_add' op 'src0_access' must be of a general variable}}
    "visa.addr_add"(%A, %A) {dst_access = "%(0)<1>", src0_access = "&%", src1_access = "0x0:uw", exec_size = 16 : i64, mask = "M1", operandSegmentSizes = array<i32: 1, 1, 0>} : (!visa.address, !visa.address) -> ()
    gpu.return
  }
}
