// RUN: xegpu-opt %s --split-input-file --verify-diagnostics

func.func @no_kernel() {
  // expected-error @+1 {{'visa.barrier' op must be in the body of a gpu.func with the attribute 'kernel'}}
  visa.barrier
  return
}

// -----

gpu.module @kernels {
  gpu.func @device_function() {
    // expected-error @+1 {{'visa.barrier' op must be in the body of a gpu.func with the attribute 'kernel'}}
    visa.barrier
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @nested(%c: i1) kernel {
    scf.if %c {
      // expected-error @+1 {{'visa.barrier' op must be in the body of a gpu.func with the attribute 'kernel'}}
      visa.barrier
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @other_ops() kernel {
    // expected-error @+2 {{'arith.constant' op is not allowed in a kernel of visa ops}}
    // expected-note @+1 {{only visa ops and 'gpu.return' are}}
    %c = arith.constant 0 : i32
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+2 {{'gpu.func' op of visa instructions cannot use its argument 1}}
  // expected-note @+1 {{declare a variable with 'visa.input' for each argument that instructions read}}
  gpu.func @arguments(%m: memref<8xf32>, %v: !visa.var) kernel {
    visa.mov (M1, 1) %v(0,0)<1> 0:d
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{of visa instructions must have one block, but got 2}}
  gpu.func @blocks() kernel {
    visa.ret (M1, 1)
    cf.br ^end
  ^end:
    gpu.return
  }
}

// -----

// expected-error @+1 {{'gpu.module' op visa.target: unknown target 'i860'; there are pvc, pvcxt, dg2, bmg, lnl, ptl, cri, any, virtual}}
gpu.module @kernels attributes {visa.target = "i860"} {
  gpu.func @unknown_target() kernel {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.target: unknown target '8 : i64'; there are pvc, pvcxt, dg2, bmg, lnl, ptl, cri, any, virtual}}
  gpu.func @target_of_another_kind() kernel attributes {visa.target = 8 : i64} {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.attributes must be a dictionary}}
  gpu.func @attributes() kernel attributes {visa.attributes = 16 : i64} {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.attributes: 'SimdSize' must be an integer or a string}}
  gpu.func @attribute_values() kernel attributes {visa.attributes = {SimdSize = 1.5 : f32}} {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.attributes: 'a.b' is not a valid attribute name}}
  gpu.func @attribute_names() kernel attributes {visa.attributes = {a.b = 1}} {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+2 {{'gpu.func' op has a name that is not valid in assembly}}
  // expected-note @+1 {{a name cannot contain quotes, backslashes or newlines}}
  gpu.func @"a\22b"() kernel {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{kernel attribute SimdSize must be 8, 16 or 32, but got 7}}
  gpu.func @simd_size() kernel attributes {visa.attributes = {SimdSize = 7}} {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_end() kernel {
    // expected-error @+2 {{kernel 'no_end' does not end with 'ret'}}
    // expected-note @+1 {{end it with 'ret (M1, 1)'}}
    visa.barrier
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @labels() kernel {
    visa.label L1
    // expected-error @+1 {{'visa.label' op redefinition of label 'L1'}}
    visa.label L1
    // expected-error @+1 {{'visa.jmp' op jumps to undefined label 'L2'}}
    visa.jmp (M1, 1) L2
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

// Each kernel is verified for its own target.
gpu.module @kernels attributes {visa.target = "pvcxt"} {
  gpu.func @on_the_module_s() kernel {
    %F = visa.decl "F", f x 32, align = GRF
    %H = visa.decl "H", hf x 32, align = GRF
    visa.srnd (M1_NM, 16) %H(0,0)<1> %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.ret (M1, 1)
    gpu.return
  }
  gpu.func @on_its_own() kernel attributes {visa.target = "pvc"} {
    %F = visa.decl "F", f x 32, align = GRF
    %H = visa.decl "H", hf x 32, align = GRF
    // expected-error @+1 {{'visa.srnd' op is not supported on target 'pvc'}}
    visa.srnd (M1_NM, 16) %H(0,0)<1> %F(0,0)<1;1,0> %F(1,0)<1;1,0>
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.functions: 'square' is no label of the kernel}}
  gpu.func @functions() kernel attributes {visa.functions = ["main", "square"]} {
    visa.label main
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.functions: it must be an array of labels}}
  gpu.func @functions() kernel attributes {visa.functions = "main"} {
    visa.label main
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.version must be a version of assembly, such as "4.2"}}
  gpu.func @version() kernel attributes {visa.version = "4"} {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.version must be a version of assembly, such as "4.2"}}
  gpu.func @version() kernel attributes {visa.version = "4.x"} {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.version must be a version of assembly, such as "4.2"}}
  gpu.func @version() kernel attributes {visa.version = "4.2.1"} {
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @+1 {{'gpu.func' op visa.version must be a version of assembly, such as "4.2"}}
  gpu.func @version() kernel attributes {visa.version = 42 : i32} {
    visa.ret (M1, 1)
    gpu.return
  }
}
