// Errors of MLIR, of the syntax and of the form of ops. test/unit/visa/test_verify.py tests the rules of each
// instruction.

// RUN: xegpu-opt %s --split-input-file --verify-diagnostics

gpu.module @kernels {
  gpu.func @unknown() kernel {
    // expected-error @+1 {{unknown operation 'visa.ad'; did you mean 'visa.mad'?}}
    visa.ad (M1, 16)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @undeclared() kernel {
    // expected-error @+1 {{use of undeclared SSA value name}}
    visa.mov (M1, 16) %X(0,0)<1> 0x0:f
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @predicate_as_variable() kernel {
    // expected-note @+1 {{prior use here}}
    %P = visa.decl_pred "P", 16
    // expected-error @+1 {{use of value '%P' expects different type than prior uses: '!visa.var' vs '!visa.pred'}}
    visa.mov (M1, 16) %P(0,0)<1> 0x0:f
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @variable_as_guard() kernel {
    // expected-note @+1 {{prior use here}}
    %X = visa.decl "X", f x 16
    // expected-error @+1 {{use of value '%X' expects different type than prior uses: '!visa.pred' vs '!visa.var'}}
    visa.mov (M1, 16, %X) %X(0,0)<1> 0x0:f
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @size() kernel {
    // expected-error @+1 {{expected an execution size, 1, 2, 4, 8, 16, 32, such as in '(M1, 32)'}}
    visa.mov (M1, 12) %X(0,0)<1> 0x0:f
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @guard() kernel {
    // expected-error @+1 {{'dpas' cannot be predicated}}
    visa.dpas.bf.bf.8.8 (M1, 16, %P) %X null %X %X
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @guard_word() kernel {
    // expected-error @+1 {{expected ')', but got 'some'}}
    visa.mov (M1, 16, %P some) %X(0,0)<1> 0x0:f
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @region() kernel {
    // expected-error @+1 {{expected the source's region, such as '(0,0)<1;1,0>'}}
    visa.mov (M1, 16) %X(0,0)<1> %X(0,0)<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @null() kernel {
    // expected-error @+1 {{'src0' cannot be null}}
    visa.lsc_store.ugm (M1, 16) flat[%Q]:a64 null:d32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @rest() kernel {
    // expected-error @+1 {{'visa.barrier' has no attribute 'scope'}}
    visa.barrier {scope = "group"}
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @rules() kernel {
    %X = visa.decl "X", f x 16
    // expected-error @+1 {{'visa.mov' op operand 'dst' reaches to byte 128 of 'X', which has 64}}
    visa.mov (M1, 16) %X(1,0)<1> 0x0:f
    %Y = visa.decl "Y", f x 16
    // expected-error @+1 {{'visa.sel' op needs a predicate}}
    visa.sel (M1, 16) %X(0,0)<1> %X(0,0)<1;1,0> %Y(0,0)<1;1,0>
    visa.ret (M1, 1)
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @general_variable_as_addresses() kernel {
    // expected-note @+1 {{prior use here}}
    %X = visa.decl "X", d x 16
    // expected-error @+1 {{use of value '%X' expects different type than prior uses: '!visa.address' vs '!visa.var'}}
    visa.mov (M1, 16) %X(0,0)<1> r[%X(0),0]<1,0>:d
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @addresses_as_numbers() kernel {
    %X = visa.decl "X", d x 16
    %A = visa.decl_address "A", 16
    // expected-error @+1 {{'visa.mov' op operand 'src0' is the address variable 'A', but must be a general variable}}
    visa.mov (M1, 16) %X(0,0)<1> %A(0)<1;1,0>
    // expected-error @+1 {{'visa.mov' op operand 'src0' is at addresses in 'A', which get no variable's place}}
    visa.mov (M1, 16) %X(0,0)<1> r[%A(0),0]<1,0>:d
    visa.ret (M1, 1)
    gpu.return
  }
}
